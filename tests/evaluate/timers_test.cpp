// The timers of schedules share the rules of evaluate/rules/. Here they meet on random problems
// with every rule: what one makes in order, another times the same.

#include <algorithm>

#include <gtest/gtest.h>

#include "evaluate/partial_schedule.h"
#include "evaluate/schedule.h"
#include "support/random_plan.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using testing::RandomSource;

constexpr std::uint64_t kProblems = 2000;

// By seed: links or host, with and without congestion, lanes, overheads, resources and memory
// spaces.
Problem random_schedule_problem(std::uint64_t seed) {
  testing::RandomProblemOptions options;
  options.objective = seed % 2 == 0 ? Objective::latency : Objective::total_completion;
  options.interconnect = seed / 2 % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
  options.congestion = seed / 4 % 2 == 0;
  options.models = options.objective == Objective::latency ? 1 : 1 + seed % 3;
  options.ops = 5 + seed % 11;
  options.devices = 2 + seed % 4;
  options.edge_probability = seed % 3 == 0 ? 0.35 : 0.15;
  options.lanes = seed % 3 == 0;
  options.overheads = seed % 5 < 2;
  options.zero_times = seed % 7 == 0;
  options.colocation = seed % 6 == 1;
  options.resources = seed % 3 == 1;
  options.spaces = seed % 3 == 2 || seed % 7 == 1;
  options.cuts = seed % 5 == 4;
  return Problem(testing::random_draft(options, seed));
}

void expect_same_times(const Table<OpId, double>& a, const Table<OpId, double>& b, double horizon) {
  for (const OpId op : a.keys()) ASSERT_NEAR(a[op], b[op], 1e-9 * horizon);
}

class TimersTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  // A part of the problems, with a placement and an order.
  template <class Check>
  void for_each_problem(const Check& check) {
    for (std::uint64_t seed = GetParam(); seed < kProblems; seed += 8) {
      SCOPED_TRACE(seed);
      const Problem problem = random_schedule_problem(seed);
      RandomSource random(seed);
      const Placement placement = testing::random_placement(problem, random);
      const auto priority = testing::random_priority(problem, random);
      check(problem, placement, priority);
      if (HasFatalFailure()) return;
    }
  }
};

// Counters in place of times, and the rules once more: an event-driven schedule can nowhere be
// earlier in its own order.
TEST_P(TimersTest, WhatIsDispatchedIsRetimedTheSame) {
  for_each_problem(
      [](const Problem& problem, const Placement& placement, const Table<OpId, double>& priority) {
        const Schedule made = dispatch(problem, placement, priority);
        const Schedule again = retime(problem, placement, made);
        const double horizon = *std::max_element(made.end.begin(), made.end.end());
        expect_same_times(made.start, again.start, horizon);
        expect_same_times(made.end, again.end, horizon);
      });
}

// Without ports that tensors wait for, and one lane to append to, nothing is left to choose.
TEST_P(TimersTest, WhatIsAppendedIsWhatTheEvaluatorTimes) {
  for_each_problem(
      [](const Problem& problem, const Placement& placement, const Table<OpId, double>& priority) {
        const std::vector<OpId> order = list_order(problem, priority);
        const Schedule in_order = ScheduleEvaluator(problem).schedule(order, placement);
        const Schedule again = retime(problem, placement, in_order);
        for (const OpId op : problem.ops()) {
          ASSERT_LE(again.start[op], in_order.start[op] * (1 + 1e-9));
        }
        const auto one_lane = [&](DeviceId device) { return problem.device(device).lanes == 1; };
        if (problem.rules().congestion || problem.has_overheads() ||
            !std::ranges::all_of(problem.devices(), one_lane)) {
          return;
        }
        PartialSchedule appended(problem, Gaps::append);
        for (const OpId op : order) appended.place(op, placement[op]);
        for (const OpId op : problem.ops()) {
          ASSERT_NEAR(appended.end(op), in_order.end[op], 1e-9 * (1 + in_order.end[op]));
        }
      });
}

INSTANTIATE_TEST_SUITE_P(Evaluate, TimersTest, ::testing::Range<std::uint64_t>(0, 8));

}  // namespace
}  // namespace placewright
