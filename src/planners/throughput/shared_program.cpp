#include "planners/throughput/shared_program.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "evaluate/contiguity.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/simulate.h"
#include "problem/exclusion.h"

namespace placewright::throughput {
namespace {

constexpr std::size_t kMostBlocks = 2000;

// A kind of device and how many of its devices, the widest choice of a stage.
struct Crew {
  KindId kind;
  std::size_t replicas = 1;
  std::size_t resources = 0;  // of all replicas together
};

// The load of every interval of blocks on a device of one kind.
class IntervalLoads {
 public:
  IntervalLoads(const Problem& problem, const Blocks& blocks, DeviceId device)
      : count_(blocks.size()),
        cuts_((count_ + 1) * (count_ + 1), 0),
        compute_(count_ + 1, 0),
        impossible_(count_ + 1, 0),
        pins_(count_ + 1, 0) {
    std::size_t pins = 0;
    for (const BlockId block : blocks.keys()) {
      double time = 0;
      for (const OpId op : blocks.ops[block]) {
        const DeviceId pin = problem.op(op).pinned_to;
        const bool elsewhere = pin.valid() && problem.kind_of(pin) != problem.kind_of(device);
        time += elsewhere ? kInfinity : problem.time(op, device);
        pins += pin.valid() ? 1 : 0;
      }
      const bool possible = time < kInfinity;
      compute_[block.index() + 1] = compute_[block.index()] + (possible ? time : 0);
      impossible_[block.index() + 1] = impossible_[block.index()] + (possible ? 0 : 1);
      pins_[block.index() + 1] = pins;
    }
    if (problem.has_overheads()) {
      for (const TensorId tensor : problem.tensors()) add_cuts(problem, blocks, tensor, device);
      sum_up();
    }
  }

  // Of the blocks first <= b < end, on each of so many replicas.
  [[nodiscard]] double load(std::size_t first, std::size_t end, std::size_t replicas) const {
    if (impossible_[end] != impossible_[first]) return kInfinity;
    if (replicas > 1 && pins_[end] != pins_[first]) return kInfinity;
    const double alone = compute_[end] - compute_[first] + cuts_[first * (count_ + 1) + end];
    return alone / static_cast<double>(replicas);
  }

 private:
  // The tensor is sent by intervals with its producer but not its last reader, and received by
  // those behind the producer with a reader: rectangles of (first, end), entered at their corners.
  void add_cuts(const Problem& problem, const Blocks& blocks, TensorId tensor, DeviceId device) {
    const std::size_t producer = blocks.block_of[problem.producer(tensor)].index();
    std::vector<std::size_t> readers;
    for (const OpId reader : problem.consumers(tensor)) {
      const std::size_t block = blocks.block_of[reader].index();
      if (block > producer) readers.push_back(block);
    }
    if (readers.empty()) return;
    std::ranges::sort(readers);
    const auto repeated = std::ranges::unique(readers);
    readers.erase(repeated.begin(), repeated.end());
    add({0, producer}, {producer + 1, readers.back()}, problem.send_overhead(tensor, device));
    const double receive = problem.receive_overhead(tensor, device);
    std::size_t before = producer;
    for (const std::size_t reader : readers) {
      add({before + 1, reader}, {reader + 1, count_}, receive);
      before = reader;
    }
  }

  struct Range {
    std::size_t first;
    std::size_t last;
  };
  void add(Range firsts, Range ends, double amount) {
    if (amount == 0 || firsts.first > firsts.last || ends.first > ends.last) return;
    const auto corner = [&](std::size_t first, std::size_t end, double value) {
      if (first <= count_ && end <= count_) cuts_[first * (count_ + 1) + end] += value;
    };
    corner(firsts.first, ends.first, amount);
    corner(firsts.last + 1, ends.first, -amount);
    corner(firsts.first, ends.last + 1, -amount);
    corner(firsts.last + 1, ends.last + 1, amount);
  }
  void sum_up() {
    const std::size_t row = count_ + 1;
    for (std::size_t i = 0; i < row; ++i) {
      for (std::size_t j = 1; j < row; ++j) cuts_[i * row + j] += cuts_[i * row + j - 1];
    }
    for (std::size_t i = 1; i < row; ++i) {
      for (std::size_t j = 0; j < row; ++j) cuts_[i * row + j] += cuts_[(i - 1) * row + j];
    }
  }

