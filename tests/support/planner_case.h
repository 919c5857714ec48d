// Every planner that is registered, with each objective that it serves.

#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "planning/portfolio.h"
#include "support/test_name.h"

namespace placewright::testing {

inline const Registry& registry() {
  static const Registry all = planning_registry();
  return all;
}

struct PlannerCase {
  std::string planner;
  Objective objective;
};

// As a part of a test's name.
inline std::string name_of(const PlannerCase& test_case) {
  return test_name(test_case.planner + "_" +
                   std::string{placewright::name_of(test_case.objective)});
}

inline void PrintTo(const PlannerCase& test_case, std::ostream* out) {
  *out << name_of(test_case);
}

inline std::vector<PlannerCase> all_planner_cases() {
  std::vector<PlannerCase> cases;
  for (const PlannerEntry& entry : registry().entries()) {
    for (const Objective objective : entry.objectives) cases.push_back({entry.name, objective});
  }
  return cases;
}

}  // namespace placewright::testing
