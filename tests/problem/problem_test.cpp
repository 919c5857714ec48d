#include "problem/problem.h"

#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "problem/plan.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;

// a -> b -> c on two kinds of devices joined by links.
ProblemDraft chain() {
  ProblemDraft draft;
  draft.cluster.kinds = {{"fast"}, {"slow"}};
  draft.cluster.devices = {{.name = "d0", .kind = KindId{0}, .memory = 10},
                           {.name = "d1", .kind = KindId{1}, .memory = 20}};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}, 0.5, 4}, {DeviceId{1}, DeviceId{0}, 1, 2}};
  draft.models = {{.name = "model"}};
  for (const char* name : {"a", "b", "c"}) {
    draft.ops.push_back({.name = name, .memory = 1, .time = {1, 2}});
  }
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}}, .bytes = 8},
                   {.producer = OpId{1}, .consumers = {OpId{2}}, .bytes = 4}};
  return draft;
}

TEST(Problem, FreezesTheGraph) {
  const Problem problem(chain());
  EXPECT_EQ(problem.op_count(), 3U);
  EXPECT_EQ(problem.edge_count(), 2U);
  EXPECT_EQ(problem.inputs(OpId{1}).front(), TensorId{0});
  EXPECT_EQ(problem.successors(OpId{1}).front(), OpId{2});
  EXPECT_EQ(problem.topological_rank(OpId{2}), 2U);
  EXPECT_EQ(problem.find_op("b"), OpId{1});
  EXPECT_EQ(problem.find_op("z"), std::nullopt);
  EXPECT_EQ(problem.find_device("d1"), DeviceId{1});
}

TEST(Problem, LinkTimesComeFromLatencyAndBandwidthOrATable) {
  ProblemDraft draft = chain();
  draft.tensors[1].link_times = {0, 7, kInfinity, 0};
  const Problem problem(draft);
  EXPECT_EQ(problem.link_time(TensorId{0}, DeviceId{0}, DeviceId{1}), 0.5 + 8.0 / 4);
  EXPECT_EQ(problem.link_time(TensorId{0}, DeviceId{1}, DeviceId{0}), 1 + 8.0 / 2);
  EXPECT_EQ(problem.link_time(TensorId{0}, DeviceId{0}, DeviceId{0}), 0);
  EXPECT_EQ(problem.link_time(TensorId{1}, DeviceId{0}, DeviceId{1}), 7);
  EXPECT_FALSE(problem.reachable(TensorId{1}, DeviceId{1}, DeviceId{0}));
}

TEST(Problem, PairsWithoutALinkAreOutOfReach) {
  ProblemDraft draft = chain();
  draft.cluster.links.pop_back();
  const Problem problem(draft);
  EXPECT_FALSE(problem.reachable(TensorId{0}, DeviceId{1}, DeviceId{0}));
  EXPECT_TRUE(problem.reachable(TensorId{0}, DeviceId{0}, DeviceId{1}));
}

TEST(Problem, OverlappingColocationListsJoinAndPinsSpread) {
  ProblemDraft draft = chain();
  draft.colocated = {{OpId{0}, OpId{1}}, {OpId{1}, OpId{2}}};
  draft.ops[2].pinned_to = DeviceId{1};
  const Problem problem(draft);
  EXPECT_EQ(problem.group_count(), 1U);
  EXPECT_FALSE(problem.allowed(OpId{0}, DeviceId{0}));
  EXPECT_TRUE(problem.group_allowed(GroupId{0}, DeviceId{1}));
}

TEST(Problem, LeavesOutResourcesAndMemorySpacesOfNoDevice) {
  ProblemDraft draft = chain();
  draft.cluster.resources = {{.name = "spare"}, {.name = "core", .capacity = 2}};
  draft.cluster.spaces = {{.name = "none"}, {.name = "host", .memory = 30}};
  for (Device& device : draft.cluster.devices) {
    device.memory = kInfinity;
    device.uses = {{.resource = ResourceId{1}, .amount = 1}};
    device.space = SpaceId{1};
  }
  const Problem problem(draft);
  ASSERT_EQ(problem.resource_count(), 1U);
  EXPECT_EQ(problem.resource(problem.uses(DeviceId{1}).front().resource).name, "core");
  ASSERT_EQ(problem.space_count(), 1U);
  EXPECT_EQ(problem.space_name(problem.space(DeviceId{1})), "host");
  EXPECT_EQ(problem.space_memory(problem.space(DeviceId{0})), 30);
}

TEST(Problem, SurvivesBeingMoved) {
  ProblemDraft draft = chain();
  draft.tensors[0].link_times = {0, 3, 4, 0};
  Problem first(draft);
  const Problem second(std::move(first));
  EXPECT_EQ(second.link_time(TensorId{0}, DeviceId{1}, DeviceId{0}), 4);
  EXPECT_EQ(second.find_op("c"), OpId{2});
}

struct BadDraft {
  const char* title;
  std::function<void(ProblemDraft&)> spoil;
  DraftPart part;
  std::size_t index;
  const char* message;
};

class RejectedDraft : public ::testing::TestWithParam<BadDraft> {};

