#include "evaluate/partial_schedule.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "evaluate/rules/durations.h"
#include "evaluate/rules/starts.h"
#include "evaluate/schedule.h"
#include "problem/lanes.h"

namespace placewright {
namespace {

constexpr double kNotSent = -1;
constexpr double kRounding = 1e-12;

}  // namespace

PartialSchedule::GapLanes::GapLanes(const Problem& problem, Gaps gaps) : gaps_(gaps) {
  for (const DeviceId device : problem.devices()) {
    lanes_.emplace_back(static_cast<std::size_t>(useful_lanes(problem, device)));
  }
}

double PartialSchedule::GapLanes::earliest(DeviceId device, double ready, double length) {
  DeviceLanes& lanes = lanes_[device.index()];
  return gaps_ == Gaps::append ? std::max(ready, lanes.end()) : lanes.earliest(ready, length);
}

double PartialSchedule::GapLanes::known_earliest(DeviceId device, double ready,
                                                 double length) const {
  const DeviceLanes& lanes = lanes_[device.index()];
  return gaps_ == Gaps::append ? std::max(ready, lanes.end()) : lanes.known_earliest(ready, length);
}

void PartialSchedule::GapLanes::take(DeviceId device, double start, double length) {
  if (start + length == start) return;  // lost in rounding: occupies nothing
  DeviceLanes& lanes = lanes_[device.index()];
  gaps_ == Gaps::append ? lanes.append(start, length) : lanes.occupy(start, length);
}

PartialSchedule::PartialSchedule(const Problem& problem, Gaps gaps)
    : problem_(problem),
      gaps_(gaps),
      placement_(problem.op_count()),
      lanes_(problem, gaps),
      resources_(problem),
      out_ports_(problem.space_count()),
      in_ports_(problem.space_count()),
      knows_overheads_(problem.resource_count() > 0 && problem.has_overheads()),
      readers_(knows_overheads_ ? problem.tensor_count() : 0),
      arrivals_(problem.tensor_count()),
      in_host_memory_(problem.interconnect() == InterconnectKind::host ? problem.tensor_count() : 0,
                      kNotSent) {
  schedule_.start.assign(problem.op_count(), 0);
  schedule_.end.assign(problem.op_count(), 0);
}

const double* PartialSchedule::known_arrival(TensorId tensor, SpaceId space) const {
  for (const Arrival& arrival : arrivals_[tensor]) {
    if (arrival.space == space) return &arrival.time;
  }
  return nullptr;
}

double PartialSchedule::known_overhead(TensorId input, DeviceId device) const {
  const DeviceId from = placement_[problem_.producer(input)];
  if (from == device) return 0;
  bool sent = false;
  for (const DeviceId to : readers_[input]) {
    if (to == device) return 0;
    sent = sent || (to != from && problem_.same_space(to, device));
  }
  return problem_.receive_overhead(input, device) +
         (sent ? 0 : problem_.send_overhead(input, from));
}

void PartialSchedule::note_reader(OpId op, DeviceId device) {
  if (!knows_overheads_) return;
  for (const TensorId input : problem_.inputs(op)) {
    std::vector<DeviceId>& readers = readers_[input];
    if (std::ranges::find(readers, device) == readers.end()) readers.push_back(device);
  }
}

double PartialSchedule::length(OpId op, DeviceId device) const {
  double length = problem_.time(op, device);
  if (!knows_overheads_ || length == kUnsupported) return length;
  for (const TensorId input : problem_.inputs(op)) length += known_overhead(input, device);
  return length;
}

double PartialSchedule::inputs_bound(OpId op, DeviceId device) const {
  double ready = released(problem_, op);
  const bool links = problem_.interconnect() == InterconnectKind::links;
  for (const TensorId input : problem_.inputs(op)) {
    const OpId producer = problem_.producer(input);
    const DeviceId from = placement_[producer];
    double there = schedule_.end[producer];
    if (links && !problem_.same_space(from, device))
      there += problem_.link_time(input, from, device);
    ready = std::max(ready, there);
  }
  return ready;
}

double PartialSchedule::start_bound(OpId op, DeviceId device) const {
  const double ready = inputs_bound(op, device);
  const double length = this->length(op, device);
  return length == 0 ? ready : lanes_.known_earliest(device, ready, length);
}

double PartialSchedule::device_free(DeviceId device) const {
  return lanes_.end(device);
}

template <bool kCommit>
double PartialSchedule::transfer(const Hop& hop, double ready, bool keep, double latest) {
  const double length = hop.length;
  if (length == kInfinity || !occupies_ports(problem_, length)) return ready;
  const SpaceId from = out_port(problem_, hop);
  const SpaceId to = in_port(problem_, hop);
  Timeline* const out = from.valid() ? &out_ports_[from] : nullptr;
  Timeline* const in = to.valid() ? &in_ports_[to] : nullptr;
  const double start = out == nullptr ? in_ports_[to].earliest(ready, length)
                       : in == nullptr
                           ? out->earliest(ready, length)
                           : earliest_in_both(*out, *in, ready, length, latest - length);
  if (start + length == start) return start;      // lost in rounding: occupies nothing
  if (start + length > latest) return kInfinity;  // the probe is at its end
  for (Timeline* port : {out, in}) {
    if (port == nullptr) continue;
    if constexpr (kCommit) {
      port->occupy(start, length);
    } else if (keep) {
      port->occupy_for_now(start, length);
      tentative_.push_back(Tentative{port, start});
    }
  }
  return start;
}

template <bool kCommit>
double PartialSchedule::fetch(TensorId tensor, DeviceId from, DeviceId to, bool keep,
                              double latest) {
  const SpaceId space = problem_.space(to);
  if (const double* known = known_arrival(tensor, space)) return *known;
  const auto carry = [&](const Hop& hop, double ready) {
    const bool out = hop.leg == Leg::out;
    if (out && in_host_memory_[tensor] != kNotSent) return in_host_memory_[tensor];
    const double start = transfer<kCommit>(hop, ready, keep, latest);
    const double end = start + hop.length;
    if constexpr (kCommit) {
      schedule_.transfers.push_back({tensor, hop.leg, hop.from, hop.to, start, end});
      if (out) in_host_memory_[tensor] = end;
    }
    return end;
  };
  const double produced = schedule_.end[problem_.producer(tensor)];
  const double there = along_route(problem_, tensor, from, to, produced, carry);
  if constexpr (kCommit) arrivals_[tensor].push_back(Arrival{space, there});
  return there;
}

template <bool kCommit>
double PartialSchedule::inputs_ready(OpId op, DeviceId device, double latest) {
  double ready = released(problem_, op);
  by_producer_end_.clear();
  for (const TensorId input : problem_.inputs(op)) {
    const OpId producer = problem_.producer(input);
    if (problem_.same_space(placement_[producer], device)) {
      ready = std::max(ready, schedule_.end[producer]);
      continue;
    }
    // Insertion keeps equal ends in order; there are a few inputs only.
    auto position = by_producer_end_.end();
    while (position != by_producer_end_.begin() &&
           schedule_.end[producer] < schedule_.end[problem_.producer(position[-1])]) {
      --position;
    }
    by_producer_end_.insert(position, input);
  }
  for (const TensorId& input : by_producer_end_) {
    const DeviceId from = placement_[problem_.producer(input)];
    const bool last = &input == &by_producer_end_.back();
    ready = std::max(ready, fetch<kCommit>(input, from, device, !last, latest));
    if (ready > latest) return kInfinity;
  }
  return ready;
}

PartialSchedule::Slot PartialSchedule::probe(OpId op, DeviceId device, double latest) {
  const double ready = inputs_ready<false>(op, device, latest);
  while (!tentative_.empty()) {
    tentative_.back().timeline->release(tentative_.back().start);
    tentative_.pop_back();
  }
  const double length = this->length(op, device);
  if (ready == kInfinity || length == kUnsupported) return {};
  const double start = earliest_op_start(op, device, ready, length, lanes_, resources_);
  return {start, start + length};
}

DeviceId PartialSchedule::earliest_end(OpId op, std::span<const DeviceId> candidates,
                                       std::span<const double> behind) {
  const auto length_to_end = [&](DeviceId device) {
    const double rest = behind.empty() ? 0 : behind[problem_.kind_of(device).index()];
    return length(op, device) + rest;
  };
  prospects_.clear();
  for (const DeviceId device : candidates) {
    const double start = start_bound(op, device);
    prospects_.push_back({start + length_to_end(device), start,
                          static_cast<std::uint32_t>(prospects_.size()), device});
  }
  std::make_heap(prospects_.begin(), prospects_.end());
  Prospect best{kInfinity, kInfinity, std::numeric_limits<std::uint32_t>::max(), DeviceId{}};
  for (auto end = prospects_.end(); end != prospects_.begin(); --end) {
    const Prospect next = prospects_.front();
    // Even as early as its bound it would not come before the best.
    if (next < best || next.bound == kInfinity) break;
    std::pop_heap(prospects_.begin(), end);
    const double free = earliest_op_start(op, next.device, next.start_bound,
                                          length(op, next.device), lanes_, resources_);
    if (free + length_to_end(next.device) > best.bound) continue;
    // An end later than the best is of no interest, so the search for gaps need not go on to it.
    const double latest = best.bound - length_to_end(next.device);
    const Slot slot = probe(op, next.device, latest + kRounding * best.bound);
    const Prospect probed{slot.start + length_to_end(next.device), slot.start, next.position,
                          next.device};
    if (best < probed && probed.bound < kInfinity) best = probed;
  }
  return best.device;
}

PartialSchedule::Choice PartialSchedule::earliest_start(OpId op,
                                                        std::span<const DeviceId> candidates,
                                                        std::span<double> inputs) {
  prospects_.clear();
  for (const DeviceId device : candidates) {
    double start = inputs[device.index()];
    if (gaps_ == Gaps::append && length(op, device) > 0) {
      start = std::max(start, device_free(device));
    }
    prospects_.push_back({start, start, static_cast<std::uint32_t>(prospects_.size()), device});
  }
  std::make_heap(prospects_.begin(), prospects_.end());
  Choice best;
  std::uint32_t best_position = 0;
  for (auto end = prospects_.end(); end != prospects_.begin(); --end) {
    const Prospect next = prospects_.front();
    if (next.bound > best.slot.start || next.bound == kInfinity) break;
    std::pop_heap(prospects_.begin(), end);
    const Slot slot = probe(op, next.device);
    if (slot.start > next.bound) inputs[next.device.index()] = slot.start;
    if (std::tuple(slot.start, slot.end, next.position) <
        std::tuple(best.slot.start, best.slot.end, best_position)) {
      best = {next.device, slot};
      best_position = next.position;
    }
  }
  return best;
}

void PartialSchedule::place(OpId op, DeviceId device) {
  const double ready = inputs_ready<true>(op, device, kInfinity);
  const double length = this->length(op, device);
  const double start = start_op(op, device, ready, length, lanes_, resources_);
  placement_[op] = device;
  note_reader(op, device);
  schedule_.start[op] = start;
  schedule_.end[op] = start + length;
}

Plan PartialSchedule::finish() const {
  return schedule_plan(problem_, placement_, retime(problem_, placement_, schedule_));
}

}  // namespace placewright
