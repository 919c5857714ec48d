#include "evaluate/calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/published.h"
#include "support/random_problem.h"
#include "support/records.h"

namespace placewright {
namespace {

using testing::device_record;
using testing::expert_placement;
using testing::model_record;
using testing::op_record;
using testing::published_file;
using testing::random_draft;
using testing::RandomProblemOptions;
using testing::RandomSource;
using testing::tensor_record;
using Slot = CallEvaluator::Slot;

// The times of calls and host ops by repeating the rules until nothing changes: a node ends when
// all that it waits for has ended. Nodes that never end are in a deadlock.
class ByRepetition {
 public:
  ByRepetition(const Problem& problem, const Placement& placement, const std::vector<Call>& calls)
      : problem_(problem), node_(problem.op_count()) {
    for (const Call& call : calls) {
      if (!call.ops.empty()) add_node(call.ops, call.device);
    }
    for (const OpId op : problem.ops()) {
      if (problem.on_host(placement[op])) add_node({op}, placement[op]);
    }
    add_waits();
    for (std::size_t round = 0; round < nodes_.size(); ++round) {
      for (Node& node : nodes_) end_if_possible(node);
    }
  }

  [[nodiscard]] double value() const {
    double latest = 0;
    for (const Node& node : nodes_) latest = std::max(latest, node.ended ? node.end : kInfinity);
    return latest;
  }

 private:
  struct Node {
    std::vector<OpId> ops;
    DeviceId device;
    double duration = 0;
    std::set<std::size_t> waits_for;
    bool ended = false;
    double end = 0;
  };

  void add_node(std::vector<OpId> ops, DeviceId device) {
    Node node;
    node.device = device;
    if (!problem_.on_host(device)) {
      // Calls come in the order of their device.
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].device == device) node.waits_for.insert(i);
      }
    }
    for (const OpId op : ops) {
      node_[op] = nodes_.size();
      node.duration += problem_.time(op, device);
    }
    node.ops = std::move(ops);
    nodes_.push_back(std::move(node));
  }

  void add_waits() {
    std::set<std::pair<TensorId, std::size_t>> in;
    std::set<TensorId> out;
    for (const TensorId tensor : problem_.tensors()) {
      const std::size_t from = node_[problem_.producer(tensor)];
      for (const OpId consumer : problem_.consumers(tensor)) {
        const std::size_t to = node_[consumer];
        if (to == from) continue;
        nodes_[to].waits_for.insert(from);
        in.emplace(tensor, to);
        out.insert(tensor);
      }
    }
    for (const auto& [tensor, to] : in) {
      Node& node = nodes_[to];
      if (problem_.on_host(node.device)) continue;
      node.duration += problem_.host_time(tensor) + problem_.device(node.device).receive_overhead;
    }
    for (const TensorId tensor : out) {
      Node& node = nodes_[node_[problem_.producer(tensor)]];
      if (problem_.on_host(node.device)) continue;
      node.duration += problem_.host_time(tensor) + problem_.device(node.device).send_overhead;
    }
  }

  void end_if_possible(Node& node) {
    double start = 0;
    for (const std::size_t before : node.waits_for) {
      if (!nodes_[before].ended) return;
      start = std::max(start, nodes_[before].end);
    }
    node.ended = true;
    node.end = start + node.duration;
  }

  const Problem& problem_;
  Table<OpId, std::size_t> node_;
  std::vector<Node> nodes_;
};

Problem random_problem(std::uint64_t seed) {
  RandomProblemOptions options;
  options.objective = Objective::call_latency;
  options.interconnect = InterconnectKind::host;
  options.ops = 12;
  options.devices = 2 + seed % 3;
  options.edge_probability = 0.2;
  options.overheads = seed % 2 == 0;
  options.zero_times = seed % 5 == 0;
  return Problem(random_draft(options, seed));
}

std::vector<Slot> random_slots(const Problem& problem, const CallEvaluator& evaluator,
                               RandomSource& random) {
  std::vector<Slot> slots(problem.op_count());
  // Mostly in order: fully random slots nearly always deadlock.
  const auto count = static_cast<std::size_t>(evaluator.slot_count());
  for (const OpId op : problem.ops()) {
    const std::size_t run = problem.topological_rank(op) * count / problem.op_count();
    slots[op.index()] = static_cast<Slot>(random.chance(0.2) ? random.below(count) : run);
  }
  return slots;
}

