#include "analysis/what_if.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <stdexcept>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "analysis/variation.h"
#include "planning/portfolio.h"
#include "support/published.h"
#include "support/records.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

TEST(Variation, ChangesWhatItSays) {
  const ProblemDraft draft = published_file("moirai/example-1.json", Objective::latency).draft;
  EXPECT_EQ(with_memory(draft, 2).cluster.devices[1].memory, 2 * draft.cluster.devices[1].memory);
  EXPECT_EQ(with_memory(draft, DeviceId{1}, 2).cluster.devices[0].memory,
            draft.cluster.devices[0].memory);
  const Problem same(draft);
  const Problem faster(with_bandwidth(draft, 2));
  const Problem one_way(with_bandwidth(draft, DeviceId{0}, DeviceId{1}, 2));
  const Problem quick(with_speed(draft, DeviceId{1}, 4));
  const Problem batched(with_batch(draft, 3));
  for (const TensorId tensor : same.tensors()) {
    const double time = same.link_time(tensor, DeviceId{0}, DeviceId{1});
    EXPECT_DOUBLE_EQ(faster.link_time(tensor, DeviceId{0}, DeviceId{1}), time / 2);
    EXPECT_DOUBLE_EQ(one_way.link_time(tensor, DeviceId{0}, DeviceId{1}), time / 2);
    EXPECT_DOUBLE_EQ(one_way.link_time(tensor, DeviceId{1}, DeviceId{0}),
                     same.link_time(tensor, DeviceId{1}, DeviceId{0}));
    EXPECT_DOUBLE_EQ(batched.link_time(tensor, DeviceId{0}, DeviceId{1}), 3 * time);
  }
  for (const OpId op : same.ops()) {
    EXPECT_DOUBLE_EQ(quick.time(op, DeviceId{1}), same.time(op, DeviceId{1}) / 4);
    EXPECT_DOUBLE_EQ(quick.time(op, DeviceId{0}), same.time(op, DeviceId{0}));
    EXPECT_DOUBLE_EQ(batched.time(op, DeviceId{0}), 3 * same.time(op, DeviceId{0}));
  }
}

TEST(Variation, MemoryThatDevicesShareIsThatOfTheirSpace) {
  GenerateOptions options;
  options.ops = 8;
  options.shared_cores = 2;
  options.memory_pressure = 0.5;
  const ProblemDraft draft = generate(options);
  const double memory = draft.cluster.spaces[0].memory;
  ASSERT_LT(memory, kInfinity);
  EXPECT_EQ(with_memory(draft, 2).cluster.spaces[0].memory, 2 * memory);
  const Problem one(with_memory(draft, DeviceId{1}, 3));
  EXPECT_EQ(one.space_memory(one.space(DeviceId{0})), 3 * memory);
}

TEST(Variation, TakesTheFirstDevicesWithTheirLinks) {
  const ProblemDraft draft = published_file("moirai/GoogLeNet.json", Objective::latency).draft;
  const Problem all(draft);
  const Problem two(with_device_count(draft, 2));
  ASSERT_EQ(two.device_count(), 2U);
  for (const TensorId tensor : all.tensors()) {
    EXPECT_EQ(two.link_time(tensor, DeviceId{1}, DeviceId{0}),
              all.link_time(tensor, DeviceId{1}, DeviceId{0}));
  }
  EXPECT_THROW(with_device_count(draft, 0), std::invalid_argument);
  EXPECT_THROW(with_device_count(draft, 5), std::invalid_argument);
}

TEST(Variation, CopiesAcceleratorsBehindAHost) {
  const ProblemDraft draft =
      published_file("msr/throughput/LayerGraphs/bert24_inference.json", Objective::throughput)
          .draft;
  ASSERT_EQ(countable_devices(draft), 6U);
  EXPECT_EQ(countable_devices(with_device_count(draft, 2)), 2U);
  EXPECT_EQ(with_device_count(draft, 2).cluster.devices.size(), draft.cluster.devices.size() - 4);
  const Problem more(with_device_count(draft, 8));
  EXPECT_EQ(more.device_count(), draft.cluster.devices.size() + 2);
}