TEST_P(RejectedDraft, NamesTheRecordAndTheReason) {
  ProblemDraft draft = chain();
  GetParam().spoil(draft);
  try {
    const Problem problem(std::move(draft));
    FAIL() << "accepted";
  } catch (const InvalidProblem& error) {
    EXPECT_EQ(error.part(), GetParam().part);
    EXPECT_EQ(error.index(), GetParam().index);
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Invariants, RejectedDraft,
    ::testing::Values(
        BadDraft{"cycle",
                 [](ProblemDraft& d) {
                   d.tensors.push_back({.producer = OpId{2}, .consumers = {OpId{0}}});
                 },
                 DraftPart::problem, 0, "'a' -> 'b' -> 'c' -> 'a'"},
        BadDraft{"self_loop",
                 [](ProblemDraft& d) {
                   d.tensors.push_back({.producer = OpId{1}, .consumers = {OpId{1}}});
                 },
                 DraftPart::problem, 0, "'b' -> 'b'"},
        BadDraft{"no_ops", [](ProblemDraft& d) { d.ops.clear(); }, DraftPart::problem, 0, "no ops"},
        BadDraft{"no_devices", [](ProblemDraft& d) { d.cluster.devices.clear(); },
                 DraftPart::problem, 0, "no devices"},
        BadDraft{"twins", [](ProblemDraft& d) { d.ops[2].name = "a"; }, DraftPart::op, 2,
                 "two ops are called 'a'"},
        BadDraft{"negative_time", [](ProblemDraft& d) { d.ops[1].time[0] = -1; }, DraftPart::op, 1,
                 "time of op 'b' is -1"},
        BadDraft{"not_a_number", [](ProblemDraft& d) { d.ops[1].memory = NAN; }, DraftPart::op, 1,
                 "memory of op 'b' is nan"},
        BadDraft{"infinite_memory", [](ProblemDraft& d) { d.ops[1].memory = kInfinity; },
                 DraftPart::op, 1, "memory of op 'b' is inf"},
        BadDraft{"no_producer", [](ProblemDraft& d) { d.tensors[0].producer = OpId{}; },
                 DraftPart::tensor, 0, "has no producer"},
        BadDraft{"reader_twice",
                 [](ProblemDraft& d) {
                   d.tensors[0].consumers = {OpId{1}, OpId{1}};
                 },
                 DraftPart::tensor, 0, "lists the reader 'b' twice"},
        BadDraft{"unsupported",
                 [](ProblemDraft& d) {
                   d.ops[0].time = {kUnsupported, kUnsupported};
                 },
                 DraftPart::op, 0, "op 'a' is supported by no device"},
        BadDraft{"bad_pin",
                 [](ProblemDraft& d) {
                   d.ops[0].time[0] = kUnsupported;
                   d.ops[0].pinned_to = DeviceId{0};
                 },
                 DraftPart::op, 0, "pinned to device 'd0', which does not support it"},
        BadDraft{"torn_group",
                 [](ProblemDraft& d) {
                   d.colocated = {{OpId{0}, OpId{1}}};
                   d.ops[0].pinned_to = DeviceId{0};
                   d.ops[1].pinned_to = DeviceId{1};
                 },
                 DraftPart::op, 1, "must share a device"},
        BadDraft{"other_model",
                 [](ProblemDraft& d) {
                   d.models.push_back({.name = "other"});
                   d.ops[1].model = ModelId{1};
                 },
                 DraftPart::tensor, 0, "of another model"},
        BadDraft{"short_table",
                 [](ProblemDraft& d) {
                   d.tensors[0].link_times = {0, 1};
                 },
                 DraftPart::tensor, 0, "expected 2 x 2"},
        BadDraft{"costly_stay",
                 [](ProblemDraft& d) {
                   d.tensors[0].link_times = {1, 1, 1, 0};
                 },
                 DraftPart::tensor, 0, "from device 'd0' to itself"},
        BadDraft{"dead_link", [](ProblemDraft& d) { d.cluster.links[0].bandwidth = 0; },
                 DraftPart::link, 0, "leave the link out"},
        BadDraft{"no_lanes", [](ProblemDraft& d) { d.cluster.devices[1].lanes = 0; },
                 DraftPart::device, 1, "has 0 lanes"},
        BadDraft{"calls_on_links", [](ProblemDraft& d) { d.objective = Objective::call_latency; },
                 DraftPart::problem, 0, "host interconnect only"}),
    [](const ::testing::TestParamInfo<BadDraft>& sample) { return sample.param.title; });

TEST(WithObjective, CallLatencyHasOneHostDevice) {
  ProblemDraft draft = chain();
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds[1].on_host = true;
  draft.cluster.devices.push_back({.name = "d2", .kind = KindId{1}});
  draft.ops[1].pinned_to = DeviceId{2};
  draft = with_objective(std::move(draft), Objective::call_latency);
  ASSERT_EQ(draft.cluster.devices.size(), 2U);
  EXPECT_EQ(draft.cluster.devices[1].name, "cpu");
  EXPECT_EQ(draft.ops[1].pinned_to, DeviceId{1});
  EXPECT_NO_THROW(Problem{draft});
}

TEST(Answer, StatusFollowsFromPlanAndBound) {
  Answer answer;
  EXPECT_EQ(answer.status(), Status::unknown);
  answer.proved_infeasible = true;
  EXPECT_EQ(answer.status(), Status::infeasible);
  answer.plan = Plan{};
  answer.plan->value = 10;
  answer.certificate.lower_bound = 9;
  EXPECT_EQ(answer.status(), Status::feasible);
  answer.certificate.lower_bound = 10;
  EXPECT_EQ(answer.status(), Status::optimal);
  EXPECT_DOUBLE_EQ(gap(10, 9), 0.1);
  EXPECT_EQ(gap(0, 0), 0);
}

}  // namespace
}  // namespace placewright
