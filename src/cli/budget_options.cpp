#include "cli/budget_options.h"

#include <algorithm>
#include <limits>

#include "cli/number_option.h"
#include "machine/targets.h"

namespace placewright::cli {
namespace {

// With --steps the answer must not depend on the machine: no limit that anybody reaches, and memory
// that most machines have.
constexpr double kSecondsWithSteps = 24 * 3600;
constexpr double kMemoryWithSteps = 4e9;

}  // namespace

void BudgetOptions::add_to(CLI::App& verb, Start from) {
  const std::string group = "Budget";
  time_limit_option =
      add_duration(verb, "--time-limit", time_limit, "Stop after this time: 500ms, 10s, 2m, 1h")
          ->group(group);
  add_number(
      verb, "--steps", steps, {0, std::numeric_limits<std::uint64_t>::max()},
      "Stop after this many steps of work instead; this gives the same plan on every machine")
      ->group(group);
  add_number(verb, "--threads", threads, {1, 1024},
             "Use at most this many threads; default: one for each core of the process, and one "
             "with --steps")
      ->envname("PLACEWRIGHT_THREADS")
      ->group(group);
  add_number(verb, "--memory-limit", memory_megabytes, {1, 1e9},
             "Let a planner take this many megabytes beside the problem; default: half of the "
             "machine's memory")
      ->group(group);
  add_number(verb, "--seed", seed, kAnySeed, "Seed of every random choice")->group(group);
  if (from == Start::none) return;
  verb.add_option("--start", start, "Improve the plan in this file")
      ->group(group)
      ->type_name("PLAN");
}

Budget BudgetOptions::budget() const {
  Budget budget;
  budget.seconds = parse_duration("--time-limit", time_limit);
  if (steps) {
    budget.steps = *steps;
    if (time_limit_option->empty()) budget.seconds = kSecondsWithSteps;
  }
  if (threads) {
    budget.threads = *threads;
  } else if (!steps) {
    budget.threads = std::max(1, static_cast<int>(allowed_cores().size()));
  }
  if (memory_megabytes) {
    budget.memory = *memory_megabytes * 1e6;
  } else if (steps) {
    budget.memory = kMemoryWithSteps;
  } else if (const double total = total_memory(); total > 0) {
    budget.memory = total / 2;
  }
  budget.seed = seed;
  return budget;
}

}  // namespace placewright::cli
