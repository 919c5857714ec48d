#include "planners/registry.h"

#include <stdexcept>

#include <fmt/format.h>

#include "planners/learned/learned.h"

namespace placewright {

void Registry::add(PlannerEntry entry) {
  for (const Objective objective : entry.objectives) {
    const PlannerEntry* known = find(entry.name, objective);
    if (known == nullptr || !known->serves(objective)) continue;
    throw std::logic_error(
        fmt::format("two planners for '{}' are called '{}'", name_of(objective), entry.name));
  }
  entries_.push_back(std::move(entry));
}

const PlannerEntry* Registry::find(std::string_view name, Objective objective) const {
  const PlannerEntry* first = nullptr;
  for (const PlannerEntry& entry : entries_) {
    if (entry.name != name) continue;
    if (entry.serves(objective)) return &entry;
    if (first == nullptr) first = &entry;
  }
  return first;
}

std::vector<const PlannerEntry*> Registry::fitting(const Problem& problem) const {
  std::vector<const PlannerEntry*> found;
  for (const PlannerEntry& entry : entries_) {
    if (!entry.serves(problem.objective())) continue;
    if (!entry.refusal(problem).empty()) continue;
    found.push_back(&entry);
  }
  return found;
}

Registry standard_registry() {
  Registry registry;
  register_baselines(registry);
  register_throughput(registry);
  register_latency(registry);
  register_calls(registry);
  register_flow(registry);
  register_published(registry);
  register_imitations(registry);
  register_learned(registry);
  return registry;
}

}  // namespace placewright
