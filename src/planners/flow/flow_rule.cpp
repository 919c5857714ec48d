#include "planners/flow/flow_rule.h"

#include <algorithm>

#include "coarsen/cut_nodes.h"
#include "problem/least_time.h"

namespace placewright {
namespace {

// Stands for an infinite weighted speed-up.
constexpr double kLargestSpeedUp = 1e6;

double weighted_speed_up(double reference, double cost) {
  if (cost == kInfinity) return 0;
  if (reference == kInfinity) return kLargestSpeedUp;
  return std::min(ratio_of_times(reference, cost), kLargestSpeedUp);
}

std::vector<std::int64_t> no_room(std::size_t devices) {
  std::vector<std::int64_t> room(devices + 1, 0);
  room.back() = LayerFlow::kUnlimited;  // later
  return room;
}

}  // namespace

FlowCosts::FlowCosts(const Problem& problem)
    : speed_ups_(problem),
      fastest_(problem.op_count(), kInfinity),
      tail_(problem.op_count(), 0),
      settled_(memory_cannot_bind(problem) && problem.group_count() == problem.op_count()) {
  std::vector<DeviceId> row;
  for (const OpId op : problem.ops()) {
    row.clear();
    for (const DeviceId device : problem.devices()) {
      if (problem.allowed(op, device)) row.push_back(device);
    }
    candidates_.append(row);
  }
  for (const OpId op : problem.ops()) fastest_[op] = least_time(problem, op);
  const auto order = problem.topological_order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    for (const OpId successor : problem.successors(*op)) {
      tail_[*op] = std::max(tail_[*op], tail_[successor]);
    }
    tail_[*op] += fastest_[*op];
  }
}

FlowRule::FlowRule(const Problem& problem, const FlowCosts& costs, DeviceChoice& choice,
                   std::size_t most_ready)
    : problem_(problem),
      costs_(costs),
      choice_(choice),
      most_ready_(most_ready),
      flow_(no_room(problem.device_count())),
      number_(problem.op_count(), kNone),
      room_(problem.device_count(), 0),
      row_(problem.device_count() + 1),
      time_row_(problem.device_count()),
      longest_(problem.model_count()),
      quickest_(problem.device_count()) {}

void FlowRule::reset() {
  flow_ = LayerFlow(no_room(problem_.device_count()));
  number_.assign(problem_.op_count(), kNone);
  std::fill(room_.begin(), room_.end(), 0);
}

std::span<const DeviceId> FlowRule::candidates(OpId op) const {
  const auto settled = costs_.settled_candidates(op);
  return settled.empty() ? choice_.candidates(op) : settled;
}

void FlowRule::take_layer(const EventRun& run) {
  if (run.ready().size() <= most_ready_) {
    layer_.assign(run.ready().begin(), run.ready().end());
    return;
  }
  const auto longer = [&](OpId a, OpId b) {
    return costs_.tail(a) != costs_.tail(b) ? costs_.tail(a) > costs_.tail(b) : a < b;
  };
  // A heap with the shortest in front: most ops are passed over after one comparison.
  last_layer_.swap(layer_);
  layer_.clear();
  for (const OpId op : run.ready()) {
    if (layer_.size() == most_ready_) {
      if (!longer(op, layer_.front())) continue;
      std::pop_heap(layer_.begin(), layer_.end(), longer);
      layer_.back() = op;
    } else {
      layer_.push_back(op);
    }
    std::push_heap(layer_.begin(), layer_.end(), longer);
  }
  for (const OpId op : last_layer_) {
    if (number_[op] == kNone || !longer(layer_.front(), op)) continue;
    flow_.remove(number_[op]);
    number_[op] = kNone;
  }
}

void FlowRule::look_at_layer() {
  for (const OpId op : layer_) longest_[problem_.op(op).model] = {};
  for (Quickest& quickest : quickest_) quickest = {};
  for (const OpId op : layer_) {
    Longest& longest = longest_[problem_.op(op).model];
    longest.tail = std::max(longest.tail, costs_.tail(op));
    if (costs_.fastest(op) >= longest.first) {
      longest.second = longest.first;
      longest.first = costs_.fastest(op);
      longest.first_op = op;
    } else {
      longest.second = std::max(longest.second, costs_.fastest(op));
    }
    for (const DeviceId device : problem_.devices()) {
      const double time = problem_.time(op, device);
      Quickest& quickest = quickest_[device];
      if (time < quickest.first) {
        quickest.second = quickest.first;
        quickest.first = time;
        quickest.first_op = op;
      } else {
        quickest.second = std::min(quickest.second, time);
      }
    }
  }
  shortest_ = second_shortest_ = kInfinity;
  shortest_model_ = ModelId{};
  for (const OpId op : layer_) {
    const ModelId model = problem_.op(op).model;
    const double left = longest_[model].tail;
    if (model == shortest_model_) continue;
    if (left < shortest_) {
      second_shortest_ = shortest_;
      shortest_ = left;
      shortest_model_ = model;
    } else {
      second_shortest_ = std::min(second_shortest_, left);
    }
  }
}

