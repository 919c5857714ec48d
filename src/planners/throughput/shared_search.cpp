// shared-search: better pipelines on devices that share resources, for as long as there is time.
//
// Minimises the time per sample over everything that a plan decides: which ops are a stage, on
// which set of cores each stage runs, on how many replicas, and who takes turns with whom on sets
// that overlap. Annealing over blocks (coarsen/blocks.h), with one move, or two at once, of
//
//   a block to another device, mostly to that of a neighbour; a block with those before it, or behind
//   it, in its stage (which shifts a border or splits the stage); a stage joined to another; a stage
//   moved to another device, whose stage comes in return; a stage on another number of replicas, or of
//   another kind of device; a device that helps a stage taken away from it
//
// and every result valued by the evaluator (evaluate/pipeline.h), which knows all rules; what
// breaks one is not taken. The value has plateaus, since one stage or resource decides it: a tenth
// of the root mean square of the loads of resources, and of devices that use none, is added.
// Coolings begin in turn at the best plan so far, at the best stages along another, random order of
// the graph (shared_program.h), and at the best plan once more but so hot that little of it is
// left; each three are half as long again as those before. Where a few stages could have a period
// below that of the best plan, every arrangement of them is looked at
// (evaluate/stage_arrangement.h).
//
// O(ops + edges) for each move: some 150,000 per second on 30 ops and 4 cores. It proves nothing
// beyond the bounds of the problem, and needs a plan to start from: the whole model on one device,
// the program's, an even fill, or the one that it is given.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bounds/rounding.h"
#include "evaluate/pipeline.h"
#include "planners/bound_of_problem.h"
#include "planners/exchange.h"
#include "planners/methods/fill_rules.h"
#include "planners/random_numbers.h"
#include "planners/throughput/shared_program.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

using namespace throughput;

constexpr std::uint64_t kFirstCooling = 1000;  // moves, and as many for each 10 blocks
constexpr double kLonger = 1.5;                // each three coolings than those before
constexpr double kWarm = 0.05;                 // of the value: keeps most of a good plan
constexpr double kHot = 0.5;                   // leaves little of it
constexpr double kCold = 1e-3;                 // of that
constexpr double kTwoMoves = 0.3;              // how often
constexpr double kEvenness = 0.1;              // weight of the mean load of resources
constexpr double kWorthCooling = 1.5;          // of the best value: starts that are worse are left

// Which device each block is on, and which devices help another one as its replicas.
struct Layout {
  std::vector<DeviceId> device;     // by block: the first device of its stage
  Table<DeviceId, DeviceId> helps;  // not valid: it helps none
};

class SharedSearch {
 public:
  SharedSearch(const Problem& problem, Control& control)
      : problem_(problem),
        control_(control),
        random_(control.budget().seed),
        blocks_(blocks_of(problem)),
        predecessors_(blocks_.size()),
        most_replicas_(static_cast<std::size_t>(problem.rules().max_replicas)),
        bearers_(static_cast<double>(problem.resource_count())) {
    for (const BlockId block : blocks_.keys()) {
      for (const BlockId next : blocks_.successors[block]) predecessors_[next].push_back(block);
    }
    devices_of_kind_.resize(problem.kind_count());
    for (const DeviceId device : problem.devices()) {
      devices_of_kind_[problem.kind_of(device).index()].push_back(device);
      if (problem.uses(device).empty()) ++bearers_;
    }
  }

  Answer run() {
    certificate_ = bound_of_problem(problem_, control_);
    take_starts();
    if (best_) cool_for_ever();
    Answer answer;
    answer.certificate = certificate_;
    if (best_) {
      answer.certificate.lower_bound = std::min(certificate_.lower_bound, best_->value);
      answer.plan = std::move(best_);
    } else {
      answer.reason = control_.should_stop() ? control_.stop_reason() : "no plan to start from";
    }
    return answer;
  }

