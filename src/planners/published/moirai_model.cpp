#include "planners/published/moirai_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "evaluate/schedule.h"
#include "problem/reachability.h"

namespace placewright {
namespace {

using solvers::Integrality;
using solvers::kUnbounded;
using solvers::LinearProgram;
using solvers::LinearTerm;
using Terms = std::vector<LinearTerm>;

// The known plan has this value inside: far from the solver's tolerances, both ways.
constexpr double kUnitsOfStart = 1000;

Terms plus(Terms sum, const Terms& other, double factor = 1) {
  for (const LinearTerm& term : other) sum.push_back({term.variable, term.coefficient * factor});
  return sum;
}

// An op or a transfer: it starts, lasts, and takes resources where it goes.
struct Activity {
  int start = 0;
  Terms length;
  std::vector<std::pair<std::size_t, Terms>> uses;  // resource, and 0/1: whether it takes it
  double earliest = 0;                              // start
  double latest = 0;                                // end
  OpId op;                                          // or
  TensorId tensor;
  Leg leg = Leg::direct;
  DeviceId to;  // where the tensor goes; not valid: wherever its only reader is
};

struct Order {
  std::size_t first;
  std::size_t second;
  int variable;  // 1: as named
};

}  // namespace

class MoiraiModel::State {
 public:
  State(const Problem& problem, const Plan* start)
      : problem_(problem),
        start_(start),
        reach_(problem.topological_order(), [&](OpId op) { return problem.successors(op); }),
        latency_(problem.objective() == Objective::latency),
        choices_(problem.group_count()),
        ops_(problem.op_count()),
        tensors_(problem.tensor_count()) {
    set_unit();
    set_windows();
    add_choices();
    add_completions();
    add_ops();
    for (const TensorId tensor : problem_.tensors()) add_tensor(tensor);
    add_memory();
    find_orders();
  }

  [[nodiscard]] std::size_t order_variables() const { return orders_.size(); }
  void add_orders();
  solvers::LinearResult solve(const solvers::LinearLimits& limits,
                              const solvers::LinearProgressCallback& progress);
  [[nodiscard]] Plan plan(std::span<const double> values) const;
  [[nodiscard]] double value(double objective) const { return objective * unit_; }

 private:
  using Choice = std::pair<DeviceId, int>;
  using Route = std::tuple<DeviceId, DeviceId, int>;  // from, to, variable

  // Steps of the construction.
  void set_unit();
  void set_windows();
  void add_choices();
  void add_completions();
  void add_ops();
  void add_tensor(TensorId tensor);
  void add_edge(TensorId tensor, OpId reader);
  void add_links(TensorId tensor, const std::vector<OpId>& readers);
  void add_host(TensorId tensor, const std::vector<OpId>& readers);
  void add_memory();
  void find_orders();
  void add_order_rows(const Order& order);

  // Building blocks.
  [[nodiscard]] double units(double time) const { return time / unit_; }
  [[nodiscard]] int choice(OpId op, DeviceId device) const;
  [[nodiscard]] Terms chosen(OpId op, DeviceId device) const;
  [[nodiscard]] std::vector<Route> pair_variables(OpId producer, OpId reader);
  [[nodiscard]] double move(TensorId tensor, DeviceId from, DeviceId to) const;
  std::size_t add_transfer(TensorId tensor, Leg leg, DeviceId to, Terms length);
  Terms end_of(const Activity& activity) const {
    return plus({{activity.start, 1}}, activity.length);
  }
  void follow(int later, const Terms& earlier, double offset = 0);
  void follow_if(int later, const Terms& earlier, const Terms& condition, double slack);
  [[nodiscard]] bool path(const Activity& a, const Activity& b) const;
  [[nodiscard]] bool may_meet(const Activity& a, const Activity& b) const;

  [[nodiscard]] DeviceId destination(const Activity& transfer, const Placement& placement) const;
  [[nodiscard]] std::vector<double> start_point() const;

