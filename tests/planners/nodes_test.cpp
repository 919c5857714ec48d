// Pipelines over nodes against enumeration.

#include <functional>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "planners/throughput_checks.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::plan_with;
using testing::RandomSource;
using testing::registry;

double in_range(RandomSource& random, double least, double most) {
  return least + (most - least) * random.unit();
}

struct NodeShape {
  std::size_t kind;
  std::size_t devices;
};

struct ChainOptions {
  std::size_t ops = 7;
  std::vector<NodeShape> nodes = {{0, 2}, {0, 2}};
  bool training = false;
  bool binding_memory = false;
};

void add_nodes(Cluster& cluster, const std::vector<NodeShape>& nodes, RandomSource& random) {
  cluster.kinds = {{"fast"}, {"slow"}};
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (std::size_t i = 0; i < nodes[node].devices; ++i) {
      Device device{fmt::format("n{}d{}", node, i), KindId{nodes[node].kind}};
      device.node = fmt::format("n{}", node);
      cluster.devices.push_back(device);
    }
  }
  const double inside = in_range(random, 0, 1);
  const double between = inside + in_range(random, 0, 4);
  for (const DeviceId from : ids<DeviceId>(cluster.devices.size())) {
    for (const DeviceId to : ids<DeviceId>(cluster.devices.size())) {
      if (from == to) continue;
      const bool together = cluster.devices[from.index()].node == cluster.devices[to.index()].node;
      cluster.links.push_back({from, to, together ? inside : between, together ? 10.0 : 2.0});
    }
  }
}

// A chain; in training each op has a backward op on the same device, and gradients go back.
ProblemDraft chain(const ChainOptions& options, std::uint64_t seed) {
  RandomSource random(seed);
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.rules.transfers = seed % 3 == 0 ? TransferMode::overlapped : TransferMode::sequential;
  draft.models = {{"model", 0, 1, {}}};
  add_nodes(draft.cluster, options.nodes, random);
  const auto add_op = [&](std::string name, bool backward) {
    Op op;
    op.name = std::move(name);
    op.backward = backward;
    op.memory = backward ? 0 : in_range(random, 1, 3);
    const double time = in_range(random, 1, 10);
    op.time = {time, time * in_range(random, 1, 3)};
    draft.ops.push_back(std::move(op));
  };
  for (std::size_t i = 0; i < options.ops; ++i) add_op(fmt::format("f{}", i), false);
  for (std::size_t i = 0; options.training && i < options.ops; ++i) {
    add_op(fmt::format("b{}", i), true);
    draft.colocated.push_back({OpId{i}, OpId{options.ops + i}});
  }
  const auto add_tensor = [&](std::size_t from, std::size_t to) {
    Tensor tensor;
    tensor.producer = OpId{from};
    tensor.consumers = {OpId{to}};
    tensor.bytes = in_range(random, 0, 12);
    draft.tensors.push_back(std::move(tensor));
  };
  for (std::size_t i = 0; i + 1 < options.ops; ++i) {
    add_tensor(i, i + 1);
    if (options.training) add_tensor(options.ops + i + 1, options.ops + i);
  }
  for (Device& device : draft.cluster.devices) {
    if (options.binding_memory) device.memory = 2.2 * static_cast<double>(options.ops) / 3;
  }
  return draft;
}

// The least value of all pipelines that give every node an interval of the chain.
class Enumeration {
 public:
  explicit Enumeration(const Problem& problem) : problem_(problem) {
    for (const DeviceId device : problem.devices()) {
      const std::string& node = problem.device(device).node;
      if (nodes_.empty() || problem.device(nodes_.back().front()).node != node)
        nodes_.push_back({});
      nodes_.back().push_back(device);
    }
    used_.assign(nodes_.size(), false);
    for (const OpId op : problem.ops()) length_ += problem.op(op).backward ? 0 : 1;
  }

  double least() {
    choose_node(0);
    return least_;
  }

 private:
  void choose_node(std::size_t begin) {
    if (begin == length_) {
      if (fits()) least_ = std::min(least_, pipeline_value(problem_, stages_));
      return;
    }
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (used_[node]) continue;
      used_[node] = true;
      add_stage(node, 0, begin);
      used_[node] = false;
    }
  }

  void add_stage(std::size_t node, std::size_t device, std::size_t begin) {
    if (device == nodes_[node].size()) return;
    for (std::size_t end = begin + 1; end <= length_; ++end) {
      Stage& stage = stages_.emplace_back();
      stage.devices = {nodes_[node][device]};
      for (std::size_t op = begin; op < end; ++op) {
        for (const OpId each : problem_.group_ops(problem_.group(OpId{op}))) {
          stage.ops.push_back(each);
        }
      }
      choose_node(end);
      if (end < length_) add_stage(node, device + 1, end);
      stages_.pop_back();
    }
  }

  [[nodiscard]] bool fits() const {
    MemoryLedger ledger(problem_);
    for (const Stage& stage : stages_) {
      for (const OpId op : stage.ops) ledger.add(op, stage.devices.front());
    }
    return ledger.within();
  }

  const Problem& problem_;
  std::vector<std::vector<DeviceId>> nodes_;
  std::vector<char> used_;
  std::size_t length_ = 0;
  std::vector<Stage> stages_;
  double least_ = kInfinity;
};

