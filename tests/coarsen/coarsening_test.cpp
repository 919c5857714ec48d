#include "coarsen/coarsening.h"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "evaluate/placement_plan.h"
#include "evaluate/simulate.h"
#include "support/published.h"
#include "support/random_plan.h"
#include "support/random_problem.h"
#include "support/test_name.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::random_draft;
using testing::RandomProblemOptions;
using testing::RandomSource;

// Ops given to sets at random: nothing speaks for the partition being good.
Partition random_partition(const Problem& problem, RandomSource& random) {
  Partition partition(problem.op_count());
  const std::size_t sets = random.between(1, problem.op_count());
  for (const OpId op : problem.ops()) partition[op] = CoarseSet{random.below(sets)};
  return partition;
}

// Every plan of the coarse problem is a plan of the fine one with the same value.
void expect_promise_kept(const Problem& fine, const Coarsening& coarsening, RandomSource& random,
                         std::size_t& plans) {
  for (int attempt = 0; attempt < 4; ++attempt) {
    const Placement placement = testing::random_placement(coarsening.coarse(), random);
    const auto coarse_plan = plan_of_placement(coarsening.coarse(), placement);
    if (!coarse_plan || !verify(coarsening.coarse(), *coarse_plan).empty()) continue;
    const Plan plan = coarsening.expand(*coarse_plan);
    ++plans;
    EXPECT_EQ(plan.value, coarse_plan->value);
    const auto violations = verify(fine, plan);
    EXPECT_TRUE(violations.empty())
        << fine.name() << ": " << (violations.empty() ? "" : violations.front().message);
    EXPECT_NEAR(verified_value(fine, plan), plan.value, 1e-9 * std::max(1.0, plan.value));
    if (fine.rules().memory != MemoryModel::peak) continue;
    // What fits in the coarse problem fits in the fine one.
    const Simulation promised = simulate(coarsening.coarse(), *coarse_plan);
    const Simulation kept = simulate(fine, plan);
    for (const DeviceId device : fine.devices()) {
      EXPECT_LE(kept.devices[device].peak, promised.devices[device].peak * (1 + 1e-9));
    }
  }
}

RandomProblemOptions options_for(Objective objective, InterconnectKind interconnect,
                                 std::uint64_t seed) {
  RandomProblemOptions options;
  options.objective = objective;
  options.interconnect = interconnect;
  options.ops = 5 + seed % 12;
  options.edge_probability = seed % 3 == 0 ? 0.15 : 0.3;
  options.models = objective == Objective::total_completion ? 2 : 1;
  options.congestion = seed % 2 == 0;
  options.unsupported = seed % 3 == 1;
  options.pins = seed % 5 == 1;
  options.colocation = seed % 4 == 1;
  options.shared_weights = seed % 4 == 2;
  options.lanes = seed % 7 == 3 && is_schedule(objective);
  options.overheads = seed % 3 == 2;
  options.cuts = seed % 4 == 3;
  options.training = seed % 2 == 1 && objective == Objective::throughput;
  options.zero_times = seed % 6 == 5;
  return options;
}

class EveryObjective : public ::testing::TestWithParam<Objective> {};

INSTANTIATE_TEST_SUITE_P(Objectives, EveryObjective,
                         ::testing::Values(Objective::throughput, Objective::call_latency,
                                           Objective::latency, Objective::total_completion),
                         [](const auto& objective) {
                           return placewright::testing::test_name(
                               std::string(name_of(objective.param)));
                         });

