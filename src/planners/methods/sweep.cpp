#include "planners/methods/sweep.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "coarsen/cut_nodes.h"
#include "evaluate/rules/durations.h"
#include "evaluate/rules/value.h"
#include "evaluate/schedule.h"
#include "problem/exclusion.h"
#include "problem/least_time.h"
#include "problem/move_time.h"

namespace placewright {
namespace {

constexpr std::size_t kWindow = 48;
constexpr double kNotSent = -1;
constexpr std::size_t kLargestBlock = 12;
constexpr std::size_t kFewDevices = 8;

// Resources of which an op takes all that there is: until when each is held.
struct HeldWhole {
  const Problem& problem;
  std::vector<double>& held;

  [[nodiscard]] bool any() const { return !held.empty(); }
  [[nodiscard]] double earliest(OpId, DeviceId device, double ready, double) const {
    for (const ResourceUse& use : problem.uses(device)) {
      ready = std::max(ready, held[use.resource.index()]);
    }
    return ready;
  }
  void hold(OpId, DeviceId device, double start, double length) {
    for (const ResourceUse& use : problem.uses(device)) held[use.resource.index()] = start + length;
  }
};

}  // namespace

void Sweep::Heads::copy_times(const Heads& other) {
  lanes.copy_times(other.lanes);
  held.assign(other.held.begin(), other.held.end());
  ports = other.ports;
  done.assign(other.done.begin(), other.done.end());
}

Sweep::Sweep(const Problem& problem, std::uint64_t seed)
    : problem_(problem),
      devices_(problem.device_count()),
      spaces_(problem.space_count()),
      takes_whole_(ops_take_whole_resources(problem)),
      host_(problem.interconnect() == InterconnectKind::host),
      congestion_(problem.rules().congestion),
      has_overheads_(problem.has_overheads()),
      memory_binds_(!memory_cannot_bind(problem)),
      total_completion_(problem.objective() == Objective::total_completion),
      random_(seed),
      ledger_(problem),
      base_(problem),
      state_(problem),
      levels_(problem) {
  const std::size_t ops = problem.op_count();
  look_at_whole(false);
  if (problem.resource_count() > 0) {
    crews_.resize(problem.kind_count());
    for (const DeviceId device : problem.devices()) {
      if (!problem.uses(device).empty()) crews_[problem.kind_of(device).index()].push_back(device);
    }
    std::erase_if(crews_, [](const auto& crew) { return crew.empty(); });
  }
  position_.resize(ops);
  sent_stamp_.assign(spaces_, 0);
  start_.assign(ops, 0);
  end_.assign(ops, 0);
  op_tail_.assign(ops, 0);
  after_end_.assign(ops, 0);
  const std::size_t slots = problem.tensor_count() * (spaces_ + 1);
  arrival_.assign(slots, 0);
  stamp_.assign(slots, 0);
  sender_.assign(slots, OpId{});
  arrival_tail_.assign(slots, 0);
  send_tail_.assign(slots, kNotSent);
  double total = 0;
  for (const OpId op : problem.ops()) total += least_time(problem, op);
  mean_time_ = ops == 0 ? 0 : total / static_cast<double>(ops);
}

double Sweep::bytes(const Problem& problem) {
  const auto places = static_cast<double>(problem.tensor_count() * (problem.space_count() + 1));
  const std::size_t edges = problem.op_count() / (kWindow / 2);
  const auto tails = static_cast<double>(edges * problem.device_count());
  return places * (3 * sizeof(double) + sizeof(std::uint32_t) + sizeof(OpId)) +
         tails * 3 * sizeof(double);
}

void Sweep::look_at_whole(bool whole) {
  const std::size_t ops = problem_.op_count();
  const bool one_window =
      whole || total_completion_ || !takes_whole_ || ops <= kWindow + kWindow / 2;
  width_ = one_window ? ops : kWindow;
  step_ = one_window ? ops : kWindow / 2;
}

std::vector<Sweep::Section> Sweep::sections(std::size_t count, double shift) const {
  const std::size_t steps = now_.order.size() / step_;
  std::vector<Section> sections;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= count; ++i) {
    const double part = (static_cast<double>(i) + shift) / static_cast<double>(count);
    const std::size_t end =
        i == count ? now_.order.size()
                   : static_cast<std::size_t>(part * static_cast<double>(steps)) * step_;
    if (end > begin) sections.push_back({begin, end});
    begin = end;
  }
  return sections;
}

