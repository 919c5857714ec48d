// What a problem asks for, and who is refused it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bounds/bounds.h"
#include "planners/registry.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two ops in a chain on two devices with links, and nothing else.
ProblemDraft plain_draft(Objective objective) {
  ProblemDraft draft;
  draft.objective = objective;
  draft.cluster.kinds = {{"kind"}};
  draft.cluster.devices = {{"a", KindId{0}}, {"b", KindId{0}}};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}, 1, kInfinity},
                         {DeviceId{1}, DeviceId{0}, 1, kInfinity}};
  draft.models = {{"model"}};
  draft.ops = {{.name = "make", .time = {2}}, {.name = "read", .time = {3}}};
  draft.tensors.push_back({.producer = OpId{0}, .consumers = {OpId{1}}, .bytes = 7});
  return draft;
}

// Of the changed problem; each device has a space of its own.
std::string asked_text(ProblemDraft draft) {
  return text_of(Problem(std::move(draft)).features() - Features{Feature::several_spaces});
}

TEST(Features, AreThoseThatTheProblemUses) {
  const ProblemDraft plain = plain_draft(Objective::latency);
  EXPECT_EQ(asked_text(plain), "");
  ProblemDraft draft = plain;
  draft.ops[1].pinned_to = DeviceId{1};
  EXPECT_EQ(asked_text(draft), "pinned ops");
  draft.cluster.devices[0].lanes = 2;
  draft.rules.memory = MemoryModel::peak;
  EXPECT_EQ(asked_text(draft), "devices with several lanes or peak memory or pinned ops");
  draft = plain;
  draft.cluster.devices[0].send_overhead = 1;
  draft.colocated = {{OpId{0}, OpId{1}}};
  EXPECT_EQ(asked_text(draft), "the overheads of cuts or colocation");
  draft = plain;
  draft.ops[1].backward = true;
  draft.rules.training = TrainingMode::phased;
  EXPECT_EQ(asked_text(draft), "training or phased training");
  draft = plain;
  draft.cluster.resources = {{"core", 1}};
  draft.cluster.devices[0].uses = {{ResourceId{0}, 1}};
  EXPECT_EQ(asked_text(draft), "shared resources or memory spaces");
}

TEST(Features, OfPipelinesAreOnlyAskedOfPipelines) {
  Rules rules;
  rules.transfers = TransferMode::duplex;
  rules.max_replicas = 2;
  rules.contiguity = Contiguity::none;
  ProblemDraft draft = plain_draft(Objective::latency);
  draft.rules = rules;
  EXPECT_EQ(asked_text(draft), "");
  draft.objective = Objective::throughput;
  const Features asked = Problem(draft).features();
  EXPECT_TRUE(asked.covers({Feature::duplex, Feature::replicas, Feature::free_sets}));
  EXPECT_FALSE(asked.has(Feature::joint_sets));
}

// A planner refuses what it does not know, in one sentence, and no problem without it for that.
TEST(Features, NotKnownToAPlannerAreRefused) {
  const Registry registry = standard_registry();
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const Objective objective : values_of<Objective>()) {
      testing::RandomProblemOptions options{.objective = objective};
      if (record_of(objective).one_host) options.interconnect = InterconnectKind::host;
      options.pins = seed % 2 == 0;
      options.colocation = seed % 3 == 0;
      options.lanes = seed % 5 == 0;
      options.overheads = seed % 7 == 0;
      options.training = seed % 4 == 0 && objective == Objective::throughput;
      options.resources = options.spaces = seed % 11 == 0;
      if (options.resources) options.lanes = false;
      const Problem problem(testing::random_draft(options, seed));
      for (const PlannerEntry& planner : registry.entries()) {
        const std::string refusal = planner.refusal(problem);
        if (planner.knows.covers(problem.features())) {
          EXPECT_THAT(refusal, ::testing::Not(StartsWith("it does not plan for"))) << planner.name;
        } else {
          ++refused;
          EXPECT_THAT(refusal, StartsWith("it does not plan for")) << planner.name;
        }
      }
    }
  }
  EXPECT_GT(refused, 1000U);
}

TEST(Features, NewOnesAreKnownToNobodyWhoDoesNotDeclareThem) {
  EXPECT_FALSE(PlannerEntry{}.knows.has(Feature::sharing));
  ProblemDraft draft = plain_draft(Objective::latency);
  draft.ops[0].pinned_to = DeviceId{0};
  PlannerEntry entry;
  entry.knows = kCommonFeatures - Features{Feature::pins};
  EXPECT_EQ(entry.refusal(Problem(draft)), "it does not plan for pinned ops");
  draft.ops[0].pinned_to = DeviceId{};
  EXPECT_EQ(entry.refusal(Problem(draft)), "");
}

// The bound on contiguous work holds for contiguous pipelines only.
TEST(Features, NotKnownToABoundLeaveItOut) {
  ProblemDraft draft = plain_draft(Objective::throughput);
  const auto names = [](const ProblemDraft& asked) {
    std::string text;
    for (const Bound& bound : lower_bounds(Problem(asked))) text += bound.name + ", ";
    return text;
  };
  EXPECT_THAT(names(draft), HasSubstr("work of contiguous segments"));
  draft.rules.contiguity = Contiguity::none;
  EXPECT_THAT(names(draft), ::testing::Not(HasSubstr("work of contiguous segments")));
}

}  // namespace
}  // namespace placewright