// Two nodes of two devices; the link between 0 and 1 is the one inside node a.
ProblemDraft two_nodes() {
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.models = {{"model", 0, 1, {}}};
  draft.cluster.kinds = {{"gpu"}};
  for (const char* name : {"a0", "a1", "b0", "b1"}) {
    Device device{name, KindId{0}};
    device.node = std::string(name, 1);
    draft.cluster.devices.push_back(device);
  }
  for (const DeviceId from : ids<DeviceId>(4)) {
    for (const DeviceId to : ids<DeviceId>(4)) {
      if (from == to) continue;
      const bool inside = from.index() / 2 == to.index() / 2;
      draft.cluster.links.push_back({from, to, inside ? 1.0 : 5.0, 10});
    }
  }
  Op op;
  op.time = {1};
  for (const char* name : {"first", "second"}) {
    op.name = name;
    draft.ops.push_back(op);
  }
  Tensor tensor;
  tensor.producer = OpId{0};
  tensor.consumers = {OpId{1}};
  draft.tensors = {tensor};
  return draft;
}

TEST(Variation, OneMoreDeviceIsJoinedAsTheOneItIsLike) {
  const ProblemDraft draft = two_nodes();
  const Problem more(with_copy_of(draft, DeviceId{0}));
  ASSERT_EQ(more.device_count(), 5U);
  EXPECT_EQ(more.device(DeviceId{4}).name, "a0-2");
  EXPECT_EQ(more.device(DeviceId{4}).node, "a");
  const double times[] = {1, 1, 5, 5};  // to and from a0, a1, b0, b1
  for (const DeviceId other : ids<DeviceId>(4)) {
    EXPECT_EQ(more.link_time(TensorId{0}, DeviceId{4}, other), times[other.index()]);
    EXPECT_EQ(more.link_time(TensorId{0}, other, DeviceId{4}), times[other.index()]);
  }
  // The same where the tensor states its times itself.
  ProblemDraft tables = draft;
  const Problem same(draft);
  for (const DeviceId from : same.devices()) {
    for (const DeviceId to : same.devices()) {
      tables.tensors[0].link_times.push_back(
          from == to ? 0 : 10 * same.link_time(TensorId{0}, from, to) + (from < to ? 1 : 2));
    }
  }
  const Problem by_table(with_copy_of(tables, DeviceId{0}));
  EXPECT_EQ(by_table.link_time(TensorId{0}, DeviceId{4}, DeviceId{2}), 51);
  EXPECT_EQ(by_table.link_time(TensorId{0}, DeviceId{2}, DeviceId{4}), 52);
  EXPECT_EQ(by_table.link_time(TensorId{0}, DeviceId{0}, DeviceId{4}), 11);
  EXPECT_EQ(by_table.link_time(TensorId{0}, DeviceId{4}, DeviceId{0}), 12);
  ProblemDraft alone = with_devices(draft, {0});
  EXPECT_THROW(with_copy_of(alone, DeviceId{0}), std::invalid_argument);
}

TEST(Variation, OtherLinksAreThoseInsideNodes) {
  const Problem other(with_links(two_nodes(), 0.5, 100));
  EXPECT_EQ(other.link_time(TensorId{0}, DeviceId{0}, DeviceId{1}), 0.5);
  EXPECT_EQ(other.link_time(TensorId{0}, DeviceId{0}, DeviceId{2}), 5);
  ProblemDraft flat = two_nodes();
  for (Device& device : flat.cluster.devices) device.node = "";
  EXPECT_EQ(Problem(with_links(flat, 0.5, 100)).link_time(TensorId{0}, DeviceId{0}, DeviceId{2}),
            0.5);
  const ProblemDraft tables = published_file("moirai/example-1.json", Objective::latency).draft;
  EXPECT_THROW(with_links(tables, 1, 1), std::invalid_argument);
}