  const Problem& problem_;
  const Plan* start_;
  Reachability<OpId> reach_;
  bool latency_;
  double unit_ = 1;
  double horizon_ = 0;
  Table<OpId, double> head_;
  Table<OpId, double> tail_;  // from its start, itself included

  LinearProgram program_;
  Table<GroupId, std::vector<Choice>> choices_;
  std::map<std::pair<GroupId, GroupId>, std::vector<Route>> pairs_;
  std::vector<Activity> activities_;
  Table<OpId, std::size_t> ops_;                       // op -> activity
  Table<TensorId, std::vector<std::size_t>> tensors_;  // tensor -> activities
  std::vector<int> completions_;
  std::vector<Order> orders_;

  // How to fill in the start point: a variable as a product or a function of the placement.
  std::vector<std::pair<int, std::function<double(const Placement&)>>> derived_;
};

// The unit makes the start plan a round number; without one, the time that everything takes in a
// row.
void MoiraiModel::State::set_unit() {
  double serial = 0;
  double latest = 0;
  for (const OpId op : problem_.ops()) {
    double most = 0;
    for (const DeviceId device : problem_.devices()) {
      if (problem_.allowed(op, device)) most = std::max(most, problem_.time(op, device));
    }
    serial += most;
    latest = std::max(latest, problem_.model(problem_.op(op).model).arrival);
  }
  for (const TensorId tensor : problem_.tensors()) {
    double most = 0;
    for (const DeviceId from : problem_.devices()) {
      for (const DeviceId to : problem_.devices()) {
        if (from == to || !problem_.reachable(tensor, from, to)) continue;
        most = std::max(most, move(tensor, from, to) * unit_);
      }
    }
    serial += most * static_cast<double>(
                         std::min(problem_.consumers(tensor).size(), problem_.device_count()));
  }
  const double known = start_ != nullptr && latency_ ? start_->value * (1 + 1e-7) : kInfinity;
  const double end = std::min(known, latest + serial);
  unit_ = end > 0 ? end / kUnitsOfStart : 1;
  horizon_ = units(end);
}

void MoiraiModel::State::set_windows() {
  head_ = Table<OpId, double>(problem_.op_count(), 0);
  tail_ = Table<OpId, double>(problem_.op_count(), 0);
  Table<OpId, double> least(problem_.op_count(), kInfinity);
  for (const OpId op : problem_.topological_order()) {
    for (const DeviceId device : problem_.devices()) {
      if (problem_.allowed(op, device)) {
        least[op] = std::min(least[op], units(problem_.time(op, device)));
      }
    }
    head_[op] = units(problem_.model(problem_.op(op).model).arrival);
    for (const OpId before : problem_.predecessors(op)) {
      head_[op] = std::max(head_[op], head_[before] + least[before]);
    }
  }
  const auto order = problem_.topological_order();
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    for (const OpId next : problem_.successors(*at)) {
      tail_[*at] = std::max(tail_[*at], tail_[next]);
    }
    tail_[*at] += least[*at];
  }
}

void MoiraiModel::State::add_choices() {
  for (const GroupId group : problem_.groups()) {
    Terms one;
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.group_allowed(group, device)) continue;
      const int variable = program_.add_variable(0, 1, 0, Integrality::integer);
      choices_[group].emplace_back(device, variable);
      one.push_back({variable, 1});
      const OpId member = problem_.group_ops(group).front();
      derived_.emplace_back(variable, [member, device](const Placement& placement) {
        return placement[member] == device ? 1.0 : 0.0;
      });
    }
    program_.add_row(1, 1, one);
  }
}

void MoiraiModel::State::add_completions() {
  if (latency_) {
    completions_ = {program_.add_variable(0, horizon_, 1)};
    return;
  }
  for (const Model& model : problem_.draft().models) {
    // Counted from the arrival, so that the objective is the value itself.
    completions_.push_back(program_.add_variable(0, horizon_, model.weight));
  }
}

