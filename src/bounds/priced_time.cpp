#include "bounds/priced_time.h"

#include <algorithm>
#include <cmath>

#include "bounds/rounding.h"
#include "problem/lanes.h"
#include "problem/move_time.h"

namespace placewright {
namespace {

constexpr int kPatience = 8;  // steps without a better bound before they get shorter

}  // namespace

PricedTime::PricedTime(const Problem& problem, double horizon, std::size_t bins)
    : problem_(problem),
      devices_(problem.device_count()),
      bins_(bins),
      length_(horizon / static_cast<double>(bins)),
      prices_(devices_ * bins, 0),
      paid_(devices_ * (bins + 1), 0),
      use_(devices_ * bins, 0) {
  measure_heads_and_tails();
  std::size_t largest = 0;
  for (const ModelId model : problem.models()) {
    build(model);
    largest = std::max(largest, trees_.back().nodes.size());
  }
  least_.resize(largest * devices_ * (bins + 1));
  where_.resize(least_.size());
}

double PricedTime::step_size() const {
  double edges = 0;
  for (const Tree& tree : trees_) edges += static_cast<double>(tree.nodes.size());
  return edges * static_cast<double>(devices_ * devices_ * bins_);
}

// Rounded down, also against rounding of the quotient.
std::size_t PricedTime::bins_in(double time) const {
  if (time == kInfinity) return kNever;
  return static_cast<std::size_t>(std::min(time / length_ * (1 - 1e-12), 1e15));
}

void PricedTime::measure_heads_and_tails() {
  heads_.assign(problem_.op_count() * devices_, kInfinity);
  for (const OpId op : problem_.topological_order()) {
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.allowed(op, device)) continue;
      double ready = problem_.model(problem_.op(op).model).arrival;
      for (const TensorId input : problem_.inputs(op)) {
        const OpId producer = problem_.producer(input);
        double earliest = kInfinity;
        for (const DeviceId from : problem_.devices()) {
          const double head = heads_[producer.index() * devices_ + from.index()];
          if (head == kInfinity) continue;
          earliest = std::min(earliest, head + problem_.time(producer, from) +
                                            move_time(problem_, input, from, device));
        }
        ready = std::max(ready, earliest);
      }
      heads_[op.index() * devices_ + device.index()] = ready;
    }
  }
  tails_.assign(problem_.op_count(), 0);
  const auto order = problem_.topological_order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    for (const OpId next : problem_.successors(*op)) {
      double fastest = kInfinity;
      for (const DeviceId device : problem_.devices()) {
        if (problem_.allowed(next, device))
          fastest = std::min(fastest, problem_.time(next, device));
      }
      tails_[*op] = std::max(tails_[*op], fastest + tails_[next]);
    }
  }
}

void PricedTime::build(ModelId model) {
  Tree tree{problem_.model(model).weight, problem_.model(model).arrival, {}};
  Table<OpId, std::size_t> place(problem_.op_count(), 0);
  for (const OpId op : problem_.topological_order()) {
    if (problem_.op(op).model != model) continue;
    place[op] = tree.nodes.size();
    Node node{
        op, {}, {}, std::vector<std::size_t>(devices_, kNever), problem_.successors(op).empty()};
    for (const DeviceId device : problem_.devices()) {
      const double head = heads_[op.index() * devices_ + device.index()];
      if (head == kInfinity) continue;
      node.devices.push_back(device.index());
      node.first[device.index()] = std::min(bins_, bins_in(head));
    }
    tree.nodes.push_back(std::move(node));
  }
  // Each op is waited for by the reader with the longest way to the end.
  for (const Node& node : tree.nodes) {
    TensorId chosen;
    OpId reader;
    for (const TensorId output : problem_.outputs(node.id)) {
      for (const OpId consumer : problem_.consumers(output)) {
        if (reader.valid() && tails_[consumer] <= tails_[reader]) continue;
        chosen = output;
        reader = consumer;
      }
    }
    if (!reader.valid()) continue;
    Input input{place[node.id], std::vector<std::size_t>(devices_ * devices_, kNever)};
    for (const std::size_t from : node.devices) {
      for (const DeviceId to : problem_.devices()) {
        input.shifts[from * devices_ + to.index()] =
            bins_in(problem_.time(node.id, DeviceId{from}) +
                    move_time(problem_, chosen, DeviceId{from}, to));
      }
    }
    tree.nodes[place[reader]].inputs.push_back(std::move(input));
  }
  trees_.push_back(std::move(tree));
}

