// Parts of schedules by CP-SAT: what is given stays, and the parts fit together
// again.

#include "planners/methods/cpsat_model.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "evaluate/schedule.h"
#include "planners/baselines/baselines.h"
#include "support/published.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using testing::published_file;
using testing::random_draft;
using testing::RandomProblemOptions;

constexpr double kRounding = 1e-6;

// One reader for each tensor, so that no tensor is shared between inside and
// outside.
Problem problem_of_edges(std::uint64_t seed) {
  RandomProblemOptions options;
  options.ops = 8;
  options.interconnect = seed % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
  options.congestion = seed / 2 % 2 == 0;
  options.zero_times = seed % 5 == 0;
  ProblemDraft draft = random_draft(options, seed);
  std::vector<Tensor> edges;
  for (const Tensor& tensor : draft.tensors) {
    for (const OpId reader : tensor.consumers) {
      edges.push_back(tensor);
      edges.back().name.clear();
      edges.back().consumers = {reader};
    }
  }
  draft.tensors = std::move(edges);
  return Problem(std::move(draft));
}

Plan heft_plan(const Problem& problem) {
  Control control("heft", Budget{});
  return *heft().plan(problem, Settings{}, control).plan;
}

ScheduleSolution solved(const Problem& problem, const ScheduleScope& scope) {
  ScheduleModel model(problem, scope);
  ScheduleSolution solution = model.solve({.seconds = 30});
  if (!solution.complete || !solution.found)
    throw std::runtime_error("not solved: " + solution.error);
  return solution;
}

// The resources that an activity of the plan takes outside.
void take_op(const Plan& plan, OpId op, std::vector<ScheduleScope::Busy>& busy) {
  busy.push_back(
      {Facility::compute, plan.placement[op], plan.schedule->start[op], plan.schedule->end[op]});
}

void take_transfer(const Problem& problem, const Transfer& transfer,
                   std::vector<ScheduleScope::Busy>& busy) {
  if (!problem.rules().congestion) return;
  if (transfer.from.valid()) {
    busy.push_back({Facility::out_port, transfer.from, transfer.start, transfer.end});
  }
  if (transfer.to.valid()) {
    busy.push_back({Facility::in_port, transfer.to, transfer.start, transfer.end});
  }
}

class ScheduleScopes : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(ScheduleScopes, AroundAllOpsIsTheWhole) {
  const Problem problem = problem_of_edges(GetParam());
  const Plan plan = heft_plan(problem);
  const std::vector<OpId> all(problem.topological_order().begin(),
                              problem.topological_order().end());
  const ScheduleSolution whole = solved(problem, ScheduleScope::whole(problem));
  const ScheduleSolution around = solved(problem, ScheduleScope::around(problem, plan, all));
  EXPECT_NEAR(whole.value, around.value, kRounding * whole.value);
}

TEST_P(ScheduleScopes, AroundNothingKeepsPlacementAndOrder) {
  const Problem problem = problem_of_edges(GetParam());
  const Plan plan = heft_plan(problem);
  const ScheduleSolution kept = solved(problem, ScheduleScope::around(problem, plan, {}));
  EXPECT_EQ(kept.placement, plan.placement);
  EXPECT_LE(kept.value, plan.value * (1 + kRounding));
  const Plan again = plan_of(problem, kept);
  EXPECT_NEAR(again.value, kept.value, kRounding * kept.value);
  for (const OpId a : problem.ops()) {
    for (const OpId b : problem.ops()) {
      if (plan.placement[a] != plan.placement[b]) continue;
      if (plan.schedule->start[a] == plan.schedule->end[a]) continue;
      if (plan.schedule->start[b] == plan.schedule->end[b]) continue;
      if (plan.schedule->end[a] <= plan.schedule->start[b]) {
        EXPECT_LE(again.schedule->end[a], again.schedule->start[b]);
      }
    }
  }
}

TEST_P(ScheduleScopes, MoreFreedomIsNeverWorse) {
  const Problem problem = problem_of_edges(GetParam());
  const Plan plan = heft_plan(problem);
  const std::span<const OpId> order = problem.topological_order();
  double before = plan.value;
  for (std::size_t free = 0; free <= order.size(); free += 4) {
    const double value =
        solved(problem, ScheduleScope::around(problem, plan, order.first(free))).value;
    EXPECT_LE(value, before * (1 + kRounding));
    before = value;
  }
}