void MoiraiModel::State::add_ops() {
  for (const OpId op : problem_.topological_order()) {
    Activity activity;
    activity.op = op;
    activity.earliest = head_[op];
    double least = kInfinity;
    for (const auto& [device, variable] : choices_[problem_.group(op)]) {
      const double time = units(problem_.time(op, device));
      least = std::min(least, time);
      if (time == 0) continue;
      activity.length.push_back({variable, time});
      activity.uses.emplace_back(device.index(), Terms{{variable, 1}});
    }
    activity.latest = latency_ ? horizon_ - tail_[op] + least : horizon_;
    // Colocated ops may have no common device; then the model is infeasible by its rows.
    const double last = std::max(head_[op], std::isfinite(least) ? activity.latest - least : 0);
    activity.start = program_.add_variable(head_[op], last, 0);
    const std::size_t model = latency_ ? 0 : problem_.op(op).model.index();
    const double arrival = latency_ ? 0 : units(problem_.model(problem_.op(op).model).arrival);
    follow(completions_[model], end_of(activity), -arrival);
    ops_[op] = activities_.size();
    activities_.push_back(std::move(activity));
  }
}

// later >= earlier + offset
void MoiraiModel::State::follow(int later, const Terms& earlier, double offset) {
  program_.add_row(offset, kUnbounded, plus({{later, 1}}, earlier, -1));
}

// The same where the condition is 1; where it is 0 it may be late by `slack`.
void MoiraiModel::State::follow_if(int later, const Terms& earlier, const Terms& condition,
                                   double slack) {
  if (slack <= 0) return;
  program_.add_row(-slack, kUnbounded, plus(plus({{later, 1}}, earlier, -1), condition, -slack));
}

int MoiraiModel::State::choice(OpId op, DeviceId device) const {
  for (const auto& [place, variable] : choices_[problem_.group(op)]) {
    if (place == device) return variable;
  }
  return -1;
}

Terms MoiraiModel::State::chosen(OpId op, DeviceId device) const {
  const int variable = choice(op, device);
  return variable < 0 ? Terms{} : Terms{{variable, 1}};
}

double MoiraiModel::State::move(TensorId tensor, DeviceId from, DeviceId to) const {
  if (from == to) return 0;
  if (problem_.interconnect() == InterconnectKind::links) {
    return units(problem_.link_time(tensor, from, to));
  }
  const double once = units(problem_.host_time(tensor));
  return (problem_.on_host(from) ? 0 : once) + (problem_.on_host(to) ? 0 : once);
}

void MoiraiModel::State::add_tensor(TensorId tensor) {
  const OpId producer = problem_.producer(tensor);
  std::vector<OpId> readers;
  for (const OpId reader : problem_.consumers(tensor)) {
    if (problem_.group(reader) == problem_.group(producer)) {
      follow(activities_[ops_[reader]].start, end_of(activities_[ops_[producer]]));
    } else {
      readers.push_back(reader);
    }
  }
  if (readers.empty()) return;
  if (!problem_.rules().congestion) {
    for (const OpId reader : readers) add_edge(tensor, reader);
  } else if (problem_.interconnect() == InterconnectKind::host) {
    add_host(tensor, readers);
  } else if (readers.size() == 1) {
    add_edge(tensor, readers.front());
  } else {
    add_links(tensor, readers);
  }
}

// One variable for each pair of devices; they need not be declared integer, since the choices are.
std::vector<MoiraiModel::State::Route> MoiraiModel::State::pair_variables(OpId producer,
                                                                          OpId reader) {
  const GroupId from = problem_.group(producer);
  const GroupId to = problem_.group(reader);
  auto [known, fresh] = pairs_.try_emplace({from, to});
  if (!fresh) return known->second;
  std::map<int, Terms> rows;
  for (const auto& [a, here] : choices_[from]) {
    for (const auto& [b, there] : choices_[to]) {
      const int variable = program_.add_variable(0, 1, 0);
      rows[here].push_back({variable, 1});
      rows[there].push_back({variable, 1});
      derived_.emplace_back(variable, [producer, reader, a = a, b = b](const Placement& placement) {
        return placement[producer] == a && placement[reader] == b ? 1.0 : 0.0;
      });
      known->second.emplace_back(a, b, variable);
    }
  }
  for (const auto& [choice, terms] : rows) program_.add_row(0, 0, plus(terms, {{choice, 1}}, -1));
  return known->second;
}

