// Large problems: every planner ends soon after it is interrupted.
//
// "Soon" is generous, and counts this process's own time, of which other work on the machine takes
// nothing. A planner that does not ask whether to stop runs for its whole limit, which is far
// longer.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "planning/portfolio.h"
#include "planning/service.h"

namespace placewright {
namespace {

constexpr double kSoon = 60;  // seconds of the processor

Problem large_problem(GraphFamily family, Objective objective) {
  GenerateOptions options;
  options.family = family;
  options.objective = objective;
  options.ops = 20'000;
  options.models = objective == Objective::total_completion ? 4 : 1;
  options.devices = 16;
  options.accelerators = objective == Objective::call_latency ? 16 : 0;
  return Problem(generate(options));
}

// Seconds of the processor from the interruption to the answer.
double seconds_to_end(const Problem& problem, const std::string& planner) {
  std::atomic<bool> interrupted{false};
  std::atomic<std::clock_t> when{std::clock()};
  const std::jthread user([&](const std::stop_token& ended) {
    for (int i = 0; i < 10 && !ended.stop_requested(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    when = std::clock();
    interrupted = true;
  });
  PlanRequest request{.planner = planner, .budget = {.seconds = 1000, .memory = 2e9}};
  const auto outcome = make_plan(problem, planning_registry(), request, &interrupted);
  EXPECT_EQ(outcome.fault, "");
  if (!interrupted) return 0;
  return static_cast<double>(std::clock() - when.load()) / CLOCKS_PER_SEC;
}

// One after the other on the same problem: making it takes longer than most planners.
void expect_all_end_soon(const Problem& problem) {
  const Registry registry = planning_registry();
  for (const PlannerEntry& entry : registry.entries()) {
    const bool serves = std::ranges::count(entry.objectives, problem.objective()) > 0;
    if (!serves || !entry.refusal(problem).empty()) continue;
    EXPECT_LT(seconds_to_end(problem, entry.name), kSoon) << entry.name << " on " << problem.name();
  }
}

class Interrupted : public ::testing::TestWithParam<Objective> {};

TEST_P(Interrupted, PlannersEndSoonOnManyOps) {
  expect_all_end_soon(large_problem(GraphFamily::layered, GetParam()));
  expect_all_end_soon(large_problem(GraphFamily::transformer, GetParam()));
}

TEST_P(Interrupted, PlannersEndSoonOnManyDevices) {
  GenerateOptions options;
  options.objective = GetParam();
  options.ops = 200;
  options.devices = options.kinds = 1024;
  options.accelerators = GetParam() == Objective::call_latency ? 1024 : 0;
  expect_all_end_soon(Problem(generate(options)));
}

INSTANTIATE_TEST_SUITE_P(Objectives, Interrupted, ::testing::ValuesIn(values_of<Objective>()),
                         [](const auto& test) {
                           std::string name{name_of(test.param)};
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace placewright
