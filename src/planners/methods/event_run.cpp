#include "planners/methods/event_run.h"

#include <algorithm>
#include <utility>

#include "evaluate/schedule.h"
#include "problem/move_time.h"

namespace placewright {
namespace {

constexpr double kNotSent = -1;

Table<DeviceId, double> least_shares(const Problem& problem) {
  Table<DeviceId, double> least(problem.device_count(), 1);
  if (problem.resource_count() == 0) return least;
  for (const DeviceId device : problem.devices()) {
    for (const OpId op : problem.ops()) {
      least[device] = std::min(least[device], problem.share(op, device));
    }
  }
  return least;
}

}  // namespace

EventRun::EventRun(const Problem& problem)
    : problem_(problem),
      placement_(problem.op_count()),
      missing_(problem.op_count()),
      known_(problem.model_count(), 1),
      lanes_(problem),
      resources_(problem),
      least_share_(least_shares(problem)),
      ports_(problem),
      there_(problem.tensor_count() * (problem.space_count() + 1)) {
  std::vector<std::pair<ModelId, OpId>> sources;
  for (const OpId op : problem.topological_order()) {
    if (problem.predecessors(op).empty()) sources.emplace_back(problem.op(op).model, op);
  }
  sources_ = Rows<ModelId, OpId>::from_pairs(problem.model_count(), sources);
  begin();
  for (const ModelId model : problem.models()) {
    events_.push({problem.model(model).arrival, OpId{}, model});
  }
  if (!events_.empty()) (void)advance();
}

void EventRun::begin() {
  placement_.assign(problem_.op_count(), DeviceId{});
  schedule_.start.assign(problem_.op_count(), 0);
  schedule_.end.assign(problem_.op_count(), 0);
  schedule_.transfers.clear();
  ready_.clear();
  events_ = {};
  for (const OpId op : problem_.ops()) {
    missing_[op] = static_cast<std::uint32_t>(problem_.predecessors(op).size());
  }
  lanes_.clear();
  ports_.clear();
  resources_.clear();
  std::fill(there_.begin(), there_.end(), kNotSent);
}

void EventRun::resume(const Placement placement, const Schedule before, double now,
                      const Table<ModelId, char>& known) {
  begin();
  now_ = now;
  known_ = known;
  for (const Transfer& transfer : before.transfers) {
    if (transfer.start >= now) continue;
    schedule_.transfers.push_back(transfer);
    const bool to_host = transfer.leg == Leg::out;
    there_[to_host ? host_slot(transfer.tensor) : slot(transfer.tensor, transfer.to)] =
        transfer.end;
    if (transfer.end == transfer.start) continue;
    if (transfer.from.valid()) {
      double& free = ports_.out[problem_.space(transfer.from)];
      free = std::max(free, transfer.end);
    }
    if (transfer.to.valid()) {
      double& free = ports_.in[problem_.space(transfer.to)];
      free = std::max(free, transfer.end);
    }
  }
  for (const OpId op : problem_.topological_order()) {
    if (!placement[op].valid() || before.start[op] >= now) continue;
    placement_[op] = placement[op];
    schedule_.start[op] = before.start[op];
    schedule_.end[op] = before.end[op];
    if (before.end[op] > now) {
      if (before.end[op] > before.start[op]) {
        occupy_lane(placement[op], before.start[op], before.end[op]);
        resources_.hold(op, placement[op], before.start[op], before.end[op] - before.start[op]);
      }
      events_.push({before.end[op], op, ModelId{}});
    }
  }
  for (const OpId op : problem_.topological_order()) {
    if (started(op) && schedule_.end[op] <= now) complete(op);
  }
  for (const ModelId model : problem_.models()) {
    if (!known[model]) continue;
    if (problem_.model(model).arrival > now) {
      events_.push({problem_.model(model).arrival, OpId{}, model});
    } else {
      arrive(model);
    }
  }
}

void EventRun::arrive(ModelId model) {
  for (const OpId op : sources_[model]) {
    if (!started(op)) ready_.push_back(op);
  }
}

void EventRun::complete(OpId op) {
  if (!known_[problem_.op(op).model]) return;
  for (const OpId successor : problem_.successors(op)) {
    if (--missing_[successor] == 0 && !started(successor)) ready_.push_back(successor);
  }
}

// Of the op that takes the least.
double EventRun::resources_free(DeviceId device, double from) const {
  return resources_.any()
             ? resources_.earliest(problem_.uses(device), least_share_[device], from, 0)
             : from;
}

std::size_t EventRun::idle_lanes(DeviceId device) const {
  if (resources_free(device, now_) > now_) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(lanes_.of(device), [&](double free) { return free <= now_; }));
}

