#include "cli/budget_options.h"

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/text.h"

namespace placewright::cli {

void BudgetOptions::add_to(CLI::App& verb, Start from) {
  const std::string group = "Budget";
  verb.add_option("--time-limit", time_limit, "Stop after this time: 500ms, 10s, 2m, 1h")
      ->group(group)
      ->capture_default_str();
  verb.add_option("--steps", steps, "Stop after this much work; repeatable, unlike a time limit")
      ->group(group);
  verb.add_option("--threads", threads, "Threads that a planner may use")
      ->group(group)
      ->capture_default_str();
  verb.add_option("--seed", seed, "Seed of every random choice")
      ->group(group)
      ->capture_default_str();
  if (from == Start::none) return;
  verb.add_option("--start", start, "Improve the plan in this file")
      ->group(group)
      ->type_name("PLAN");
}

Budget BudgetOptions::budget() const {
  Budget budget;
  try {
    budget.seconds = parse_duration(time_limit);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("--time-limit: {}", error.what()));
  }
  if (threads < 1) {
    throw UsageError(fmt::format("--threads: {} is not a number of at least 1", threads));
  }
  if (steps) budget.steps = *steps;
  budget.threads = threads;
  budget.seed = seed;
  return budget;
}

}  // namespace placewright::cli
