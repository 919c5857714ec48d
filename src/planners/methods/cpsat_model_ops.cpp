#include <algorithm>
#include <cmath>

#include "bounds/rounding.h"
#include "evaluate/memory.h"
#include "planners/methods/cpsat_model_state.h"
#include "problem/lanes.h"

namespace placewright {
namespace {

using solvers::CpExpression;
using solvers::CpInterval;
using solvers::CpLiteral;
using solvers::CpVariable;
using solvers::kCpMaximum;
using solvers::kCpMinimum;
using Units = std::int64_t;

// Sizes stay below this, so that sums over all ops are exact.
constexpr double kLargestSize = 1LL << 50;
// Weights of models: eight digits decide.
constexpr double kWeightUnits = 1e8;
constexpr double kLargestObjective = 1e18;
constexpr Units kPoolUnits = 12;  // of each resource

}  // namespace

// What the times of the scope are, and how long everything takes in a row.
struct ScheduleModel::State::Extent {
  std::vector<double> times;
  double serial = 0;   // all activities one after the other
  double latest = 0;   // before which something outside lets nothing start
  double longest = 0;  // a path of ops, each at its fastest
};

void ScheduleModel::State::measure_ops(Extent& extent) const {
  Table<OpId, double> path(problem_.op_count(), 0);
  for (const OpId op : order_) {
    double most = 0;
    double least = kInfinity;
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.allowed(op, device)) continue;
      const double time = problem_.time(op, device);
      extent.times.push_back(time);
      most = std::max(most, time);
      least = std::min(least, time);
    }
    for (const OpId before : problem_.predecessors(op)) path[op] = std::max(path[op], path[before]);
    path[op] += least;
    extent.longest = std::max(extent.longest, path[op]);
    extent.serial += most;
    const double arrival = problem_.model(problem_.op(op).model).arrival;
    extent.times.push_back(arrival);
    extent.latest = std::max(extent.latest, arrival);
  }
}

void ScheduleModel::State::measure_tensors(Extent& extent) const {
  const bool host = problem_.interconnect() == InterconnectKind::host;
  for (const TensorId tensor : tensors_) {
    double most = 0;
    double overhead = 0;
    for (const DeviceId device : problem_.devices()) {
      const double send = problem_.send_overhead(tensor, device);
      const double receive = problem_.receive_overhead(tensor, device);
      extent.times.insert(extent.times.end(), {send, receive});
      overhead = std::max({overhead, send, receive});
    }
    for (const DeviceId from : problem_.devices()) {
      for (const DeviceId to : problem_.devices()) {
        if (problem_.same_space(from, to) || !problem_.reachable(tensor, from, to)) continue;
        const double time =
            host ? problem_.host_time(tensor) : problem_.link_time(tensor, from, to);
        extent.times.push_back(time);
        most = std::max(most, time);
      }
    }
    const std::size_t readers = problem_.consumers(tensor).size();
    const auto journeys = static_cast<double>(1 + std::min(readers, problem_.device_count()));
    extent.serial += journeys * (most + 2 * overhead);
    const OpId producer = problem_.producer(tensor);
    if (!inside(producer) && !scope_.ends.empty()) {
      extent.times.push_back(scope_.ends[producer]);
      extent.latest = std::max(extent.latest, scope_.ends[producer]);
    }
  }
}

// The grid of times, and a time by which everything can be done.
void ScheduleModel::State::add_horizon(double at_most) {
  Extent extent;
  measure_ops(extent);
  measure_tensors(extent);
  double tail = 0;
  for (const double time : scope_.tails) tail = std::max(tail, time);
  for (const ScheduleScope::Tail& rest : scope_.after) tail = std::max(tail, rest.time);
  for (const ScheduleScope::Busy& busy : scope_.busy) {
    extent.latest = std::max(extent.latest, busy.end);
    extent.serial += busy.end - busy.start;
    extent.times.insert(extent.times.end(), {busy.start, busy.end});
  }
  double end = extent.latest + extent.serial + tail;
  if (latency_) end = std::min(end, at_most);
  grid_ = TimeGrid::for_times(extent.times, std::max(extent.longest, extent.latest),
                              std::max(end, extent.longest), 2 * order_.size());
  horizon_ = grid_.units(end) + 1;
}

