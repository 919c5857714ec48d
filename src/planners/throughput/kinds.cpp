// kinds: contiguous pipelines on many devices of several kinds.
//
// Along a linear order of the blocks (coarsen/blocks.h), with a bound T on the load, let f(u) be
// the furthest place that a multiset u of devices, a number for each class, can cover:
//
//   f(u) = max over classes c in u of reach(f(u - c), c)
//
// where reach(i, c) is the furthest end of a stage that begins at i and has load <= T on class c.
// 64 devices of three kinds are 22^3 multisets. T is found by bisection. Memory and unsupported ops
// end a stage. With links that differ, a transfer counts as the fastest pair of devices would do
// it; then the stages get devices, each the one of its class to which its inputs travel fastest,
// the plan is priced as it is, and blocks at the borders of the busiest stage and devices of one
// class change places while that helps.
//
// Near-optimal where the order is natural, as in transformers; the furthest end of a stage is not
// always the best, since the cut there may cost more. The bound is that of the problem. Time for
// each T: O(multisets x classes x blocks of a stage) at most; memory: O(multisets + edges + classes
// x tensors). No replicas, no phased training, no peak memory.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "coarsen/blocks.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/pipeline_evaluator.h"
#include "planners/bound_of_problem.h"
#include "planners/methods/incumbent.h"
#include "planners/methods/stage_model.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

using namespace throughput;

constexpr double kMostMultisets = 2e6;
constexpr double kFirstExcess = 0.01;   // of T over the bound
constexpr double kLargestExcess = 1e6;  // beyond it nothing fits
constexpr double kPrecision = 5e-4;     // of T

double multisets(const std::vector<std::vector<DeviceId>>& classes) {
  double count = 1;
  for (const auto& alike : classes) count *= static_cast<double>(alike.size() + 1);
  return count;
}

// The least time in which any pair of devices moves a tensor.
class FastestLink {
 public:
  explicit FastestLink(const Problem& problem) : problem_(problem) {
    // Few links are the fastest for some size: sorted by latency, only ever wider ones count.
    std::vector<Link> links = problem.draft().cluster.links;
    std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) {
      return a.latency != b.latency ? a.latency < b.latency : a.bandwidth > b.bandwidth;
    });
    for (const Link& link : links) {
      if (best_.empty() || link.bandwidth > best_.back().bandwidth) best_.push_back(link);
    }
  }

  [[nodiscard]] double time(TensorId tensor) const {
    if (problem_.interconnect() == InterconnectKind::host) return problem_.host_time(tensor);
    const Tensor& record = problem_.tensor(tensor);
    double least = kInfinity;
    for (const double time : record.link_times) {
      if (time > 0) least = std::min(least, time);
    }
    if (!record.link_times.empty()) return least < kInfinity ? least : 0;
    for (const Link& link : best_) {
      least = std::min(least, link.latency + record.bytes / link.bandwidth);
    }
    return least < kInfinity ? least : 0;
  }

 private:
  const Problem& problem_;
  std::vector<Link> best_;
};

// The stages of a split, in order.
struct LineStage {
  std::size_t device_class = 0;
  std::size_t begin = 0;  // blocks
  std::size_t end = 0;
};

// The blocks in the order of their numbers, cut into stages.
class Line {
 public:
  Line(const Problem& problem, const Blocks& blocks,
       const std::vector<std::vector<DeviceId>>& classes, Control& control)
      : problem_(problem), blocks_(blocks), control_(control) {
    for (const auto& alike : classes) add_class(alike);
    for (const BlockId block : blocks.keys()) {
      double bytes = 0;
      for (const OpId op : blocks.ops[block]) {
        bytes += problem.memory(op);
        // Counted for each reader, so a stage never has more than this.
        for (const WeightId weight : problem.shared_weights(op)) {
          bytes += problem.shared_weight_bytes(weight);
        }
      }
      bytes_.push_back(bytes);
    }
    add_nets();
  }