// One reader: the tensor goes from wherever the producer is to wherever the reader is.
void MoiraiModel::State::add_edge(TensorId tensor, OpId reader) {
  const OpId producer = problem_.producer(tensor);
  Terms length;
  std::map<std::size_t, Terms> uses;
  for (const auto& [from, to, variable] : pair_variables(producer, reader)) {
    if (from == to) continue;
    if (!problem_.reachable(tensor, from, to)) {
      program_.set_bounds(variable, 0, 0);
      continue;
    }
    const double time = move(tensor, from, to);
    if (time == 0) continue;
    length.push_back({variable, time});
    uses[problem_.device_count() + from.index()].push_back({variable, 1});
    uses[2 * problem_.device_count() + to.index()].push_back({variable, 1});
  }
  const int begin = activities_[ops_[reader]].start;
  if (!problem_.rules().congestion || length.empty()) {
    follow(begin, plus(end_of(activities_[ops_[producer]]), length));
    return;
  }
  const std::size_t index = add_transfer(tensor, Leg::direct, DeviceId{}, std::move(length));
  activities_[index].uses.assign(uses.begin(), uses.end());
  follow(begin, end_of(activities_[index]));
}

std::size_t MoiraiModel::State::add_transfer(TensorId tensor, Leg leg, DeviceId to, Terms length) {
  const OpId producer = problem_.producer(tensor);
  Activity activity;
  activity.tensor = tensor;
  activity.leg = leg;
  activity.to = to;
  activity.length = std::move(length);
  activity.earliest = head_[producer];
  double least = kInfinity;
  for (const auto& [device, variable] : choices_[problem_.group(producer)]) {
    least = std::min(least, units(problem_.time(producer, device)));
  }
  if (std::isfinite(least)) activity.earliest += least;
  activity.latest = 0;
  for (const OpId reader : problem_.consumers(tensor)) {
    activity.latest = std::max(activity.latest, latency_ ? horizon_ - tail_[reader] : horizon_);
  }
  activity.start =
      program_.add_variable(activity.earliest, std::max(activity.earliest, activity.latest), 0);
  follow(activity.start, end_of(activities_[ops_[producer]]));
  tensors_[tensor].push_back(activities_.size());
  activities_.push_back(std::move(activity));
  return activities_.size() - 1;
}

// Several readers: one transfer to each device that has one.
void MoiraiModel::State::add_links(TensorId tensor, const std::vector<OpId>& readers) {
  const OpId producer = problem_.producer(tensor);
  for (const DeviceId to : problem_.devices()) {
    Terms length;
    Terms enters;
    std::vector<std::pair<std::size_t, Terms>> uses;
    for (const auto& [from, here] : choices_[problem_.group(producer)]) {
      if (from == to) continue;
      const bool reachable = problem_.reachable(tensor, from, to);
      const int taken = reachable ? program_.add_variable(0, 1, 0) : -1;
      for (const OpId reader : readers) {
        const int there = choice(reader, to);
        if (there < 0) continue;
        Terms row{{here, -1}, {there, -1}};
        if (reachable) row.push_back({taken, 1});
        program_.add_row(-1, kUnbounded, row);
      }
      if (!reachable) continue;
      derived_.emplace_back(taken, [=, from = from](const Placement& placement) {
        const bool read = std::any_of(readers.begin(), readers.end(),
                                      [&](OpId reader) { return placement[reader] == to; });
        return read && placement[producer] == from ? 1.0 : 0.0;
      });
      const double time = move(tensor, from, to);
      if (time == 0) continue;
      length.push_back({taken, time});
      enters.push_back({taken, 1});
      uses.emplace_back(problem_.device_count() + from.index(), Terms{{taken, 1}});
    }
    uses.emplace_back(2 * problem_.device_count() + to.index(), enters);
    const std::size_t index = add_transfer(tensor, Leg::direct, to, std::move(length));
    activities_[index].uses = std::move(uses);
    for (const OpId reader : readers) {
      const Terms there = chosen(reader, to);
      if (there.empty()) continue;
      const Activity& own = activities_[ops_[reader]];
      follow_if(own.start, end_of(activities_[index]), there, horizon_ - own.earliest);
    }
  }
  for (const OpId reader : readers) {
    follow(activities_[ops_[reader]].start, end_of(activities_[ops_[producer]]));
  }
}