  std::size_t count_;
  std::vector<double> cuts_;  // by first and end
  // Of the blocks before: their time, how many cannot be there, how many ops are pinned.
  std::vector<double> compute_;
  std::vector<std::size_t> impossible_;
  std::vector<std::size_t> pins_;
};

struct Interval {
  std::size_t first;
  std::size_t end;
  Crew crew;
};

class SharedProgram {
 public:
  SharedProgram(const Problem& problem, const Blocks& blocks, Control& control)
      : problem_(problem), control_(control), blocks_(blocks) {
    for (const KindId kind : ids<KindId>(problem.kind_count())) {
      std::vector<DeviceId> devices;
      for (const DeviceId device : problem.devices()) {
        if (problem.kind_of(device) == kind) devices.push_back(device);
      }
      devices_.push_back(devices);
      if (devices.empty()) {
        loads_.emplace_back();
        continue;
      }
      loads_.emplace_back(IntervalLoads(problem, blocks_, devices.front()));
      const std::size_t width = problem.uses(devices.front()).size();
      const auto most =
          std::min(devices.size(), static_cast<std::size_t>(problem.rules().max_replicas));
      for (std::size_t replicas = 1; replicas <= most; ++replicas) {
        if (replicas * width > problem.resource_count()) break;
        crews_.push_back({kind, replicas, replicas * width});
      }
    }
  }

  std::optional<Plan> run() {
    if (!solve()) return std::nullopt;
    // What needs fewer resources can be handed out more often.
    for (std::size_t most = problem_.resource_count(); most > 0; --most) {
      if (auto plan = plan_with(most)) return plan;
    }
    return std::nullopt;
  }

 private:
  struct Cell {
    double value = kInfinity;
    std::uint32_t first = 0;
    std::uint32_t crew = 0;
  };
  [[nodiscard]] Cell& cell(std::size_t end, std::size_t resources) {
    return cells_[end * (problem_.resource_count() + 1) + resources];
  }

  // cell(j, c): the first j blocks on at most c resources. False if it was stopped.
  bool solve() {
    const std::size_t resources = problem_.resource_count();
    cells_.assign((blocks_.size() + 1) * (resources + 1), {});
    for (std::size_t c = 0; c <= resources; ++c) cell(0, c).value = 0;
    for (std::size_t end = 1; end <= blocks_.size(); ++end) {
      if (control_.should_stop(end)) return false;
      for (std::size_t first = 0; first < end; ++first) {
        for (std::uint32_t number = 0; number < crews_.size(); ++number) {
          const Crew& crew = crews_[number];
          const double load = loads_[crew.kind.index()]->load(first, end, crew.replicas);
          for (std::size_t c = crew.resources; c <= resources; ++c) {
            const double value = std::max(cell(first, c - crew.resources).value, load);
            if (value < cell(end, c).value) {
              cell(end, c) = {value, static_cast<std::uint32_t>(first), number};
            }
          }
        }
      }
    }
    return true;
  }

  std::optional<Plan> plan_with(std::size_t resources) {
    std::vector<Interval> intervals;
    for (std::size_t end = blocks_.size(), left = resources; end > 0;) {
      const Cell& at = cell(end, left);
      if (at.value == kInfinity) return std::nullopt;
      intervals.push_back({at.first, end, crews_[at.crew]});
      left -= crews_[at.crew].resources;
      end = at.first;
    }
    std::ranges::reverse(intervals);
    const auto devices = hand_out(intervals);
    if (!devices) return std::nullopt;
    std::vector<Stage> stages;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      Stage& stage = stages.emplace_back();
      stage.devices = (*devices)[i];
      for (std::size_t block = intervals[i].first; block < intervals[i].end; ++block) {
        const auto ops = blocks_.ops[BlockId{block}];
        stage.ops.insert(stage.ops.end(), ops.begin(), ops.end());
      }
      std::ranges::sort(stage.ops);
    }
    Plan plan = pipeline_plan(problem_, std::move(stages));
    if (!(plan.value < kInfinity) || !keeps_rules(problem_, plan)) return std::nullopt;
    return plan;
  }

  // The device that ops of the interval are pinned to; not valid: none is.
  [[nodiscard]] DeviceId pin_of(const Interval& interval) const {
    for (std::size_t block = interval.first; block < interval.end; ++block) {
      for (const OpId op : blocks_.ops[BlockId{block}]) {
        if (problem_.op(op).pinned_to.valid()) return problem_.op(op).pinned_to;
      }
    }
    return {};
  }