void ScheduleModel::State::add_choices() {
  std::vector<DeviceId> given(problem_.group_count());
  std::vector<char> wanted(problem_.group_count(), 0);
  for (const OpId op : order_) wanted[problem_.group(op).index()] = 1;
  for (const TensorId tensor : tensors_) {
    wanted[problem_.group(problem_.producer(tensor)).index()] = 1;
    for (const OpId reader : problem_.consumers(tensor)) {
      wanted[problem_.group(reader).index()] = 1;
    }
  }
  if (!scope_.given.empty()) {
    for (const OpId op : problem_.ops()) {
      if (scope_.given[op].valid()) given[problem_.group(op).index()] = scope_.given[op];
    }
  }
  for (const GroupId group : problem_.groups()) {
    if (!wanted[group.index()]) continue;
    std::vector<DeviceId> devices;
    for (const DeviceId device : problem_.devices()) {
      const DeviceId only = given[group.index()];
      if (only.valid() ? only == device : problem_.group_allowed(group, device)) {
        devices.push_back(device);
      }
    }
    std::vector<CpLiteral> literals;
    for (const DeviceId device : devices) {
      const CpLiteral here = devices.size() == 1 ? yes_ : CpLiteral(model_.add_bool());
      choices_[group].push_back({device, here});
      literals.push_back(here);
    }
    if (devices.size() != 1) model_.add_exactly_one(literals);
    add_places(group);
  }
}

void ScheduleModel::State::add_places(GroupId group) {
  const std::vector<Choice>& choices = choices_[group];
  Table<SpaceId, std::vector<CpLiteral>> here(problem_.space_count());
  for (const Choice& choice : choices) here[problem_.space(choice.device)].push_back(choice.here);
  for (const SpaceId space : problem_.spaces()) {
    if (here[space].empty()) continue;
    const bool everywhere = here[space].size() == choices.size();
    places_[group].push_back({space, everywhere ? yes_ : any(here[space])});
  }
}

// The earliest start of each op on each device: the shortest way there.
void ScheduleModel::State::add_heads() {
  constexpr Units kNever = kCpMaximum / 4;
  for (const OpId op : order_) {
    const Units arrival = grid_.units(problem_.model(problem_.op(op).model).arrival);
    for (const Choice& choice : choices(op)) {
      Units head = arrival;
      for (const TensorId tensor : problem_.inputs(op)) {
        const OpId producer = problem_.producer(tensor);
        Units arrives = kNever;
        for (std::size_t i = 0; i < choices(producer).size(); ++i) {
          const DeviceId from = choices(producer)[i].device;
          if (problem_.group(op) == problem_.group(producer) && from != choice.device) continue;
          if (from != choice.device && !problem_.reachable(tensor, from, choice.device)) continue;
          const Units ends = inside(producer)
                                 ? heads_[producer][i] + grid_.units(problem_.time(producer, from))
                                 : end_of(producer).offset;
          arrives = std::min(arrives, ends + move(tensor, from, choice.device));
        }
        head = std::max(head, std::min(arrives, kNever));
      }
      if (facts_) head = std::max(head, units_or_never(facts_->start, op, choice.device));
      if (head >= kNever) add_clause({!choice.here});
      heads_[op].push_back(std::min(head, horizon_));
    }
  }
}

// What the bound says of the op on the device.
Units ScheduleModel::State::units_or_never(const std::vector<double>& times, OpId op,
                                           DeviceId device) const {
  const double time = times[op.index() * problem_.device_count() + device.index()];
  return facts_->around.may(op, device) && time < kInfinity ? grid_.units(time) : kCpMaximum / 4;
}

