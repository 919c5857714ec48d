// What the readers of several formats share.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/json.h"
#include "formats/problem_file.h"

namespace placewright {

// A time, or kUnsupported (a transfer: no link) where the file says null.
double time_or_null(JsonValue value);

// The square table of an edge's transfer times, row by row.
std::vector<double> transfer_table(JsonValue rows, std::size_t device_count);

// The nodes of a published graph: how each is called, and which one an edge means.
//
// A node is called by its name where all have one and no two the same, else by its id.
class NodeTable {
 public:
  // Throws where an id is missing or there twice.
  explicit NodeTable(JsonValue nodes);
  NodeTable(const NodeTable&) = delete;  // by_id_ points into ids_
  NodeTable& operator=(const NodeTable&) = delete;
  ~NodeTable() = default;

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::vector<std::string>& ids() const { return ids_; }
  // The node with the id that an edge gives; throws if there is none.
  [[nodiscard]] OpId node(JsonValue id) const;

 private:
  std::vector<std::string> ids_;
  std::vector<std::string> names_;
  std::unordered_map<std::string_view, std::size_t> by_id_;
};

}  // namespace placewright
