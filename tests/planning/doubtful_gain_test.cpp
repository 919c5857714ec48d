#include "planning/doubtful_gain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/portfolio.h"
#include "planning/service.h"
#include "planning/uncut_plan.h"
#include "problem/cost_source.h"

namespace placewright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Two branches between a source and a sink on two equal devices: together they take `both` of the
// time that one device takes, which is 100.
ProblemDraft branches(double both, const std::string& origin) {
  ProblemDraft draft;
  draft.unit = TimeUnit::milliseconds;
  draft.origin = {origin};
  draft.cluster.kinds = {{.name = "kind"}};
  draft.cluster.devices = {{.name = "a", .kind = KindId{0}}, {.name = "b", .kind = KindId{0}}};
  draft.cluster.links = {{.from = DeviceId{0}, .to = DeviceId{1}},
                         {.from = DeviceId{1}, .to = DeviceId{0}}};
  draft.models = {{.name = "model", .deadline = {}}};
  const double branch = 100 - both;
  draft.ops = {{.name = "source", .time = {100 - 2 * branch}},
               {.name = "left", .time = {branch}},
               {.name = "right", .time = {branch}},
               {.name = "sink", .time = {0}}};
  draft.tensors = {{.name = "in", .producer = OpId{0}, .consumers = {OpId{1}, OpId{2}}, .bytes = 1},
                   {.name = "l", .producer = OpId{1}, .consumers = {OpId{3}}, .bytes = 1},
                   {.name = "r", .producer = OpId{2}, .consumers = {OpId{3}}, .bytes = 1}};
  return draft;
}

PlanOutcome planned(const Problem& problem, const std::string& planner = "auto",
                    const Plan* start = nullptr) {
  PlanRequest request{.planner = planner, .start = start};
  request.budget.seconds = 2;
  return make_plan(problem, planning_registry(), request);
}

TEST(DoubtfulGain, AnEstimatedCutWithinTheErrorIsNotMade) {
  const Problem problem(branches(90, std::string(kEstimatedOrigin)));
  const PlanOutcome outcome = planned(problem);
  ASSERT_TRUE(outcome.answer.plan);
  EXPECT_TRUE(is_uncut(*outcome.answer.plan));
  EXPECT_DOUBLE_EQ(outcome.value(), 100);
  EXPECT_EQ(outcome.answer.status(), Status::feasible)
      << "a cut is faster if the estimate is right";
  EXPECT_THAT(outcome.notes, Contains(HasSubstr("estimated to gain 11.1 %, less than the 25 %")));
}

TEST(DoubtfulGain, ALargerGainStays) {
  const PlanOutcome outcome = planned(Problem(branches(60, std::string(kEstimatedOrigin))));
  EXPECT_DOUBLE_EQ(outcome.value(), 60);
  EXPECT_THAT(outcome.notes, Not(Contains(HasSubstr("estimated to gain"))));
}

TEST(DoubtfulGain, StatedAndMeasuredCostsAreTakenAsTheyAre) {
  for (const std::string origin : {"a paper", "measured on cpu:0"}) {
    EXPECT_DOUBLE_EQ(planned(Problem(branches(90, origin))).value(), 90) << origin;
  }
}

TEST(DoubtfulGain, APlannerThatIsAskedForByNameGivesItsOwnPlan) {
  const Problem problem(branches(90, std::string(kEstimatedOrigin)));
  EXPECT_DOUBLE_EQ(planned(problem, "decompose").value(), 90);
}

TEST(DoubtfulGain, AStartThatIsBetterStays) {
  const Problem problem(branches(90, std::string(kEstimatedOrigin)));
  const PlanOutcome cut = planned(problem, "decompose");
  EXPECT_DOUBLE_EQ(planned(problem, "auto", &*cut.answer.plan).value(), 90);
}

TEST(DoubtfulGain, WhatDoesNotFitOneDeviceIsCut) {
  ProblemDraft draft = branches(90, std::string(kEstimatedOrigin));
  for (Op& op : draft.ops) op.memory = 1;
  for (Device& device : draft.cluster.devices) device.memory = 3;
  const PlanOutcome outcome = planned(Problem(std::move(draft)));
  EXPECT_DOUBLE_EQ(outcome.value(), 90);
}

}  // namespace
}  // namespace placewright