void MoiraiModel::State::add_host(TensorId tensor, const std::vector<OpId>& readers) {
  const OpId producer = problem_.producer(tensor);
  const double once = units(problem_.host_time(tensor));
  Terms straight;
  std::vector<std::pair<std::size_t, Terms>> out_uses;
  for (const auto& [from, here] : choices_[problem_.group(producer)]) {
    if (problem_.on_host(from)) continue;
    const int taken = program_.add_variable(0, 1, 0);
    for (const OpId reader : readers) {
      program_.add_row(0, kUnbounded, plus({{taken, 1}, {here, -1}}, chosen(reader, from)));
    }
    derived_.emplace_back(taken, [=, from = from](const Placement& placement) {
      return placement[producer] == from &&
                     std::any_of(readers.begin(), readers.end(),
                                 [&](OpId reader) { return placement[reader] != from; })
                 ? 1.0
                 : 0.0;
    });
    straight.push_back({taken, once});
    out_uses.emplace_back(problem_.device_count() + from.index(), Terms{{taken, 1}});
  }
  const std::size_t out = add_transfer(tensor, Leg::out, DeviceId{}, straight);
  if (once > 0) activities_[out].uses = std::move(out_uses);
  const Terms in_host_memory = end_of(activities_[out]);

  for (const DeviceId to : problem_.devices()) {
    for (const OpId reader : readers) {
      const Terms there = chosen(reader, to);
      const Activity& own = activities_[ops_[reader]];
      if (there.empty() || !problem_.on_host(to)) continue;
      follow_if(own.start, in_host_memory, there, horizon_ - own.earliest);
    }
    if (problem_.on_host(to)) continue;
    const int taken = program_.add_variable(0, 1, 0);
    for (const OpId reader : readers) {
      const Terms there = chosen(reader, to);
      if (there.empty()) continue;
      program_.add_row(0, kUnbounded, plus(plus({{taken, 1}}, there, -1), chosen(producer, to)));
    }
    derived_.emplace_back(taken, [=](const Placement& placement) {
      return placement[producer] != to &&
                     std::any_of(readers.begin(), readers.end(),
                                 [&](OpId reader) { return placement[reader] == to; })
                 ? 1.0
                 : 0.0;
    });
    straight.push_back({taken, once});
    const std::size_t in = add_transfer(tensor, Leg::in, to, {{taken, once}});
    if (once > 0) {
      activities_[in].uses = {{2 * problem_.device_count() + to.index(), Terms{{taken, 1}}}};
    }
    const Activity& entering = activities_[in];
    follow_if(entering.start, in_host_memory, {{taken, 1}}, horizon_ - entering.earliest);
    for (const OpId reader : readers) {
      const Terms there = chosen(reader, to);
      const Activity& own = activities_[ops_[reader]];
      if (!there.empty()) {
        follow_if(own.start, end_of(entering), there, horizon_ - own.earliest);
      }
    }
  }
  for (const OpId reader : readers) {
    const Terms on_the_way = readers.size() == 1 ? straight : Terms{};
    follow(activities_[ops_[reader]].start, plus(end_of(activities_[ops_[producer]]), on_the_way));
  }
}

