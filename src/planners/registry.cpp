#include "planners/registry.h"

#include <fmt/format.h>

#include <stdexcept>

namespace placewright {

void Registry::add(PlannerEntry entry) {
  if (find(entry.name) != nullptr) {
    throw std::logic_error(fmt::format("two planners are called '{}'", entry.name));
  }
  entries_.push_back(std::move(entry));
}

const PlannerEntry* Registry::find(std::string_view name) const {
  for (const PlannerEntry& entry : entries_) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::vector<const PlannerEntry*> Registry::fitting(const Problem& problem) const {
  std::vector<const PlannerEntry*> found;
  for (const PlannerEntry& entry : entries_) {
    if (!entry.serves(problem.objective())) continue;
    if (entry.refuses && !entry.refuses(problem).empty()) continue;
    found.push_back(&entry);
  }
  return found;
}

Registry standard_registry() {
  Registry registry;
  register_baselines(registry);
  return registry;
}

}  // namespace placewright
