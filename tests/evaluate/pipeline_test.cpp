#include "evaluate/pipeline.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "evaluate/contiguity.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline_evaluator.h"
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
using testing::published_problem;
using testing::random_draft;
using testing::RandomProblemOptions;
using testing::RandomSource;
using testing::tensor_record;

std::vector<Rules> all_variants() {
  std::vector<Rules> variants;
  for (const auto transfers :
       {TransferMode::sequential, TransferMode::overlapped, TransferMode::duplex}) {
    for (const auto training : {TrainingMode::interleaved, TrainingMode::phased}) {
      Rules rules;
      rules.transfers = transfers;
      rules.training = training;
      variants.push_back(rules);
    }
  }
  return variants;
}

Placement random_placement(const Problem& problem, RandomSource& random) {
  Placement placement(problem.op_count());
  for (const OpId op : problem.ops())
    placement[op] = DeviceId{random.below(problem.device_count())};
  return placement;
}

// The loads as the definition has them: sets of transfers.
Table<DeviceId, DeviceLoad> loads_by_definition(const Problem& problem,
                                                const Placement& placement) {
  Table<DeviceId, DeviceLoad> loads(problem.device_count());
  std::set<std::tuple<TensorId, DeviceId>> outs;             // host
  std::set<std::tuple<TensorId, DeviceId, DeviceId>> moved;  // tensor, from, to
  for (const OpId op : problem.ops()) {
    loads[placement[op]].pass(problem.op(op).backward).compute += problem.time(op, placement[op]);
    for (const TensorId tensor : problem.inputs(op)) {
      const DeviceId from = placement[problem.producer(tensor)];
      if (from == placement[op]) continue;
      outs.emplace(tensor, from);
      moved.emplace(tensor, from, placement[op]);
    }
  }
  const bool host = problem.interconnect() == InterconnectKind::host;
  const auto add_out = [&](TensorId tensor, DeviceId from, double time) {
    PassLoad& pass = loads[from].pass(problem.op(problem.producer(tensor)).backward);
    pass.out += time;
    pass.compute += problem.device(from).send_overhead;
  };
  if (host) {
    for (const auto& [tensor, from] : outs) {
      if (!problem.on_host(from)) add_out(tensor, from, problem.host_time(tensor));
    }
  }
  for (const auto& [tensor, from, to] : moved) {
    if (!host) add_out(tensor, from, problem.link_time(tensor, from, to));
    if (host && problem.on_host(to)) continue;
    const bool made_backward = problem.op(problem.producer(tensor)).backward;
    bool backward = !made_backward;
    for (const OpId consumer : problem.consumers(tensor)) {
      if (placement[consumer] == to && problem.op(consumer).backward == made_backward) {
        backward = made_backward;
      }
    }
    PassLoad& pass = loads[to].pass(backward);
    pass.in += host ? problem.host_time(tensor) : problem.link_time(tensor, from, to);
    pass.compute += problem.device(to).receive_overhead;
  }
  return loads;
}

double load_by_definition(const PassLoad& pass, TransferMode mode) {
  if (mode == TransferMode::sequential) return pass.compute + pass.in + pass.out;
  if (mode == TransferMode::overlapped) return std::max(pass.compute, pass.in + pass.out);
  return std::max({pass.compute, pass.in, pass.out});
}

double value_by_definition(const Problem& problem, const Placement& placement) {
  const TransferMode mode = problem.rules().transfers;
  double both = 0;
  double forward = 0;
  double backward = 0;
  for (const DeviceLoad& load : loads_by_definition(problem, placement)) {
    const PassLoad sum{load.forward.compute + load.backward.compute,
                       load.forward.in + load.backward.in, load.forward.out + load.backward.out};
    both = std::max(both, load_by_definition(sum, mode));
    forward = std::max(forward, load_by_definition(load.forward, mode));
    backward = std::max(backward, load_by_definition(load.backward, mode));
  }
  return problem.rules().training == TrainingMode::interleaved ? both : forward + backward;
}

void expect_equal(double actual, double expected) {
  if (expected == kInfinity) {
    EXPECT_EQ(actual, kInfinity);
  } else {
    EXPECT_NEAR(actual, expected, 1e-9 * (1 + expected));
  }
}