void MoiraiModel::State::add_memory() {
  for (const DeviceId device : problem_.devices()) {
    const double capacity = problem_.device(device).memory;
    if (capacity == kInfinity) continue;
    // Rows in shares of the device; an empty device holds nothing of any size.
    const double scale = capacity > 0 ? 1 / capacity : 1;
    Terms load;
    for (const OpId op : problem_.ops()) {
      const int here = choice(op, device);
      if (here >= 0 && problem_.memory(op) > 0) load.push_back({here, problem_.memory(op) * scale});
    }
    for (const SharedWeight& weight : problem_.draft().shared_weights) {
      if (weight.bytes == 0) continue;
      const int held = program_.add_variable(0, 1, 0);
      for (const OpId op : weight.ops) {
        const int here = choice(op, device);
        if (here >= 0) program_.add_row(0, kUnbounded, Terms{{held, 1}, {here, -1}});
      }
      derived_.emplace_back(held, [device, ops = weight.ops](const Placement& placement) {
        return std::any_of(ops.begin(), ops.end(), [&](OpId op) { return placement[op] == device; })
                   ? 1.0
                   : 0.0;
      });
      load.push_back({held, weight.bytes * scale});
    }
    program_.add_row(-kUnbounded, capacity * scale, load);
  }
}

// Whether a comes before b in any schedule in which both take place.
bool MoiraiModel::State::path(const Activity& a, const Activity& b) const {
  const OpId target = b.op.valid() ? b.op : problem_.producer(b.tensor);
  const auto leads = [&](OpId from) { return from == target || reach_.path(from, target); };
  if (a.op.valid()) return b.op.valid() ? reach_.path(a.op, target) : leads(a.op);
  const auto readers = problem_.consumers(a.tensor);
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), leads);
}

bool MoiraiModel::State::may_meet(const Activity& a, const Activity& b) const {
  if (a.op.valid() != b.op.valid()) return false;
  if (a.latest <= b.earliest || b.latest <= a.earliest) return false;
  const bool common = std::any_of(a.uses.begin(), a.uses.end(), [&](const auto& mine) {
    return std::any_of(b.uses.begin(), b.uses.end(),
                       [&](const auto& other) { return mine.first == other.first; });
  });
  return common && !path(a, b) && !path(b, a);
}

void MoiraiModel::State::find_orders() {
  for (std::size_t i = 0; i < activities_.size(); ++i) {
    for (std::size_t j = i + 1; j < activities_.size(); ++j) {
      if (may_meet(activities_[i], activities_[j])) orders_.push_back({i, j, -1});
    }
  }
}

void MoiraiModel::State::add_orders() {
  for (Order& order : orders_) {
    order.variable = program_.add_variable(0, 1, 0, Integrality::integer);
    add_order_rows(order);
  }
}

void MoiraiModel::State::add_order_rows(const Order& order) {
  const Activity& a = activities_[order.first];
  const Activity& b = activities_[order.second];
  const double a_after_b = a.latest - b.earliest;
  const double b_after_a = b.latest - a.earliest;
  for (const auto& [resource, a_takes] : a.uses) {
    for (const auto& [other, b_takes] : b.uses) {
      if (other != resource) continue;
      const Terms both = plus(a_takes, b_takes);
      // start(b) >= end(a) - L (3 - order - a takes - b takes)
      Terms first = plus({{b.start, 1}}, end_of(a), -1);
      first = plus(std::move(first), plus({{order.variable, 1}}, both), -a_after_b);
      program_.add_row(-3 * a_after_b, kUnbounded, first);
      Terms second = plus({{a.start, 1}}, end_of(b), -1);
      second = plus(std::move(second), plus({{order.variable, -1}}, both), -b_after_a);
      program_.add_row(-2 * b_after_a, kUnbounded, second);
    }
  }
}

DeviceId MoiraiModel::State::destination(const Activity& transfer,
                                         const Placement& placement) const {
  if (transfer.to.valid() || transfer.leg == Leg::out) return transfer.to;
  // The only reader that may be elsewhere.
  const OpId producer = problem_.producer(transfer.tensor);
  for (const OpId reader : problem_.consumers(transfer.tensor)) {
    if (problem_.group(reader) != problem_.group(producer)) return placement[reader];
  }
  return DeviceId{};
}