  // Devices that exclude each other nowhere, first those that ops are pinned to, then the widest
  // stages. Nullopt if they run out.
  [[nodiscard]] std::optional<std::vector<std::vector<DeviceId>>> hand_out(
      const std::vector<Interval>& intervals) const {
    std::vector<std::size_t> order(intervals.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto width = [&](std::size_t i) {
      return intervals[i].crew.resources / intervals[i].crew.replicas;
    };
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return width(a) > width(b); });
    std::vector<std::vector<DeviceId>> given(intervals.size());
    std::vector<DeviceId> taken;
    const auto is_free = [&](DeviceId device) {
      return std::ranges::none_of(
          taken, [&](DeviceId other) { return exclude_each_other(problem_, device, other); });
    };
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const DeviceId pin = pin_of(intervals[i]);
      if (!pin.valid()) continue;
      if (!is_free(pin)) return std::nullopt;
      given[i].push_back(pin);
      taken.push_back(pin);
    }
    for (const std::size_t i : order) {
      for (const DeviceId device : devices_[intervals[i].crew.kind.index()]) {
        if (given[i].size() == intervals[i].crew.replicas) break;
        if (!is_free(device)) continue;
        given[i].push_back(device);
        taken.push_back(device);
      }
      if (given[i].size() < intervals[i].crew.replicas) return std::nullopt;
    }
    return given;
  }

  const Problem& problem_;
  Control& control_;
  const Blocks& blocks_;
  std::vector<std::vector<DeviceId>> devices_;       // by kind
  std::vector<std::optional<IntervalLoads>> loads_;  // by kind
  std::vector<Crew> crews_;
  std::vector<Cell> cells_;
};

// Weights are held once in each space that has a replica.
bool stages_fit(const Problem& problem, const Plan& plan) {
  MemoryLedger ledger(problem);
  for (const Stage& stage : plan.stages) {
    std::vector<SpaceId> spaces;
    for (const DeviceId device : stage.devices) {
      if (std::ranges::find(spaces, problem.space(device)) != spaces.end()) continue;
      spaces.push_back(problem.space(device));
      for (const OpId op : stage.ops) ledger.add(op, device);
    }
  }
  return ledger.within();
}

bool replicas_are_alike(const Problem& problem, const Stage& stage) {
  const KindId kind = problem.kind_of(stage.devices.front());
  return stage.devices.size() <= static_cast<std::size_t>(problem.rules().max_replicas) &&
         std::ranges::all_of(stage.devices,
                             [&](DeviceId device) { return problem.kind_of(device) == kind; });
}

}  // namespace

std::string refuses_shared_program(const Problem& problem) {
  if (problem.resource_count() == 0) return "no devices share resources";
  Table<KindId, std::size_t> width(problem.kind_count(), 0);
  for (const DeviceId device : problem.devices()) {
    const auto uses = problem.uses(device);
    std::size_t& known = width[problem.kind_of(device)];
    if (uses.empty() || (known != 0 && known != uses.size())) {
      return "it knows devices that take their resources whole, and as many for each of a kind";
    }
    known = uses.size();
  }
  if (problem.group_count() > kMostBlocks) {
    return fmt::format("it has more than {} blocks of ops", kMostBlocks);
  }
  return {};
}

// In one memory any placement shows whether everything fits.
std::optional<Answer> too_much_for_one_memory(const Problem& problem) {
  if (problem.space_count() > 1 ||
      memory_fits(problem, Placement(problem.op_count(), DeviceId{0}))) {
    return std::nullopt;
  }
  Answer answer;
  answer.proved_infeasible = true;
  answer.reason = "the weights take more than the memory of all devices";
  return answer;
}

std::optional<Plan> shared_program(const Problem& problem, const Blocks& blocks, Control& control) {
  return SharedProgram(problem, blocks, control).run();
}

Blocks in_order(const Problem& problem, const Blocks& blocks, std::span<const BlockId> order) {
  Table<BlockId, BlockId> number(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = BlockId{i};
  Blocks numbered;
  numbered.block_of = Table<OpId, BlockId>(problem.op_count());
  for (const OpId op : problem.ops()) numbered.block_of[op] = number[blocks.block_of[op]];
  for (const BlockId block : order) {
    numbered.ops.append(blocks.ops[block]);
    std::vector<BlockId> successors;
    for (const BlockId next : blocks.successors[block]) successors.push_back(number[next]);
    numbered.successors.append(successors);
  }
  return numbered;
}

bool keeps_rules(const Problem& problem, const Plan& plan) {
  for (const Stage& stage : plan.stages) {
    if (!replicas_are_alike(problem, stage)) return false;
    for (const OpId op : stage.ops) {
      for (const DeviceId device : stage.devices) {
        if (!problem.allowed(op, device)) return false;
      }
    }
  }
  if (!contiguous(problem, plan.placement) || !stages_fit(problem, plan)) return false;
  return problem.rules().memory != MemoryModel::peak ||
         !device_over_peak(problem, simulate(problem, plan));
}

}  // namespace placewright::throughput
