// Large problems: every planner ends soon after it is interrupted.
//
// "Soon" is generous, since other work may have the machine: a planner that does not ask whether to
// stop runs for the whole of its limit, which is far longer.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/planner_case.h"

namespace placewright {
namespace {

constexpr double kSoon = 60;  // seconds

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

// Seconds from the interruption to the answer.
double seconds_to_end(const Problem& problem, const std::string& planner) {
  std::atomic<bool> interrupted{false};
  std::atomic<Control::Clock::time_point> when{Control::Clock::now()};
  const std::jthread user([&](const std::stop_token& ended) {
    for (int i = 0; i < 10 && !ended.stop_requested(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    when = Control::Clock::now();
    interrupted = true;
  });
  PlanRequest request{.planner = planner, .budget = {.seconds = 1000, .memory = 2e9}};
  const auto outcome = make_plan(problem, planning_registry(), request, &interrupted);
  EXPECT_EQ(outcome.fault, "");
  if (!interrupted) return 0;
  return std::chrono::duration<double>(Control::Clock::now() - when.load()).count();
}

class LargeProblems : public ::testing::TestWithParam<testing::PlannerCase> {};

TEST_P(LargeProblems, EndSoonAfterTheyAreInterrupted) {
  const auto& [planner, objective] = GetParam();
  const Registry registry = planning_registry();
  for (const GraphFamily family : {GraphFamily::layered, GraphFamily::transformer}) {
    const Problem problem = large_problem(family, objective);
    if (!registry.find(planner, objective)->refusal(problem).empty()) continue;
    EXPECT_LT(seconds_to_end(problem, planner), kSoon) << problem.name();
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, LargeProblems, ::testing::ValuesIn(testing::all_planner_cases()),
                         [](const auto& test) { return name_of(test.param); });

class ManyDevices : public ::testing::TestWithParam<testing::PlannerCase> {};

TEST_P(ManyDevices, EndSoonAfterTheyAreInterrupted) {
  const auto& [planner, objective] = GetParam();
  GenerateOptions options;
  options.objective = objective;
  options.ops = 200;
  options.devices = options.kinds = 1024;
  options.accelerators = objective == Objective::call_latency ? 1024 : 0;
  const Problem problem(generate(options));
  if (!planning_registry().find(planner, objective)->refusal(problem).empty()) return;
  EXPECT_LT(seconds_to_end(problem, planner), kSoon);
}

INSTANTIATE_TEST_SUITE_P(Registry, ManyDevices, ::testing::ValuesIn(testing::all_planner_cases()),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace placewright
