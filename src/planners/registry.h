// The list of planners. Families register themselves explicitly; names are unique.

#pragma once

#include <string_view>
#include <vector>

#include "planners/planner.h"

namespace placewright {

class Registry {
 public:
  // Throws std::logic_error when the name is taken.
  void add(PlannerEntry entry);

  [[nodiscard]] const PlannerEntry* find(std::string_view name) const;
  [[nodiscard]] const std::vector<PlannerEntry>& entries() const { return entries_; }
  // Those that serve the problem's objective and do not refuse it.
  [[nodiscard]] std::vector<const PlannerEntry*> fitting(const Problem& problem) const;

 private:
  std::vector<PlannerEntry> entries_;
};

// One function per family, one line per planner.
void register_baselines(Registry& registry);

// All families.
Registry standard_registry();

}  // namespace placewright