void ScheduleModel::State::add_starts() {
  for (const OpId op : order_) {
    const std::vector<Units>& heads = heads_[op];
    // A group without a device has no start; its empty choice makes the model infeasible.
    const Units least = heads.empty() ? 0 : *std::min_element(heads.begin(), heads.end());
    ops_[op].start = add_time(std::min(least, horizon_));
    CpExpression head;
    for (std::size_t i = 0; i < heads.size(); ++i) {
      add_term(head, choices(op)[i].here, heads[i] - least);
    }
    head.offset += least;
    if (!head.terms.empty()) follow(ops_[op].start, head);
  }
}

void ScheduleModel::State::add_objective() {
  const std::size_t count = latency_ ? 1 : problem_.model_count();
  for (std::size_t i = 0; i < count; ++i) completions_.push_back(add_time(0));
  if (latency_) {
    objective_ = CpExpression(completions_.front());
    return;
  }
  double heaviest = 0;
  bool whole = true;
  for (const ModelId model : problem_.models()) {
    const double weight = problem_.model(model).weight;
    heaviest = std::max(heaviest, weight);
    whole = whole && weight == std::floor(weight);
  }
  const double most =
      kLargestObjective / (static_cast<double>(horizon_ + 1) * static_cast<double>(count));
  if (heaviest > 0 && (!whole || heaviest > most)) {
    weight_scale_ = std::min(kWeightUnits, most) / heaviest;
  }
  Units arrived = 0;
  for (const ModelId model : problem_.models()) {
    const double weight = problem_.model(model).weight;
    const double arrival = problem_.model(model).arrival;
    const auto factor = static_cast<Units>(std::floor(weight * weight_scale_));
    objective_.terms.push_back({completions_[model.index()], factor});
    heaviest_ = std::max(heaviest_, factor);
    follow(completions_[model.index()], CpExpression(grid_.units(arrival)));
    arrived_ += weight * arrival;
    arrived += factor * grid_.units(arrival);
  }
  const double on_grid = grid_.time(static_cast<double>(arrived)) / weight_scale_;
  arrived_at_most_ = loose_sum(std::max(arrived_, on_grid));
}

// From the start of an op on a device to the end of everything, at least.
void ScheduleModel::State::add_tails() {
  if (!latency_) return;
  constexpr Units kNever = kCpMaximum / 4;
  for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
    const OpId op = *at;
    CpExpression end(ops_[op].start);
    for (const Choice& choice : choices(op)) {
      Units tail = 0;
      for (const TensorId tensor : problem_.outputs(op)) {
        for (const OpId reader : problem_.consumers(tensor)) {
          Units rest = kNever;
          for (std::size_t i = 0; i < choices(reader).size(); ++i) {
            const DeviceId to = choices(reader)[i].device;
            if (problem_.group(op) == problem_.group(reader) && to != choice.device) continue;
            if (to != choice.device && !problem_.reachable(tensor, choice.device, to)) continue;
            const Units own = inside(reader)         ? tails_[reader][i]
                              : scope_.tails.empty() ? 0
                                                     : grid_.units(scope_.tails[reader]);
            rest = std::min(rest, own + move(tensor, choice.device, to));
          }
          tail = std::max(tail, rest);
        }
      }
      if (facts_) tail = std::max(tail, units_or_never(facts_->rest, op, choice.device));
      if (tail >= kNever) add_clause({!choice.here});
      tail = std::min(tail, horizon_);
      tails_[op].push_back(tail + grid_.units(problem_.time(op, choice.device)));
      add_term(end, choice.here, tails_[op].back());
    }
    follow(completions_.front(), end);
  }
}

void ScheduleModel::State::add_lengths() {
  for (const OpId op : order_) {
    OpVariables& variables = ops_[op];
    for (const Choice& choice : choices(op)) {
      add_term(variables.length, choice.here, grid_.units(problem_.time(op, choice.device)));
    }
    if (variables.length.terms.empty()) {
      variables.end = plus(CpExpression(variables.start), variables.length);
      continue;
    }
    variables.end_variable = add_time(0);
    variables.end = CpExpression(*variables.end_variable);
    const CpExpression balance =
        plus(plus(CpExpression(variables.start), variables.length), variables.end, -1);
    model_.add_linear(balance, {0, 0});
    if (!variables.overheads.empty()) {
      variables.length_variable = add_time(0);
      model_.add_linear(plus(CpExpression(*variables.length_variable), variables.length, -1),
                        {0, 0});
    }
  }
}