 private:
  void take_starts() {
    if (control_.start != nullptr) take(*control_.start);
    for (const DeviceId device : problem_.devices()) {
      take(pipeline_plan(problem_, Placement(problem_.op_count(), device)));
    }
    if (refuses_shared_program(problem_).empty()) {
      if (auto plan = shared_program(problem_, blocks_, control_)) take(std::move(*plan));
    }
    if (best_) return;
    Control part = control_.part("shared-search", control_.remaining());
    if (auto plan = fill_evenly(problem_, part).plan) take(std::move(*plan));
  }

  // Keeps the plan if it is valid and the best so far.
  void take(Plan plan) {
    if (!(plan.value < value()) || !keeps_rules(problem_, plan)) return;
    best_ = std::move(plan);
    control_.report(*best_, certificate_.lower_bound);
  }

  [[nodiscard]] double value() const { return best_ ? best_->value : kInfinity; }
  [[nodiscard]] bool settled() const {
    return gap(value(), certificate_.lower_bound) <= kOptimalGap;
  }

  void cool_for_ever() {
    const std::uint64_t first = kFirstCooling * (1 + blocks_.size() / 10);
    auto moves = static_cast<double>(first);
    while (!ended()) {
      if (const auto other = better_elsewhere(control_.exchange, value())) take(*other);
      const auto length = static_cast<std::uint64_t>(moves);
      cool(*best_, kWarm, length);
      if (!ended()) cool_from_another_order(length);
      if (!ended()) cool(*best_, kHot, length);
      moves *= kLonger;
    }
  }
  [[nodiscard]] bool ended() { return settled() || control_.should_stop(); }

  void cool_from_another_order(std::uint64_t moves) {
    if (!refuses_shared_program(problem_).empty()) return;
    const Blocks other = in_order(problem_, blocks_, random_order());
    const std::optional<Plan> start = shared_program(problem_, other, control_);
    if (!start) return;
    take(*start);
    if (start->value < kWorthCooling * value()) cool(*start, kWarm, moves);
  }

  // A topological order: mostly on from the block just taken, as chains go, else any that is ready.
  // Where contiguity is not asked for, blocks may lie on cycles: then the first that is left.
  std::vector<BlockId> random_order() {
    Table<BlockId, std::size_t> waits_for(blocks_.size());
    Table<BlockId, char> taken(blocks_.size(), 0);
    std::vector<BlockId> ready;
    for (const BlockId block : blocks_.keys()) {
      waits_for[block] = predecessors_[block].size();
      if (waits_for[block] == 0) ready.push_back(block);
    }
    const bool deep = random_.chance(0.5);
    std::vector<BlockId> order;
    while (order.size() < blocks_.size()) {
      if (ready.empty()) {
        const auto left = [&](BlockId block) { return taken[block] == 0; };
        const auto all = blocks_.keys();
        ready.push_back(*std::ranges::find_if(all, left));
      }
      const bool last = deep && random_.chance(0.8);
      const std::size_t chosen = last ? ready.size() - 1 : random_.below(ready.size());
      const BlockId block = ready[chosen];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
      if (taken[block]++ != 0) continue;
      order.push_back(block);
      for (const BlockId next : blocks_.successors[block]) {
        if (--waits_for[next] == 0) ready.push_back(next);
      }
    }
    return order;
  }

  void cool(const Plan& start, double heat, std::uint64_t moves) {
    layout_ = layout_of(start);
    double energy = energy_of(start);
    const double hot = heat * start.value;
    for (std::uint64_t done = 0; done < moves; ++done) {
      if (control_.should_stop(1)) return;
      const double share = static_cast<double>(done) / static_cast<double>(moves);
      const double temperature = hot * std::pow(kCold, share);
      before_ = layout_;
      if (!change()) {
        layout_ = before_;
        continue;
      }
      Plan plan = plan_of(layout_);
      const double after = energy_of(plan);
      const bool worse =
          after > energy && !random_.chance(std::exp((energy - after) / temperature));
      if (!(after < kInfinity) || worse || !keeps_rules(problem_, plan)) {
        layout_ = before_;
        continue;
      }
      energy = after;
      if (plan.value < safe_sum(value())) {
        take(std::move(plan));
        if (settled()) return;
      }
    }
  }

