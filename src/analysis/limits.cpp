#include "analysis/limits.h"

#include <algorithm>
#include <utility>

#include "problem/op_times.h"

namespace placewright {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// An op, transfer or call with all that it may have waited for.
struct Event {
  StepKind kind = StepKind::op;
  std::size_t index = 0;
  double start = 0;
  double end = 0;
  double arrival = 0;
  std::vector<std::size_t> inputs = {};
  DeviceId device = {};  // op on a device with lanes, call: one after the other
  SpaceId out_port = {};
  SpaceId in_port = {};
};

class EventList {
 public:
  EventList(const Problem& problem, const Plan& plan) : problem_(problem) {
    if (plan.schedule) {
      add_schedule(problem, plan);
    } else {
      add_calls(problem, plan);
    }
    by_end_.resize(events_.size());
    for (std::size_t i = 0; i < events_.size(); ++i) by_end_[i] = i;
    std::sort(by_end_.begin(), by_end_.end(),
              [&](std::size_t a, std::size_t b) { return events_[a].end < events_[b].end; });
    for (const Event& event : events_) tolerance_ = std::max(tolerance_, 1e-9 * event.end);
  }

  [[nodiscard]] const Event& operator[](std::size_t index) const { return events_[index]; }
  [[nodiscard]] std::size_t event_of(OpId op) const { return event_of_op_[op]; }

  struct Cause {
    std::size_t event = kNone;
    WaitedFor reason = WaitedFor::nothing;
    double end = 0;
    double ready = 0;  // when its inputs were there
    std::vector<ResourceId> resources = {};
  };

  // What ended last of all that the event may have waited for; an input before a busy device.
  [[nodiscard]] Cause cause_of(std::size_t index) const {
    const Event& event = events_[index];
    Cause cause;
    if (event.arrival > 0) cause = {kNone, WaitedFor::arrival, event.arrival};
    for (const std::size_t input : event.inputs) {
      if (cause.event == kNone ? events_[input].end >= cause.end : events_[input].end > cause.end) {
        cause = {input, WaitedFor::input, events_[input].end};
      }
    }
    cause.ready = cause.end;
    if (event.start > cause.end + tolerance_) look_at_resources(event, cause);
    return cause;
  }

 private:
  // Something that takes no time occupies nothing, so it keeps nobody waiting.
  void look_at_resources(const Event& event, Cause& cause) const {
    const auto after =
        std::upper_bound(by_end_.begin(), by_end_.end(), event.start + tolerance_,
                         [&](double time, std::size_t other) { return time < events_[other].end; });
    for (auto other = after; other != by_end_.begin();) {
      const Event& candidate = events_[*--other];
      if (candidate.end <= cause.end + tolerance_) return;
      if (candidate.end - candidate.start <= tolerance_) continue;
      const bool same_device = event.device.valid() && candidate.device == event.device;
      auto resources = same_device ? std::vector<ResourceId>{} : in_common(event, candidate);
      const bool same_port = (event.out_port.valid() && candidate.out_port == event.out_port) ||
                             (event.in_port.valid() && candidate.in_port == event.in_port);
      if (!same_device && resources.empty() && !same_port) continue;
      cause = {*other,
               same_device          ? WaitedFor::device
               : !resources.empty() ? WaitedFor::resource
                                    : WaitedFor::port,
               candidate.end, cause.ready, std::move(resources)};
      return;
    }
  }

  // The resources that both take.
  [[nodiscard]] std::vector<ResourceId> in_common(const Event& a, const Event& b) const {
    std::vector<ResourceId> resources;
    if (!a.device.valid() || !b.device.valid()) return resources;
    for (const ResourceUse& use : problem_.uses(a.device)) {
      const auto other = problem_.uses(b.device);
      if (std::ranges::find(other, use.resource, &ResourceUse::resource) != other.end()) {
        resources.push_back(use.resource);
      }
    }
    return resources;
  }