void ScheduleModel::State::add_compute() {
  for (const OpId op : order_) {
    const OpVariables& variables = ops_[op];
    follow(completion(op), variables.end);
    for (const Choice& choice : choices(op)) {
      const Units time = grid_.units(problem_.time(op, choice.device));
      if (!variables.length_variable) {
        const Units length = variables.length.terms.empty() ? variables.length.offset : time;
        if (length == 0) continue;
        computing_[choice.device].push_back(op);
        compute_[choice.device].push_back(
            is_true(choice.here) ? model_.add_interval(variables.start, length)
                                 : model_.add_interval(variables.start, length, choice.here));
        continue;
      }
      // An op of no length occupies nothing: where overheads alone make it long, its interval is
      // there with one of them.
      CpLiteral occupies = choice.here;
      if (time == 0) {
        std::vector<CpLiteral> longer;
        for (const Overhead& overhead : variables.overheads) longer.push_back(overhead.paid);
        occupies = both(choice.here, any(longer));
      }
      if (is_false(occupies)) continue;
      computing_[choice.device].push_back(op);
      compute_[choice.device].push_back(
          model_.add_interval(variables.start, CpExpression(*variables.length_variable),
                              CpExpression(*variables.end_variable),
                              is_true(occupies) ? std::nullopt : std::optional(occupies)));
    }
  }
  for (const std::vector<OpId>& sequence : scope_.sequences) {
    for (std::size_t i = 1; i < sequence.size(); ++i) {
      follow(ops_[sequence[i]].start, end_of(sequence[i - 1]));
    }
  }
}

Units ScheduleModel::State::after_op(DeviceId device) const {
  double time = 0;
  for (const ScheduleScope::Tail& tail : scope_.after) {
    if (tail.resource == Facility::compute && tail.device == device) {
      time = std::max(time, tail.time);
    }
  }
  return grid_.units(time);
}

Units ScheduleModel::State::after_transfer(Facility port, SpaceId space) const {
  double time = 0;
  for (const ScheduleScope::Tail& tail : scope_.after) {
    if (tail.resource == port && problem_.space(tail.device) == space) {
      time = std::max(time, tail.time);
    }
  }
  return grid_.units(time);
}

void ScheduleModel::State::add_after() {
  if (scope_.after.empty()) return;
  for (const DeviceId device : problem_.devices()) {
    const Units rest = after_op(device);
    for (const OpId op : order_) {
      const CpLiteral here = on(op, device);
      if (rest == 0 || is_false(here)) continue;
      follow(completion(op), plus(ops_[op].end, CpExpression(rest)), {here});
    }
  }
  for (const Sending& sending : sendings_) {
    for (const Route& route : sending.routes) {
      Units rest = 0;
      if (route.from.valid()) rest = std::max(rest, after_transfer(Facility::out_port, route.from));
      if (route.to.valid()) rest = std::max(rest, after_transfer(Facility::in_port, route.to));
      if (rest == 0 || route.length == 0) continue;
      CpExpression end(sending.start);
      end.offset = route.length + rest;
      follow(completions_.front(), end, {route.taken});
    }
  }
}

void ScheduleModel::State::add_resources() {
  for (const ScheduleScope::Busy& busy : scope_.busy) {
    const Units start = grid_.units(busy.start) + (grid_.exact() ? 0 : 1);
    const Units length = grid_.units(busy.end) - start;
    if (length <= 0) continue;
    const SpaceId space = problem_.space(busy.device);
    auto& intervals = busy.resource == Facility::compute    ? compute_[busy.device]
                      : busy.resource == Facility::out_port ? out_[space]
                                                            : in_[space];
    intervals.push_back(model_.add_interval(CpExpression(start), length));
  }
  for (const DeviceId device : problem_.devices()) {
    const auto lanes = static_cast<std::size_t>(useful_lanes(problem_, device));
    if (lanes == 1) {
      if (compute_[device].size() > 1) model_.add_no_overlap(compute_[device]);
    } else if (compute_[device].size() > lanes) {
      const std::vector<CpExpression> one(compute_[device].size(), CpExpression(1));
      model_.add_cumulative(CpExpression(static_cast<Units>(lanes)), compute_[device], one);
    }
  }
  for (const SpaceId space : problem_.spaces()) {
    if (out_[space].size() > 1) model_.add_no_overlap(out_[space]);
    if (in_[space].size() > 1) model_.add_no_overlap(in_[space]);
  }
}