double PricedTime::paid_until(std::size_t device, double moment) const {
  const double last = static_cast<double>(bins_);
  if (moment >= last) return paid_[device * (bins_ + 1) + bins_];
  const auto bin = static_cast<std::size_t>(moment);
  return paid_[device * (bins_ + 1) + bin] +
         (moment - static_cast<double>(bin)) * prices_[device * bins_ + bin];
}

// The payment is linear between the moments at which the start or the end crosses a border of bins.
PricedTime::Payment PricedTime::least_payment(std::size_t device, double length,
                                              std::size_t bin) const {
  const double begin = static_cast<double>(bin);
  if (bin >= bins_ || length == 0) return {0, begin};
  const double crossing = begin + std::ceil(length) - length;
  Payment best{kInfinity, begin};
  for (const double moment : {begin, std::min(crossing, begin + 1), begin + 1}) {
    const double price = paid_until(device, moment + length) - paid_until(device, moment);
    if (price < best.price) best = {price, moment};
  }
  return {std::max(0.0, best.price), best.moment};
}

// From where the input comes, if its reader starts on the device in the bin.
std::size_t PricedTime::best_source(const Tree& tree, const Input& input, std::size_t device,
                                    std::size_t bin) const {
  std::size_t best = kNever;
  double least = kInfinity;
  for (const std::size_t from : tree.nodes[input.op].devices) {
    const std::size_t shift = input.shifts[from * devices_ + device];
    if (shift == kNever || (bin < bins_ && shift > bin)) continue;
    const double price = least_[cell(input.op, from, bin < bins_ ? bin - shift : bins_)];
    if (price >= least) continue;
    least = price;
    best = from;
  }
  return best;
}

void PricedTime::fill(const Tree& tree, std::size_t place) {
  const Node& node = tree.nodes[place];
  std::vector<double> whole(bins_ + 1);
  std::vector<double> source(bins_ + 1);
  for (const std::size_t device : node.devices) {
    const double length = problem_.time(node.id, DeviceId{device}) / length_;
    for (std::size_t bin = 0; bin <= bins_; ++bin) {
      whole[bin] = bin < node.first[device] ? kInfinity : least_payment(device, length, bin).price;
    }
    for (const Input& input : node.inputs) {
      std::ranges::fill(source, kInfinity);
      for (const std::size_t from : tree.nodes[input.op].devices) {
        const std::size_t shift = input.shifts[from * devices_ + device];
        if (shift == kNever) continue;
        const double* before = &least_[cell(input.op, from, 0)];
        for (std::size_t bin = shift; bin < bins_; ++bin) {
          source[bin] = std::min(source[bin], before[bin - shift]);
        }
        source[bins_] = std::min(source[bins_], before[bins_]);
      }
      for (std::size_t bin = 0; bin <= bins_; ++bin) whole[bin] += source[bin];
    }
    double* least = &least_[cell(place, device, 0)];
    std::uint32_t* where = &where_[cell(place, device, 0)];
    double smallest = kInfinity;
    std::uint32_t at = 0;
    for (std::size_t bin = 0; bin <= bins_; ++bin) {
      if (whole[bin] < smallest) {
        smallest = whole[bin];
        at = static_cast<std::uint32_t>(bin);
      }
      least[bin] = smallest;
      where[bin] = at;
    }
  }
}