double EventRun::free_at(DeviceId device) const {
  return resources_free(device, lanes_.first_free(device));
}

double EventRun::inputs_at(OpId op, DeviceId device) const {
  double ready = now_;
  for (const TensorId input : problem_.inputs(op)) {
    const OpId producer = problem_.producer(input);
    const DeviceId from = placement_[producer];
    if (problem_.same_space(from, device)) continue;
    const double known = there_[slot(input, device)];
    ready = std::max(ready,
                     known != kNotSent ? known : now_ + move_time(problem_, input, from, device));
  }
  return ready;
}

double EventRun::fetch(TensorId tensor, DeviceId from, DeviceId to) {
  if (const double known = there_[slot(tensor, to)]; known != kNotSent) return known;
  return along_route(problem_, tensor, from, to, now_, [&](const Hop& hop, double ready) {
    double& there = there_[hop.leg == Leg::out ? host_slot(tensor) : slot(tensor, hop.to)];
    if (there == kNotSent) {
      const double begin = ports_.start(problem_, hop, ready, hop.length);
      there = begin + hop.length;
      schedule_.transfers.push_back({tensor, hop.leg, hop.from, hop.to, begin, there});
    }
    return std::max(ready, there);
  });
}

void EventRun::occupy_lane(DeviceId device, double from, double until) {
  const auto lanes = lanes_.of(device);
  // The lane that was free last before: a lane that has been free for longer may serve another.
  auto chosen = lanes.begin();
  for (auto lane = lanes.begin(); lane != lanes.end() && *lane <= from; ++lane) chosen = lane;
  *chosen = until;
  std::sort(lanes.begin(), lanes.end());
}

void EventRun::start(OpId op, DeviceId device) {
  placement_[op] = device;
  const double ready = inputs_there(
      problem_, op, placement_, now_, [&](OpId producer) { return schedule_.end[producer]; },
      [&](TensorId input, DeviceId from, DeviceId to) { return fetch(input, from, to); });
  const double length = problem_.time(op, device);
  const double begin = start_op(op, device, ready, length, lanes_, resources_);
  schedule_.start[op] = begin;
  schedule_.end[op] = begin + length;
  ready_.erase(std::find(ready_.begin(), ready_.end(), op));
  events_.push({begin + length, op, ModelId{}});
}

bool EventRun::advance() {
  if (events_.empty()) return false;
  now_ = std::max(now_, events_.top().time);
  while (!events_.empty() && events_.top().time <= now_) {
    const Event event = events_.top();
    events_.pop();
    if (event.ended.valid()) {
      complete(event.ended);
    } else {
      arrive(event.arriving);
    }
  }
  return true;
}

Plan EventRun::finish() const {
  return schedule_plan(problem_, placement_, retime(problem_, placement_, schedule_));
}

bool run_events(EventRun& run, const LayerRule& rule, const std::function<bool()>& stop) {
  while (true) {
    if (stop()) return false;
    const std::size_t ready = run.ready().size();
    if (ready > 0) rule(run);
    if (!run.events_ahead() && run.ready().size() == ready) return ready == 0;
    (void)run.advance();
  }
}

}  // namespace placewright