// The start plan as a point of the program.
std::vector<double> MoiraiModel::State::start_point() const {
  const Placement& placement = start_->placement;
  const Schedule& schedule = *start_->schedule;
  std::vector<double> point(static_cast<std::size_t>(program_.variables()),
                            std::numeric_limits<double>::quiet_NaN());
  const auto at = [&](int variable) -> double& {
    return point[static_cast<std::size_t>(variable)];
  };
  for (const auto& [variable, rule] : derived_) at(variable) = rule(placement);

  std::map<std::tuple<TensorId, Leg, DeviceId>, double> known;
  for (const Transfer& transfer : schedule.transfers) {
    known[{transfer.tensor, transfer.leg, transfer.to}] = transfer.start;
  }
  std::vector<double> ends(activities_.size());
  for (std::size_t i = 0; i < activities_.size(); ++i) {
    const Activity& activity = activities_[i];
    double start = 0;
    if (activity.op.valid()) {
      start = schedule.start[activity.op];
    } else {
      const auto found =
          known.find({activity.tensor, activity.leg, destination(activity, placement)});
      start =
          found != known.end() ? found->second : schedule.end[problem_.producer(activity.tensor)];
    }
    at(activity.start) = ends[i] = units(start);
    for (const LinearTerm& term : activity.length) {
      ends[i] += term.coefficient * at(term.variable);
    }
    if (!activity.op.valid()) continue;
    const Model& model = problem_.model(problem_.op(activity.op).model);
    double& completion = at(completions_[latency_ ? 0 : problem_.op(activity.op).model.index()]);
    const double end = ends[i] - (latency_ ? 0 : units(model.arrival));
    completion = std::isnan(completion) ? end : std::max(completion, end);
  }
  for (const Order& order : orders_) {
    if (order.variable < 0) continue;
    const double a = at(activities_[order.first].start);
    const double b = at(activities_[order.second].start);
    const bool first = a < b || (a == b && ends[order.first] <= b);
    at(order.variable) = first ? 1 : 0;
  }
  return point;
}

solvers::LinearResult MoiraiModel::State::solve(const solvers::LinearLimits& limits,
                                                const solvers::LinearProgressCallback& progress) {
  if (start_ != nullptr) program_.set_start(start_point());
  return program_.solve(limits, progress);
}

Plan MoiraiModel::State::plan(std::span<const double> values) const {
  const auto at = [&](int variable) { return values[static_cast<std::size_t>(variable)]; };
  Placement placement(problem_.op_count());
  for (const OpId op : problem_.ops()) {
    double most = -1;
    for (const auto& [device, variable] : choices_[problem_.group(op)]) {
      if (at(variable) <= most) continue;
      most = at(variable);
      placement[op] = device;
    }
  }
  Schedule shape;
  shape.start.assign(problem_.op_count(), 0);
  shape.end.assign(problem_.op_count(), 0);
  for (const Activity& activity : activities_) {
    const double start = at(activity.start) * unit_;
    if (activity.op.valid()) {
      shape.start[activity.op] = start;
      shape.end[activity.op] = start + problem_.time(activity.op, placement[activity.op]);
    } else {
      const DeviceId from =
          activity.leg == Leg::in ? DeviceId{} : placement[problem_.producer(activity.tensor)];
      const DeviceId to = destination(activity, placement);
      shape.transfers.push_back({activity.tensor, activity.leg, from, to, start, start});
    }
  }
  return schedule_plan(problem_, placement, retime(problem_, placement, shape));
}

MoiraiModel::MoiraiModel(const Problem& problem, const Plan* start)
    : state_(std::make_unique<State>(problem, start)) {}
MoiraiModel::~MoiraiModel() = default;

std::size_t MoiraiModel::order_variables() const {
  return state_->order_variables();
}
void MoiraiModel::add_orders() {
  state_->add_orders();
}
solvers::LinearResult MoiraiModel::solve(const solvers::LinearLimits& limits,
                                         const solvers::LinearProgressCallback& progress) {
  return state_->solve(limits, progress);
}
Plan MoiraiModel::plan(std::span<const double> values) const {
  return state_->plan(values);
}
double MoiraiModel::value(double objective) const {
  return state_->value(objective);
}

}  // namespace placewright