  // A block whose ops the plan has in several stages goes where its first op is.
  [[nodiscard]] Layout layout_of(const Plan& plan) const {
    Layout layout{std::vector<DeviceId>(blocks_.size()),
                  Table<DeviceId, DeviceId>(problem_.device_count())};
    for (const BlockId block : blocks_.keys()) {
      layout.device[block.index()] = plan.placement[blocks_.ops[block].front()];
    }
    for (const Stage& stage : plan.stages) {
      for (std::size_t i = 1; i < stage.devices.size(); ++i) {
        layout.helps[stage.devices[i]] = stage.devices.front();
      }
    }
    return layout;
  }

  [[nodiscard]] Plan plan_of(const Layout& layout) const {
    Placement placement(problem_.op_count());
    for (const OpId op : problem_.ops()) {
      placement[op] = layout.device[blocks_.block_of[op].index()];
    }
    std::vector<Stage> stages = stages_to_evaluate(problem_, placement);
    for (Stage& stage : stages) {
      const DeviceId first = stage.devices.front();
      for (const DeviceId device : problem_.devices()) {
        if (layout.helps[device] == first) stage.devices.push_back(device);
      }
    }
    return pipeline_plan_below(problem_, std::move(stages), value());
  }

  [[nodiscard]] double energy_of(const Plan& plan) const {
    Table<ResourceId, double> work(problem_.resource_count(), 0);
    double squares = 0;
    for (const Stage& stage : plan.stages) {
      for (const DeviceId device : stage.devices) {
        if (problem_.uses(device).empty()) squares += stage.load * stage.load;
        for (const ResourceUse& use : problem_.uses(device)) {
          work[use.resource] += stage.load * use.amount / problem_.resource(use.resource).capacity;
        }
      }
    }
    for (const double sum : work) squares += sum * sum;
    return plan.value + kEvenness * std::sqrt(squares / bearers_);
  }

  // A random move of the layout, or two at once, which pass over what lies between. False: it came
  // to nothing.
  bool change() {
    const bool changed = move();
    return (random_.chance(kTwoMoves) && move()) || changed;
  }

  bool move() {
    const std::size_t block = random_.below(blocks_.size());
    switch (random_.below(most_replicas_ > 1 ? 12 : 9)) {
      case 0:
      case 1:
      case 2:
        return put({block}, some_device(block));
      case 3:
      case 4:
        return put(part_of_stage(block, predecessors_), some_device(block));
      case 5:
      case 6:
        return put(part_of_stage(block, blocks_.successors), some_device(block));
      case 7:
        return put(stage_of(layout_.device[block]), some_device(block));
      case 8:
        return exchange(layout_.device[block], any_device());
      case 9:
        return stop_helping();
      default:
        return replicate(layout_.device[block]);
    }
  }

  DeviceId any_device() { return DeviceId{random_.below(problem_.device_count())}; }

  // Mostly one that has a neighbour of the block.
  DeviceId some_device(std::size_t block) {
    const auto before = std::span<const BlockId>(predecessors_[BlockId{block}]);
    const auto behind = blocks_.successors[BlockId{block}];
    const std::size_t near = before.size() + behind.size();
    if (near == 0 || random_.chance(0.4)) return any_device();
    const std::size_t chosen = random_.below(near);
    const BlockId other = chosen < before.size() ? before[chosen] : behind[chosen - before.size()];
    return layout_.device[other.index()];
  }