TEST(Nodes, AgreeWithEnumerationOnChains) {
  const std::vector<std::vector<NodeShape>> clusters = {
      {{0, 2}, {0, 2}}, {{0, 3}, {1, 1}}, {{0, 1}, {1, 2}, {0, 1}}, {{1, 1}, {0, 1}, {0, 2}}};
  for (std::uint64_t seed = 1; seed <= 160; ++seed) {
    SCOPED_TRACE(seed);
    ChainOptions options;
    options.nodes = clusters[seed % clusters.size()];
    options.training = seed % 2 == 0;
    options.binding_memory = seed % 5 == 0;
    const Problem problem(chain(options, seed));
    const double least = Enumeration(problem).least();
    const Answer answer = plan_with(problem, "nodes").answer;
    ASSERT_EQ(answer.plan.has_value(), least < kInfinity) << answer.reason;
    if (!answer.plan) continue;
    EXPECT_NEAR(answer.plan->value, least, 1e-9 * least);
    EXPECT_TRUE(verify(problem, *answer.plan).empty());
  }
}

// The flat program may come back to a node, and so be better; it never is worse.
TEST(Nodes, AreMostlyAsGoodAsTheFlatProgram) {
  std::size_t equal = 0;
  constexpr std::size_t kProblems = 60;
  for (std::uint64_t seed = 1; seed <= kProblems; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem(chain({.ops = 6}, seed));
    const Answer flat = plan_with(problem, "exhaustive").answer;
    const Answer nodes = plan_with(problem, "nodes").answer;
    ASSERT_TRUE(flat.plan && nodes.plan);
    EXPECT_GE(nodes.plan->value, flat.plan->value * (1 - 1e-9));
    EXPECT_LE(nodes.certificate.lower_bound, flat.plan->value * (1 + 1e-9));
    if (nodes.plan->value <= flat.plan->value * (1 + 1e-9)) ++equal;
  }
  EXPECT_GE(equal, kProblems * 3 / 4);
}

TEST(Nodes, GraphsWithBranchesGetValidPlans) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    ProblemDraft draft = testing::random_draft({.objective = Objective::throughput,
                                                .interconnect = InterconnectKind::links,
                                                .ops = 14,
                                                .devices = 4,
                                                .shared_weights = seed % 2 == 0,
                                                .training = seed % 3 == 0},
                                               seed);
    RandomSource random(seed);
    draft.cluster = {};
    add_nodes(draft.cluster, {{0, 2}, {1, 2}}, random);
    for (Op& op : draft.ops) op.time.resize(2, op.time.front());
    for (Tensor& tensor : draft.tensors) tensor.link_times.clear();
    const Problem problem(std::move(draft));
    const Answer answer = plan_with(problem, "nodes").answer;
    ASSERT_TRUE(answer.plan) << answer.reason;
    EXPECT_TRUE(verify(problem, *answer.plan).empty());
  }
}

// More blocks than borders: some of them are left out, evenly.
TEST(Nodes, LongChainsAreCutAtSomeOfTheirOps) {
  ChainOptions options;
  options.ops = 1000;
  options.nodes = {{0, 4}, {0, 4}, {0, 4}, {0, 4}};
  const Problem problem(chain(options, 1));
  const Answer answer = plan_with(problem, "nodes").answer;
  ASSERT_TRUE(answer.plan);
  EXPECT_EQ(answer.plan->stages.size(), 16U);
  EXPECT_LT(answer.plan->value, 1.1 * answer.certificate.lower_bound);
}

TEST(Nodes, SayWhatTheyCannotDo) {
  const auto refusal = [](const std::function<void(ProblemDraft&)>& change) {
    ProblemDraft draft = chain({}, 1);
    change(draft);
    return registry().find("nodes", Objective::throughput)->refusal(Problem(std::move(draft)));
  };
  EXPECT_EQ(refusal([](ProblemDraft&) {}), "");
  EXPECT_THAT(refusal([](ProblemDraft& draft) { draft.cluster.devices[1].node = ""; }),
              ::testing::HasSubstr("state their node"));
  EXPECT_THAT(refusal([](ProblemDraft& draft) {
                for (Device& device : draft.cluster.devices) device.node = "one";
              }),
              ::testing::HasSubstr("one node"));
  EXPECT_THAT(refusal([](ProblemDraft& draft) { draft.cluster.links[3].latency += 1; }),
              ::testing::HasSubstr("one cost of links inside nodes"));
  EXPECT_THAT(refusal([](ProblemDraft& draft) { draft.cluster.devices[1].kind = KindId{1}; }),
              ::testing::HasSubstr("'n0' are not alike"));
  EXPECT_THAT(refusal([](ProblemDraft& draft) { draft.ops[0].pinned_to = DeviceId{0}; }),
              ::testing::HasSubstr("pinned"));
}

}  // namespace
}  // namespace placewright