Sequence Sweep::joined(std::span<const Section> sections, std::span<const Sweep> sweeps) {
  Sequence whole = sweeps.front().current();
  for (std::size_t i = 1; i < sections.size(); ++i) {
    const Sequence& own = sweeps[i].current();
    for (std::size_t place = sections[i].begin; place < sections[i].end; ++place) {
      const OpId op = own.order[place];
      whole.order[place] = op;
      whole.placement[op] = own.placement[op];
      whole.eager[op.index()] = own.eager[op.index()];
    }
  }
  return whole;
}

double Sweep::start_from(const Plan& plan) {
  Sequence sequence;
  sequence.order = order_of(problem_, *plan.schedule);
  sequence.placement = plan.placement;
  sequence.eager.assign(problem_.op_count(), 0);
  return start_from(sequence);
}

double Sweep::start_from(const Sequence& sequence) {
  now_ = sequence;
  ledger_ = MemoryLedger(problem_, now_.placement);
  for (std::size_t i = 0; i < now_.order.size(); ++i) position_[now_.order[i].index()] = i;
  measure();
  return now_.value;
}

// The true value: an eager op that was settled before its consumer moved has sent its output to the
// old place.
void Sweep::measure() {
  begin_forward();
  tails_at_.clear();
  settle(now_.order.size());
  now_.value = settled_value();
}

double Sweep::duration(OpId op) {
  const DeviceId device = now_.placement[op];
  double time = problem_.time(op, device);
  if (!has_overheads_) return time;
  for (const TensorId output : problem_.outputs(op)) {
    const std::uint64_t tensor_stamp = ++last_sent_stamp_;
    std::size_t destinations = 0;
    bool handed_over = false;
    for (const OpId consumer : problem_.consumers(output)) {
      const DeviceId to = now_.placement[consumer];
      if (to == device) continue;
      if (problem_.same_space(device, to)) {
        handed_over = true;
      } else if (std::exchange(sent_stamp_[port(to)], tensor_stamp) != tensor_stamp) {
        ++destinations;
      }
    }
    const std::size_t sends = sends_borne(problem_, device, destinations, handed_over);
    if (sends > 0) time += static_cast<double>(sends) * problem_.send_overhead(output, device);
  }
  for (const TensorId input : problem_.inputs(op)) {
    if (!bears_receive(problem_, now_.placement[problem_.producer(input)], device)) continue;
    const bool first = std::ranges::none_of(problem_.consumers(input), [&](OpId other) {
      return now_.placement[other] == device &&
             problem_.topological_rank(other) < problem_.topological_rank(op);
    });
    if (first) time += problem_.receive_overhead(input, device);
  }
  return time;
}

double Sweep::send(TensorId tensor, OpId sender, DeviceId from, DeviceId to) {
  const std::size_t place = slot(tensor, to);
  if (known(place)) return arrival_[place];
  const auto note = [&](std::size_t where, double time) {
    arrival_[where] = time;
    stamp_[where] = writing_;
    if (writing_ == settled_) sender_[where] = sender;
    return time;
  };
  const auto carry = [&](const Hop& hop, double ready) {
    const bool out = hop.leg == Leg::out;
    if (out && known(host_slot(tensor))) return arrival_[host_slot(tensor)];
    const double begin = state_.ports.start(problem_, hop, ready, hop.length);
    const double finish = begin + hop.length;
    if (recorder_ != nullptr) {
      recorder_->push_back({tensor, hop.leg, hop.from, hop.to, begin, finish});
    }
    return out ? note(host_slot(tensor), finish) : finish;
  };
  const double produced = end_[problem_.producer(tensor).index()];
  return note(place, along_route(problem_, tensor, from, to, produced, carry));
}