  // Stages of load at most `limit` that cover all blocks; nullopt if there are none, or when asked
  // to stop.
  std::optional<std::vector<LineStage>> split(double limit) {
    limit_ = limit;
    for (StageClass& own : classes_) own.reach.assign(blocks_.size() + 1, kUnknown);
    std::size_t states = 1;
    for (StageClass& own : classes_) {
      own.stride = states;
      states *= own.count + 1;
    }
    furthest_.assign(states, 0);
    last_class_.assign(states, 0);
    for (std::size_t state = 1; state < states; ++state) {
      if (!extend(state)) return std::nullopt;
      if (furthest_[state] == blocks_.size()) return stages_to(state);
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();

  struct Overhead {
    double send = 0;
    double receive = 0;
  };
  struct StageClass {
    DeviceId model;  // one of its devices
    std::size_t count = 0;
    std::size_t stride = 1;  // in the number of a multiset
    double memory = kInfinity;
    bool moves_for_nothing = false;   // host memory is its own
    std::vector<double> time;         // by block; kInfinity: not allowed
    std::vector<Overhead> overheads;  // by net
    std::vector<std::uint32_t> reach;
  };
  struct Net {
    double time = 0;
    std::uint32_t readers = 0;  // blocks
    // Of the stage that is being extended.
    std::uint32_t stage = 0;
    std::uint32_t readers_inside = 0;
    bool producer_inside = false;
  };
  struct NetUse {
    std::uint32_t net = 0;
    bool produces = false;
  };

  void add_class(const std::vector<DeviceId>& alike) {
    const DeviceId device = alike.front();
    StageClass own;
    own.model = device;
    own.count = alike.size();
    own.memory = problem_.device(device).memory;
    own.moves_for_nothing =
        problem_.interconnect() == InterconnectKind::host && problem_.on_host(device);
    for (const BlockId block : blocks_.keys()) {
      double time = 0;
      for (const OpId op : blocks_.ops[block]) {
        time = problem_.allowed(op, device) ? time + problem_.time(op, device) : kInfinity;
      }
      own.time.push_back(time);
    }
    classes_.push_back(std::move(own));
  }

  void add_nets() {
    const FastestLink fastest(problem_);
    std::vector<std::pair<BlockId, NetUse>> uses;
    std::vector<BlockId> readers;
    for (const TensorId tensor : problem_.tensors()) {
      const BlockId home = blocks_.block_of[problem_.producer(tensor)];
      readers.clear();
      for (const OpId consumer : problem_.consumers(tensor)) {
        if (blocks_.block_of[consumer] != home) readers.push_back(blocks_.block_of[consumer]);
      }
      std::sort(readers.begin(), readers.end());
      readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
      if (readers.empty()) continue;
      const auto net = static_cast<std::uint32_t>(nets_.size());
      nets_.push_back(
          {.time = fastest.time(tensor), .readers = static_cast<std::uint32_t>(readers.size())});
      for (StageClass& own : classes_) {
        own.overheads.push_back({problem_.send_overhead(tensor, own.model),
                                 problem_.receive_overhead(tensor, own.model)});
      }
      uses.emplace_back(home, NetUse{net, true});
      for (const BlockId reader : readers) uses.emplace_back(reader, NetUse{net, false});
    }
    uses_ = Rows<BlockId, NetUse>::from_pairs(blocks_.size(), uses);
  }

  // False: asked to stop.
  bool extend(std::size_t state) {
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const StageClass& own = classes_[c];
      if (state / own.stride % (own.count + 1) == 0) continue;
      const std::uint32_t end = reach(furthest_[state - own.stride], c);
      if (control_.should_stop()) return false;
      if (end <= furthest_[state]) continue;
      furthest_[state] = end;
      last_class_[state] = static_cast<std::uint16_t>(c);
    }
    return true;
  }

  std::uint32_t reach(std::uint32_t begin, std::size_t device_class) {
    StageClass& own = classes_[device_class];
    std::uint32_t& known = own.reach[begin];
    if (known != kUnknown) return known;
    known = begin;
    ++stage_;
    PassLoad transfers;  // its compute: overheads
    double compute = 0;
    double bytes = 0;
    for (std::uint32_t block = begin; block < blocks_.size(); ++block) {
      compute += own.time[block];
      bytes += bytes_[block];
      if (compute > limit_ || !within_memory(bytes, own.memory)) break;
      if (!own.moves_for_nothing) take_in(block, own, transfers);
      PassLoad load = transfers;
      load.compute += compute;
      if (load.load(problem_.rules().transfers) <= limit_) known = block + 1;
    }
    return known;
  }

  // What the stage pays for the nets of a block that joins it.
  void take_in(std::uint32_t block, const StageClass& own, PassLoad& transfers) {
    for (const NetUse& use : uses_[BlockId{block}]) {
      Net& net = nets_[use.net];
      const Overhead& overhead = own.overheads[use.net];
      if (net.stage != stage_) {
        net.stage = stage_;
        net.readers_inside = 0;
        net.producer_inside = false;
      } else {
        charge(net, overhead, -1, transfers);
      }
      if (use.produces) {
        net.producer_inside = true;
      } else {
        ++net.readers_inside;
      }
      charge(net, overhead, 1, transfers);
    }
  }

  static void charge(const Net& net, const Overhead& overhead, double sign, PassLoad& transfers) {
    if (net.producer_inside && net.readers_inside < net.readers) {
      transfers.out += sign * net.time;
      transfers.compute += sign * overhead.send;
    } else if (!net.producer_inside && net.readers_inside > 0) {
      transfers.in += sign * net.time;
      transfers.compute += sign * overhead.receive;
    }
  }

  [[nodiscard]] std::vector<LineStage> stages_to(std::size_t state) const {
    std::vector<LineStage> stages;
    while (state > 0) {
      const std::size_t before = state - classes_[last_class_[state]].stride;
      if (furthest_[before] < furthest_[state]) {
        stages.push_back({last_class_[state], furthest_[before], furthest_[state]});
      }
      state = before;
    }
    std::reverse(stages.begin(), stages.end());
    return stages;
  }

  const Problem& problem_;
  const Blocks& blocks_;
  Control& control_;
  std::vector<StageClass> classes_;
  std::vector<double> bytes_;  // by block
  std::vector<Net> nets_;
  Rows<BlockId, NetUse> uses_;
  double limit_ = 0;
  std::uint32_t stage_ = 0;              // number of the stage that is being extended
  std::vector<std::uint32_t> furthest_;  // by multiset
  std::vector<std::uint16_t> last_class_;
};

// The best split along the line: T in steps that double up to the first that works, then halved.
std::optional<std::vector<LineStage>> best_stages(Line& line, double bound, Control& control) {
  double low = bound;
  double high = bound;
  std::optional<std::vector<LineStage>> best;
  for (double excess = kFirstExcess; !best; excess *= 2) {
    if (control.should_stop() || excess > kLargestExcess) return std::nullopt;
    low = high;
    high = bound > 0 ? bound * (1 + excess) : excess;
    best = line.split(high);
  }
  while (high - low > kPrecision * high && !control.should_stop()) {
    const double middle = (low + high) / 2;
    if (auto better = line.split(middle)) {
      best = std::move(better);
      high = middle;
    } else {
      low = middle;
    }
  }
  return best;
}

// Stages with devices: priced as they are, and improved.
class Pipeline {
 public:
  Pipeline(const Problem& problem, const Blocks& blocks, std::vector<LineStage> stages,
           const std::vector<std::vector<DeviceId>>& classes, Control& control)
      : problem_(problem), blocks_(blocks), stages_(std::move(stages)), control_(control) {
    choose_devices(classes);
  }

