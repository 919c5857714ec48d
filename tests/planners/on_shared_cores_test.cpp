// Planners that were made for devices of their own, on nested sets of cores and on memories that
// several devices share: what they are for there. That their plans are right is asked by the suite.

#include <algorithm>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "planners/baselines/baselines.h"
#include "planners/latency/latency.h"
#include "planners/published/published.h"
#include "planners/shared_checks.h"
#include "planners/throughput/throughput.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

double value_of(const PlannerEntry& planner, const Problem& problem, std::uint64_t steps = 20'000) {
  EXPECT_EQ(planner.refusal(problem), "");
  Control control(planner.name, {.seconds = 600, .steps = steps});
  const Answer answer = planner.plan(problem, Settings{planner.options}, control);
  EXPECT_TRUE(answer.plan) << answer.reason;
  EXPECT_TRUE(!answer.plan || verify(problem, *answer.plan).empty());
  return answer.value();
}

Problem on_cores(GraphFamily family, std::size_t ops, std::size_t cores, Objective objective) {
  return Problem(
      generate({.family = family, .ops = ops, .shared_cores = cores, .objective = objective}));
}

// Groups of sets of one width, within what all cores together can do.
TEST(OnSharedCores, GetfRunsWideGraphsSideBySide) {
  const Problem problem = on_cores(GraphFamily::layered, 200, 8, Objective::latency);
  EXPECT_LT(value_of(getf(), problem), 0.9 * value_of(single(), problem));
}

// The set of both cores is the fastest device, and one part of the graph is no pipeline.
TEST(OnSharedCores, ScotchMakesAPartForEachSetOfAWidth) {
  ProblemDraft draft = testing::chain_on_two_cores();
  for (Op& op : draft.ops) op.time = {1, 2.0 / 3};
  EXPECT_NEAR(value_of(scotch(), Problem(std::move(draft))), 3, 1e-9);
}

// More sets than `decompose` takes.
TEST(OnSharedCores, FewDevicesChoosesAmongDozensOfSets) {
  const Problem problem = on_cores(GraphFamily::inception, 40, 16, Objective::latency);
  ASSERT_NE(decompose().refusal(problem), "");
  EXPECT_LT(value_of(few_devices(), problem), value_of(lists(), problem));
}

TEST(OnSharedCores, MultilevelCutsWideGraphsBetterThanOneOrder) {
  const Problem problem = on_cores(GraphFamily::layered, 600, 4, Objective::throughput);
  EXPECT_LT(value_of(multilevel_pipelines(), problem, 200'000),
            value_of(shared_stages(), problem, 200'000));
}

TEST(OnSharedCores, MultilevelImprovesLists) {
  const Problem problem = on_cores(GraphFamily::layered, 400, 4, Objective::latency);
  EXPECT_LT(value_of(multilevel_schedules(), problem), value_of(lists(), problem));
}

TEST(OnSharedCores, RepeatsPlansLayersOnce) {
  const Problem pipeline = on_cores(GraphFamily::transformer, 601, 4, Objective::throughput);
  EXPECT_LT(value_of(repeats_in_pipelines(), pipeline), 0.9 * value_of(topo(), pipeline));
}

// Two devices in each of two memories, and nothing else that they share.
TEST(OnSharedMemory, SharedSearchImprovesPipelines) {
  ProblemDraft draft = generate({.family = GraphFamily::layered,
                                 .ops = 40,
                                 .devices = 4,
                                 .kinds = 1,
                                 .objective = Objective::throughput});
  draft.cluster.spaces = {{"left"}, {"right"}};
  for (std::size_t i = 0; i < 4; ++i) {
    draft.cluster.devices[i].space = SpaceId{i / 2};
    draft.cluster.devices[i].memory = kInfinity;
  }
  for (Tensor& tensor : draft.tensors) tensor.link_times.clear();
  const Link first = draft.cluster.links.front();
  std::erase_if(draft.cluster.links,
                [](const Link& link) { return link.from.index() / 2 == link.to.index() / 2; });
  for (Link& link : draft.cluster.links) {
    link.latency = first.latency;
    link.bandwidth = first.bandwidth;
  }
  const Problem problem(std::move(draft));
  EXPECT_LT(value_of(shared_search(), problem), 0.95 * value_of(topo(), problem));
}

}  // namespace
}  // namespace placewright