void Sweep::process(OpId op) {
  const DeviceId device = now_.placement[op];
  const ModelId model = problem_.op(op).model;
  const double ready = inputs_there(
      problem_, op, now_.placement, released(problem_, op),
      [&](OpId producer) { return end_[producer.index()]; },
      [&](TensorId input, DeviceId from, DeviceId to) { return send(input, op, from, to); });
  const double length = duration(op);
  const double begin = occupy(op, device, ready, length);
  start_[op.index()] = begin;
  end_[op.index()] = begin + length;
  double& done = state_.done[total_completion_ ? model.index() : 0];
  done = std::max(done, begin + length);
  if (!now_.eager[op.index()]) return;
  for (const TensorId output : problem_.outputs(op)) {
    for (const OpId consumer : problem_.consumers(output)) {
      const DeviceId to = now_.placement[consumer];
      if (!problem_.same_space(device, to)) (void)send(output, op, device, to);
    }
  }
}

// When the op starts on the device, which is taken from then on, with its resources.
double Sweep::occupy(OpId op, DeviceId device, double ready, double length) {
  if (!takes_whole_) return start_op(op, device, ready, length, state_.lanes, levels_);
  HeldWhole held{problem_, state_.held};
  return start_op(op, device, ready, length, state_.lanes, held);
}

double Sweep::value_of(const Heads& heads) const {
  if (!total_completion_) return heads.done[0];
  return total_completion(problem_, [&](ModelId model) { return heads.done[model.index()]; });
}

// Tails: what would follow if each activity kept its place on its device and ports.
void Sweep::backward() {
  tails_at_.clear();
  if (width_ == now_.order.size()) return;
  std::fill(op_tail_.begin(), op_tail_.end(), 0.0);
  std::fill(after_end_.begin(), after_end_.end(), 0.0);
  std::fill(arrival_tail_.begin(), arrival_tail_.end(), 0.0);
  std::fill(send_tail_.begin(), send_tail_.end(), kNotSent);
  const std::vector<double> no_port(spaces_, 0);
  Tails tails{std::vector<double>(devices_, 0), std::vector<double>(problem_.resource_count(), 0),
              no_port, no_port};
  tails_at_.resize(now_.order.size() / step_ + 1);
  for (std::size_t i = now_.order.size(); i-- > 0;) {
    if ((i + 1) % step_ == 0) tails_at_[(i + 1) / step_] = tails;
    const OpId op = now_.order[i];
    if (now_.eager[op.index()]) backward_outputs(op, tails);
    const double length = end_[op.index()] - start_[op.index()];
    double& device_tail = tails.device[now_.placement[op].index()];
    double tail = after_end_[op.index()];
    if (length > 0) {
      tail = std::max(tail, device_tail);
      const auto uses = problem_.uses(now_.placement[op]);
      for (const ResourceUse& use : uses) tail = std::max(tail, tails.held[use.resource.index()]);
      for (const ResourceUse& use : uses) tails.held[use.resource.index()] = tail + length;
      device_tail = tail + length;
    }
    op_tail_[op.index()] = tail + length;
    backward_inputs(op, tails);
  }
}

void Sweep::backward_inputs(OpId op, Tails& tails) {
  const DeviceId device = now_.placement[op];
  const auto inputs = problem_.inputs(op);
  for (auto input = inputs.rbegin(); input != inputs.rend(); ++input) {
    const OpId producer = problem_.producer(*input);
    const DeviceId from = now_.placement[producer];
    double& after = after_end_[producer.index()];
    if (problem_.same_space(from, device)) {
      after = std::max(after, op_tail_[op.index()]);
      continue;
    }
    double& arrived = arrival_tail_[slot(*input, device)];
    arrived = std::max(arrived, op_tail_[op.index()]);
    if (sender_[slot(*input, device)] == op) {
      after = std::max(after, backward_send(*input, op, from, device, tails));
    }
  }
}

