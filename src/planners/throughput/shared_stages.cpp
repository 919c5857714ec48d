// shared-stages: pipelines on sets of cores, along one order of the graph.
//
// For devices in one memory space that take their resources whole. Stages are intervals of the
// order of blocks (coarsen/blocks.h), each on r devices of one kind, and all of them run side by
// side, so the period is the largest load. With w resources for each device of a kind
//
//   best(j, c) = min over i < j, kind, r of max(best(i, c - r w), load(i, j, kind) / r)
//
// over prefixes j and the number c of resources that are left: how many stages, how wide each, and
// how many replicas. Sets of cores that are nested in halves can always be handed out, the widest
// first; where the devices are others, what cannot be handed out is left out. The bound is the
// work of all resources together (bounds/work.h).
//
// O(blocks^2 x resources x choices) time, O(blocks^2 x kinds) memory.

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "coarsen/blocks.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "planners/bound_of_problem.h"
#include "planners/throughput/throughput.h"
#include "problem/exclusion.h"

namespace placewright {
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
      : count_(blocks.size()), cuts_((count_ + 1) * (count_ + 1), 0), compute_(count_ + 1, 0) {
    for (const BlockId block : blocks.keys()) {
      double time = 0;
      for (const OpId op : blocks.ops[block]) {
        time +=
            problem.group_allowed(problem.group(op), device) ? problem.time(op, device) : kInfinity;
      }
      compute_[block.index() + 1] = compute_[block.index()] + time;
    }
    if (problem.has_overheads()) {
      for (const TensorId tensor : problem.tensors()) add_cuts(problem, blocks, tensor, device);
      sum_up();
    }
  }

  // Of the blocks first <= b < end.
  [[nodiscard]] double load(std::size_t first, std::size_t end) const {
    if (compute_[end] == kInfinity && compute_[first] < kInfinity) return kInfinity;
    if (compute_[first] == kInfinity) return kInfinity;
    return compute_[end] - compute_[first] + cuts_[first * (count_ + 1) + end];
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
  std::vector<double> cuts_;     // by first and end
  std::vector<double> compute_;  // of the blocks before
};

struct Interval {
  std::size_t first;
  std::size_t end;
  Crew crew;
};

class StageProgram {
 public:
  StageProgram(const Problem& problem, Control& control)
      : problem_(problem), control_(control), blocks_(blocks_of(problem)) {
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

  Answer run() {
    Answer answer;
    // All devices have one memory, so any placement shows whether everything fits.
    if (!memory_fits(problem_, Placement(problem_.op_count(), DeviceId{0}))) {
      answer.proved_infeasible = true;
      answer.reason = "the weights take more than the memory of all devices";
      return answer;
    }
    answer.certificate = bound_of_problem(problem_, control_);
    if (!solve()) {
      answer.reason = control_.stop_reason();
      return answer;
    }
    // What needs fewer resources can be handed out more often.
    for (std::size_t most = problem_.resource_count(); most > 0 && !answer.plan; --most) {
      answer.plan = plan_with(most);
    }
    if (answer.plan) control_.report(*answer.plan, answer.certificate.lower_bound);
    if (!answer.plan) {
      answer.reason = "no interval of the order fits the devices";
    }
    return answer;
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
          const double load =
              loads_[crew.kind.index()]->load(first, end) / static_cast<double>(crew.replicas);
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
    if (!(plan.value < kInfinity)) return std::nullopt;
    return plan;
  }

  // Devices that exclude each other nowhere, the widest stages first. Nullopt if they run out.
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
    for (const std::size_t i : order) {
      for (const DeviceId device : devices_[intervals[i].crew.kind.index()]) {
        if (given[i].size() == intervals[i].crew.replicas) break;
        const bool free = std::ranges::none_of(
            taken, [&](DeviceId other) { return exclude_each_other(problem_, device, other); });
        if (!free) continue;
        given[i].push_back(device);
        taken.push_back(device);
      }
      if (given[i].size() < intervals[i].crew.replicas) return std::nullopt;
    }
    return given;
  }

  const Problem& problem_;
  Control& control_;
  Blocks blocks_;
  std::vector<std::vector<DeviceId>> devices_;       // by kind
  std::vector<std::optional<IntervalLoads>> loads_;  // by kind
  std::vector<Crew> crews_;
  std::vector<Cell> cells_;
};

std::string refuses(const Problem& problem) {
  if (problem.resource_count() == 0) return "no devices share resources";
  if (problem.space_count() > 1) return "it knows one memory space for all devices";
  if (problem.rules().memory == MemoryModel::peak) {
    return "it does not know peak memory, which depends on the stages that follow";
  }
  Table<KindId, std::size_t> width(problem.kind_count(), 0);
  for (const DeviceId device : problem.devices()) {
    const std::size_t uses = problem.uses(device).size();
    std::size_t& known = width[problem.kind_of(device)];
    if (uses == 0 || (known != 0 && known != uses)) {
      return "it knows devices that take their resources whole, and as many for each of a kind";
    }
    known = uses;
  }
  if (!ops_take_whole_resources(problem)) return "it knows devices that take their resources whole";
  for (const OpId op : problem.ops()) {
    if (problem.op(op).backward) return "it knows inference only";
    if (problem.op(op).pinned_to.valid()) return "it knows no pinned ops";
  }
  if (problem.group_count() > kMostBlocks) {
    return fmt::format("it has more than {} blocks of ops", kMostBlocks);
  }
  return {};
}

}  // namespace

PlannerEntry shared_stages() {
  return PlannerEntry{
      .name = "shared-stages",
      .summary = "stages, replicas and threads on sets of cores, along one order of the graph",
      .objectives = {Objective::throughput},
      .knows_sharing = true,
      .refuses = refuses,
      .plan = [](const Problem& problem, const Settings&, Control& control) {
        return StageProgram(problem, control).run();
      }};
}

}  // namespace placewright
