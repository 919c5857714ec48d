// The list of planners. Families register themselves explicitly. A name is unique for each
// objective: two planners may share one (an idea with two models, as `cpsat`) where no objective is
// served by both.

#pragma once

#include <string_view>
#include <vector>

#include "planners/planner.h"

namespace placewright {

class Registry {
 public:
  // Throws std::logic_error when the name is taken for one of the entry's objectives.
  void add(PlannerEntry entry);

  // The planner of this name that serves the objective; where none does, the first of this name.
  [[nodiscard]] const PlannerEntry* find(std::string_view name, Objective objective) const;
  [[nodiscard]] const std::vector<PlannerEntry>& entries() const { return entries_; }
  // Those that serve the problem's objective and do not refuse it.
  [[nodiscard]] std::vector<const PlannerEntry*> fitting(const Problem& problem) const;

 private:
  std::vector<PlannerEntry> entries_;
};

// One function per family, one line per planner: ours by objective, then what is there for
// comparison.
void register_baselines(Registry& registry);
void register_throughput(Registry& registry);
void register_latency(Registry& registry);
void register_calls(Registry& registry);
void register_flow(Registry& registry);
void register_published(Registry& registry);
void register_imitations(Registry& registry);

// All families.
Registry standard_registry();

}  // namespace placewright