TEST_P(EveryObjective, ExpandedPlansKeepTheCoarseValue) {
  std::size_t plans = 0;
  std::size_t contracted = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const bool host = GetParam() == Objective::call_latency || seed % 2 == 0;
    RandomProblemOptions options = options_for(
        GetParam(), host ? InterconnectKind::host : InterconnectKind::links, seed / 2 + seed);
    ProblemDraft draft = random_draft(options, seed);
    draft.rules.memory = seed % 3 == 0 ? MemoryModel::peak : MemoryModel::resident;
    draft.rules.contiguity = seed % 4 == 0   ? Contiguity::none
                             : seed % 4 == 1 ? Contiguity::per_device
                                             : Contiguity::joint;
    draft.rules.training = seed % 5 == 0 ? TrainingMode::phased : TrainingMode::interleaved;
    const Problem fine(std::move(draft));
    RandomSource random(seed);
    const Coarsening by_chance(fine, random_partition(fine, random));
    contracted += fine.op_count() - by_chance.coarse().op_count();
    expect_promise_kept(fine, by_chance, random, plans);
    for (const CoarsenMethod method : values_of<CoarsenMethod>()) {
      expect_promise_kept(fine, Coarsening(fine, CoarsenOptions{.method = method}), random, plans);
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(plans, 1000U);
  EXPECT_GT(contracted, 200U);
}

// In a memory that several devices share, one of them receives a tensor for all.
TEST_P(EveryObjective, ExpandedPlansOnDevicesThatShareKeepTheCoarseValue) {
  std::size_t plans = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const bool host = GetParam() == Objective::call_latency || seed % 2 == 0;
    RandomProblemOptions options =
        options_for(GetParam(), host ? InterconnectKind::host : InterconnectKind::links, seed);
    options.devices = 3 + seed % 3;
    options.lanes = false;
    options.spaces = true;
    options.resources = seed % 4 < 2;
    const Problem fine(random_draft(options, seed));
    RandomSource random(seed);
    expect_promise_kept(fine, Coarsening(fine, random_partition(fine, random)), random, plans);
    for (const CoarsenMethod method : values_of<CoarsenMethod>()) {
      expect_promise_kept(fine, Coarsening(fine, CoarsenOptions{.method = method}), random, plans);
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(plans, 300U);
}

TEST(Coarsening, ASetTakesWhatItsMostDemandingMemberTakes) {
  RandomProblemOptions options;
  options.ops = 3;
  options.edge_probability = 0;
  ProblemDraft draft = testing::core_set_draft(options, 1);
  draft.ops[0].share = {0.25, 0.5, 1};
  draft.ops[1].share = {0.5, 0.25, 0.25};
  const auto share_with = [&](std::size_t other) {
    const Problem fine(draft);
    Partition partition(3, CoarseSet{0});
    partition[OpId{3 - other}] = CoarseSet{1};
    const Coarsening coarsening(fine, partition);
    for (const OpId set : coarsening.coarse().ops()) {
      if (coarsening.members(set).size() == 2) return coarsening.coarse().op(set).share;
    }
    return std::vector<double>{};
  };
  EXPECT_EQ(share_with(1), (std::vector<double>{0.5, 0.5, 1}));
  EXPECT_TRUE(share_with(2).empty()) << "the third takes all that its device has";
}

// Where tensors are handed over for what they state. Each has one reader: of several, coarse and
// fine ranks may choose different ones to bear the hand-over.
TEST(Coarsening, ExpandedChainsOnSetsOfCoresKeepTheCoarseValue) {
  std::size_t plans = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    RandomProblemOptions options;
    options.ops = 10;
    options.edge_probability = 0.15;
    ProblemDraft draft = testing::core_set_draft(options, seed);
    for (Tensor& tensor : draft.tensors) {
      if (tensor.consumers.size() > 1) tensor.consumers.resize(1);
    }
    const Problem fine(std::move(draft));
    RandomSource random(seed);
    const CoarsenOptions chains{.method = CoarsenMethod::chains, .longest_packed = 100};
    expect_promise_kept(fine, Coarsening(fine, chains), random, plans);
  }
  EXPECT_GT(plans, 300U);
}

TEST(Coarsening, NoneIsTheSameProblem) {
  const Problem fine(random_draft({.ops = 20, .colocation = true, .shared_weights = true}, 3));
  const Coarsening coarsening(fine, CoarsenOptions{});
  EXPECT_EQ(coarsening.coarse().draft(), fine.draft());
  EXPECT_TRUE(coarsening.lossless());
}

TEST(Coarsening, GroupsOfAPlanBecomeTheMembersOfTheirOps) {
  const Problem fine(random_draft({.ops = 12}, 3));
  Partition pairs(fine.op_count());
  for (const OpId op : fine.ops()) pairs[op] = CoarseSet{fine.topological_rank(op) / 2};
  const Coarsening coarsening(fine, pairs);
  const Problem& coarse = coarsening.coarse();
  ASSERT_LT(coarse.op_count(), fine.op_count());
  auto plan = plan_of_placement(coarse, Placement(coarse.op_count(), DeviceId{0}));
  ASSERT_TRUE(plan);
  plan->groups.resize(2);
  for (const OpId op : coarse.ops()) plan->groups[op.index() % 2].push_back(op);

  const auto groups = coarsening.expand(*plan).groups;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].size() + groups[1].size(), fine.op_count());
  for (std::size_t group = 0; group < 2; ++group) {
    for (const OpId op : groups[group]) EXPECT_EQ(coarsening.coarse_op(op).index() % 2, group);
  }
}