  // Nullopt if a tensor would need a link that does not exist.
  std::optional<Placement> improved() {
    PipelineEvaluator evaluator(problem_, placement());
    if (evaluator.impossible() > 0) return std::nullopt;
    MemoryLedger ledger(problem_, evaluator.placement());
    while (evaluator.value() > 0 && !control_.should_stop(1)) {
      if (!shift_border(evaluator, ledger) && !change_places(evaluator, ledger)) break;
    }
    return evaluator.placement();
  }

 private:
  template <class Visit>
  void for_ops_of(std::size_t begin, std::size_t end, Visit visit) const {
    for (std::size_t block = begin; block < end; ++block) {
      for (const OpId op : blocks_.ops[BlockId{block}]) visit(op);
    }
  }

  [[nodiscard]] Placement placement() const {
    Placement placement(problem_.op_count());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      for_ops_of(stages_[s].begin, stages_[s].end, [&](OpId op) { placement[op] = devices_[s]; });
    }
    return placement;
  }

  // Along the line, each stage takes the device of its class that its inputs reach soonest.
  void choose_devices(std::vector<std::vector<DeviceId>> free) {
    Placement placement(problem_.op_count());
    for (const LineStage& stage : stages_) {
      std::vector<DeviceId>& candidates = free[stage.device_class];
      std::size_t best = 0;
      double least = kInfinity;
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        const double time = time_of_inputs(stage, candidates[i], placement);
        if (time >= least) continue;
        least = time;
        best = i;
      }
      devices_.push_back(candidates[best]);
      for_ops_of(stage.begin, stage.end, [&](OpId op) { placement[op] = devices_.back(); });
      candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(best));
    }
  }

  [[nodiscard]] double time_of_inputs(const LineStage& stage, DeviceId device,
                                      const Placement& placement) const {
    if (problem_.interconnect() == InterconnectKind::host) return 0;
    double sum = 0;
    for_ops_of(stage.begin, stage.end, [&](OpId op) {
      for (const TensorId input : problem_.inputs(op)) {
        const DeviceId from = placement[problem_.producer(input)];
        if (from.valid()) sum += problem_.link_time(input, from, device);
      }
    });
    return sum;
  }

  [[nodiscard]] std::size_t busiest_stage(const PipelineEvaluator& evaluator) const {
    return static_cast<std::size_t>(
        std::find(devices_.begin(), devices_.end(), evaluator.busiest()) - devices_.begin());
  }

  // Gives the first or the last block of the busiest stage to its neighbour, where that helps.
  bool shift_border(PipelineEvaluator& evaluator, MemoryLedger& ledger) {
    const std::size_t s = busiest_stage(evaluator);
    LineStage& stage = stages_[s];
    if (stage.end - stage.begin < 2) return false;
    struct Shift {
      std::size_t block;
      std::size_t to;
      double value;
    };
    std::optional<Shift> best;
    const auto consider = [&](std::size_t block, std::size_t to) {
      const auto ops = blocks_.ops[BlockId{block}];
      if (!fits(ops, devices_[to], ledger)) return;
      const double value = evaluator.value_if_moved(ops, devices_[to]);
      if (value < (best ? best->value : evaluator.value() * (1 - 1e-9))) best = {block, to, value};
    };
    if (s > 0) consider(stage.begin, s - 1);
    if (s + 1 < stages_.size()) consider(stage.end - 1, s + 1);
    if (!best) return false;
    for (const OpId op : blocks_.ops[BlockId{best->block}]) {
      ledger.remove(op, devices_[s]);
      ledger.add(op, devices_[best->to]);
      evaluator.move(op, devices_[best->to]);
    }
    if (best->to < s) {
      stages_[best->to].end = ++stage.begin;
    } else {
      stages_[best->to].begin = --stage.end;
    }
    return true;
  }

  [[nodiscard]] bool fits(std::span<const OpId> ops, DeviceId device,
                          const MemoryLedger& ledger) const {
    double bytes = ledger.used(device);
    for (const OpId op : ops) {
      if (!problem_.allowed(op, device)) return false;
      bytes += ledger.growth(op, device);
    }
    return within_memory(bytes, ledger.capacity(device));
  }

  // The busiest stage and another of its class change devices, where that helps.
  bool change_places(PipelineEvaluator& evaluator, MemoryLedger& ledger) {
    if (problem_.interconnect() == InterconnectKind::host) return false;
    const std::size_t s = busiest_stage(evaluator);
    const double before = evaluator.value();
    for (std::size_t t = 0; t < stages_.size() && !control_.should_stop(); ++t) {
      if (t == s || stages_[t].device_class != stages_[s].device_class) continue;
      exchange(s, t, evaluator, ledger);
      if (evaluator.value() < before * (1 - 1e-9)) return true;
      exchange(s, t, evaluator, ledger);
    }
    return false;
  }

  // Devices of one class have the same memory, so what fits one fits the other.
  void exchange(std::size_t s, std::size_t t, PipelineEvaluator& evaluator, MemoryLedger& ledger) {
    std::swap(devices_[s], devices_[t]);
    for (const std::size_t stage : {s, t}) {
      for_ops_of(stages_[stage].begin, stages_[stage].end, [&, to = devices_[stage]](OpId op) {
        ledger.remove(op, evaluator.device(op));
        ledger.add(op, to);
        evaluator.move(op, to);
      });
    }
  }

  const Problem& problem_;
  const Blocks& blocks_;
  std::vector<LineStage> stages_;
  Control& control_;
  std::vector<DeviceId> devices_;  // by stage
};

