// List schedules on devices that share resources.

#include "planners/methods/shared_lists.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "evaluate/partial_schedule.h"
#include "planners/baselines/baselines.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

Answer answer_of(const PlannerEntry& planner, const Problem& problem) {
  Control control("test", Budget{.seconds = 600});
  return planner.plan(problem, Settings{planner.options}, control);
}

std::vector<PlannerEntry> list_planners() {
  return {heft(), etf(), lists()};
}

TEST(SharedLists, AreNeverWorseThanTheBestSingleDevice) {
  testing::RandomProblemOptions options;
  options.ops = 20;
  for (const auto objective : {Objective::latency, Objective::total_completion}) {
    options.objective = objective;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      options.models = 1 + seed % 3;
      options.edge_probability = seed % 2 == 0 ? 0.1 : 0.4;
      const Problem problem(testing::core_set_draft(options, seed));
      const double whole = answer_of(single(), problem).value();
      for (const PlannerEntry& planner : list_planners()) {
        EXPECT_LE(answer_of(planner, problem).value(), whole) << planner.name << ", seed " << seed;
      }
    }
  }
}

// Two branches between a first and a last op, which are twice as fast on both cores; a branch is
// hardly faster there. The left one takes half of both cores only, so it ends first there, and
// leaves no whole core to the right one. Best: the ends on both cores, each branch on one, and four
// overheads of 0.1.
TEST(SharedLists, LeaveACoreToWhatIsReadyBeside) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"one core"}, {"two cores"}};
  draft.cluster.resources = {{"core 0", 1}, {"core 1", 1}};
  draft.cluster.spaces = {{.name = "host memory"}};
  const ResourceUse first{ResourceId{0}, 1};
  const ResourceUse second{ResourceId{1}, 1};
  const auto device = [&](const char* name, std::size_t kind, std::vector<ResourceUse> uses) {
    const double overhead = kind == 0 ? 0.1 : 0;
    return Device{.name = name,
                  .kind = KindId{kind},
                  .send_overhead = overhead,
                  .receive_overhead = overhead,
                  .uses = std::move(uses),
                  .space = SpaceId{0}};
  };
  draft.cluster.devices = {device("a", 0, {first}), device("b", 0, {second}),
                           device("both", 1, {first, second})};
  draft.models = {{.name = "m"}};
  draft.ops = {{.name = "in", .time = {4, 2}},
               {.name = "left", .time = {6, 5}, .share = {1, 0.5}},
               {.name = "right", .time = {6, 5}},
               {.name = "out", .time = {3, 1.5}}};
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}, OpId{2}}},
                   {.producer = OpId{1}, .consumers = {OpId{3}}},
                   {.producer = OpId{2}, .consumers = {OpId{3}}}};
  const Problem problem(std::move(draft));
  for (const PlannerEntry& planner : list_planners()) {
    EXPECT_NEAR(answer_of(planner, problem).value(), 9.7, 1e-9) << planner.name;
  }
}

Problem on_cores(std::size_t cores, std::size_t models) {
  GenerateOptions options;
  options.family = GraphFamily::inception;
  options.objective = models > 1 ? Objective::total_completion : Objective::latency;
  options.ops = 100;
  options.models = models;
  options.shared_cores = cores;
  options.seed = 5;
  return Problem(generate(options));
}

TEST(SharedLists, WeighWhatAnOpTakesFromOthers) {
  const Problem problem = on_cores(32, 1);
  const double whole = answer_of(single(), problem).value();
  for (const PlannerEntry& planner : list_planners()) {
    EXPECT_LT(answer_of(planner, problem).value(), 0.95 * whole) << planner.name;
  }
}

TEST(SharedLists, PlanModelsOneAfterTheOther) {
  const Problem problem = on_cores(4, 4);
  const double whole = answer_of(single(), problem).value();
  for (const PlannerEntry& planner : list_planners()) {
    EXPECT_LT(answer_of(planner, problem).value(), 0.6 * whole) << planner.name;
  }
}

// A tensor that is handed over costs both sides, and once for each device that reads it.
TEST(PartialSchedule, CountsWhatCutsCostWhereResourcesAreShared) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"core"}};
  draft.cluster.resources = {{"core 0", 1}, {"core 1", 1}};
  draft.cluster.spaces = {{.name = "memory"}};
  for (std::size_t i = 0; i < 2; ++i) {
    draft.cluster.devices.push_back({.name = std::to_string(i),
                                     .kind = KindId{0},
                                     .send_overhead = 0.25,
                                     .receive_overhead = 0.5,
                                     .uses = {{ResourceId{i}, 1}},
                                     .space = SpaceId{0}});
  }
  draft.models = {{.name = "m"}};
  draft.ops = {{.name = "a", .time = {1}}, {.name = "b", .time = {1}}, {.name = "c", .time = {1}}};
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}, OpId{2}}}};
  const Problem problem(std::move(draft));
  PartialSchedule schedule(problem, Gaps::insert);
  schedule.place(OpId{0}, DeviceId{0});
  EXPECT_EQ(schedule.probe(OpId{1}, DeviceId{0}).end, 2);
  EXPECT_EQ(schedule.probe(OpId{1}, DeviceId{1}).end, 2.75);
  schedule.place(OpId{1}, DeviceId{1});
  EXPECT_EQ(schedule.probe(OpId{2}, DeviceId{1}).end, 3.75) << "it is there already";
}

}  // namespace
}  // namespace placewright