void Sweep::backward_outputs(OpId op, Tails& tails) {
  const DeviceId device = now_.placement[op];
  const auto outputs = problem_.outputs(op);
  for (auto output = outputs.rbegin(); output != outputs.rend(); ++output) {
    for (const OpId consumer : problem_.consumers(*output)) {
      const DeviceId to = now_.placement[consumer];
      const std::size_t place = slot(*output, to);
      if (problem_.same_space(device, to) || sender_[place] != op ||
          send_tail_[place] != kNotSent) {
        continue;
      }
      double& after = after_end_[op.index()];
      after = std::max(after, backward_send(*output, op, device, to, tails));
    }
  }
}

// From the producer's end through the transfer to the end of the schedule.
double Sweep::backward_send(TensorId tensor, OpId sender, DeviceId from, DeviceId to,
                            Tails& tails) {
  const std::size_t place = slot(tensor, to);
  double tail = arrival_tail_[place];
  const auto pass = [&](double length, double* first, double* second) {
    const bool congested = congestion_ && length > 0;
    if (congested && first != nullptr) tail = std::max(tail, *first);
    if (congested && second != nullptr) tail = std::max(tail, *second);
    send_tail_[place] = std::max(send_tail_[place], tail);
    tail += length;
    if (congested && first != nullptr) *first = tail;
    if (congested && second != nullptr) *second = tail;
  };
  if (!host_) {
    pass(problem_.link_time(tensor, from, to), &tails.out[port(from)], &tails.in[port(to)]);
    return tail;
  }
  const double length = problem_.host_time(tensor);
  if (!problem_.on_host(to)) pass(length, nullptr, &tails.in[port(to)]);
  if (!problem_.on_host(from)) {
    double& in_host = arrival_tail_[host_slot(tensor)];
    in_host = std::max(in_host, tail);
    tail = in_host;
    if (sender_[host_slot(tensor)] == sender)
      pass(length, &tails.out[port(from)], nullptr);
    else
      tail += length;
  }
  send_tail_[place] = std::max(send_tail_[place], 0.0);
  return tail;
}

void Sweep::begin_forward() {
  if (last_stamp_ > 4000000000U) {
    std::fill(stamp_.begin(), stamp_.end(), 0U);
    last_stamp_ = 0;
  }
  settled_ = trial_ = ++last_stamp_;
  base_.lanes.clear();
  base_.held.assign(problem_.resource_count(), 0);
  base_.ports.clear();
  base_.done.assign(total_completion_ ? problem_.model_count() : 1, 0);
  if (total_completion_) {
    for (const ModelId model : problem_.models()) {
      base_.done[model.index()] = problem_.model(model).arrival;
    }
  }
  crossing_ = {};
  first_ = last_ = 0;
}

void Sweep::open_window(std::size_t first, std::size_t end) {
  first_ = first;
  last_ = std::min(first + width_, end);
  while (!crossing_.empty() && position_[crossing_.top().consumer.index()] < last_) crossing_.pop();
  crossing_value_ = crossing_.empty() ? 0 : crossing_.top().total;
  value_ = evaluate();
}

void Sweep::keep_window() {
  kept_.order.assign(now_.order.begin() + static_cast<std::ptrdiff_t>(first_),
                     now_.order.begin() + static_cast<std::ptrdiff_t>(last_));
  kept_.devices.clear();
  kept_.eager.clear();
  for (const OpId op : kept_.order) {
    kept_.devices.push_back(now_.placement[op]);
    kept_.eager.push_back(now_.eager[op.index()]);
  }
  kept_.value = value_;
}

void Sweep::restore_window() {
  if (value_ <= kept_.value) return;
  for (std::size_t i = 0; i < kept_.order.size(); ++i) {
    const OpId op = kept_.order[i];
    const GroupId group = problem_.group(op);
    now_.order[first_ + i] = op;
    position_[op.index()] = first_ + i;
    now_.eager[op.index()] = kept_.eager[i];
    // A group that moved is in the window as a whole.
    if (memory_binds_ && now_.placement[op] != kept_.devices[i] &&
        problem_.group_ops(group).front() == op) {
      ledger_.remove_group(group, now_.placement[op]);
      ledger_.add_group(group, kept_.devices[i]);
    }
    now_.placement[op] = kept_.devices[i];
  }
  value_ = kept_.value;
}

