// Contiguous pipelines on nested sets of cores: shared-ideals.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "planners/shared_ideals_checks.h"

namespace placewright {
namespace {

TEST(SharedIdeals, AgreeWithBruteForce) {
  const testing::SharedIdealsAgreement agreement = testing::shared_ideals_agreement(0, 40);
  EXPECT_GT(agreement.served, 30);
  EXPECT_GE(agreement.proved, agreement.served * 95 / 100);
}

// Twelve ops in two branches on sets of 1, 2 and 4 cores.
ProblemDraft two_branches() {
  testing::RandomProblemOptions options;
  options.objective = Objective::throughput;
  options.ops = 12;
  options.edge_probability = 0;
  ProblemDraft draft = testing::core_set_draft(options, 5);
  draft.tensors.clear();
  for (std::size_t i = 0; i + 2 < draft.ops.size(); ++i) {
    Tensor tensor;
    tensor.producer = OpId{i};
    tensor.consumers = {OpId{i + 2}};
    tensor.cuts = {{KindId{0}, 0.05, 0.05}, {KindId{1}, 0.07, 0.06}, {KindId{2}, 0.08, 0.08}};
    draft.tensors.push_back(std::move(tensor));
  }
  return draft;
}

PlanOutcome planned(const Problem& problem, std::uint64_t steps) {
  PlanRequest request;
  request.planner = "shared-ideals";
  request.options = {{"labels", "1"}};
  request.budget.steps = steps;
  return make_plan(problem, testing::registry(), request);
}

TEST(SharedIdeals, RaiseTheBoundOnTheWayToTheProof) {
  const Problem problem(two_branches());
  const PlanOutcome proved = testing::plan_with(problem, "shared-ideals");
  ASSERT_EQ(proved.answer.status(), Status::optimal);
  double before = 0;
  for (const std::uint64_t steps : {200U, 2000U, 20000U}) {
    SCOPED_TRACE(steps);
    const PlanOutcome stopped = planned(problem, steps);
    ASSERT_TRUE(stopped.answer.plan);
    EXPECT_EQ(stopped.fault, "");
    EXPECT_GE(stopped.value(), proved.value() * (1 - 1e-9));
    EXPECT_LE(stopped.answer.certificate.lower_bound, proved.value() * (1 + 1e-9));
    EXPECT_GE(stopped.answer.certificate.lower_bound, before);
    before = stopped.answer.certificate.lower_bound;
  }
  EXPECT_GT(before, planned(problem, 1).answer.certificate.lower_bound);
}

// Two ops that cannot be shared out take turns with the third, which is fast on both cores only.
TEST(SharedIdeals, ProveThatTurnsOnSetsInsideEachOtherAreBest) {
  ProblemDraft draft = two_branches();
  keep_devices(draft, std::vector{DeviceId{0}, DeviceId{1}, DeviceId{4}});
  draft.ops.resize(3);
  draft.tensors.clear();
  draft.ops[0].time = draft.ops[2].time = {4, 4, 4};
  draft.ops[1].time = {8, 2, 2};
  for (const std::size_t i : {0U, 1U}) {
    Tensor tensor;
    tensor.producer = OpId{i};
    tensor.consumers = {OpId{i + 1}};
    draft.tensors.push_back(std::move(tensor));
  }
  const Problem problem(std::move(draft));
  const PlanOutcome outcome = testing::plan_with(problem, "shared-ideals");
  EXPECT_DOUBLE_EQ(outcome.value(), 6);
  EXPECT_EQ(outcome.answer.status(), Status::optimal);
}

std::string refusal_of(const Problem& problem) {
  return testing::registry().find("shared-ideals", Objective::throughput)->refusal(problem);
}

TEST(SharedIdeals, AreForSetsThatAreNestedOrDisjoint) {
  ProblemDraft draft = two_branches();
  draft.cluster.devices[5].uses = {{ResourceId{1}, 1}, {ResourceId{2}, 1}};
  const Problem problem(std::move(draft));
  EXPECT_EQ(refusal_of(problem), "it knows sets of cores that are nested or disjoint, taken whole");
}

// Cores in nested sets, those alone, by two, by four, ..., all.
ProblemDraft chain_on_nested(std::size_t cores) {
  return generate({.family = GraphFamily::chain,
                   .ops = 12,
                   .shared_cores = cores,
                   .objective = Objective::throughput});
}

// Cores that are no part of any larger set.
ProblemDraft chain_on_disjoint(std::size_t cores) {
  ProblemDraft draft = chain_on_nested(cores);
  std::vector<DeviceId> alone;
  for (std::size_t i = 0; i < draft.cluster.devices.size(); ++i) {
    if (draft.cluster.devices[i].uses.size() == 1) alone.push_back(DeviceId{i});
  }
  keep_devices(draft, alone);
  return draft;
}

void expect_plan_of_auto(const Problem& problem) {
  const PlanOutcome outcome = testing::plan_with(problem, "auto", 0.3);
  EXPECT_EQ(outcome.fault, "");
  ASSERT_TRUE(outcome.answer.plan) << outcome.answer.reason;
  EXPECT_GT(outcome.answer.certificate.lower_bound, 0);
}

// States of 8, 16 and 32 cores.
TEST(SharedIdeals, AreProvedOnAsManyCoresAsAStateHolds) {
  for (const std::size_t cores : {8U, 16U, 17U, 32U}) {
    SCOPED_TRACE(cores);
    for (ProblemDraft draft : {chain_on_nested(cores), chain_on_disjoint(cores)}) {
      const Problem problem(std::move(draft));
      const PlanOutcome outcome = testing::plan_with(problem, "shared-ideals");
      EXPECT_EQ(outcome.fault, "");
      EXPECT_EQ(outcome.answer.status(), Status::optimal);
    }
  }
}

TEST(SharedIdeals, LeaveMoreCoresThanAStateHoldsToOthers) {
  const Problem disjoint(chain_on_disjoint(33));
  EXPECT_EQ(refusal_of(disjoint),
            "it knows up to 32 cores, those that the same devices have being one");
  expect_plan_of_auto(disjoint);
  const Problem nested(chain_on_nested(64));
  EXPECT_EQ(refusal_of(nested), "it knows up to 64 devices");
  expect_plan_of_auto(nested);
}

// One core, on which they take turns.
TEST(SharedIdeals, LeaveMoreThan64DevicesToOthers) {
  const auto devices_of_one_core = [](std::size_t count) {
    ProblemDraft draft = chain_on_nested(1);
    draft.cluster.devices.resize(count, draft.cluster.devices.front());
    for (std::size_t i = 0; i < count; ++i) draft.cluster.devices[i].name = fmt::format("cpu{}", i);
    return Problem(std::move(draft));
  };
  EXPECT_EQ(refusal_of(devices_of_one_core(64)), "");
  EXPECT_EQ(refusal_of(devices_of_one_core(65)), "it knows up to 64 devices");
  expect_plan_of_auto(devices_of_one_core(65));
}

}  // namespace
}  // namespace placewright