TEST(Calls, EvaluatorAgreesWithTheRulesRepeated) {
  int deadlocks = 0;
  int plans = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Problem problem = random_problem(seed);
    CallEvaluator evaluator(problem, static_cast<int>(1 + seed % 3));
    RandomSource random(seed);
    for (int i = 0; i < 20; ++i) {
      const std::vector<Slot> slots = random_slots(problem, evaluator, random);
      Placement placement(problem.op_count());
      std::vector<Call> calls(static_cast<std::size_t>(evaluator.slot_count()));
      for (const OpId op : problem.ops()) {
        const Slot slot = slots[op.index()];
        placement[op] = evaluator.device(slot);
        calls[static_cast<std::size_t>(slot)].device = placement[op];
        if (slot != CallEvaluator::kHostSlot) {
          calls[static_cast<std::size_t>(slot)].ops.push_back(op);
        }
      }
      const double expected = ByRepetition(problem, placement, calls).value();
      const double latency = evaluator.latency(slots);
      EXPECT_EQ(evaluator.deadlocked(), expected == kInfinity);
      const std::optional<Plan> plan = evaluator.plan(slots);
      ASSERT_EQ(plan.has_value(), expected < kInfinity);
      if (!plan) {
        EXPECT_EQ(latency, kInfinity);
        ++deadlocks;
        continue;
      }
      ++plans;
      ASSERT_NEAR(latency, expected, 1e-9 * (1 + expected));
      EXPECT_EQ(plan->value, latency);
      EXPECT_EQ(plan->placement, placement);
      EXPECT_TRUE(std::ranges::is_sorted(plan->calls, {}, &Call::start));
    }
  }
  EXPECT_GT(deadlocks, 100);
  EXPECT_GT(plans, 500);
}

// Along the critical ops the times of the nodes add up to the latency.
TEST(Calls, CriticalOpsExplainTheLatency) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Problem problem = random_problem(seed);
    CallEvaluator evaluator(problem, 2);
    RandomSource random(seed);
    const double latency = evaluator.latency(random_slots(problem, evaluator, random));
    const std::vector<OpId> critical = evaluator.critical_ops();
    ASSERT_EQ(critical.empty(), latency == kInfinity);
    if (critical.empty()) continue;
    EXPECT_EQ(evaluator.end(critical.front()), latency);
    EXPECT_EQ(evaluator.start(critical.back()), 0);
    for (std::size_t i = 1; i < critical.size(); ++i) {
      const bool same_node = evaluator.start(critical[i]) == evaluator.start(critical[i - 1]);
      EXPECT_TRUE(same_node || evaluator.end(critical[i]) == evaluator.start(critical[i - 1]));
    }
  }
}

// Walks paths backwards; `outside` = the part already walked, behind `op`, has left the device
// since it was there last.
int returns_behind(const Problem& problem, const Placement& placement, OpId op, DeviceId device,
                   bool outside) {
  const bool here = placement[op] == device;
  const int counted = here && outside ? 1 : 0;
  int most = 0;
  for (const OpId predecessor : problem.predecessors(op)) {
    most = std::max(most, returns_behind(problem, placement, predecessor, device, !here));
  }
  return counted + most;
}

TEST(Calls, SplitCountsReturns) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Problem problem = random_problem(seed);
    RandomSource random(seed);
    Placement placement(problem.op_count());
    for (DeviceId& device : placement) device = DeviceId{random.below(problem.device_count())};
    const std::vector<Call> calls = split_into_calls(problem, placement);
    std::map<DeviceId, int> index;
    std::size_t called = 0;
    for (const Call& call : calls) {
      ASSERT_FALSE(call.ops.empty());
      const int expected = index[call.device]++;
      for (const OpId op : call.ops) {
        ASSERT_EQ(placement[op], call.device);
        ASSERT_EQ(returns_behind(problem, placement, op, call.device, false), expected);
        ++called;
      }
    }
    const auto on_accelerator = [&](DeviceId device) { return !problem.on_host(device); };
    EXPECT_EQ(called, static_cast<std::size_t>(std::ranges::count_if(placement, on_accelerator)));
  }
}