// What is left of the weighted speed-up when another model goes before: with what is left of this
// model and of the shortest other one, the share of its own. Nullopt if there is no other.
std::optional<double> FlowRule::share_when_later(ModelId model) const {
  const double other = model == shortest_model_ ? second_shortest_ : shortest_;
  const double own = longest_[model].tail;
  if (other == kInfinity || own + other == 0) return std::nullopt;
  return own / (own + other);
}

// maxPt
double FlowRule::hidden(OpId op) const {
  const Longest& longest = longest_[problem_.op(op).model];
  if (costs_.tail(op) < longest.tail) return 0;
  return longest.first_op == op ? longest.second : longest.first;
}

// Minus the weighted speed-ups of the op; the last is that of waiting for the next event.
void FlowRule::fill_row(const EventRun& run, OpId op) {
  std::fill(row_.begin(), row_.end(), kInfinity);
  const double masked = hidden(op);
  double reference = kInfinity;
  double largest = 0;
  double later = kInfinity;
  const auto devices = candidates(op);
  for (const DeviceId device : devices) {
    const double begin = std::max(run.free_at(device), run.inputs_at(op, device));
    const double time = std::max(begin, run.now()) - run.now() + problem_.time(op, device);
    const double cost = std::max(0.0, time - masked);
    time_row_[device.index()] = cost;
    largest = std::max(largest, cost);
    if (costs_.speed_ups().is_reference(device)) reference = std::min(reference, cost);
    const Quickest& quickest = quickest_[device];
    const double ahead = quickest.first_op == op ? quickest.second : quickest.first;
    later = std::min(later, std::max(0.0, time + ahead - masked));
  }
  if (reference == kInfinity) reference = largest;
  const ModelId model = problem_.op(op).model;
  const double weight = problem_.model(model).weight;
  double best = 0;
  for (const DeviceId device : devices) {
    const double cost = time_row_[device.index()];
    if (cost == kInfinity) continue;
    const double speed_up = weighted_speed_up(reference, cost);
    row_[device.index()] = -weight * speed_up;
    best = std::max(best, speed_up);
  }
  const std::optional<double> share = share_when_later(model);
  row_.back() = -weight * (share ? *share * best : weighted_speed_up(reference, later));
}

void FlowRule::update_flow(const EventRun& run) {
  for (const DeviceId device : problem_.devices()) {
    const std::size_t idle = run.idle_lanes(device);
    const auto room = static_cast<std::int64_t>(std::max<std::size_t>(idle, 1));
    if (room_[device.index()] == room) continue;
    room_[device.index()] = room;
    flow_.set_capacity(device.index(), room);
  }
  for (const OpId op : layer_) {
    fill_row(run, op);
    if (number_[op] == kNone) {
      number_[op] = flow_.add(row_);
    } else {
      flow_.set_costs(number_[op], row_);
    }
  }
}

void FlowRule::start(EventRun& run, OpId op, DeviceId device) {
  const std::size_t number = number_[op];
  number_[op] = kNone;
  if (flow_.place(number) == device.index()) {
    flow_.retire(number);
    --room_[device.index()];
  } else {
    flow_.remove(number);
  }
  choice_.take(op, device);
  run.start(op, device);
}

// Nothing else can happen, so waiting for a better moment is in vain.
void FlowRule::start_cheapest(EventRun& run) {
  OpId best;
  DeviceId where;
  double least = kInfinity;
  for (const OpId op : layer_) {
    for (const DeviceId device : candidates(op)) {
      const double cost = run.inputs_at(op, device) + problem_.time(op, device);
      if (cost >= least) continue;
      best = op;
      where = device;
      least = cost;
    }
  }
  if (best.valid()) start(run, best, where);
}

void FlowRule::operator()(EventRun& run) {
  const bool somewhere_idle =
      std::any_of(problem_.devices().begin(), problem_.devices().end(),
                  [&](DeviceId device) { return run.idle_lanes(device) > 0; });
  if (!somewhere_idle) return;
  take_layer(run);
  look_at_layer();
  update_flow(run);
  for (const OpId op : layer_) {
    const DeviceId device{flow_.place(number_[op])};
    if (device.index() >= problem_.device_count() || run.idle_lanes(device) == 0) continue;
    // An op that started just now may have taken the memory, or bound the group elsewhere.
    const auto devices = candidates(op);
    const bool may = std::find(devices.begin(), devices.end(), device) != devices.end();
    if (may) start(run, op, device);
  }
  if (!run.events_ahead()) start_cheapest(run);
}

}  // namespace placewright