// Demands are rounded down, so that every real schedule is one of the model.
void ScheduleModel::State::add_shared_resources() {
  constexpr double kCapacityUnits = 1e6;
  for (const ResourceId resource : problem_.resources()) {
    const double capacity = problem_.resource(resource).capacity;
    std::vector<CpInterval> intervals;
    std::vector<CpExpression> demands;
    bool whole = true;
    for (const DeviceId device : problem_.devices()) {
      for (const ResourceUse& use : problem_.uses(device)) {
        if (use.resource != resource) continue;
        for (std::size_t i = 0; i < computing_[device].size(); ++i) {
          const double part = problem_.share(computing_[device][i], device) * use.amount / capacity;
          const auto units = static_cast<Units>(std::floor(part * kCapacityUnits));
          whole = whole && units >= static_cast<Units>(kCapacityUnits);
          intervals.push_back(compute_[device][i]);
          demands.emplace_back(units);
        }
      }
    }
    if (intervals.size() < 2) continue;
    if (whole) {
      model_.add_no_overlap(intervals);
    } else {
      model_.add_cumulative(CpExpression(static_cast<Units>(kCapacityUnits)), intervals, demands);
    }
  }
}

// Of all resources together: halves, thirds and quarters of each are exact.
Units ScheduleModel::State::pool_demand(OpId op, DeviceId device) const {
  constexpr double kRounding = 1e-9;
  double part = 0;
  for (const ResourceUse& use : problem_.uses(device)) {
    part += use.amount / problem_.resource(use.resource).capacity;
  }
  return static_cast<Units>(
      std::floor(part * problem_.share(op, device) * static_cast<double>(kPoolUnits) + kRounding));
}

// What follows from all resources together, and no single one tells: ops on any of many equal sets
// of cores take their part of the pool. With it a proof need not look at every set by itself.
void ScheduleModel::State::add_pool() {
  if (problem_.resource_count() < 2) return;
  const Units capacity = kPoolUnits * static_cast<Units>(problem_.resource_count());
  std::vector<CpInterval> intervals;
  std::vector<CpExpression> demands;
  for (const DeviceId device : problem_.devices()) {
    for (std::size_t i = 0; i < computing_[device].size(); ++i) {
      const Units demand = pool_demand(computing_[device][i], device);
      if (demand == 0) continue;
      intervals.push_back(compute_[device][i]);
      demands.emplace_back(demand);
    }
  }
  if (intervals.size() < 2) return;
  model_.add_cumulative(CpExpression(capacity), intervals, demands);
  if (latency_) add_pool_work(capacity);
}

// The pool is not done before it has done all ops and paid all overheads. A group has some device:
// the least that it takes anywhere is stated without a literal, since the solver's propagation
// takes literals one by one.
void ScheduleModel::State::add_pool_work(Units capacity) {
  CpExpression spare;
  spare.terms.push_back({completions_.front(), capacity});
  Table<GroupId, std::vector<Units>> work(problem_.group_count());
  for (const OpId op : order_) {
    std::vector<Units>& of_group = work[problem_.group(op)];
    of_group.resize(choices(op).size(), 0);
    for (std::size_t i = 0; i < of_group.size(); ++i) {
      const DeviceId device = choices(op)[i].device;
      of_group[i] += pool_demand(op, device) * grid_.units(problem_.time(op, device));
    }
    for (const Overhead& overhead : ops_[op].overheads) {
      add_term(spare, overhead.paid, -pool_demand(op, overhead.device) * overhead.time);
    }
  }
  for (const GroupId group : problem_.groups()) {
    if (work[group].empty()) continue;
    const Units least = *std::ranges::min_element(work[group]);
    spare.offset -= least;
    for (std::size_t i = 0; i < work[group].size(); ++i) {
      add_term(spare, choices_[group][i].here, least - work[group][i]);
    }
  }
  model_.add_linear(spare, {0, kCpMaximum});
}