TEST(Pipeline, AgreesWithTheDefinitionInEveryVariant) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomProblemOptions options;
    options.objective = Objective::throughput;
    options.interconnect = seed % 2 == 0 ? InterconnectKind::host : InterconnectKind::links;
    options.ops = 15;
    options.devices = 2 + seed % 4;
    options.training = seed % 3 != 0;
    options.overheads = seed % 5 < 3;
    options.missing_links = seed % 7 == 0;
    options.zero_times = seed % 4 == 1;
    const ProblemDraft draft = random_draft(options, seed);
    RandomSource random(seed);
    for (const Rules& rules : all_variants()) {
      ProblemDraft variant = draft;
      variant.rules = rules;
      const Problem problem(std::move(variant));
      for (int i = 0; i < 10; ++i) {
        const Placement placement = random_placement(problem, random);
        expect_equal(pipeline_value(problem, placement), value_by_definition(problem, placement));
      }
    }
  }
}

TEST(Pipeline, OneDeviceHasNothingToMove) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomProblemOptions options;
    options.objective = Objective::throughput;
    options.interconnect = seed % 2 == 0 ? InterconnectKind::host : InterconnectKind::links;
    options.overheads = true;
    options.training = true;
    for (const Rules& rules : all_variants()) {
      ProblemDraft draft = random_draft(options, seed);
      draft.rules = rules;
      const Problem problem(std::move(draft));
      for (const DeviceId device : problem.devices()) {
        double sum = 0;
        for (const OpId op : problem.ops()) sum += problem.time(op, device);
        expect_equal(pipeline_value(problem, Placement(problem.op_count(), device)), sum);
      }
    }
  }
}

struct ExpertSplit {
  std::string name;
  double sequential;
  double overlapped;
  double duplex;
};

// Values from a separate script over the published files.
TEST(Pipeline, ExpertSplits) {
  const std::vector<ExpertSplit> splits = {
      {"bert24_inference", 20.083953125, 20.082, 20.082},
      {"bert24_training", 49.40490625, 49.401, 49.401},
      {"gnmt_inference", 46.2084511719, 46.196, 46.196},
      {"gnmt_training", 137.1539023437, 137.129, 137.129},
      {"resnet50_inference", 43.9182578125, 43.679, 43.679},
  };
  for (const ExpertSplit& split : splits) {
    const auto value = [&](TransferMode mode) {
      ProblemFile file = published_file("msr/throughput/LayerGraphs/" + split.name + ".json",
                                        Objective::throughput);
      file.draft.rules.transfers = mode;
      const Problem problem = build_problem(file);
      const Placement placement = expert_placement(split.name, file, problem);
      EXPECT_TRUE(memory_fits(problem, placement));
      return pipeline_value(problem, placement);
    };
    EXPECT_NEAR(value(TransferMode::sequential), split.sequential, 1e-8) << split.name;
    EXPECT_NEAR(value(TransferMode::overlapped), split.overlapped, 1e-8) << split.name;
    EXPECT_NEAR(value(TransferMode::duplex), split.duplex, 1e-8) << split.name;
  }
}

// Sets of ops that a contiguous plan cannot part, one after the other: colocated groups, fused
// where they depend on each other in a cycle. Tarjan's algorithm against the edges puts a set
// behind all that it depends on, depth first. A backward group without forward ops depends on those
// that read from it, as its missing forward mate would be read by theirs.
class Line {
 public:
  explicit Line(const Problem& problem)
      : problem_(problem),
        depends_on_(problem.group_count()),
        index_(problem.group_count(), 0),
        low_(problem.group_count(), 0) {
    Table<GroupId, char> has_forward(problem.group_count(), 0);
    for (const OpId op : problem.ops()) {
      if (!problem.op(op).backward) has_forward[problem.group(op)] = 1;
    }
    for (const OpId op : problem.ops()) {
      for (const OpId successor : problem.successors(op)) {
        const GroupId from = problem.group(op);
        const GroupId to = problem.group(successor);
        const bool orphan = has_forward[from] == 0 || has_forward[to] == 0;
        if (!problem.op(op).backward && !problem.op(successor).backward) {
          depends_on_[to].push_back(from);
        } else if (problem.op(op).backward && problem.op(successor).backward && orphan) {
          depends_on_[from].push_back(to);
        }
      }
    }
    for (const GroupId group : problem.groups()) {
      if (index_[group] == 0) visit(group);
    }
  }

  [[nodiscard]] const std::vector<std::vector<OpId>>& sets() const { return sets_; }