void Sweep::settle(std::size_t last) {
  state_.copy_times(base_);
  if (!takes_whole_) levels_.clear();  // the window is the whole order
  writing_ = trial_ = settled_;
  for (std::size_t i = first_; i < last; ++i) {
    const OpId op = now_.order[i];
    process(op);
    if (tails_at_.empty()) continue;
    for (const TensorId output : problem_.outputs(op)) {
      for (const OpId consumer : problem_.consumers(output)) {
        if (position_[consumer.index()] < last) continue;
        const DeviceId to = now_.placement[consumer];
        double head = end_[op.index()];
        double tail = op_tail_[consumer.index()];
        if (!problem_.same_space(to, now_.placement[op])) {
          const std::size_t place = slot(output, to);
          if (known(place)) {
            head = arrival_[place];
          } else if (!host_) {
            head += problem_.link_time(output, now_.placement[op], to);
            tail = std::max(tail, send_tail_[place]);
          }
        }
        crossing_.push({head + tail, consumer});
      }
    }
  }
  std::swap(base_, state_);
  first_ = last;
}

// The value when the window is as it is now.
double Sweep::evaluate(double most) {
  state_.copy_times(base_);
  if (!takes_whole_) levels_.clear();
  writing_ = trial_ = ++last_stamp_;
  const bool to_the_end = tails_at_.empty() || last_ == now_.order.size();
  for (std::size_t i = first_; i < last_; ++i) {
    process(now_.order[i]);
    // What is on a device only grows, so most moves that are no good show it before the window's
    // end.
    const DeviceId device = now_.placement[now_.order[i]];
    if (to_the_end) continue;
    const double tail = tails_at_[last_ / step_].device[device.index()];
    if (tail > 0 && state_.lanes.first_free(device) + tail > most) return kInfinity;
  }
  double value = value_of(state_);
  if (to_the_end) return value;

  value = std::max(value, crossing_value_);
  const Tails& tails = tails_at_[last_ / step_];
  for (const DeviceId device : problem_.devices()) {
    const double tail = tails.device[device.index()];
    if (tail > 0) value = std::max(value, state_.lanes.first_free(device) + tail);
  }
  for (std::size_t i = 0; i < tails.held.size(); ++i) {
    if (tails.held[i] > 0) value = std::max(value, state_.held[i] + tails.held[i]);
  }
  for (const SpaceId space : problem_.spaces()) {
    const std::size_t i = space.index();
    if (tails.out[i] > 0) value = std::max(value, state_.ports.out[space] + tails.out[i]);
    if (tails.in[i] > 0) value = std::max(value, state_.ports.in[space] + tails.in[i]);
  }
  for (std::size_t i = first_; i < last_; ++i) {
    const OpId op = now_.order[i];
    const DeviceId from = now_.placement[op];
    for (const TensorId output : problem_.outputs(op)) {
      for (const OpId consumer : problem_.consumers(output)) {
        if (position_[consumer.index()] < last_) continue;
        const DeviceId to = now_.placement[consumer];
        double head = end_[op.index()];
        double tail = op_tail_[consumer.index()];
        if (!problem_.same_space(from, to)) {
          const std::size_t place = slot(output, to);
          if (known(place)) {
            head = arrival_[place];
          } else {
            head += move_time(problem_, output, from, to);
            if (!host_) tail = std::max(tail, send_tail_[place]);
          }
        }
        value = std::max(value, head + tail);
      }
    }
  }
  return value;
}

void Sweep::rotate(std::size_t from, std::size_t to) {
  auto& order = now_.order;
  const auto place = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  if (from < to) {
    std::rotate(place(from), place(from + 1), place(to + 1));
  } else {
    std::rotate(place(to), place(from), place(from + 1));
  }
  for (std::size_t i = std::min(from, to); i <= std::max(from, to); ++i) {
    position_[order[i].index()] = i;
  }
}

// Ops that share a device by rule move together, so all of them must be in the window.
bool Sweep::movable(OpId op) const {
  for (const OpId mate : problem_.group_ops(problem_.group(op))) {
    const std::size_t position = position_[mate.index()];
    if (position < first_ || position >= last_) return false;
  }
  return true;
}