Answer plan(const Problem& problem, const Settings&, Control& control) {
  Incumbent incumbent(problem, control);
  const Certificate bound = bound_of_problem(problem, control);
  incumbent.raise_bound(bound.lower_bound, bound.method);
  const Blocks blocks = blocks_of(problem);
  const auto classes = device_classes(problem);
  Line line(problem, blocks, classes, control);
  std::optional<std::vector<LineStage>> stages = best_stages(line, bound.lower_bound, control);
  if (!stages) {
    return incumbent.answer(control.should_stop()
                                ? control.stop_reason()
                                : "the order of the graph cannot be cut into stages that fit");
  }
  Pipeline pipeline(problem, blocks, std::move(*stages), classes, control);
  if (const auto placement = pipeline.improved()) incumbent.offer(*placement);
  return incumbent.answer("the split that it found needs a link that does not exist");
}

std::string refuses(const Problem& problem) {
  if (const double count = multisets(device_classes(problem)); count > kMostMultisets) {
    return fmt::format("its devices of different classes make {:.2g} sets, above {:.2g}", count,
                       kMostMultisets);
  }
  return {};
}

}  // namespace

PlannerEntry kinds() {
  return PlannerEntry{
      .name = "kinds",
      .summary = "contiguous pipelines on many devices of several kinds, along one order",
      .objectives = {Objective::throughput},
      .knows = kCommonFeatures - Features{Feature::peak_memory, Feature::phased_training},
      .refuses = refuses,
      .plan = plan};
}

}  // namespace placewright