 private:
  void visit(GroupId group) {
    index_[group] = low_[group] = ++last_index_;
    open_.push_back(group);
    for (const GroupId before : depends_on_[group]) {
      if (index_[before] == 0) visit(before);
      low_[group] = std::min(low_[group], low_[before]);
    }
    if (low_[group] != index_[group]) return;
    sets_.emplace_back();
    for (GroupId member; member != group;) {
      member = open_.back();
      open_.pop_back();
      low_[member] = kClosed;
      const auto ops = problem_.group_ops(member);
      sets_.back().insert(sets_.back().end(), ops.begin(), ops.end());
    }
  }

  static constexpr int kClosed = 1 << 30;
  const Problem& problem_;
  Table<GroupId, std::vector<GroupId>> depends_on_;
  Table<GroupId, int> index_;
  Table<GroupId, int> low_;
  std::vector<GroupId> open_;
  int last_index_ = 0;
  std::vector<std::vector<OpId>> sets_;
};

// A placement with the least value of all that cut the line into one run for each device. The cpu
// may come at any place between the accelerators, which are all alike. Through host memory the load
// of a run does not depend on where the other ops are.
Placement best_runs(const Problem& problem) {
  const Line line(problem);
  const auto& sets = line.sets();
  const std::size_t count = sets.size();
  const std::size_t accelerators = problem.device_count() - 1;
  const DeviceId accelerator{0};
  const DeviceId cpu{accelerators};

  struct Label {
    double value = kInfinity;
    std::size_t begin = 0;
    bool last_on_cpu = false;
  };
  // By accelerators and cpus used, and ops covered.
  using Row = std::vector<Label>;
  std::vector<std::vector<Row>> best(accelerators + 1, std::vector<Row>(2, Row(count + 1)));
  best[0][0][0].value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    PipelineEvaluator run(problem, Placement(problem.op_count(), cpu));
    MemoryLedger memory(problem);
    double cpu_time = 0;
    bool can_run = true;
    for (std::size_t j = i + 1; j <= count; ++j) {
      for (const OpId op : sets[j - 1]) {
        run.move(op, accelerator);
        memory.add(op, accelerator);
        if (!problem.allowed(op, accelerator)) can_run = false;
        cpu_time += problem.time(op, cpu);
      }
      const bool fits = can_run && memory.within(accelerator);
      const double load = fits ? run.load(accelerator) : kInfinity;
      for (std::size_t a = 0; a <= accelerators; ++a) {
        for (std::size_t c = 0; c < 2; ++c) {
          const double before = best[a][c][i].value;
          const auto offer = [&](Label& label, double value, bool on_cpu) {
            if (value < label.value) label = {value, i, on_cpu};
          };
          if (a < accelerators) offer(best[a + 1][c][j], std::max(before, load), false);
          if (c == 0) offer(best[a][1][j], std::max(before, cpu_time), true);
        }
      }
    }
  }

  std::size_t a = 0;
  std::size_t c = 0;
  for (std::size_t i = 0; i <= accelerators; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      if (best[i][j][count].value < best[a][c][count].value) std::tie(a, c) = std::pair(i, j);
    }
  }
  const double value = best[a][c][count].value;
  Placement placement(problem.op_count());
  for (std::size_t end = count; end > 0;) {
    const Label& label = best[a][c][end];
    const DeviceId device = label.last_on_cpu ? cpu : DeviceId{a - 1};
    for (std::size_t i = label.begin; i < end; ++i) {
      for (const OpId op : sets[i]) placement[op] = device;
    }
    end = label.begin;
    --(label.last_on_cpu ? c : a);
  }
  EXPECT_NEAR(pipeline_value(problem, placement), value, 1e-9 * value);
  return placement;
}

// Published optima; for GNMT inference, where a line misses the optimum (32.9107), the published
// value of the linearised method.
TEST(Pipeline, ReachesThePublishedValuesOnALine) {
  const std::vector<std::pair<std::string, double>> optima = {
      {"LayerGraphs/bert24_inference", 17.7899},
      {"LayerGraphs/bert24_training", 41.7458},
      {"LayerGraphs/gnmt_inference", 33.0326},
      {"LayerGraphs/resnet50_inference", 33.7747},
      {"LayerGraphs/gnmt_training", 107.0044},
      {"OperatorGraphs/resnet50_inference", 124.3488},
      {"OperatorGraphs/bert_l-3_inference", 27.9186},
      {"OperatorGraphs/bert_l-3_training", 65.3031},
  };
  for (const auto& [name, optimum] : optima) {
    const Problem problem =
        published_problem("msr/throughput/" + name + ".json", Objective::throughput);
    const Placement placement = best_runs(problem);
    EXPECT_NEAR(pipeline_value(problem, placement), optimum, 1e-4) << name;
    EXPECT_TRUE(contiguous(problem, placement)) << name;
  }
}