  [[nodiscard]] std::vector<std::size_t> stage_of(DeviceId device) const {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < layout_.device.size(); ++i) {
      if (layout_.device[i] == device) members.push_back(i);
    }
    return members;
  }

  // The block and what it leads to, one way along the edges, within its stage.
  template <class Edges>
  [[nodiscard]] std::vector<std::size_t> part_of_stage(std::size_t block,
                                                       const Edges& edges) const {
    std::vector<std::size_t> part{block};
    for (std::size_t i = 0; i < part.size(); ++i) {
      for (const BlockId next : edges[BlockId{part[i]}]) {
        if (layout_.device[next.index()] != layout_.device[block]) continue;
        if (std::ranges::find(part, next.index()) == part.end()) part.push_back(next.index());
      }
    }
    return part;
  }

  // The device is a stage's own from now on: it helps none.
  bool put(const std::vector<std::size_t>& members, DeviceId to) {
    const DeviceId from = layout_.device[members.front()];
    if (from == to) return false;
    for (const std::size_t member : members) layout_.device[member] = to;
    layout_.helps[to] = {};
    if (std::ranges::find(layout_.device, from) == layout_.device.end()) dismiss_helpers(from);
    return true;
  }

  void dismiss_helpers(DeviceId first) {
    for (DeviceId& helped : layout_.helps) {
      if (helped == first) helped = {};
    }
  }

  // Two devices change places, whatever they do; one of them may have nothing to do. Replicas are
  // of one kind: of another they are dismissed.
  bool exchange(DeviceId a, DeviceId b) {
    if (a == b) return false;
    for (DeviceId& device : layout_.device) {
      if (device == a || device == b) device = device == a ? b : a;
    }
    if (problem_.kind_of(a) != problem_.kind_of(b)) {
      dismiss_helpers(a);
      dismiss_helpers(b);
      layout_.helps[a] = layout_.helps[b] = {};
      return true;
    }
    for (DeviceId& helped : layout_.helps) {
      if (helped == a || helped == b) helped = helped == a ? b : a;
    }
    std::swap(layout_.helps[a], layout_.helps[b]);
    return true;
  }

  bool stop_helping() {
    std::vector<DeviceId> helpers;
    for (const DeviceId device : problem_.devices()) {
      if (layout_.helps[device].valid()) helpers.push_back(device);
    }
    if (helpers.empty()) return false;
    layout_.helps[helpers[random_.below(helpers.size())]] = {};
    return true;
  }

  // The stage on some devices of some kind that have no stage of their own; those that help others
  // are taken away from them.
  bool replicate(DeviceId first) {
    const std::vector<std::size_t> members = stage_of(first);
    const bool same_kind = random_.chance(0.5);
    const KindId kind = problem_.kind_of(same_kind ? first : any_device());
    std::vector<DeviceId> others;
    for (const DeviceId device : devices_of_kind_[kind.index()]) {
      const bool busy = std::ranges::find(layout_.device, device) != layout_.device.end();
      if (!busy && device != first) others.push_back(device);
    }
    const std::size_t stays = kind == problem_.kind_of(first) ? 1 : 0;
    if (others.size() + stays < 2) return false;
    const std::size_t replicas =
        random_.between(2, std::min(most_replicas_, others.size() + stays));
    const auto any_other = [&] {
      std::swap(others[random_.below(others.size())], others.back());
      const DeviceId device = others.back();
      others.pop_back();
      return device;
    };
    dismiss_helpers(first);
    if (stays == 0) put(members, any_other());
    const DeviceId now = layout_.device[members.front()];
    for (std::size_t i = 1; i < replicas; ++i) layout_.helps[any_other()] = now;
    return true;
  }

  const Problem& problem_;
  Control& control_;
  RandomNumbers random_;
  Blocks blocks_;
  Table<BlockId, std::vector<BlockId>> predecessors_;
  std::vector<std::vector<DeviceId>> devices_of_kind_;
  std::size_t most_replicas_;
  double bearers_;  // of work: resources, and devices that use none
  Layout layout_;
  Layout before_;
  std::optional<Plan> best_;
  Certificate certificate_;
};

std::string refuses(const Problem& problem) {
  return problem.has_sharing() ? "" : "no devices share resources or memory";
}

}  // namespace

PlannerEntry shared_search() {
  return PlannerEntry{
      .name = "shared-search",
      .summary = "pipelines on devices that share: annealing of stages, sets and replicas",
      .objectives = {Objective::throughput},
      .effort = Effort::anytime,
      .share = 4,
      .knows = kCommonAndSharing,
      .refuses = refuses,
      .plan = [](const Problem& problem, const Settings&, Control& control) {
        return SharedSearch(problem, control).run();
      }};
}

}  // namespace placewright
