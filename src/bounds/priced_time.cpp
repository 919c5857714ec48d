#include "bounds/priced_time.h"

#include <algorithm>
#include <cmath>

#include "bounds/critical_path.h"
#include "bounds/pools.h"
#include "bounds/rounding.h"
#include "problem/lanes.h"
#include "problem/move_time.h"

namespace placewright {
namespace {

constexpr int kPatience = 8;  // steps without a better bound before they get shorter
// Weight of the steps of waits, over the root of the bins: then they are about as long as those of
// use.
constexpr double kWaitWeight = 3;
constexpr double kPaceOfTaken = 0.1;
constexpr double kSecondsOfCell = 2e-9;
constexpr double kNoLimit = 1e15;  // bins

}  // namespace

// Of a pool there is one, and ops take parts of it: then its prices are as large as those of
// devices.
PricedTime::Bearers::Bearers(const Problem& problem)
    : of_device(problem.device_count()), amount(problem.device_count(), 1) {
  constexpr auto kNone = static_cast<std::size_t>(-1);
  const Pools pools(problem, Capacity::resources);
  Table<PoolId, std::size_t> of_pool(problem.kind_count(), kNone);
  for (const DeviceId device : problem.devices()) {
    if (problem.uses(device).empty()) {
      of_device[device] = capacity.size();
      capacity.push_back(useful_lanes(problem, device));
      continue;
    }
    const KindId kind = problem.kind_of(device);
    const PoolId pool = pools.of_kind[kind];
    if (of_pool[pool] == kNone) {
      of_pool[pool] = capacity.size();
      capacity.push_back(1);
    }
    of_device[device] = of_pool[pool];
    amount[device] = pools.amount[kind] / pools.capacity[pool];
  }
}

PricedTime::PricedTime(const Problem& problem, double value, double horizon, std::size_t bins)
    : problem_(problem),
      value_(value),
      devices_(problem.device_count()),
      bearers_(problem),
      bins_(bins),
      length_(horizon / static_cast<double>(bins)),
      prices_(bearers_.capacity.size() * bins, 0),
      paid_(bearers_.capacity.size() * paid_stride(), 0),
      use_(bearers_.capacity.size() * bins, 0) {
  measure_heads_and_tails();
  std::size_t largest = 0;
  for (const ModelId model : problem.models()) {
    build(model);
    largest = std::max(largest, trees_.back().nodes.size());
  }
  limit_completions();
  least_.resize(largest * devices_ * (bins + 2));
  where_.resize(least_.size());
}

void PricedTime::take_prices(const PricedTime& coarse, std::size_t times) {
  const auto parts = static_cast<double>(times);
  for (std::size_t at = 0; at < prices_.size(); ++at) {
    prices_[at] = coarse.prices_[at / times] / parts;
  }
  for (std::size_t i = 0; i < trees_.size(); ++i) {
    for (std::size_t number = 0; number < trees_[i].waits.size(); ++number) {
      trees_[i].waits[number].price = coarse.trees_[i].waits[number].price / parts;
      trees_[i].waits[number].rents = coarse.trees_[i].waits[number].rents;
    }
  }
  pace_ = kPaceOfTaken;
}

double PricedTime::step_seconds() const {
  double edges = 0;
  for (const Tree& tree : trees_) edges += static_cast<double>(tree.nodes.size());
  return kSecondsOfCell * edges * static_cast<double>(devices_ * devices_ * bins_);
}

// Rounded down, also against rounding of the quotient.
std::size_t PricedTime::bins_in(double time) const {
  if (time == kInfinity) return kNever;
  return static_cast<std::size_t>(std::min(safe_sum(time / length_), kNoLimit));
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
  Tree tree;
  tree.weight = problem_.model(model).weight;
  tree.arrival = problem_.model(model).arrival;
  Table<OpId, std::size_t> place(problem_.op_count(), 0);
  for (const OpId op : problem_.topological_order()) {
    if (problem_.op(op).model != model) continue;
    place[op] = tree.nodes.size();
    Node node;
    node.id = op;
    node.first.assign(devices_, kNever);
    node.last = problem_.successors(op).empty();
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
    for (const TensorId output : problem_.outputs(node.id)) {
      for (const OpId consumer : problem_.consumers(output)) {
        if (output != chosen || consumer != reader)
          add_wait(tree, output, place[node.id], place[consumer]);
      }
    }
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
  tree.starts.resize(tree.nodes.size());
  trees_.push_back(std::move(tree));
}

void PricedTime::add_wait(Tree& tree, TensorId tensor, std::size_t producer,
                          std::size_t reader) const {
  if (tree.weight == 0) return;  // it may be complete at any time, however late
  Wait wait;
  wait.producer = producer;
  wait.reader = reader;
  wait.moves.assign(devices_ * devices_, kInfinity);
  wait.rents.assign(devices_, 0);
  wait.differences.assign(devices_, 0);
  for (const std::size_t from : tree.nodes[producer].devices) {
    for (const std::size_t to : tree.nodes[reader].devices) {
      wait.moves[from * devices_ + to] =
          move_time(problem_, tensor, DeviceId{from}, DeviceId{to}) / length_;
    }
  }
  tree.nodes[producer].waited_for.push_back(tree.waits.size());
  tree.nodes[reader].waits.push_back(tree.waits.size());
  tree.waits.push_back(std::move(wait));
}

// A plan of the value leaves a model what the others do not need at the least.
void PricedTime::limit_completions() {
  const Table<ModelId, double> paths = critical_paths(problem_);
  double spare = value_;
  for (const ModelId model : problem_.models()) {
    spare -= problem_.model(model).weight * (paths[model] - problem_.model(model).arrival);
  }
  for (const ModelId model : problem_.models()) {
    Tree& tree = trees_[model.index()];
    tree.latest = kNoLimit;
    if (tree.weight == 0) continue;  // it has no waits either
    const double latest = (paths[model] + std::max(0.0, spare) / tree.weight) / length_;
    tree.latest = std::clamp(latest * (1 + 1e-9), static_cast<double>(bins_), kNoLimit);
  }
}

std::size_t PricedTime::assumed_device(const Tree& tree, const Wait& wait,
                                       std::size_t device) const {
  std::size_t best = kNever;
  double least = kInfinity;
  for (const std::size_t from : tree.nodes[wait.producer].devices) {
    const double move = wait.moves[from * devices_ + device];
    if (move == kInfinity) continue;
    const double pay = wait.price * move - wait.rents[from];
    if (pay >= least) continue;
    least = pay;
    best = from;
  }
  return best;
}

PricedTime::Charge PricedTime::charge(const Tree& tree, const Node& node,
                                      std::size_t device) const {
  Charge charge;
  charge.bearer = bearers_.of_device[DeviceId{device}];
  charge.amount = bearers_.amount[DeviceId{device}] * problem_.share(node.id, DeviceId{device});
  charge.length = problem_.time(node.id, DeviceId{device}) / length_;
  // An op that is longer pays for all bins from its start on, as one of this length does.
  const double counted = std::min(charge.length, static_cast<double>(bins_ + 1));
  charge.whole_bins = static_cast<std::size_t>(counted);
  charge.part = counted - static_cast<double>(charge.whole_bins);
  charge.rest = charge.length + tails_[node.id] / length_;
  for (const std::size_t number : node.waited_for) {
    const Wait& wait = tree.waits[number];
    charge.slope += wait.price;
    charge.fixed += wait.price * charge.length + wait.rents[device];
  }
  for (const std::size_t number : node.waits) {
    const Wait& wait = tree.waits[number];
    const std::size_t from = assumed_device(tree, wait, device);
    if (from == kNever) return {.fixed = kInfinity};
    charge.slope -= wait.price;
    charge.fixed += wait.price * wait.moves[from * devices_ + device] - wait.rents[from];
  }
  return charge;
}

// Linear between the moments at which the start or the end crosses a border of bins.
PricedTime::Payment PricedTime::least_payment(const Charge& charge, std::size_t bin) const {
  const double* const from = &paid_[charge.bearer * paid_stride() + bin];
  const double* const to = from + charge.whole_bins;
  const auto begin = static_cast<double>(bin);
  const double crossing = begin + 1 - charge.part;
  Payment best{kInfinity, begin};
  const auto offer = [&](double moment, double time) {
    const double price = charge.amount * std::max(0.0, time) + charge.slope * moment;
    if (price < best.price) best = {price, moment};
  };
  offer(begin, to[0] + charge.part * (to[1] - to[0]) - from[0]);
  offer(crossing, to[1] - from[0] - (1 - charge.part) * (from[1] - from[0]));
  offer(begin + 1, to[1] + charge.part * (to[2] - to[1]) - from[1]);
  best.price += charge.fixed;
  return best;
}

PricedTime::Payment PricedTime::late_payment(const Tree& tree, const Charge& charge,
                                             std::size_t bin) const {
  const auto horizon = static_cast<double>(bins_);
  const double completion = bin == near() ? horizon : tree.latest;
  const double moment = charge.slope < 0 ? completion - charge.rest : horizon;
  return {charge.fixed + charge.slope * moment, moment};
}

// From where the input comes, if its reader starts on the device in the bin.
std::size_t PricedTime::best_source(const Tree& tree, const Input& input, std::size_t device,
                                    std::size_t bin) const {
  std::size_t best = kNever;
  double least = kInfinity;
  for (const std::size_t from : tree.nodes[input.op].devices) {
    const std::size_t shift = input.shifts[from * devices_ + device];
    if (shift == kNever || (bin < bins_ && shift > bin)) continue;
    const double price = least_[cell(input.op, from, earlier(bin, shift))];
    if (price >= least) continue;
    least = price;
    best = from;
  }
  return best;
}

void PricedTime::fill(const Tree& tree, std::size_t place) {
  const Node& node = tree.nodes[place];
  std::vector<double> whole(bins_ + 2);
  std::vector<double> source(bins_ + 2);
  for (const std::size_t device : node.devices) {
    const Charge paid = charge(tree, node, device);
    std::ranges::fill(whole, kInfinity);
    const double latest = tree.latest - paid.rest;
    for (std::size_t bin = node.first[device]; bin < bins_ && static_cast<double>(bin) <= latest;
         ++bin) {
      whole[bin] = least_payment(paid, bin).price;
    }
    for (const std::size_t late : {near(), far()}) {
      whole[late] = late_payment(tree, paid, late).price;
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
        for (const std::size_t late : {near(), far()}) {
          source[late] = std::min(source[late], before[late]);
        }
      }
      for (std::size_t bin = 0; bin <= far(); ++bin) whole[bin] += source[bin];
    }
    double* least = &least_[cell(place, device, 0)];
    std::uint32_t* where = &where_[cell(place, device, 0)];
    double smallest = kInfinity;
    std::uint32_t at = 0;
    for (std::size_t bin = 0; bin < bins_; ++bin) {
      if (whole[bin] < smallest) {
        smallest = whole[bin];
        at = static_cast<std::uint32_t>(bin);
      }
      least[bin] = smallest;
      where[bin] = at;
    }
    for (const std::size_t late : {near(), far()}) {
      const bool beyond = whole[late] < smallest;
      least[late] = beyond ? whole[late] : smallest;
      where[late] = beyond ? static_cast<std::uint32_t>(late) : at;
    }
  }
}

void PricedTime::use(Tree& tree, std::size_t place, std::size_t device, std::size_t bin) {
  const Node& node = tree.nodes[place];
  const std::size_t start = where_[cell(place, device, bin)];
  const Charge paid = charge(tree, node, device);
  double length = paid.length;
  double moment =
      start < bins_ ? least_payment(paid, start).moment : late_payment(tree, paid, start).moment;
  tree.starts[place] = {device, moment};
  while (length > 0 && moment < static_cast<double>(bins_)) {
    const auto now = static_cast<std::size_t>(moment);
    const double taken = std::min(length, static_cast<double>(now + 1) - moment);
    use_[paid.bearer * bins_ + now] += taken * paid.amount;
    length -= taken;
    moment = static_cast<double>(now + 1);
  }
  for (const Input& input : node.inputs) {
    const std::size_t from = best_source(tree, input, device, start);
    if (from == kNever) continue;
    const std::size_t shift = input.shifts[from * devices_ + device];
    use(tree, input.op, from, earlier(start, shift));
  }
}

// The least weight x (completion - arrival) + payments of a model, and its use of the devices.
double PricedTime::cheapest(Tree& tree) {
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
  std::size_t end = near();
  for (std::size_t bin = 0; bin <= far(); ++bin) {
    const double moment = bin == far() ? tree.latest : static_cast<double>(bin);
    const double completion = std::max(tree.arrival, moment * length_);
    double price = tree.weight * (completion - tree.arrival);
    for (const Input& input : ends) {
      const std::size_t from = best_source(tree, input, 0, bin);
      price += from == kNever
                   ? kInfinity
                   : least_[cell(input.op, from, earlier(bin, input.shifts[from * devices_]))];
    }
    if (price < best) {
      best = price;
      end = bin;
    }
  }
  if (best == kInfinity) return best;
  for (const Input& input : ends) {
    const std::size_t from = best_source(tree, input, 0, end);
    use(tree, input.op, from, earlier(end, input.shifts[from * devices_]));
  }
  return best;
}

double PricedTime::step() {
  for (std::size_t bearer = 0; bearer < bearers_.capacity.size(); ++bearer) {
    double* const paid = &paid_[bearer * paid_stride()];
    for (std::size_t bin = 0; bin + 1 < paid_stride(); ++bin) {
      paid[bin + 1] = paid[bin] + (bin < bins_ ? prices_[bearer * bins_ + bin] : 0);
    }
  }
  std::ranges::fill(use_, 0);
  double bound = 0;
  for (Tree& tree : trees_) bound += cheapest(tree);
  for (std::size_t bearer = 0; bearer < bearers_.capacity.size(); ++bearer) {
    bound -= paid_[bearer * paid_stride() + bins_] * bearers_.capacity[bearer];
  }
  if (!(bound < kInfinity)) return 0;  // no plan exists, which is not for a bound to say
  change_prices(bound);
  return safe_search(std::clamp(bound, 0.0, value_));
}

Table<OpId, double> PricedTime::moments(double part) const {
  Table<OpId, double> moments(problem_.op_count(), 0);
  for (const Tree& tree : trees_) {
    for (std::size_t place = 0; place < tree.nodes.size(); ++place) {
      const OpId op = tree.nodes[place].id;
      const Start& start = tree.starts[place];
      moments[op] = start.moment * length_ + part * problem_.time(op, DeviceId{start.device});
    }
  }
  return moments;
}

double PricedTime::measure_use() {
  double norm = 0;
  for (std::size_t bearer = 0; bearer < bearers_.capacity.size(); ++bearer) {
    for (std::size_t bin = 0; bin < bins_; ++bin) {
      const std::size_t at = bearer * bins_ + bin;
      use_[at] -= bearers_.capacity[bearer];
      if (use_[at] > 0 || prices_[at] > 0) norm += use_[at] * use_[at];
    }
  }
  return norm;
}

double PricedTime::measure_waits(Tree& tree) {
  const double weight = kWaitWeight / std::sqrt(static_cast<double>(bins_));
  double norm = 0;
  for (Wait& wait : tree.waits) {
    const Start& producer = tree.starts[wait.producer];
    const Start& reader = tree.starts[wait.reader];
    const std::size_t assumed = assumed_device(tree, wait, reader.device);
    const OpId op = tree.nodes[wait.producer].id;
    const double end = producer.moment + problem_.time(op, DeviceId{producer.device}) / length_;
    wait.early = weight * (end + wait.moves[assumed * devices_ + reader.device] - reader.moment);
    if (wait.early > 0 || wait.price > 0) norm += wait.early * wait.early;
    std::ranges::fill(wait.differences, 0);
    wait.differences[producer.device] += 1;
    wait.differences[assumed] -= 1;
    norm += producer.device == assumed ? 0 : 2;
  }
  return norm;
}

void PricedTime::change_prices(double bound) {
  if (bound > best_ * (1 + 1e-6)) {
    best_ = bound;
    without_gain_ = 0;
  } else if (++without_gain_ >= kPatience) {
    pace_ /= 2;
    without_gain_ = 0;
  }
  double norm = measure_use();
  for (Tree& tree : trees_) norm += measure_waits(tree);
  if (norm == 0) return;
  const double stride = pace_ * std::max(0.0, value_ - bound) / norm;
  for (std::size_t at = 0; at < prices_.size(); ++at) {
    prices_[at] = std::max(0.0, prices_[at] + stride * use_[at]);
  }
  const double weight = kWaitWeight / std::sqrt(static_cast<double>(bins_));
  for (Tree& tree : trees_) {
    for (Wait& wait : tree.waits) {
      wait.price = std::max(0.0, wait.price + stride * weight * wait.early);
      for (std::size_t device = 0; device < devices_; ++device) {
        wait.rents[device] += stride * wait.differences[device];
      }
    }
  }
}

}  // namespace placewright