TEST(Variation, OfSetsOfCoresTheCoresAreCounted) {
  GenerateOptions options;
  options.ops = 8;
  options.shared_cores = 4;
  const ProblemDraft draft = generate(options);
  EXPECT_EQ(countable_devices(draft), 4U);
  const Problem fewer(with_device_count(draft, 2));
  EXPECT_EQ(countable_devices(fewer.draft()), 2U);
  EXPECT_EQ(fewer.device_count(), 3U);  // each core, and both
  const Problem more(with_device_count(draft, 6));
  EXPECT_EQ(countable_devices(more.draft()), 6U);
  // All sets of four cores again, as far as there are cores: two more, and both of them.
  EXPECT_EQ(more.device_count(), draft.cluster.devices.size() + 3);
  EXPECT_EQ(more.kind_count(), Problem(draft).kind_count());
}

// Two sockets of two cores: three cores are one socket and a core of the other.
TEST(Variation, CoresOfSeveralMemoriesAreCountedButNotCopied) {
  GenerateOptions options;
  options.ops = 8;
  options.shared_cores = 4;
  options.sockets = 2;
  const ProblemDraft draft = generate(options);
  EXPECT_EQ(countable_devices(draft), 4U);
  EXPECT_EQ(countable_word(draft.cluster), "core");
  const Problem three(with_device_count(draft, 3));
  EXPECT_EQ(countable_devices(three.draft()), 3U);
  EXPECT_EQ(three.device_count(), 4U);
  EXPECT_EQ(Problem(with_device_count(draft, 2)).device_count(), 3U);
  EXPECT_THROW(with_device_count(draft, 5), std::invalid_argument);
}

// A bus is none of what the memories have each.
TEST(Variation, DevicesOnABusAreCountedThemselves) {
  GenerateOptions options;
  options.ops = 8;
  options.devices = 2;
  options.streams = 2;
  ProblemDraft draft = generate(options);
  EXPECT_EQ(countable_devices(draft), 2U);
  EXPECT_EQ(countable_word(draft.cluster), "gpu");
  draft.cluster.resources.push_back({"bus", 4});
  for (Device& device : draft.cluster.devices) device.uses.push_back({ResourceId{2}, 1});
  EXPECT_EQ(countable_devices(draft), 4U);
  EXPECT_EQ(countable_word(draft.cluster), "device");
}

// A profile allows as many replicas as it has cores.
TEST(Variation, ALimitOfReplicasThatIsTheNumberOfCoresFollowsIt) {
  GenerateOptions options;
  options.ops = 8;
  options.shared_cores = 4;
  const ProblemDraft draft = generate(options);
  const auto limit = [&](int stated, std::size_t cores) {
    ProblemDraft limited = draft;
    limited.rules.max_replicas = stated;
    return with_device_count(std::move(limited), cores).rules.max_replicas;
  };
  EXPECT_EQ(limit(4, 6), 6);
  EXPECT_EQ(limit(4, 2), 2);
  EXPECT_EQ(limit(4, 4), 4);
  for (const int stated : {1, 3, 5}) {
    EXPECT_EQ(limit(stated, 8), stated);
    EXPECT_EQ(limit(stated, 2), stated);
  }
}

// On one core there is one replica, whatever the limit; where devices take parts of a resource
// there can be several, and a limit of 1 forbids them.
TEST(Variation, ALimitOfReplicasOnPartsOfAResourceStays) {
  GenerateOptions options;
  options.ops = 8;
  options.shared_cores = 1;
  ProblemDraft draft = generate(options);
  EXPECT_EQ(with_device_count(draft, 3).rules.max_replicas, 3);
  draft.cluster.resources[0].capacity = 2;
  EXPECT_EQ(with_device_count(draft, 3).rules.max_replicas, 1);
}

