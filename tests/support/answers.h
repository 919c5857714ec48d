// All planners on one small problem, and what their answers must satisfy together: every plan is
// valid, every bound is below every value, what is proved optimal or infeasible is.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "problem/problem.h"

namespace placewright::testing {

struct Fault {
  std::string planner;
  std::string what;
};

struct Asked {
  std::vector<Fault> faults;
  std::map<std::string, std::uint64_t> answers;  // by planner
};

// Every planner that fits, long ones for some seeds only. Budgets, threads and starts are drawn
// from `seed`. `interrupted` may be set meanwhile.
Asked ask_all(const Problem& problem, std::uint64_t seed,
              const std::atomic<bool>* interrupted = nullptr);

}  // namespace placewright::testing