void PricedTime::use(const Tree& tree, std::size_t place, std::size_t device, std::size_t bin) {
  const Node& node = tree.nodes[place];
  const std::size_t start = where_[cell(place, device, bin)];
  double length = problem_.time(node.id, DeviceId{device}) / length_;
  double moment = least_payment(device, length, start).moment;
  while (length > 0 && moment < static_cast<double>(bins_)) {
    const auto now = static_cast<std::size_t>(moment);
    const double taken = std::min(length, static_cast<double>(now + 1) - moment);
    use_[device * bins_ + now] += taken;
    length -= taken;
    moment = static_cast<double>(now + 1);
  }
  for (const Input& input : node.inputs) {
    const std::size_t from = best_source(tree, input, device, start);
    if (from == kNever) continue;
    const std::size_t shift = input.shifts[from * devices_ + device];
    use(tree, input.op, from, start < bins_ ? start - shift : bins_);
  }
}

// The least weight x (completion - arrival) + payments of a model, and its use of the devices.
double PricedTime::cheapest(const Tree& tree) {
  for (std::size_t place = 0; place < tree.nodes.size(); ++place) fill(tree, place);
  // The end, as an op that takes no time anywhere and reads all that nobody waits for.
  std::vector<Input> ends;
  for (std::size_t place = 0; place < tree.nodes.size(); ++place) {
    if (!tree.nodes[place].last) continue;
    Input input{place, std::vector<std::size_t>(devices_ * devices_, kNever)};
    for (const std::size_t device : tree.nodes[place].devices) {
      input.shifts[device * devices_] =
          bins_in(problem_.time(tree.nodes[place].id, DeviceId{device}));
    }
    ends.push_back(std::move(input));
  }
  double best = kInfinity;
  std::size_t end = bins_;
  for (std::size_t bin = 0; bin <= bins_; ++bin) {
    const double completion = std::max(tree.arrival, static_cast<double>(bin) * length_);
    double price = tree.weight * (completion - tree.arrival);
    if (price >= best) break;
    for (const Input& input : ends) {
      const std::size_t from = best_source(tree, input, 0, bin);
      price += from == kNever
                   ? kInfinity
                   : least_[cell(input.op, from,
                                 bin < bins_ ? bin - input.shifts[from * devices_] : bins_)];
    }
    if (price < best) {
      best = price;
      end = bin;
    }
  }
  if (best == kInfinity) return best;
  for (const Input& input : ends) {
    const std::size_t from = best_source(tree, input, 0, end);
    use(tree, input.op, from, end < bins_ ? end - input.shifts[from * devices_] : bins_);
  }
  return best;
}

double PricedTime::step(double value) {
  for (std::size_t device = 0; device < devices_; ++device) {
    double sum = 0;
    for (std::size_t bin = 0; bin < bins_; ++bin) {
      paid_[device * (bins_ + 1) + bin] = sum;
      sum += prices_[device * bins_ + bin];
    }
    paid_[device * (bins_ + 1) + bins_] = sum;
  }
  std::ranges::fill(use_, 0);
  double bound = 0;
  for (const Tree& tree : trees_) bound += cheapest(tree);
  for (const DeviceId device : problem_.devices()) {
    bound -= paid_[device.index() * (bins_ + 1) + bins_] * useful_lanes(problem_, device);
  }
  if (!(bound < kInfinity)) return 0;  // no plan exists, which is not for a bound to say
  change_prices(bound, value);
  return safe_search(std::max(0.0, bound));
}

void PricedTime::change_prices(double bound, double value) {
  if (bound > best_ * (1 + 1e-6)) {
    best_ = bound;
    without_gain_ = 0;
  } else if (++without_gain_ >= kPatience) {
    pace_ /= 2;
    without_gain_ = 0;
  }
  double norm = 0;
  for (const DeviceId device : problem_.devices()) {
    for (std::size_t bin = 0; bin < bins_; ++bin) {
      const std::size_t at = device.index() * bins_ + bin;
      use_[at] -= useful_lanes(problem_, device);
      if (use_[at] > 0 || prices_[at] > 0) norm += use_[at] * use_[at];
    }
  }
  if (norm == 0) return;
  const double stride = pace_ * std::max(0.0, value - bound) / norm;
  for (std::size_t at = 0; at < prices_.size(); ++at) {
    prices_[at] = std::max(0.0, prices_[at] + stride * use_[at]);
  }
}

}  // namespace placewright
