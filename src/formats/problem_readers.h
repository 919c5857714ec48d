// One reader per format, from a parsed document to a draft. They fill everything in ProblemFile but
// the digest; `place_of` needs to name records of the draft only.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/json.h"
#include "formats/problem_file.h"

namespace placewright {

ProblemFile read_moirai(JsonValue root, const std::string& name);
ProblemFile read_msr(JsonValue root, const std::string& name);
ProblemFile read_talos(JsonValue root, const std::string& name);

// `cluster_follows`: a cluster file will give the devices, so the file need not.
ProblemFile read_native(JsonValue root, const std::string& name, bool cluster_follows);

// The object `rules` of our own files; what has its default is not written.
Rules rules_from_json(JsonValue object, UnknownKeys& unknown);
std::string rules_to_json(const Rules& rules);

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