// A device is not done before it has done its work.
void ScheduleModel::State::add_work() {
  if (!latency_) return;
  for (const DeviceId device : problem_.devices()) {
    CpExpression spare;
    spare.terms.push_back({completions_.front(), useful_lanes(problem_, device)});
    for (const OpId op : order_) {
      const CpLiteral here = on(op, device);
      if (!is_false(here)) add_term(spare, here, -grid_.units(problem_.time(op, device)));
    }
    model_.add_linear(spare, {0, kCpMaximum});
  }
}

// Whole numbers stay as they are where they fit, so that exactly full devices are packed exactly.
class ScheduleModel::State::MemoryGrid {
 public:
  explicit MemoryGrid(const Problem& problem) {
    double total = 0;
    bool whole = true;
    const auto look_at = [&](double bytes) {
      total += bytes;
      whole = whole && bytes == std::floor(bytes);
    };
    for (const OpId op : problem.ops()) look_at(problem.memory(op));
    for (const SharedWeight& weight : problem.draft().shared_weights) look_at(weight.bytes);
    if (total > 0 && (!whole || total > kLargestSize)) scale_ = kLargestSize / total;
  }

  // Rounded in favour of fitting: what the model finds infeasible is infeasible.
  [[nodiscard]] Units size(double bytes) const {
    return static_cast<Units>(std::floor(bytes * scale_));
  }
  [[nodiscard]] Units room(double bytes) const {
    return static_cast<Units>(std::floor(std::clamp(bytes * scale_, -1.0, 4 * kLargestSize)));
  }

 private:
  double scale_ = 1;
};

void ScheduleModel::State::add_memory() {
  const MemoryGrid grid(problem_);
  Placement outside(problem_.op_count());
  for (const OpId op : problem_.ops()) {
    if (!inside(op) && !scope_.given.empty()) outside[op] = scope_.given[op];
  }
  const MemoryLedger ledger(problem_, outside);
  Table<SpaceId, CpExpression> load(problem_.space_count());
  Table<GroupId, double> bytes(problem_.group_count(), 0);
  for (const OpId op : order_) bytes[problem_.group(op)] += problem_.memory(op);
  for (const GroupId group : problem_.groups()) {
    for (const Choice& choice : choices_[group]) {
      add_term(load[problem_.space(choice.device)], choice.here, grid.size(bytes[group]));
    }
  }
  add_shared_weights(load, grid);
  for (const SpaceId space : problem_.spaces()) {
    const double capacity = problem_.space_memory(space);
    if (capacity == kInfinity) continue;
    const double room = capacity * (1 + kMemoryTolerance) - ledger.used(space);
    model_.add_linear(load[space], {kCpMinimum, grid.room(room)});
  }
}

void ScheduleModel::State::add_shared_weights(Table<SpaceId, CpExpression>& load,
                                              const MemoryGrid& grid) {
  for (const SharedWeight& weight : problem_.draft().shared_weights) {
    Table<SpaceId, char> there_already(problem_.space_count(), 0);
    Table<SpaceId, std::vector<CpLiteral>> here(problem_.space_count());
    for (const OpId op : weight.ops) {
      if (inside(op)) {
        for (const Choice& choice : choices(op)) {
          here[problem_.space(choice.device)].push_back(choice.here);
        }
      } else if (!scope_.given.empty() && scope_.given[op].valid()) {
        there_already[problem_.space(scope_.given[op])] = 1;
      }
    }
    for (const SpaceId space : problem_.spaces()) {
      if (there_already[space] != 0) continue;
      add_term(load[space], any(here[space]), grid.size(weight.bytes));
    }
  }
}

}  // namespace placewright