TEST(Pipeline, StagesFollowTheGraph) {
  const Problem problem =
      published_problem("msr/throughput/LayerGraphs/bert24_inference.json", Objective::throughput);
  Placement placement = best_runs(problem);
  // The last device comes first now; the order of stages has to find that out.
  for (DeviceId& device : placement) {
    if (device.index() < 6) device = DeviceId{5 - device.index()};
  }
  const Plan plan = pipeline_plan(problem, placement);
  EXPECT_EQ(plan.value, pipeline_value(problem, placement));
  EXPECT_EQ(pipeline_value(problem, plan.stages), plan.value);
  Table<DeviceId, std::size_t> position(problem.device_count());
  std::size_t ops = 0;
  double most = 0;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    position[plan.stages[i].devices.front()] = i;
    ops += plan.stages[i].ops.size();
    most = std::max(most, plan.stages[i].load);
  }
  EXPECT_EQ(ops, problem.op_count());
  EXPECT_EQ(most, plan.value);
  for (const OpId op : problem.ops()) {
    for (const OpId successor : problem.successors(op)) {
      EXPECT_LE(position[placement[op]], position[placement[successor]]);
    }
  }
}

// u (time 4, memory 10) feeds v (time 6, memory 30), v is backward.
Problem replicated_pair(TrainingMode training, bool backward) {
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"acc", false}};
  for (const char* name : {"a", "b", "c"}) {
    draft.cluster.devices.push_back(device_record(name, KindId{0}));
  }
  draft.models = {model_record("model")};
  draft.ops = {op_record("u", {4}, 10), op_record("v", {6}, 30, backward)};
  draft.tensors = {tensor_record(OpId{0}, {OpId{1}}, 2)};
  draft.rules.training = training;
  draft.rules.max_replicas = 2;
  draft.rules.replica_bandwidth = 5;
  return Problem(std::move(draft));
}

TEST(Pipeline, ReplicasShareALoadAndExchangeGradients) {
  const DeviceId a{0};
  const DeviceId b{1};
  const DeviceId c{2};
  const std::vector<Stage> stages = {{{a}, {OpId{0}}, 0}, {{b, c}, {OpId{1}}, 0}};
  // v fetches 2 and runs 6, on two replicas; half of 30 bytes at 5 bytes per time.
  const Problem interleaved = replicated_pair(TrainingMode::interleaved, true);
  EXPECT_DOUBLE_EQ(pipeline_value(interleaved, stages), 7);
  const Problem phased = replicated_pair(TrainingMode::phased, true);
  EXPECT_DOUBLE_EQ(pipeline_value(phased, stages), 6 + 7);
  const Problem inference = replicated_pair(TrainingMode::interleaved, false);
  EXPECT_DOUBLE_EQ(pipeline_value(inference, stages), 6);

  const Plan plan = pipeline_plan(interleaved, stages);
  EXPECT_EQ(plan.placement[OpId{1}], b);
  EXPECT_DOUBLE_EQ(plan.stages[0].load, 6);
  EXPECT_DOUBLE_EQ(plan.stages[1].load, 7);
}

TEST(Pipeline, RefusesStagesThatAreNoPartition) {
  const Problem problem = replicated_pair(TrainingMode::interleaved, true);
  const DeviceId a{0};
  const DeviceId b{1};
  const OpId u{0};
  const OpId v{1};
  using Stages = std::vector<Stage>;
  EXPECT_THROW(pipeline_value(problem, Stages{{{a}, {u}, 0}}), std::invalid_argument);
  EXPECT_THROW(pipeline_value(problem, Stages{{{a}, {u, v}, 0}, {{b}, {v}, 0}}),
               std::invalid_argument);
  EXPECT_THROW(pipeline_value(problem, Stages{{{a}, {u}, 0}, {{a}, {v}, 0}}),
               std::invalid_argument);
  EXPECT_THROW(pipeline_value(problem, Stages{{{}, {u, v}, 0}}), std::invalid_argument);
}

}  // namespace
}  // namespace placewright