// The first half of the plan stays; the second is decided anew around it.
TEST_P(ScheduleScopes, WhatComesAfterAGivenStart) {
  const Problem problem = problem_of_edges(GetParam());
  const Plan plan = heft_plan(problem);
  const std::vector<OpId> order = order_of(problem, *plan.schedule);
  ScheduleScope scope;
  scope.given = plan.placement;
  scope.ends = plan.schedule->end;
  double given_end = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i < order.size() / 2) {
      take_op(plan, order[i], scope.busy);
      given_end = std::max(given_end, plan.schedule->end[order[i]]);
    } else {
      scope.ops.push_back(order[i]);
      scope.given[order[i]] = DeviceId{};
    }
  }
  const auto inside = [&](OpId op) {
    return std::find(scope.ops.begin(), scope.ops.end(), op) != scope.ops.end();
  };
  Schedule together = *plan.schedule;
  std::erase_if(together.transfers, [&](const Transfer& transfer) {
    return inside(problem.consumers(transfer.tensor).front());
  });
  for (const Transfer& transfer : together.transfers) take_transfer(problem, transfer, scope.busy);

  const ScheduleSolution rest = solved(problem, scope);
  EXPECT_LE(rest.value, plan.value * (1 + kRounding));
  for (const OpId op : scope.ops) {
    together.start[op] = rest.schedule.start[op];
    together.end[op] = rest.schedule.end[op];
  }
  together.transfers.insert(together.transfers.end(), rest.schedule.transfers.begin(),
                            rest.schedule.transfers.end());
  const Plan joined =
      schedule_plan(problem, rest.placement, retime(problem, rest.placement, together));
  EXPECT_NEAR(joined.value, std::max(rest.value, given_end), kRounding * plan.value);
}

// The second half of the plan keeps its shape; the first is decided so that it
// can start early.
TEST_P(ScheduleScopes, WhatComesBeforeAGivenEnd) {
  const Problem problem = problem_of_edges(GetParam());
  const Plan plan = heft_plan(problem);
  const std::vector<OpId> order = order_of(problem, *plan.schedule);
  ScheduleScope scope;
  scope.given = plan.placement;
  scope.tails = Table<OpId, double>(problem.op_count(), 0);
  std::vector<ScheduleScope::Busy> outside;
  std::vector<char> inside(problem.op_count(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i < order.size() / 2) {
      scope.ops.push_back(order[i]);
      scope.given[order[i]] = DeviceId{};
      inside[order[i].index()] = 1;
    } else {
      scope.tails[order[i]] = plan.value - plan.schedule->start[order[i]];
      take_op(plan, order[i], outside);
    }
  }
  Schedule together = *plan.schedule;
  std::erase_if(together.transfers, [&](const Transfer& transfer) {
    return inside[problem.producer(transfer.tensor).index()] != 0;
  });
  for (const Transfer& transfer : together.transfers) take_transfer(problem, transfer, outside);
  for (const ScheduleScope::Busy& busy : outside) {
    if (busy.start < busy.end) {
      scope.after.push_back({busy.resource, busy.device, plan.value - busy.start});
    }
  }

  const ScheduleSolution first = solved(problem, scope);
  // Later than anything inside; re-timing brings it back.
  const double shift = 10 * (plan.value + first.value);
  for (const OpId op : problem.ops()) {
    const bool moved = inside[op.index()] == 0;
    together.start[op] = moved ? together.start[op] + shift : first.schedule.start[op];
    together.end[op] = moved ? together.end[op] + shift : first.schedule.end[op];
  }
  for (Transfer& transfer : together.transfers) transfer.start += shift;
  together.transfers.insert(together.transfers.end(), first.schedule.transfers.begin(),
                            first.schedule.transfers.end());
  const Plan joined =
      schedule_plan(problem, first.placement, retime(problem, first.placement, together));
  EXPECT_LE(joined.value, first.value * (1 + kRounding));
}

TEST_P(ScheduleScopes, LimitsOfTheObjectiveHold) {
  const Problem problem = problem_of_edges(GetParam());
  const double least = solved(problem, ScheduleScope::whole(problem)).value;
  ScheduleModel below(problem, ScheduleScope::whole(problem));
  below.require_below(least * (1 - 1e-5));
  const ScheduleSolution none = below.solve({.seconds = 30});
  EXPECT_TRUE(none.complete);
  EXPECT_FALSE(none.found);
  ScheduleModel tight(problem, ScheduleScope::whole(problem), least * (1 + kRounding));
  tight.require_at_least(least);
  const ScheduleSolution same = tight.solve({.seconds = 30});
  ASSERT_TRUE(same.found);
  EXPECT_NEAR(same.value, least, kRounding * least);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ScheduleScopes, ::testing::Range<std::uint64_t>(0, 24));

// Without the hint nothing as good would be found so soon.
TEST(ScheduleHints, AreFollowedAtOnce) {
  for (const bool congestion : {true, false}) {
    ProblemFile file = published_file("moirai/GoogLeNet.json", Objective::latency);
    file.draft.rules.congestion = congestion;
    const Problem problem = build_problem(std::move(file));
    const Plan plan = heft_plan(problem);
    for (const bool hinted : {true, false}) {
      ScheduleModel model(problem, ScheduleScope::whole(problem), plan.value);
      if (hinted) model.hint(plan.placement, *plan.schedule);
      const ScheduleSolution solution = model.solve({.deterministic_time = 0.02});
      EXPECT_EQ(solution.found, hinted);
    }
  }
}

}  // namespace
}  // namespace placewright