// A chain u, v, x: the accelerator runs u and x, the host v in between.
ProblemDraft there_and_back() {
  ProblemDraft draft;
  draft.objective = Objective::call_latency;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"acc", false}, {"cpu", true}};
  draft.cluster.devices = {device_record("acc0", KindId{0}), device_record("cpu", KindId{1})};
  draft.models = {model_record("model")};
  for (const char* name : {"u", "v", "x"}) draft.ops.push_back(op_record(name, {1, 10}));
  draft.tensors = {tensor_record(OpId{0}, {OpId{1}, OpId{2}}, 2),
                   tensor_record(OpId{1}, {OpId{2}}, 3)};
  draft.rules.calls_per_device = 2;
  return draft;
}

TEST(Calls, ATensorBetweenTwoCallsGoesOutAndInAgain) {
  const Problem problem(there_and_back());
  const DeviceId acc{0};
  const DeviceId cpu{1};
  const Placement placement(std::vector<DeviceId>{acc, cpu, acc});
  const auto plan = call_plan(problem, placement, split_into_calls(problem, placement));
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->calls.size(), 2);
  // u: 1 + out 2; v: 10; x: in 2, in 3, and 1.
  EXPECT_DOUBLE_EQ(plan->calls[0].end, 3);
  EXPECT_DOUBLE_EQ(plan->calls[1].start, 13);
  EXPECT_DOUBLE_EQ(plan->value, 19);

  const Placement together(std::vector<DeviceId>{acc, acc, acc});
  EXPECT_DOUBLE_EQ(call_plan(problem, together, split_into_calls(problem, together))->value, 3);
  const Placement at_home(std::vector<DeviceId>{cpu, cpu, cpu});
  EXPECT_DOUBLE_EQ(call_plan(problem, at_home, {})->value, 30);
}

TEST(Calls, DeadlocksAndBadCallsAreTold) {
  const Problem problem(there_and_back());
  const DeviceId acc{0};
  const DeviceId cpu{1};
  const OpId u{0};
  const OpId v{1};
  const OpId x{2};
  const Placement placement(std::vector<DeviceId>{acc, cpu, acc});
  using Calls = std::vector<Call>;
  const auto call = [](DeviceId device, std::vector<OpId> ops) {
    return Call{device, std::move(ops), 0, 0};
  };
  EXPECT_FALSE(call_plan(problem, placement, Calls{call(acc, {u, x})}).has_value());
  EXPECT_FALSE(call_plan(problem, placement, Calls{call(acc, {x}), call(acc, {u})}).has_value());
  EXPECT_TRUE(call_plan(problem, placement, Calls{call(acc, {u}), call(acc, {x})}).has_value());
  EXPECT_THROW(call_plan(problem, placement, Calls{call(acc, {u})}), std::invalid_argument);
  EXPECT_THROW(call_plan(problem, placement, Calls{call(acc, {u, x}), call(acc, {u})}),
               std::invalid_argument);
  EXPECT_THROW(call_plan(problem, placement, Calls{call(acc, {u, v, x})}), std::invalid_argument);
  EXPECT_THROW(call_plan(problem, placement, Calls{call(acc, {u, x}), call(cpu, {v})}),
               std::invalid_argument);
}

// Values from a separate script over the published files. The expert of BERT-24 uses one
// accelerator more than the latency file has.
TEST(Calls, ExpertSplits) {
  const std::vector<std::tuple<std::string, std::size_t, double>> splits = {
      {"bert24_inference", 1, 111.93725},
      {"gnmt_inference", 0, 293.40284375},
      {"resnet50_inference", 0, 1014.9265625},
  };
  for (const auto& [name, more, latency] : splits) {
    ProblemFile file =
        published_file("msr/latency/LayerGraphs/" + name + ".json", Objective::call_latency);
    for (std::size_t i = 0; i < more; ++i) {
      Device device = file.draft.cluster.devices.front();
      const auto cpu =
          std::ranges::find(file.draft.cluster.devices, std::string("cpu"), &Device::name);
      device.name = "acc" + std::to_string(cpu - file.draft.cluster.devices.begin());
      file.draft.cluster.devices.insert(cpu, device);
    }
    const Problem problem = build_problem(file);
    const Placement placement = expert_placement(name, file, problem);
    const std::vector<Call> calls = split_into_calls(problem, placement);
    EXPECT_EQ(calls.size(), 6) << name;
    const auto plan = call_plan(problem, placement, calls);
    ASSERT_TRUE(plan.has_value()) << name;
    EXPECT_NEAR(plan->value, latency, 1e-8) << name;
  }
}

}  // namespace
}  // namespace placewright