bool Sweep::place(OpId op, DeviceId device) {
  const GroupId group = problem_.group(op);
  const DeviceId before = now_.placement[op];
  if (before == device) return true;
  if (!movable(op) || !problem_.group_allowed(group, device)) return false;
  if (memory_binds_) {
    if (!ledger_.fits_group(group, device)) return false;
    ledger_.remove_group(group, before);
    ledger_.add_group(group, device);
  }
  for (const OpId mate : problem_.group_ops(group)) {
    moved_.emplace_back(mate, before);
    now_.placement[mate] = device;
  }
  return true;
}

void Sweep::undo() {
  while (!moved_.empty()) {
    const auto [op, before] = moved_.back();
    moved_.pop_back();
    const GroupId group = problem_.group(op);
    if (memory_binds_ && now_.placement[op] != before && problem_.group_ops(group).front() == op) {
      ledger_.remove_group(group, now_.placement[op]);
      ledger_.add_group(group, before);
    }
    now_.placement[op] = before;
  }
  if (rotated_from_ != rotated_to_) rotate(rotated_to_, rotated_from_);
  if (flipped_.valid()) now_.eager[flipped_.index()] = !now_.eager[flipped_.index()];
}

// A connected set of ops of one device goes to another, often to that of a neighbour.
bool Sweep::move_block() {
  const OpId seed = pick();
  const DeviceId from = now_.placement[seed];
  const std::size_t size = random_.unit() < 0.3 ? 1 : 1 + random_.below(kLargestBlock);
  block_.assign(1, seed);
  const auto in_window = [&](OpId op) {
    const std::size_t position = position_[op.index()];
    return position >= first_ && position < last_;
  };
  around_.clear();
  for (std::size_t i = 0; i < block_.size(); ++i) {
    const auto visit = [&](OpId next) {
      if (now_.placement[next] != from) {
        around_.push_back(now_.placement[next]);
      } else if (block_.size() < size && in_window(next) && random_.unit() < 0.8 &&
                 std::find(block_.begin(), block_.end(), next) == block_.end()) {
        block_.push_back(next);
      }
    };
    const OpId op = block_[i];
    for (const OpId next : problem_.successors(op)) visit(next);
    for (const OpId before : problem_.predecessors(op)) visit(before);
  }
  const DeviceId to = target(around_);
  if (to == from) return false;
  for (const OpId op : block_) {
    if (!place(op, to)) return false;
  }
  return !moved_.empty();
}

// One of `around`, one that the window uses, or any: of very many devices few are worth a trial.
DeviceId Sweep::target(std::span<const DeviceId> around) {
  if (!around.empty() && random_.unit() < 0.5) return around[random_.below(around.size())];
  if (devices_ > kFewDevices && random_.unit() < 0.6) return now_.placement[pick()];
  return DeviceId{random_.below(devices_)};
}

bool Sweep::move_in_order() {
  const OpId op = pick();
  const std::size_t at = position_[op.index()];
  std::size_t lowest = first_;
  std::size_t highest = last_ - 1;
  for (const OpId before : problem_.predecessors(op)) {
    lowest = std::max(lowest, position_[before.index()] + 1);
  }
  for (const OpId after : problem_.successors(op)) {
    highest = std::min(highest, position_[after.index()] - 1);
  }
  lowest = std::max(lowest, first_);
  if (lowest >= highest) return false;
  // The two ends are the likely places: as soon, or as late, as possible.
  std::size_t to = lowest + random_.below(highest - lowest + 1);
  if (random_.unit() < 0.2) to = lowest;
  if (to == at) return false;
  rotated_from_ = at;
  rotated_to_ = to;
  rotate(at, to);
  return true;
}

bool Sweep::flip_eager() {
  flipped_ = pick();
  now_.eager[flipped_.index()] = !now_.eager[flipped_.index()];
  return true;
}

