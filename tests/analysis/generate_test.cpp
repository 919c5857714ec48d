#include "analysis/generate.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "problem/problem.h"
#include "support/test_name.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

class EveryFamily : public ::testing::TestWithParam<GraphFamily> {};

INSTANTIATE_TEST_SUITE_P(Families, EveryFamily, ::testing::ValuesIn(values_of<GraphFamily>()),
                         [](const auto& family) {
                           return placewright::testing::test_name(
                               std::string(name_of(family.param)));
                         });

TEST_P(EveryFamily, MakesExactlyTheOpsAskedForAndAValidProblem) {
  for (const bool training : {false, true}) {
    for (const std::size_t ops : {2, 3, 7, 20, 39, 101, 640}) {
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const Problem problem(generate({.family = GetParam(),
                                        .seed = seed,
                                        .ops = ops,
                                        .training = training,
                                        .unsupported = 0.3}));
        EXPECT_EQ(problem.op_count(), ops);
        EXPECT_EQ(problem.has_backward_ops(), training);
      }
    }
  }
}

TEST_P(EveryFamily, IsOneConnectedGraphInTopologicalOrder) {
  const ProblemDraft draft = generate({.family = GetParam(), .seed = 3, .ops = 150});
  std::size_t sources = 0;
  std::vector<char> read(draft.ops.size(), 0);
  for (const Tensor& tensor : draft.tensors) {
    for (const OpId reader : tensor.consumers) {
      EXPECT_LT(tensor.producer, reader);
      read[reader.index()] = 1;
    }
  }
  for (const char has_input : read) sources += has_input == 0 ? 1 : 0;
  EXPECT_LE(sources, GetParam() == GraphFamily::layered ? std::size_t{13} : std::size_t{1});
}