TEST(Variation, ForbidsOpsOnOneDeviceOfAKind) {
  const ProblemDraft draft =
      published_file("msr/throughput/LayerGraphs/bert24_inference.json", Objective::throughput)
          .draft;
  const Problem all(draft);
  const Problem some(with_forbidden(draft, {0, 3}, DeviceId{1}));
  ASSERT_EQ(all.kind_of(DeviceId{0}), all.kind_of(DeviceId{1}));
  for (const OpId op : all.ops()) {
    const bool forbidden = op.index() == 0 || op.index() == 3;
    EXPECT_EQ(some.allowed(op, DeviceId{1}), !forbidden && all.allowed(op, DeviceId{1}));
    EXPECT_EQ(some.time(op, DeviceId{0}), all.time(op, DeviceId{0}));
  }
  // A second time nothing is left to be split.
  const ProblemDraft more =
      with_forbidden(with_forbidden(draft, {0}, DeviceId{1}), {3}, DeviceId{1});
  EXPECT_EQ(more, with_forbidden(draft, {0, 3}, DeviceId{1}));
}

TEST(DeviceSets, AreThoseThatDifferInTheirKinds) {
  ProblemDraft draft;
  draft.cluster.kinds = {{.name = "large"}, {.name = "small"}};
  for (const char* name : {"a", "b", "c"}) {
    const KindId kind{name[0] == 'c' ? 1U : 0U};
    draft.cluster.devices.push_back({.name = name, .kind = kind});
  }
  std::vector<std::string> names;
  for (const DeviceSet& set : all_device_sets(draft, 10)) names.push_back(set.name);
  EXPECT_EQ(names, (std::vector<std::string>{"2 x large, 1 x small", "1 x large, 1 x small",
                                             "2 x large", "1 x small", "1 x large"}));
  EXPECT_THROW((void)all_device_sets(draft, 2), std::invalid_argument);
  const auto without = sets_without(draft, {"b", "large"});
  ASSERT_EQ(without.size(), 3U);
  EXPECT_EQ(without[0].devices, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(without[1].devices, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(without[2].devices, (std::vector<std::size_t>{2}));
  EXPECT_THROW((void)sets_without(draft, {"none"}), std::invalid_argument);
}

// Core 0, core 3, and all four: there is no way to have two, three or six cores.
TEST(WhatIf, NumbersOfCoresThatNoSetsMakeAreRefused) {
  GenerateOptions options;
  options.ops = 6;
  options.shared_cores = 4;
  ProblemDraft draft = generate(options);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < draft.cluster.devices.size(); ++i) {
    const std::vector<ResourceUse>& uses = draft.cluster.devices[i].uses;
    const std::size_t first = uses.front().resource.index();
    if (uses.size() == 4 || (uses.size() == 1 && (first == 0 || first == 3))) kept.push_back(i);
  }
  ASSERT_EQ(kept.size(), 3U);
  draft = with_devices(std::move(draft), kept);
  const WhatIfGrid grid{.devices = {1, 2, 3, 4, 5, 6}};
  const PlanRequest request{.planner = "etf"};
  for (const WhatIfAnswer& answer : what_if(draft, grid, planning_registry(), request)) {
    const std::size_t cores = answer.point.devices;
    EXPECT_EQ(answer.devices, cores);
    EXPECT_EQ(answer.plan.has_value(), cores == 1 || cores == 4 || cores == 5) << cores;
    if (cores != 2) continue;
    EXPECT_EQ(answer.outcome.answer.reason, "no sets of cores make 2 cores: those within 2 have 1");
  }
}

// The first streams of accelerators are all of one GPU, and are still so many accelerators.
TEST(WhatIf, CountsTheSameInEveryPoint) {
  GenerateOptions options;
  options.ops = 6;
  options.accelerators = 2;
  options.streams = 2;
  const WhatIfGrid grid{.devices = {1, 2, 3, 4}};
  for (const auto& answer :
       what_if(generate(options), grid, planning_registry(), {.planner = "etf"})) {
    EXPECT_TRUE(answer.plan) << answer.outcome.answer.reason;
    EXPECT_EQ(answer.devices, answer.point.devices);
  }
}

// One op of 4 on each core: it cannot be cut, so only replicas make more cores worth having.
TEST(WhatIf, MoreCoresMayHaveMoreReplicas) {
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.cluster = core_cluster(2);
  draft.models = {model_record("m")};
  draft.ops = {op_record("p", {4})};
  const auto values = [&](int replicas) {
    draft.rules.max_replicas = replicas;
    std::vector<double> found;
    const WhatIfGrid grid{.devices = {1, 2, 4}};
    for (const auto& answer :
         what_if(draft, grid, planning_registry(), {.planner = "exhaustive"})) {
      found.push_back(answer.value());
    }
    return found;
  };
  EXPECT_EQ(values(2), (std::vector<double>{4, 2, 1}));
  EXPECT_EQ(values(1), (std::vector<double>{4, 4, 4}));
}

TEST(WhatIf, PointsAfterAnInterruptionKeepTheirNumberOfDevices) {
  const ProblemDraft draft = generate({.ops = 6});
  const std::atomic<bool> interrupted = true;
  const WhatIfGrid grid{.devices = {1, 2, 3}};
  for (const WhatIfAnswer& answer :
       what_if(draft, grid, planning_registry(), {.planner = "etf"}, &interrupted)) {
    EXPECT_EQ(answer.devices, answer.point.devices);
    EXPECT_FALSE(answer.plan);
  }
}

TEST(WhatIf, MoreDevicesAndMemoryNeverHurt) {
  const ProblemDraft draft = published_file("moirai/example-1.json", Objective::latency).draft;
  const WhatIfGrid grid{.devices = {1, 2, 3}, .memory = {0.5, 1, 2, 4}};
  const PlanRequest request{.planner = "etf", .budget = {.seconds = 2, .threads = 2}};
  std::size_t told = 0;
  const auto answers = what_if(draft, grid, planning_registry(), request, nullptr,
                               [&](std::size_t done, std::size_t all) {
                                 told = std::max(told, done);
                                 EXPECT_EQ(all, 12U);
                               });
  ASSERT_EQ(answers.size(), 12U);
  EXPECT_EQ(told, 12U);
  std::map<std::pair<double, double>, double> value;
  for (const WhatIfAnswer& answer : answers) {
    value[{answer.point.at(Axis::devices), answer.point.memory}] = answer.value();
    EXPECT_GE(answer.value(), answer.lower_bound() * (1 - 1e-9));
  }
  EXPECT_EQ(value.at({1, 1}), kInfinity);  // 44 bytes of weights do not fit into one device
  EXPECT_LT(value.at({3, 1}), kInfinity);
  for (const double devices : {1.0, 2.0, 3.0}) {
    for (const double memory : {1.0, 2.0, 4.0}) {
      EXPECT_LE(value.at({devices, memory}), value.at({devices, memory / 2}));
      if (devices > 1) {
        EXPECT_LE(value.at({devices, memory}), value.at({devices - 1, memory}));
      }
    }
  }
}

TEST(WhatIf, PlansArePlansForTheirPoint) {
  const ProblemDraft draft =
      published_file("msr/throughput/LayerGraphs/bert24_inference.json", Objective::throughput)
          .draft;
  const WhatIfGrid grid{.devices = {1, 3, 7}, .bandwidth = {0.5, 2}};
  const PlanRequest request{.planner = "proportional", .budget = {.seconds = 2}};
  for (const WhatIfAnswer& answer : what_if(draft, grid, planning_registry(), request)) {
    ASSERT_TRUE(answer.plan) << answer.outcome.answer.reason;
    const Problem problem(
        with_bandwidth(with_device_count(draft, answer.point.devices), answer.point.bandwidth));
    EXPECT_TRUE(verify(problem, *answer.plan).empty());
  }
}

}  // namespace
}  // namespace placewright::testing
