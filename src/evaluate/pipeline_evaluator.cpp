#include "evaluate/pipeline_evaluator.h"

#include <algorithm>
#include <utility>

namespace placewright {
namespace {

// Sums drift by rounding; after this many moves they are summed again.
constexpr std::uint32_t kMovesBetweenSums = 1U << 20U;

// Up to this many devices each tensor has a count for each device.
constexpr std::size_t kDenseDevices = 8;

}  // namespace

void PipelineEvaluator::Maximum::set(DeviceId device, double load) {
  const double most = value();
  loads_[device] = load;
  if (load >= most) {
    top_ = device;
  } else if (device == top_) {
    top_ = DeviceId{static_cast<std::size_t>(std::ranges::max_element(loads_) - loads_.begin())};
  }
}

PipelineEvaluator::PipelineEvaluator(const Problem& problem, Placement placement)
    : problem_(&problem),
      mode_(problem.rules().transfers),
      phased_(problem.rules().training == TrainingMode::phased),
      by_links_(problem.interconnect() == InterconnectKind::links),
      placement_(std::move(placement)),
      loads_(problem.device_count()),
      changed_in_(problem.device_count(), 0),
      after_(problem.device_count()) {
  for (const DeviceId id : problem.devices()) {
    const Device& device = problem.device(id);
    devices_.push_back({device.send_overhead, device.receive_overhead,
                        static_cast<std::uint32_t>(device.kind.index()), problem.on_host(id)});
  }
  for (Maximum& maximum : maxima_) maximum.resize(problem.device_count());
  touched_.reserve(problem.device_count());
  build_tensors();
  build_groups();
  sum_up();
}

void PipelineEvaluator::build_tensors() {
  const std::size_t device_count = problem_->device_count();
  std::size_t slot_count = 0;
  for (const TensorId id : problem_->tensors()) {
    const OpId producer = problem_->producer(id);
    const std::size_t consumers = problem_->consumers(id).size();
    const bool dense = device_count <= kDenseDevices || consumers >= device_count;
    const std::size_t row = dense ? device_count : consumers;
    tensors_.push_back({problem_->host_time(id), producer, static_cast<std::uint32_t>(consumers),
                        static_cast<std::uint32_t>(slot_count), static_cast<std::uint32_t>(row),
                        problem_->op(producer).backward});
    for (std::size_t i = 0; i < row; ++i) {
      slots_.push_back({dense ? DeviceId{i} : DeviceId{}, 0, 0});
    }
    slot_count += row;
    for (const OpId consumer : problem_->consumers(id)) {
      Readers& count = slot_for(tensors_[id], placement_[consumer]);
      ++(problem_->op(consumer).backward ? count.backward : count.forward);
    }
  }
}

void PipelineEvaluator::build_groups() {
  const std::size_t kind_count = problem_->kind_count();
  group_times_.resize(problem_->group_count() * kind_count);
  scattered_.assign(problem_->group_count(), 0);
  // Where a tensor is among the group's touches, if this group is the last that saw it.
  Table<TensorId, std::size_t> position(problem_->tensor_count());
  Table<TensorId, GroupId> seen_by(problem_->tensor_count());
  std::vector<Touch> touches;
  for (const GroupId group : problem_->groups()) {
    touches.clear();
    for (const OpId op : problem_->group_ops(group)) {
      for_each_touch(op, [&](const Touch& touch) {
        if (seen_by[touch.tensor] != group) {
          seen_by[touch.tensor] = group;
          position[touch.tensor] = touches.size();
          touches.push_back(touch);
          return;
        }
        Touch& merged = touches[position[touch.tensor]];
        merged.forward += touch.forward;
        merged.backward += touch.backward;
        merged.produces = merged.produces || touch.produces;
      });
      for (std::size_t kind = 0; kind < kind_count; ++kind) {
        GroupTime& sum = group_times_[group.index() * kind_count + kind];
        const double time = problem_->op(op).time[kind];
        if (time == kUnsupported) {
          ++sum.unsupported;
        } else {
          (problem_->op(op).backward ? sum.backward : sum.forward) += time;
        }
      }
      if (placement_[op] != device(group)) scattered_[group] = 1;
    }
    touches_.append(touches);
  }
}

void PipelineEvaluator::sum_up() {
  loads_.assign(problem_->device_count(), {});
  impossible_ = 0;
  moves_ = 0;
  begin_change();
  for (const DeviceId device : problem_->devices()) changed(device);
  for (const OpId op : problem_->ops()) change_time(op, placement_[op], +1);
  for (const TensorId id : problem_->tensors()) {
    const TensorRecord& tensor = tensors_[id];
    const DeviceId producer = placement_[tensor.producer];
    if (!by_links_) {
      change_role(id, producer, role(tensor, producer, producer, readers(tensor, producer)), 1);
    }
    for (const Readers& count : slots(tensor)) {
      if (count.all() == 0 || count.device == producer) continue;
      const Role fetch = role(tensor, producer, count.device, count);
      if (by_links_) {
        change_transfer(id, producer, count.device, fetch, +1);
      } else {
        change_role(id, count.device, fetch, +1);
      }
    }
  }
  keep_change();
}

double PipelineEvaluator::first_load(const DeviceLoad& load) const {
  return phased_ ? load.forward.load(mode_) : load.both().load(mode_);
}

double PipelineEvaluator::second_load(const DeviceLoad& load) const {
  return phased_ ? load.backward.load(mode_) : 0;
}

void PipelineEvaluator::set_maxima(DeviceId device) {
  maxima_[0].set(device, first_load(loads_[device]));
  if (phased_) maxima_[1].set(device, second_load(loads_[device]));
}

double PipelineEvaluator::value() const {
  return impossible_ > 0 ? kInfinity : maxima_[0].value() + maxima_[1].value();
}

PipelineEvaluator::Readers PipelineEvaluator::readers(const TensorRecord& tensor,
                                                      DeviceId device) const {
  const std::span<const Readers> counts = slots(tensor);
  if (counts.size() == devices_.size()) return counts[device.index()];
  for (const Readers& count : counts) {
    if (count.device == device) return count;
  }
  return {};
}

// The count of the device; where it has none, a free one becomes its own. A searched tensor has as
// many counts as consumers, so one is free whenever a consumer is yet to be counted.
PipelineEvaluator::Readers& PipelineEvaluator::slot_for(const TensorRecord& tensor,
                                                        DeviceId device) {
  Readers* const counts = slots_.data() + tensor.first_slot;
  if (tensor.slot_count == devices_.size()) return counts[device.index()];
  Readers* free_slot = counts;
  for (std::uint32_t i = 0; i < tensor.slot_count; ++i) {
    if (counts[i].device == device) return counts[i];
    if (counts[i].all() == 0) free_slot = &counts[i];
  }
  free_slot->device = device;
  return *free_slot;
}

void PipelineEvaluator::count_readers(const Touch& touch, DeviceId from, DeviceId to) {
  if (touch.forward + touch.backward == 0) return;
  const TensorRecord& tensor = tensors_[touch.tensor];
  Readers& left = slot_for(tensor, from);
  left = touch.taken_from(left);
  Readers& joined = slot_for(tensor, to);
  joined = touch.added_to(joined);
}

template <class Visit>
void PipelineEvaluator::for_each_touch(OpId op, Visit visit) const {
  const std::uint32_t backward = problem_->op(op).backward ? 1 : 0;
  for (const TensorId tensor : problem_->outputs(op)) visit(Touch{tensor, 0, 0, true});
  for (const TensorId tensor : problem_->inputs(op)) {
    visit(Touch{tensor, 1 - backward, backward, false});
  }
}

PipelineEvaluator::Role PipelineEvaluator::role(const TensorRecord& tensor, DeviceId producer,
                                                DeviceId device, const Readers& count) {
  if (device == producer) return count.all() < tensor.consumers ? Role::sends : Role::none;
  if (count.all() == 0) return Role::none;
  const bool in_backward = tensor.backward ? count.backward > 0 : count.forward == 0;
  return in_backward ? Role::fetches_backward : Role::fetches_forward;
}

void PipelineEvaluator::begin_change() {
  ++change_;
  touched_.clear();
  impossible_after_ = impossible_;
}

DeviceLoad& PipelineEvaluator::changed(DeviceId device) {
  if (changed_in_[device] != change_) {
    changed_in_[device] = change_;
    touched_.push_back(device);
    after_[device] = loads_[device];
  }
  return after_[device];
}

void PipelineEvaluator::change_group(GroupId group, DeviceId from, DeviceId to) {
  const GroupTime* times = &group_times_[group.index() * problem_->kind_count()];
  const GroupTime& before = times[devices_[from].kind];
  const GroupTime& after = times[devices_[to].kind];
  begin_change();
  impossible_after_ += after.unsupported - before.unsupported;
  DeviceLoad& lighter = changed(from);
  lighter.forward.compute -= before.forward;
  lighter.backward.compute -= before.backward;
  DeviceLoad& heavier = changed(to);
  heavier.forward.compute += after.forward;
  heavier.backward.compute += after.backward;
  for (const Touch& touch : touches_[group]) change_tensor(touch, from, to);
}

void PipelineEvaluator::change_op(OpId op, DeviceId from, DeviceId to) {
  begin_change();
  changed(from);
  changed(to);
  change_time(op, from, -1);
  change_time(op, to, +1);
  for_each_touch(op, [&](const Touch& touch) { change_tensor(touch, from, to); });
}

void PipelineEvaluator::change_time(OpId op, DeviceId device, int sign) {
  const double time = problem_->time(op, device);
  if (time == kUnsupported) {
    impossible_after_ += sign;
  } else {
    after_[device].pass(problem_->op(op).backward).compute += sign * time;
  }
}

void PipelineEvaluator::change_tensor(const Touch& touch, DeviceId from, DeviceId to) {
  if (!by_links_) {
    change_host_tensor(touch, from, to);
  } else if (touch.produces) {
    change_link_sources(touch, from, to);
  } else {
    change_link_targets(touch, from, to);
  }
}

// Through host memory only the two devices of the move are concerned: what a third one sends or
// fetches does not depend on where the others are.
void PipelineEvaluator::change_host_tensor(const Touch& touch, DeviceId from, DeviceId to) {
  const TensorRecord& tensor = tensors_[touch.tensor];
  const DeviceId producer = placement_[tensor.producer];
  const DeviceId producer_after = touch.produces ? to : producer;
  const auto change = [&](DeviceId device, const Readers& count, const Readers& count_after) {
    const Role before = role(tensor, producer, device, count);
    const Role after = role(tensor, producer_after, device, count_after);
    if (before == after) return;
    change_role(touch.tensor, device, before, -1);
    change_role(touch.tensor, device, after, +1);
  };
  const Readers left = readers(tensor, from);
  const Readers joined = readers(tensor, to);
  change(from, left, touch.taken_from(left));
  change(to, joined, touch.added_to(joined));
}

void PipelineEvaluator::change_role(TensorId id, DeviceId device, Role role, int sign) {
  const TensorRecord& tensor = tensors_[id];
  if (role == Role::none || devices_[device].on_host) return;
  if (role == Role::sends) {
    PassLoad& pass = after_[device].pass(tensor.backward);
    pass.out += sign * tensor.host_time;
    pass.compute += sign * send_overhead(id, device);
  } else {
    PassLoad& pass = after_[device].pass(role == Role::fetches_backward);
    pass.in += sign * tensor.host_time;
    pass.compute += sign * receive_overhead(id, device);
  }
}

// The producer moves: every destination is reached from another device. A device that has readers
// only after the move is `to` itself, which then needs no transfer.
void PipelineEvaluator::change_link_sources(const Touch& touch, DeviceId from, DeviceId to) {
  const TensorRecord& tensor = tensors_[touch.tensor];
  for (const Readers& count : slots(tensor)) {
    const DeviceId device = count.device;
    if (count.all() > 0 && device != from) {
      change_transfer(touch.tensor, from, device, role(tensor, from, device, count), -1);
    }
    const Readers after = device == from ? touch.taken_from(count) : count;
    if (after.all() > 0 && device != to) {
      change_transfer(touch.tensor, to, device, role(tensor, to, device, after), +1);
    }
  }
}

// Readers move, the producer stays.
void PipelineEvaluator::change_link_targets(const Touch& touch, DeviceId from, DeviceId to) {
  const TensorRecord& tensor = tensors_[touch.tensor];
  const DeviceId producer = placement_[tensor.producer];
  const auto change = [&](DeviceId device, const Readers& count, const Readers& count_after) {
    if (device == producer) return;
    const Role before = role(tensor, producer, device, count);
    const Role after = role(tensor, producer, device, count_after);
    if (before == after) return;
    if (before != Role::none) change_transfer(touch.tensor, producer, device, before, -1);
    if (after != Role::none) change_transfer(touch.tensor, producer, device, after, +1);
  };
  const Readers left = readers(tensor, from);
  const Readers joined = readers(tensor, to);
  change(from, left, touch.taken_from(left));
  change(to, joined, touch.added_to(joined));
}

void PipelineEvaluator::change_transfer(TensorId id, DeviceId from, DeviceId to, Role fetch,
                                        int sign) {
  const double time = problem_->link_time(id, from, to);
  if (time == kInfinity) {
    impossible_after_ += sign;
    return;
  }
  PassLoad& sender = changed(from).pass(tensors_[id].backward);
  sender.out += sign * time;
  sender.compute += sign * send_overhead(id, from);
  PassLoad& receiver = changed(to).pass(fetch == Role::fetches_backward);
  receiver.in += sign * time;
  receiver.compute += sign * receive_overhead(id, to);
}

// The other devices need a look only where the busiest one is touched and got lighter.
template <class LoadOf>
double PipelineEvaluator::maximum_of_change(const Maximum& maximum, LoadOf load_of) const {
  double most = 0;
  for (const DeviceId device : touched_) most = std::max(most, load_of(after_[device]));
  if (most >= maximum.value()) return most;
  if (changed_in_[maximum.device()] != change_) return maximum.value();
  for (const DeviceId device : devices_.keys()) {
    if (changed_in_[device] != change_) most = std::max(most, maximum.load(device));
  }
  return most;
}

double PipelineEvaluator::value_of_change() const {
  if (impossible_after_ > 0) return kInfinity;
  const double first =
      maximum_of_change(maxima_[0], [this](const DeviceLoad& load) { return first_load(load); });
  if (!phased_) return first;
  return first + maximum_of_change(maxima_[1],
                                   [this](const DeviceLoad& load) { return second_load(load); });
}

void PipelineEvaluator::keep_change() {
  impossible_ = impossible_after_;
  for (const DeviceId device : touched_) {
    loads_[device] = after_[device];
    set_maxima(device);
  }
}

double PipelineEvaluator::value_if_moved(OpId op, DeviceId to) {
  if (placement_[op] == to) return value();
  const GroupId group = problem_->group(op);
  if (problem_->group_ops(group).size() == 1) return value_if_moved(group, to);
  change_op(op, placement_[op], to);
  return value_of_change();
}

double PipelineEvaluator::value_if_moved(GroupId group, DeviceId to) {
  if (scattered_[group] != 0) return value_if_moved(problem_->group_ops(group), to);
  if (device(group) == to) return value();
  change_group(group, device(group), to);
  return value_of_change();
}

double PipelineEvaluator::value_if_moved(std::span<const OpId> ops, DeviceId to) {
  // The sums are put back as they were, so that trying leaves no rounding behind.
  saved_loads_ = loads_;
  saved_devices_.clear();
  for (const OpId op : ops) {
    saved_devices_.push_back(placement_[op]);
    move_op(op, to);
  }
  const double result = value();
  for (std::size_t i = ops.size(); i-- > 0;) move_op(ops[i], saved_devices_[i]);
  for (const DeviceId device : devices_.keys()) {
    if (loads_[device] == saved_loads_[device]) continue;
    loads_[device] = saved_loads_[device];
    set_maxima(device);
  }
  return result;
}

void PipelineEvaluator::move_op(OpId op, DeviceId to) {
  const DeviceId from = placement_[op];
  if (from == to) return;
  change_op(op, from, to);
  keep_change();
  for_each_touch(op, [&](const Touch& touch) { count_readers(touch, from, to); });
  placement_[op] = to;
}

void PipelineEvaluator::move_together(GroupId group, DeviceId to) {
  const DeviceId from = device(group);
  if (from == to) return;
  change_group(group, from, to);
  keep_change();
  for (const Touch& touch : touches_[group]) count_readers(touch, from, to);
  for (const OpId op : problem_->group_ops(group)) placement_[op] = to;
}

void PipelineEvaluator::move(OpId op, DeviceId to) {
  const GroupId group = problem_->group(op);
  if (problem_->group_ops(group).size() == 1) {
    move(group, to);
    return;
  }
  move_op(op, to);
  const auto elsewhere = [&](OpId mate) { return placement_[mate] != to; };
  scattered_[group] = std::ranges::any_of(problem_->group_ops(group), elsewhere) ? 1 : 0;
  if (++moves_ == kMovesBetweenSums) sum_up();
}

void PipelineEvaluator::move(GroupId group, DeviceId to) {
  if (scattered_[group] == 0) {
    move_together(group, to);
  } else {
    for (const OpId op : problem_->group_ops(group)) move_op(op, to);
    scattered_[group] = 0;
  }
  if (++moves_ == kMovesBetweenSums) sum_up();
}

}  // namespace placewright