TEST_P(EveryFamily, SameSeedSameBytesOtherSeedOtherBytes) {
  const auto text = [&](std::uint64_t seed) {
    return write_problem(generate({.family = GetParam(), .seed = seed, .ops = 60}));
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

TEST_P(EveryFamily, SurvivesTheFileFormat) {
  const ProblemDraft draft = generate({.family = GetParam(),
                                       .ops = 50,
                                       .training = true,
                                       .accelerators = 3,
                                       .cores = 2,
                                       .memory_pressure = 0.7,
                                       .objective = Objective::throughput});
  EXPECT_EQ(parse_problem(write_problem(draft), "generated").draft, draft);
}

// The promise across machines and releases: these digests change only when the generator does.
TEST(Generate, BytesAreFixed) {
  const auto digest = [](const GenerateOptions& options) {
    return digest_of(write_problem(generate(options)));
  };
  EXPECT_EQ(digest({.family = GraphFamily::layered, .seed = 7, .ops = 100}),
            "e27b4d0698e318867f9abc662f7d428e0360f9bd62225319903a7e114d71dc5e");
  EXPECT_EQ(digest({.family = GraphFamily::chain, .seed = 7, .ops = 50, .models = 2}),
            "caede6dce1874847500ce41998e64b14052e0bac9f3e16af640d8aee982895df");
  EXPECT_EQ(digest({.family = GraphFamily::series_parallel, .seed = 7, .ops = 100}),
            "3e250d0f26bcb095bbee6b24cfa40a1c5731fb6e8a61a752e69814cdb16889f7");
  EXPECT_EQ(digest({.family = GraphFamily::transformer,
                    .seed = 7,
                    .ops = 200,
                    .training = true,
                    .accelerators = 4,
                    .cores = 1,
                    .memory_pressure = 0.8}),
            "d5434c67bd48c5235d95cf938aa57c90881e4173e0f0c73bdb646a51c6b47a0d");
  EXPECT_EQ(digest({.family = GraphFamily::inception, .seed = 7, .ops = 100, .unsupported = 0.2}),
            "41e87c7c96dc5150218a86e6aec53a5a59dc59e9310ae526d341624c2ee796fe");
  EXPECT_EQ(digest({.family = GraphFamily::encoder_decoder, .seed = 7, .ops = 340}),
            "93bb5a71aeca8da00939fe13e0d6cde75696aff3076d4aefc56b0ede23e26d5d");
  EXPECT_EQ(digest({.family = GraphFamily::inception,
                    .seed = 7,
                    .ops = 60,
                    .shared_cores = 6,
                    .memory_pressure = 0.7}),
            "5fa50e8936eabe7a0deece4c778bc6b7165cd945dc294f66d3119736ed3149fe");
  EXPECT_EQ(digest({.family = GraphFamily::inception,
                    .seed = 7,
                    .ops = 60,
                    .shared_cores = 6,
                    .sockets = 2}),
            "b3eb8844e9d824699ac2ada36ec4e3cdb749dc20ed755d17b56c06468bbed48f");
  EXPECT_EQ(
      digest({.family = GraphFamily::inception, .seed = 7, .ops = 60, .devices = 2, .streams = 3}),
      "23895a0871b23342e0638714e981a0633a12d8d192392e467768dfbf269fb1eb");
}

// Every decoder layer reads the end of the encoder: two products for each of eight heads.
TEST(Generate, DecodersReadTheEndOfTheirEncoder) {
  const Problem problem(generate({.family = GraphFamily::encoder_decoder, .ops = 334}));
  ASSERT_EQ(problem.op_count(), 334U);
  const auto end = problem.find_op("encoder1.forward.norm");
  ASSERT_TRUE(end);
  EXPECT_EQ(problem.successors(*end).size(), 2U * 2 * 8);
  for (const std::size_t ops : {1, 2, 166, 167, 168, 300}) {
    const Problem other(generate({.family = GraphFamily::encoder_decoder, .ops = ops}));
    EXPECT_EQ(other.op_count(), ops);
  }
}

TEST(Generate, LayeredGraphsHaveTheEdgesAskedFor) {
  for (const std::size_t edges : {100, 300, 900}) {
    const Problem problem(generate({.ops = 100, .edges = edges}));
    EXPECT_EQ(problem.edge_count(), edges);
  }
  // As dense as it can be: every pair of ops in different layers.
  const Problem full(generate({.ops = 12, .layers = 3, .edges = 48}));
  EXPECT_EQ(full.edge_count(), 48U);
  EXPECT_THROW(generate({.ops = 12, .layers = 3, .edges = 49}), std::invalid_argument);
  EXPECT_THROW(generate({.ops = 12, .layers = 3, .edges = 7}), std::invalid_argument);
}

TEST(Generate, MemoryPressureIsWeightsOverMemory) {
  for (const double pressure : {0.25, 0.9, 1.5}) {
    const ProblemDraft draft = generate({.ops = 300, .devices = 5, .memory_pressure = pressure});
    double weights = 0;
    double memory = 0;
    std::set<double> different;
    for (const Op& op : draft.ops) weights += op.memory;
    for (const Device& device : draft.cluster.devices) {
      memory += device.memory;
      different.insert(device.memory);
    }
    EXPECT_NEAR(weights / memory, pressure, 1e-6);
    EXPECT_GT(different.size(), 1U);
  }
}

TEST(Generate, TrainingPairsShareAColourClassAndGradientsFlowBack) {
  const Problem problem(
      generate({.family = GraphFamily::transformer, .ops = 120, .training = true}));
  EXPECT_EQ(problem.group_count(), 60U);
  for (const GroupId group : problem.groups()) {
    ASSERT_EQ(problem.group_ops(group).size(), 2U);
    EXPECT_NE(problem.op(problem.group_ops(group)[0]).backward,
              problem.op(problem.group_ops(group)[1]).backward);
  }
  for (const OpId op : problem.ops()) {
    if (!problem.op(op).backward) continue;
    EXPECT_FALSE(problem.predecessors(op).empty());
    for (const OpId after : problem.successors(op)) EXPECT_TRUE(problem.op(after).backward);
  }
}

TEST(Generate, NestedSetsOfCoresShareResourcesAndOneMemory) {
  GenerateOptions options;
  options.shared_cores = 6;
  options.memory_pressure = 0.5;
  const Problem problem(generate(options));
  EXPECT_EQ(problem.resource_count(), 6U);
  EXPECT_EQ(problem.space_count(), 1U);
  EXPECT_EQ(problem.device_count(), 6U + 3 + 1 + 1);
  EXPECT_EQ(problem.kind_count(), 4U);  // 1, 2, 4 and all 6 cores
  EXPECT_EQ(problem.uses(DeviceId{problem.device_count() - 1}).size(), 6U);
  EXPECT_TRUE(problem.has_tensor_cuts());
  EXPECT_LT(problem.space_memory(SpaceId{0}), kInfinity);
}

TEST(Generate, SocketsAreMemoriesOfCoresJoinedByLinks) {
  GenerateOptions options;
  options.shared_cores = 8;
  options.sockets = 2;
  options.memory_pressure = 0.5;
  const Problem problem(generate(options));
  EXPECT_EQ(problem.resource_count(), 8U);
  EXPECT_EQ(problem.space_count(), 2U);
  EXPECT_EQ(problem.device_count(), 2U * (4 + 2 + 1));
  EXPECT_EQ(problem.kind_count(), 3U);  // 1, 2 and 4 cores: no set is in two sockets
  for (const DeviceId device : problem.devices()) {
    for (const ResourceUse& use : problem.uses(device)) {
      EXPECT_EQ(use.resource.index() / 4, problem.space(device).index());
    }
  }
  EXPECT_NE(problem.space_memory(SpaceId{0}), problem.space_memory(SpaceId{1}));
  const DeviceId first{0};
  const DeviceId second{7};
  ASSERT_NE(problem.space(first), problem.space(second));
  for (const TensorId tensor : problem.tensors()) {
    EXPECT_GT(problem.link_time(tensor, first, second), 0);
    EXPECT_LT(problem.link_time(tensor, first, second), kInfinity);
  }
}

TEST(Generate, StreamsShareTheMultiprocessorsAndTheMemoryOfTheirGpu) {
  GenerateOptions options;
  options.devices = 2;
  options.streams = 3;
  options.memory_pressure = 0.5;
  const Problem problem(generate(options));
  EXPECT_EQ(problem.resource_count(), 2U);
  EXPECT_EQ(problem.space_count(), 2U);
  ASSERT_EQ(problem.device_count(), 6U);
  for (const DeviceId device : problem.devices()) {
    ASSERT_EQ(problem.uses(device).size(), 1U);
    const ResourceUse& use = problem.uses(device).front();
    EXPECT_EQ(use.resource.index(), device.index() / 3);
    EXPECT_GT(problem.resource(use.resource).capacity, 1);
    EXPECT_EQ(use.amount, problem.resource(use.resource).capacity);
    EXPECT_LT(problem.space_memory(problem.space(device)), kInfinity);
  }
  std::set<double> shares;
  for (const OpId op : problem.ops()) shares.insert(problem.share(op, DeviceId{0}));
  EXPECT_GT(shares.size(), 2U);
  EXPECT_GE(*shares.begin(), 0.125);
  EXPECT_LT(*shares.begin(), 1);
}

// The CPU of a host in sets of cores, and a GPU: ops have parts of the GPU and whole cores.
TEST(Generate, AHostOfSharedCoresGoesWithAcceleratorsOfStreams) {
  GenerateOptions options;
  options.accelerators = 1;
  options.streams = 2;
  options.shared_cores = 2;
  options.memory_pressure = 0.5;
  const ProblemDraft draft = generate(options);
  const Problem problem(draft);
  EXPECT_EQ(problem.interconnect(), InterconnectKind::host);
  EXPECT_EQ(problem.device_count(), 2U + 3);
  EXPECT_EQ(problem.space_count(), 2U);
  for (const DeviceId device : problem.devices()) {
    const bool core_set = problem.on_host(device);
    EXPECT_EQ(core_set, device.index() >= 2);
    EXPECT_EQ(problem.space_memory(problem.space(device)) < kInfinity, !core_set);
    if (!core_set) continue;
    for (const OpId op : problem.ops()) EXPECT_EQ(problem.share(op, device), 1);
  }
  for (const Tensor& tensor : draft.tensors) {
    for (const CutOverhead& cut : tensor.cuts) EXPECT_NE(cut.kind, problem.kind_of(DeviceId{0}));
    EXPECT_EQ(tensor.cuts.size(), 2U);  // one core, and both
  }
}

struct SharedCluster {
  std::size_t devices = 4;
  std::size_t accelerators = 0;
  std::size_t cores = 0;
  std::size_t shared_cores = 0;
  std::size_t sockets = 1;
  std::size_t streams = 0;
};

GenerateOptions on_cluster(const SharedCluster& cluster, Objective objective) {
  GenerateOptions options;
  options.ops = 20;
  options.objective = objective;
  options.devices = cluster.devices;
  options.accelerators = cluster.accelerators;
  options.cores = cluster.cores;
  options.shared_cores = cluster.shared_cores;
  options.sockets = cluster.sockets;
  options.streams = cluster.streams;
  return options;
}

// Planned, with the number of devices that was told beforehand; or refused in one sentence.
TEST(Generate, EveryWayToShareHasPlansForEveryObjectiveItIsFor) {
  const std::vector<SharedCluster> for_schedules = {
      {.shared_cores = 4},
      {.shared_cores = 6, .sockets = 2},
      {.devices = 1, .streams = 4},
      {.devices = 3, .streams = 2},
      {.accelerators = 1, .shared_cores = 4},
      {.accelerators = 2, .shared_cores = 3, .streams = 2},
  };
  const std::vector<SharedCluster> for_all = {
      {.accelerators = 2, .streams = 3},
      {.accelerators = 1, .cores = 2, .streams = 4},
  };
  const auto expect_plans = [](GenerateOptions options) {
    for (const bool harder : {false, true}) {
      // Random calls of colocated ops, or that fill memory, are seldom acyclic.
      const bool calls = options.objective == Objective::call_latency;
      options.training = harder && !calls;
      options.memory_pressure = harder && !calls ? 0.4 : 0;
      options.unsupported = harder ? 0.2 : 0;
      const Problem problem(generate(options));
      EXPECT_EQ(problem.device_count(), generated_device_count(options));
      EXPECT_GT(problem.resource_count(), 0U);
      const PlanOutcome outcome = make_plan(problem, planning_registry(), {.planner = "random"});
      ASSERT_TRUE(outcome.answer.plan) << outcome.answer.reason;
      EXPECT_TRUE(verify(problem, *outcome.answer.plan).empty());
    }
  };
  for (const Objective objective : values_of<Objective>()) {
    SCOPED_TRACE(name_of(objective));
    for (const SharedCluster& cluster : for_all) expect_plans(on_cluster(cluster, objective));
    for (const SharedCluster& cluster : for_schedules) {
      const GenerateOptions options = on_cluster(cluster, objective);
      if (objective == Objective::call_latency) {
        EXPECT_THROW(generate(options), std::invalid_argument);
      } else {
        expect_plans(options);
      }
    }
  }
}

TEST(Generate, ClustersThatContradictThemselvesAreRefused) {
  const std::vector<SharedCluster> contradictions = {
      {.sockets = 2},
      {.sockets = 0},
      {.shared_cores = 5, .sockets = 2},
      {.shared_cores = 2, .sockets = 4},
      {.cores = 2, .shared_cores = 4},
      {.accelerators = 1, .shared_cores = 4, .sockets = 2},
      {.shared_cores = 4, .streams = 2},
      {.cores = 4, .streams = 2},
  };
  for (const SharedCluster& cluster : contradictions) {
    EXPECT_THROW(generate(on_cluster(cluster, Objective::latency)), std::invalid_argument);
  }
}

TEST(Generate, HostClusterAndCallLatency) {
  const Problem calls(
      generate({.ops = 40, .accelerators = 3, .cores = 4, .objective = Objective::call_latency}));
  EXPECT_EQ(calls.interconnect(), InterconnectKind::host);
  EXPECT_EQ(calls.device_count(), 4U);
  EXPECT_THROW(generate({.objective = Objective::call_latency}), std::invalid_argument);
}

TEST(Generate, ContradictionsAreRefused) {
  EXPECT_THROW(generate({.ops = 0}), std::invalid_argument);
  EXPECT_THROW(generate({.ops = 3, .models = 4}), std::invalid_argument);
  EXPECT_THROW(generate({.devices = 0}), std::invalid_argument);
  EXPECT_THROW(generate({.family = GraphFamily::chain, .edges = 500}), std::invalid_argument);
  EXPECT_THROW(generate({.ops = 4, .layers = 5}), std::invalid_argument);
  EXPECT_THROW(generate({.memory_pressure = -1}), std::invalid_argument);
}

}  // namespace
}  // namespace placewright