TEST(Coarsening, ColourClassesOfATrainingGraphLoseNothing) {
  const Problem fine = testing::published_problem(
      "msr/throughput/OperatorGraphs/bert_l-3_training.json", Objective::throughput);
  const Coarsening coarsening(fine, CoarsenOptions{.method = CoarsenMethod::classes});
  EXPECT_TRUE(coarsening.lossless());
  EXPECT_LT(coarsening.coarse().op_count(), fine.op_count());
  for (const OpId op : coarsening.coarse().ops()) {
    for (const OpId member : coarsening.members(op)) {
      EXPECT_EQ(fine.op(member).backward, coarsening.coarse().op(op).backward);
      EXPECT_EQ(coarsening.coarse_op(member), op);
    }
  }
}

TEST(Coarsening, ACycleOfSetsIsBroken) {
  // a -> b -> c with {a, c} proposed: contracting it would need b before and after it.
  ProblemDraft draft;
  draft.cluster.kinds = {{"k"}};
  draft.cluster.devices = {{.name = "d", .kind = KindId{0}}};
  draft.models = {{.name = "m"}};
  for (const char* name : {"a", "b", "c"}) {
    draft.ops.push_back({.name = name, .type = "", .memory = 1, .time = {1.0}});
  }
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}}},
                   {.producer = OpId{1}, .consumers = {OpId{2}}}};
  const Problem fine(std::move(draft));
  Partition partition(3);
  partition[OpId{0}] = partition[OpId{2}] = CoarseSet{0};
  partition[OpId{1}] = CoarseSet{1};
  EXPECT_EQ(Coarsening(fine, partition).coarse().op_count(), 3U);
}

struct NamedOp {
  const char* name;
  const char* type;
  std::vector<std::size_t> inputs;
};

// Which ops end up together, as sets of names.
std::set<std::set<std::string>> fused(const std::vector<NamedOp>& graph) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"gpu"}, {"cpu"}};
  draft.cluster.devices = {{.name = "gpu", .kind = KindId{0}}, {.name = "cpu", .kind = KindId{1}}};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}}, {DeviceId{1}, DeviceId{0}}};
  draft.models = {{.name = "m"}};
  for (const NamedOp& op : graph) {
    draft.ops.push_back({.name = op.name, .type = op.type, .time = {1.0, 2.0}});
  }
  for (std::size_t from = 0; from < graph.size(); ++from) {
    Tensor tensor{.name = "", .producer = OpId{from}, .bytes = 8};
    for (std::size_t to = 0; to < graph.size(); ++to) {
      if (std::ranges::find(graph[to].inputs, from) != graph[to].inputs.end()) {
        tensor.consumers.emplace_back(to);
      }
    }
    draft.tensors.push_back(std::move(tensor));
  }
  const Problem fine(std::move(draft));
  const Coarsening coarsening(fine, CoarsenOptions{.method = CoarsenMethod::fusion});
  std::set<std::set<std::string>> sets;
  for (const OpId op : coarsening.coarse().ops()) {
    std::set<std::string> names;
    for (const OpId member : coarsening.members(op)) names.insert(fine.op(member).name);
    if (names.size() > 1) sets.insert(names);
  }
  return sets;
}

using Sets = std::set<std::set<std::string>>;

TEST(Fusion, ConvolutionWithBiasNormalisationAdditionAndActivation) {
  EXPECT_EQ(fused({{"in", "Parameter", {}},
                   {"conv", "Convolution", {0}},
                   {"bias", "Add", {1}},
                   {"norm", "BatchNormInference", {2}},
                   {"skip", "Add", {3, 0}},
                   {"relu", "ReLU", {4}},
                   {"next", "Conv", {5}}}),
            (Sets{{"conv", "bias", "norm", "skip", "relu"}}));
}

TEST(Fusion, AProducerWithTwoReadersStaysApart) {
  EXPECT_EQ(fused({{"conv", "Conv", {}}, {"relu", "Relu", {0}}, {"pool", "MaxPool", {0}}}), Sets{});
}

TEST(Fusion, ProductWithGeluSpelledOut) {
  // x * 0.5 * (1 + erf(x / sqrt 2))
  EXPECT_EQ(fused({{"matmul", "MatMul", {}},
                   {"bias", "Add", {0}},
                   {"div", "Div", {1}},
                   {"erf", "Erf", {2}},
                   {"plus", "Add", {3}},
                   {"times", "Mul", {1, 4}},
                   {"half", "Mul", {5}},
                   {"next", "MatMul", {6}}}),
            (Sets{{"matmul", "bias", "div", "erf", "plus", "times", "half"}}));
}