  void add_schedule(const Problem& problem, const Plan& plan) {
    const Schedule& schedule = *plan.schedule;
    event_of_op_ = Table<OpId, std::size_t>(problem.op_count());
    for (const OpId op : problem.ops()) {
      event_of_op_[op] = events_.size();
      events_.push_back({StepKind::op, op.index(), schedule.start[op], schedule.end[op],
                         problem.model(problem.op(op).model).arrival});
      events_.back().device = plan.placement[op];
    }
    std::vector<std::pair<TensorId, std::size_t>> pairs;
    for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
      const Transfer& transfer = schedule.transfers[i];
      pairs.emplace_back(transfer.tensor, events_.size());
      events_.push_back({StepKind::transfer, i, transfer.start, transfer.end});
      if (problem.rules().congestion) {
        if (transfer.from.valid()) events_.back().out_port = problem.space(transfer.from);
        if (transfer.to.valid()) events_.back().in_port = problem.space(transfer.to);
      }
    }
    connect(problem, plan, Rows<TensorId, std::size_t>::from_pairs(problem.tensor_count(), pairs));
  }

  void connect(const Problem& problem, const Plan& plan,
               const Rows<TensorId, std::size_t>& movements) {
    const auto transfer_of = [&](std::size_t event) -> const Transfer& {
      return plan.schedule->transfers[events_[event].index];
    };
    for (const TensorId tensor : problem.tensors()) {
      const std::size_t producer = event_of_op_[problem.producer(tensor)];
      std::size_t out = kNone;
      for (const std::size_t event : movements[tensor]) {
        if (transfer_of(event).leg == Leg::out) out = event;
      }
      for (const std::size_t event : movements[tensor]) {
        const bool through_host = transfer_of(event).leg == Leg::in && out != kNone;
        events_[event].inputs.push_back(through_host ? out : producer);
      }
      for (const OpId consumer : problem.consumers(tensor)) {
        const DeviceId device = plan.placement[consumer];
        std::size_t source = producer;
        if (!problem.same_space(device, plan.placement[problem.producer(tensor)])) {
          if (out != kNone && problem.on_host(device)) source = out;
          for (const std::size_t event : movements[tensor]) {
            const DeviceId to = transfer_of(event).to;
            if (to.valid() && problem.same_space(to, device)) source = event;
          }
        }
        events_[event_of_op_[consumer]].inputs.push_back(source);
      }
    }
  }

  void add_calls(const Problem& problem, const Plan& plan) {
    const OpTimes times = op_times(problem, plan);
    event_of_op_ = Table<OpId, std::size_t>(problem.op_count(), kNone);
    for (std::size_t i = 0; i < plan.calls.size(); ++i) {
      const Call& call = plan.calls[i];
      for (const OpId op : call.ops) event_of_op_[op] = events_.size();
      events_.push_back({StepKind::call, i, call.start, call.end});
      events_.back().device = call.device;
    }
    for (const OpId op : problem.topological_order()) {
      if (event_of_op_[op] == kNone) {
        event_of_op_[op] = events_.size();
        events_.push_back({StepKind::op, op.index(), times.start[op], times.end[op]});
      }
      Event& event = events_[event_of_op_[op]];
      for (const OpId before : problem.predecessors(op)) {
        const std::size_t input = event_of_op_[before];
        if (input != event_of_op_[op]) event.inputs.push_back(input);
      }
    }
  }

  const Problem& problem_;
  std::vector<Event> events_;
  std::vector<std::size_t> by_end_;
  Table<OpId, std::size_t> event_of_op_;
  double tolerance_ = 0;
};

