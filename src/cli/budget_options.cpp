#include "cli/budget_options.h"

#include <limits>

#include "cli/number_option.h"

namespace placewright::cli {

void BudgetOptions::add_to(CLI::App& verb, Start from) {
  const std::string group = "Budget";
  add_duration(verb, "--time-limit", time_limit, "Stop after this time: 500ms, 10s, 2m, 1h")
      ->group(group);
  add_number(verb, "--steps", steps, {0, std::numeric_limits<std::uint64_t>::max()},
             "Stop after this much work; repeatable, unlike a time limit")
      ->group(group);
  add_number(verb, "--threads", threads, {1, 1024}, "Threads that a planner may use")->group(group);
  add_number(verb, "--seed", seed, kAnySeed, "Seed of every random choice")->group(group);
  if (from == Start::none) return;
  verb.add_option("--start", start, "Improve the plan in this file")
      ->group(group)
      ->type_name("PLAN");
}

Budget BudgetOptions::budget() const {
  Budget budget;
  budget.seconds = parse_duration("--time-limit", time_limit);
  if (steps) budget.steps = *steps;
  budget.threads = threads;
  budget.seed = seed;
  return budget;
}

}  // namespace placewright::cli