TEST(Fusion, ConvolutionWithSiluSpelledOut) {
  EXPECT_EQ(fused({{"conv", "Conv", {}}, {"sigmoid", "Sigmoid", {0}}, {"mul", "Mul", {0, 1}}}),
            (Sets{{"conv", "sigmoid", "mul"}}));
}

TEST(Fusion, LayerNormalisationAndSoftmaxSpelledOut) {
  EXPECT_EQ(
      fused({{"x", "MatMul", {}},
             {"mean", "ReduceMean", {0}},
             {"centre", "Sub", {0, 1}},
             {"square", "Pow", {2}},
             {"variance", "ReduceMean", {3}},
             {"epsilon", "Add", {4}},
             {"root", "Sqrt", {5}},
             {"div", "Div", {2, 6}},
             {"scale", "Mul", {7}},
             {"shift", "Add", {8}},
             {"y", "MatMul", {9}}}),
      (Sets{{"mean", "centre", "square", "variance", "epsilon", "root", "div", "scale", "shift"}}));
  EXPECT_EQ(fused({{"x", "MatMul", {}},
                   {"max", "ReduceMax", {0}},
                   {"minus", "Subtract", {0, 1}},
                   {"exp", "Exp", {2}},
                   {"sum", "ReduceSum", {3}},
                   {"div", "Divide", {3, 4}},
                   {"y", "MatMul", {5}}}),
            (Sets{{"max", "minus", "exp", "sum", "div"}}));
}

TEST(Fusion, ElementwiseChains) {
  EXPECT_EQ(fused({{"a", "Reshape", {}},
                   {"b", "Multiply", {0}},
                   {"c", "Add", {1}},
                   {"d", "Sqrt", {2}},
                   {"e", "Reshape", {3}}}),
            (Sets{{"b", "c", "d"}}));
}

// Chain of ops with the given (cpu, gpu) times; answers the sizes of the packed groups.
std::vector<std::size_t> packed(const std::vector<std::pair<double, double>>& times,
                                TimeUnit unit) {
  ProblemDraft draft;
  draft.unit = unit;
  draft.cluster.kinds = {{"CPU"}, {"GPU"}};
  draft.cluster.devices = {{.name = "CPU", .kind = KindId{0}}, {.name = "GPU", .kind = KindId{1}}};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}}, {DeviceId{1}, DeviceId{0}}};
  draft.models = {{.name = "m"}};
  for (std::size_t i = 0; i < times.size(); ++i) {
    draft.ops.push_back({.name = std::to_string(i), .time = {times[i].first, times[i].second}});
    if (i > 0) draft.tensors.push_back({.producer = OpId{i - 1}, .consumers = {OpId{i}}});
  }
  const Problem fine(std::move(draft));
  const Coarsening coarsening(fine, CoarsenOptions{.method = CoarsenMethod::chains});
  std::vector<std::size_t> sizes;
  for (const OpId op : coarsening.coarse().ops()) sizes.push_back(coarsening.members(op).size());
  return sizes;
}

TEST(Chains, SpeedUpsWithinTheRatioOfTheFirst) {
  using Sizes = std::vector<std::size_t>;
  // Speed-ups 4, 7, 7.9 | 8.1 (against the first: 4), 5 | 2
  EXPECT_EQ(packed({{4, 1}, {7, 1}, {7.9, 1}, {8.1, 1}, {5, 1}, {2, 1}}, TimeUnit::milliseconds),
            (Sizes{3, 2, 1}));
  // The limit is strict: exactly twice the first's speed-up starts a new group.
  EXPECT_EQ(packed({{4, 1}, {8, 1}}, TimeUnit::milliseconds), (Sizes{1, 1}));
}

TEST(Chains, LongOpsStayAloneInWhateverUnit) {
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(packed({{4, 1}, {48, 12}, {4, 1}}, TimeUnit::milliseconds), (Sizes{1, 1, 1}));
  EXPECT_EQ(packed({{4, 1}, {48, 12}, {4, 1}}, TimeUnit::microseconds), (Sizes{3}));
  EXPECT_EQ(packed({{0.004, 0.001}, {0.048, 0.012}}, TimeUnit::seconds), (Sizes{1, 1}));
}

TEST(Coarsening, LargeGraphsShrink) {
  const Problem fine(generate({.family = GraphFamily::transformer, .ops = 2000}));
  const Coarsening coarsening(fine, CoarsenOptions{.method = CoarsenMethod::fusion});
  EXPECT_LT(coarsening.coarse().op_count(), 1400U);
}

}  // namespace
}  // namespace placewright