// The op whose end decides the value.
std::size_t deciding_event(const Problem& problem, const EventList& events) {
  Table<ModelId, double> share(problem.model_count(), -1);
  Table<ModelId, std::size_t> last(problem.model_count(), kNone);
  const bool by_model = problem.objective() == Objective::total_completion;
  for (const OpId op : problem.ops()) {
    const ModelId model = by_model ? problem.op(op).model : ModelId{0};
    const double end = events[events.event_of(op)].end;
    const double value =
        by_model ? problem.model(model).weight * (end - problem.model(model).arrival) : end;
    if (last[model] != kNone && value <= share[model]) continue;
    share[model] = value;
    last[model] = events.event_of(op);
  }
  std::size_t most = 0;
  for (std::size_t i = 1; i < share.size(); ++i) {
    if (share[ModelId{i}] > share[ModelId{most}]) most = i;
  }
  return last[ModelId{most}];
}

// A pass of a stage as each of its replicas sees it.
PassLoad shared(const PassLoad& work, double replicas) {
  return {work.compute / replicas, work.in / replicas, work.out / replicas};
}

double exchange_time(const Problem& problem, const Stage& stage) {
  const double bandwidth = problem.rules().replica_bandwidth;
  if (stage.devices.size() < 2 || bandwidth <= 0 || !problem.has_backward_ops()) return 0;
  double bytes = 0;
  std::vector<WeightId> weights;
  for (const OpId op : stage.ops) {
    bytes += problem.memory(op);
    for (const WeightId weight : problem.shared_weights(op)) weights.push_back(weight);
  }
  std::sort(weights.begin(), weights.end());
  weights.erase(std::unique(weights.begin(), weights.end()), weights.end());
  for (const WeightId weight : weights) bytes += problem.shared_weight_bytes(weight);
  // Replicas in one memory share the weights.
  std::vector<SpaceId> spaces;
  for (const DeviceId device : stage.devices) spaces.push_back(problem.space(device));
  std::sort(spaces.begin(), spaces.end());
  const auto copies =
      static_cast<double>(std::unique(spaces.begin(), spaces.end()) - spaces.begin());
  return (copies - 1) / copies * bytes / bandwidth;
}

}  // namespace

CriticalPath critical_path(const Problem& problem, const Plan& plan) {
  CriticalPath path;
  if (problem.objective() == Objective::throughput || problem.op_count() == 0) return path;
  const EventList events(problem, plan);
  std::size_t current = deciding_event(problem, events);
  while (current != kNone) {
    const Event& event = events[current];
    const EventList::Cause cause = events.cause_of(current);
    const double idle = std::max(0.0, event.start - cause.end);
    const double waited = std::max(0.0, event.start - cause.ready);
    path.steps.push_back({event.kind, event.index, event.start, event.end, cause.reason, idle,
                          waited, cause.resources});
    current = cause.event;
  }
  std::reverse(path.steps.begin(), path.steps.end());
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    const PathStep& step = path.steps[i];
    const double length = step.end - step.start;
    (step.kind == StepKind::transfer ? path.transfers : path.ops) += length;
    path.idle += step.idle;
    const bool last = i + 1 == path.steps.size();
    if (!last && path.steps[i + 1].waited_for != WaitedFor::input) path.device_waits += length;
  }
  return path;
}

std::vector<FullestStage> fullest_stages(const Problem& problem, const Plan& plan) {
  const Rules& rules = problem.rules();
  const bool phased = rules.training == TrainingMode::phased && problem.has_backward_ops();
  const Table<DeviceId, DeviceLoad> loads = pipeline_loads(problem, plan.placement);
  std::vector<FullestStage> fullest;
  for (const bool backward : {false, true}) {
    if (backward && !phased) break;
    FullestStage most{0, backward, -1, {}};
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
      const Stage& stage = plan.stages[i];
      DeviceLoad load = loads[stage.devices.front()];
      const PassLoad work = shared(phased ? load.pass(backward) : load.both(),
                                   static_cast<double>(stage.devices.size()));
      double total = work.load(rules.transfers);
      if (backward || !phased) total += exchange_time(problem, stage);
      if (total > most.load) most = {i, backward, total, work};
    }
    if (most.load >= 0) fullest.push_back(most);
  }
  return fullest;
}

}  // namespace placewright