// Where memory binds a move alone often does not fit.
bool Sweep::swap_devices() {
  const OpId a = pick();
  const OpId b = pick();
  const DeviceId device_a = now_.placement[a];
  const DeviceId device_b = now_.placement[b];
  const GroupId group_a = problem_.group(a);
  const GroupId group_b = problem_.group(b);
  if (device_a == device_b || group_a == group_b || !movable(a) || !movable(b)) return false;
  if (!problem_.group_allowed(group_a, device_b) || !problem_.group_allowed(group_b, device_a)) {
    return false;
  }
  ledger_.remove_group(group_a, device_a);
  ledger_.remove_group(group_b, device_b);
  const bool fits = ledger_.fits_group(group_a, device_b) && ledger_.fits_group(group_b, device_a);
  ledger_.add_group(group_a, fits ? device_b : device_a);
  ledger_.add_group(group_b, fits ? device_a : device_b);
  if (!fits) return false;
  for (const OpId mate : problem_.group_ops(group_a)) {
    moved_.emplace_back(mate, device_a);
    now_.placement[mate] = device_b;
  }
  for (const OpId mate : problem_.group_ops(group_b)) {
    moved_.emplace_back(mate, device_b);
    now_.placement[mate] = device_a;
  }
  return true;
}

// A stretch of the order leaves one set of cores for another, or for several small ones side by
// side: one op that moves alone only makes the others wait.
bool Sweep::move_stretch() {
  constexpr std::size_t kLongestStretch = 32;
  const std::vector<DeviceId>& crew = crews_[random_.below(crews_.size())];
  const std::size_t begin = first_ + random_.below(last_ - first_);
  const std::size_t end = std::min(last_, begin + 2 + random_.below(kLongestStretch));
  const DeviceId only = random_.unit() < 0.3 ? crew[random_.below(crew.size())] : DeviceId{};
  std::vector<double> load(crew.size(), 0);
  for (std::size_t i = begin; i < end; ++i) {
    const OpId op = now_.order[i];
    if (!place(op, only.valid() ? only : nearest_free(op, crew, load))) return false;
  }
  return !moved_.empty();
}

// Where a producer of the op is, unless another device of the crew has much less to do.
DeviceId Sweep::nearest_free(OpId op, std::span<const DeviceId> crew,
                             std::vector<double>& load) const {
  std::size_t best = static_cast<std::size_t>(std::ranges::min_element(load) - load.begin());
  const double time = problem_.time(op, crew[best]);
  for (const OpId before : problem_.predecessors(op)) {
    const auto found = std::ranges::find(crew, now_.placement[before]);
    if (found == crew.end()) continue;
    const auto near = static_cast<std::size_t>(found - crew.begin());
    if (load[near] <= load[best] + time) best = near;
  }
  load[best] += time;
  return crew[best];
}

void Sweep::try_move(double temperature) {
  moved_.clear();
  rotated_from_ = rotated_to_ = 0;
  flipped_ = OpId{};
  const double kind = random_.unit();
  bool changed = false;
  if (memory_binds_ && kind < 0.2) {
    changed = swap_devices();
  } else if (!crews_.empty() && kind > 0.8) {
    changed = move_stretch();
  } else if (kind < 0.55) {
    changed = move_block();
    if (changed && random_.unit() < 0.3) (void)move_in_order();
  } else if (kind < 0.9) {
    changed = move_in_order();
  } else {
    changed = flip_eager();
  }
  if (!changed) {
    undo();
    return;
  }
  const double allowance = temperature > 0 ? -temperature * std::log(1 - random_.unit()) : 0;
  const double value = evaluate(value_ + allowance);
  if (value <= value_ + allowance && value < kInfinity) {
    value_ = value;
  } else {
    undo();
  }
}

Plan Sweep::plan_of(const Sequence& sequence) {
  Schedule shape;
  recorder_ = &shape.transfers;
  (void)start_from(sequence);
  recorder_ = nullptr;
  shape.start = Table<OpId, double>(start_);
  shape.end = Table<OpId, double>(end_);
  Schedule schedule = retime(problem_, now_.placement, shape);
  return schedule_plan(problem_, now_.placement, std::move(schedule));
}

}  // namespace placewright
