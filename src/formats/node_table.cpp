#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "formats/problem_readers.h"

namespace placewright {
namespace {

// The names of all nodes; empty if one has none or two have the same.
std::vector<std::string> unique_names(JsonValue nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  std::unordered_set<std::string_view> seen;
  for (const JsonValue node : nodes.elements()) {
    const auto name = node.find("name");
    if (!name || !name->is_text() || name->text().empty()) return {};
    if (!seen.insert(name->text()).second) return {};
    names.emplace_back(name->text());
  }
  return names;
}

}  // namespace

double time_or_null(JsonValue value) {
  return value.is_null() ? kInfinity : value.amount();
}

std::vector<double> transfer_table(JsonValue rows, std::size_t device_count) {
  const auto check_length = [device_count](JsonValue list, std::string_view what) {
    if (list.elements().size() == device_count) return;
    list.fail(fmt::format("has {} {}, expected {}, one for each device", list.size(), what,
                          device_count));
  };
  check_length(rows, "rows");
  std::vector<double> times;
  times.reserve(device_count * device_count);
  for (const JsonValue row : rows.elements()) {
    check_length(row, "entries");
    for (const JsonValue entry : row.elements()) times.push_back(time_or_null(entry));
  }
  return times;
}

NodeTable::NodeTable(JsonValue nodes) {
  ids_.reserve(nodes.elements().size());
  by_id_.reserve(nodes.size());
  for (const JsonValue node : nodes.elements()) {
    const JsonValue id = node.at("id");
    ids_.push_back(id.id());
    const auto [first, inserted] = by_id_.emplace(ids_.back(), ids_.size() - 1);
    if (!inserted) {
      id.fail(fmt::format("the id {} is taken already (by node number {})", ids_.back(),
                          first->second));
    }
  }
  names_ = unique_names(nodes);
  if (names_.size() != ids_.size()) names_ = ids_;
}

OpId NodeTable::node(JsonValue id) const {
  const std::string text = id.id();
  const auto found = by_id_.find(text);
  if (found == by_id_.end()) id.fail(fmt::format("no node has the id {}", text));
  return OpId{found->second};
}

}  // namespace placewright
