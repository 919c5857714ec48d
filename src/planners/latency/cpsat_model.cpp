#include "planners/latency/cpsat_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "evaluate/memory.h"
#include "evaluate/schedule.h"
#include "planners/latency/time_grid.h"
#include "solvers/cp_sat.h"

namespace placewright {
namespace {

using solvers::CpExpression;
using solvers::CpInterval;
using solvers::CpLiteral;
using solvers::CpModel;
using solvers::CpRange;
using solvers::CpResult;
using solvers::CpStatus;
using solvers::CpVariable;
using solvers::kCpMaximum;
using solvers::kCpMinimum;
using Units = std::int64_t;

// Sizes stay below this, so that sums over all ops are exact.
constexpr double kLargestSize = 1LL << 50;
// Weights of models: eight digits decide.
constexpr double kWeightUnits = 1e8;
constexpr double kLargestObjective = 1e18;

CpExpression plus(CpExpression sum, const CpExpression& other, Units factor = 1) {
  for (const auto& term : other.terms) {
    sum.terms.push_back({term.variable, term.coefficient * factor});
  }
  sum.offset += other.offset * factor;
  return sum;
}

// Whole numbers stay as they are where they fit, so that exactly full devices are packed exactly.
class MemoryGrid {
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

}  // namespace

class ScheduleModel::State {
 public:
  State(const Problem& problem, ScheduleScope scope, double at_most);

  void hint(const Placement& placement, const Schedule& schedule);
  void limit_objective(CpRange range) { model_.add_linear(objective_, range); }
  void require_below(double value) { limit_objective({kCpMinimum, objective_units(value) - 1}); }
  // Weights may have a common divisor, which the solver would round up to.
  void require_at_least(double bound) {
    limit_objective({objective_units(bound) - (heaviest_ - 1), kCpMaximum});
  }
  ScheduleSolution solve(const ScheduleLimits& limits) const;
  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(model_.variables() + model_.constraints());
  }

 private:
  struct Choice {
    DeviceId device;
    CpLiteral here;
  };
  struct OpVariables {
    CpVariable start;
    CpExpression length;
    CpExpression end;
    std::vector<CpLiteral> overheads;  // that lengthen it
    std::optional<CpVariable> length_variable;
    std::optional<CpVariable> end_variable;
  };
  // `later` starts after `earlier` where all conditions hold.
  struct Precedence {
    CpExpression earlier;
    std::vector<CpLiteral> conditions;
  };
  // A way a tensor may take.
  struct Route {
    TensorId tensor;
    Leg leg = Leg::direct;
    DeviceId from;
    DeviceId to;
    CpLiteral taken;
    Units length = 0;
  };
  // Routes of which at most one is taken, with the variable for its start.
  struct Sending {
    CpVariable start;
    TensorId tensor;
    Leg leg = Leg::direct;
    std::vector<Route> routes;
  };
  using Values = std::vector<std::int64_t>;

  // Building blocks.
  [[nodiscard]] bool inside(OpId op) const { return inside_[op] != 0; }
  [[nodiscard]] bool is_true(CpLiteral literal) const { return literal.code() == yes_.code(); }
  [[nodiscard]] bool is_false(CpLiteral literal) const { return literal.code() == (!yes_).code(); }
  [[nodiscard]] CpLiteral on(OpId op, DeviceId device) const;
  [[nodiscard]] std::span<const Choice> choices(OpId op) const {
    return choices_[problem_.group(op)];
  }
  void add_term(CpExpression& sum, CpLiteral literal, Units factor) const;
  void add_clause(std::vector<CpLiteral> literals);
  CpLiteral both(CpLiteral a, CpLiteral b);
  CpLiteral any(std::vector<CpLiteral> literals);
  CpVariable add_time(Units from);
  void follow(CpVariable later, CpExpression earlier, std::vector<CpLiteral> conditions = {});
  void reach(OpId reader, const CpExpression& arrival, std::vector<CpLiteral> conditions = {});
  [[nodiscard]] CpExpression end_of(OpId op) const;
  [[nodiscard]] Units move(TensorId tensor, DeviceId from, DeviceId to) const;

  // The model, step by step.
  void add_horizon(double at_most);
  void add_choices();
  void add_starts();
  void add_objective();
  void add_heads();
  void add_tails();
  void add_routes(TensorId tensor);
  void add_links(TensorId tensor, std::span<const OpId> readers);
  void add_link_edge(TensorId tensor, OpId reader);
  void add_host(TensorId tensor, std::span<const OpId> readers);
  void add_lengths();
  void add_compute();
  void add_movements();
  void move_by_links(const std::vector<OpId>& readers, TensorId tensor);
  void move_by_host(const std::vector<OpId>& readers, TensorId tensor);
  void occupy_ports(const Sending& sending);
  void add_resources();
  void add_work();
  void add_memory();
  void add_shared_weights(Table<DeviceId, CpExpression>& load, const MemoryGrid& grid);
  void add_after();
  [[nodiscard]] Units after(Resource resource, DeviceId device) const;
  [[nodiscard]] std::vector<OpId> readers_of(TensorId tensor) const;
  [[nodiscard]] bool touches(TensorId tensor) const;
  [[nodiscard]] CpVariable completion(OpId op) const {
    return completions_[latency_ ? 0 : problem_.op(op).model.index()];
  }

  // Objective <-> time.
  [[nodiscard]] Units objective_units(double value) const {
    return grid_.units((value + arrived_) * weight_scale_);
  }
  [[nodiscard]] double value_of(double objective) const {
    return grid_.time(objective) / weight_scale_ - arrived_;
  }

  // Hints.
  struct Activity {
    double start = 0;      // in the schedule that gives the hint
    std::size_t rank = 0;  // breaks ties in the direction of the graph
    OpId op;               // or
    const Sending* sending = nullptr;
  };
  [[nodiscard]] static std::int64_t value(const Values& values, CpLiteral literal);
  [[nodiscard]] static std::int64_t value(const Values& values, const CpExpression& sum);
  [[nodiscard]] Units earliest(const Values& values, CpVariable variable) const;
  [[nodiscard]] std::vector<Activity> activities_in_order(const Schedule& schedule) const;
  void time_activities(Values& values, const Schedule& schedule) const;

  const Problem& problem_;
  ScheduleScope scope_;
  bool latency_;
  bool congestion_;
  bool overheads_ = false;
  TimeGrid grid_;
  double weight_scale_ = 1;
  Units heaviest_ = 1;  // factor of a completion in the objective
  double arrived_ = 0;  // sum of weight x arrival: what the objective does not count
  Units horizon_ = 0;

  CpModel model_;
  CpLiteral yes_;
  Table<OpId, char> inside_;
  std::vector<OpId> order_;  // ops inside, in topological order
  Table<GroupId, std::vector<Choice>> choices_;
  Table<OpId, OpVariables> ops_;
  Table<OpId, std::vector<Units>> heads_;  // by choice
  Table<OpId, std::vector<Units>> tails_;
  std::map<std::pair<GroupId, GroupId>, std::vector<CpLiteral>> pairs_;
  std::vector<TensorId> tensors_;  // that touch the scope
  Table<TensorId, std::vector<Route>> routes_;
  std::vector<Sending> sendings_;
  Table<DeviceId, std::vector<CpInterval>> compute_;
  Table<DeviceId, std::vector<CpInterval>> out_;
  Table<DeviceId, std::vector<CpInterval>> in_;
  std::vector<CpVariable> completions_;
  CpExpression objective_;

  std::vector<std::vector<Precedence>> precedences_;  // by variable that starts later
  std::vector<std::pair<CpVariable, std::function<bool(const Values&)>>> derived_;
};

ScheduleModel::State::State(const Problem& problem, ScheduleScope scope, double at_most)
    : problem_(problem),
      scope_(std::move(scope)),
      latency_(problem.objective() == Objective::latency),
      congestion_(problem.rules().congestion),
      yes_(model_.add_integer(1, 1)),
      inside_(problem.op_count(), 0),
      choices_(problem.group_count()),
      ops_(problem.op_count()),
      heads_(problem.op_count()),
      tails_(problem.op_count()),
      routes_(problem.tensor_count()),
      compute_(problem.device_count()),
      out_(problem.device_count()),
      in_(problem.device_count()) {
  for (const Device& device : problem.draft().devices) {
    overheads_ |= device.send_overhead > 0 || device.receive_overhead > 0;
  }
  for (const OpId op : scope_.ops) inside_[op] = 1;
  order_ = scope_.ops;
  std::sort(order_.begin(), order_.end(), [&](OpId a, OpId b) {
    return problem_.topological_rank(a) < problem_.topological_rank(b);
  });
  for (const TensorId tensor : problem_.tensors()) {
    if (touches(tensor)) tensors_.push_back(tensor);
  }
  add_horizon(at_most);
  add_choices();
  add_heads();
  add_starts();
  add_objective();
  add_tails();
  for (const TensorId tensor : tensors_) add_routes(tensor);
  add_lengths();
  add_compute();
  add_movements();
  add_after();
  add_resources();
  add_work();
  if (scope_.memory) add_memory();
  model_.minimize(objective_);
  if (at_most < kInfinity) limit_objective({kCpMinimum, objective_units(at_most) + 1});
}

bool ScheduleModel::State::touches(TensorId tensor) const {
  if (inside(problem_.producer(tensor))) return true;
  const auto readers = problem_.consumers(tensor);
  return std::any_of(readers.begin(), readers.end(), [&](OpId op) { return inside(op); });
}

// Readers that matter here, those that sit with the producer for certain left out.
std::vector<OpId> ScheduleModel::State::readers_of(TensorId tensor) const {
  const OpId producer = problem_.producer(tensor);
  std::vector<OpId> readers;
  for (const OpId reader : problem_.consumers(tensor)) {
    if (!inside(reader) && !inside(producer)) continue;
    if (problem_.group(reader) != problem_.group(producer)) readers.push_back(reader);
  }
  return readers;
}

CpLiteral ScheduleModel::State::on(OpId op, DeviceId device) const {
  for (const Choice& choice : choices(op)) {
    if (choice.device == device) return choice.here;
  }
  return !yes_;
}

void ScheduleModel::State::add_term(CpExpression& sum, CpLiteral literal, Units factor) const {
  if (factor == 0 || is_false(literal)) return;
  if (is_true(literal)) {
    sum.offset += factor;
  } else if (literal.code() >= 0) {
    sum.terms.push_back({CpVariable{literal.code()}, factor});
  } else {
    sum.offset += factor;
    sum.terms.push_back({CpVariable{(!literal).code()}, -factor});
  }
}

void ScheduleModel::State::add_clause(std::vector<CpLiteral> literals) {
  if (std::any_of(literals.begin(), literals.end(), [&](CpLiteral l) { return is_true(l); }))
    return;
  std::erase_if(literals, [&](CpLiteral literal) { return is_false(literal); });
  model_.add_bool_or(literals);
}

CpLiteral ScheduleModel::State::both(CpLiteral a, CpLiteral b) {
  if (is_false(a) || is_false(b)) return !yes_;
  if (is_true(a) || a.code() == b.code()) return b;
  if (is_true(b)) return a;
  const CpVariable result = model_.add_bool();
  add_clause({!CpLiteral(result), a});
  add_clause({!CpLiteral(result), b});
  add_clause({!a, !b, CpLiteral(result)});
  derived_.emplace_back(result, [a, b](const Values& values) {
    return value(values, a) != 0 && value(values, b) != 0;
  });
  return result;
}

CpLiteral ScheduleModel::State::any(std::vector<CpLiteral> literals) {
  if (std::any_of(literals.begin(), literals.end(), [&](CpLiteral l) { return is_true(l); })) {
    return yes_;
  }
  std::erase_if(literals, [&](CpLiteral literal) { return is_false(literal); });
  std::sort(literals.begin(), literals.end(),
            [](CpLiteral a, CpLiteral b) { return a.code() < b.code(); });
  literals.erase(std::unique(literals.begin(), literals.end(),
                             [](CpLiteral a, CpLiteral b) { return a.code() == b.code(); }),
                 literals.end());
  if (literals.empty()) return !yes_;
  if (literals.size() == 1) return literals.front();
  const CpVariable result = model_.add_bool();
  for (const CpLiteral literal : literals) add_clause({!literal, CpLiteral(result)});
  derived_.emplace_back(result, [literals](const Values& values) {
    return std::any_of(literals.begin(), literals.end(),
                       [&](CpLiteral literal) { return value(values, literal) != 0; });
  });
  literals.push_back(!CpLiteral(result));
  add_clause(std::move(literals));
  return result;
}

CpVariable ScheduleModel::State::add_time(Units from) {
  const CpVariable time = model_.add_integer(from, horizon_);
  precedences_.resize(static_cast<std::size_t>(time.index) + 1);
  precedences_.back().push_back({CpExpression(from), {}});
  return time;
}

void ScheduleModel::State::follow(CpVariable later, CpExpression earlier,
                                  std::vector<CpLiteral> conditions) {
  if (std::any_of(conditions.begin(), conditions.end(), [&](CpLiteral l) { return is_false(l); })) {
    return;
  }
  std::erase_if(conditions, [&](CpLiteral literal) { return is_true(literal); });
  const CpExpression slack = plus(CpExpression(later), earlier, -1);
  model_.add_linear(slack, {0, kCpMaximum}, conditions);
  precedences_[static_cast<std::size_t>(later.index)].push_back(
      {std::move(earlier), std::move(conditions)});
}

// The reader starts after the arrival; one outside delays the end of everything.
void ScheduleModel::State::reach(OpId reader, const CpExpression& arrival,
                                 std::vector<CpLiteral> conditions) {
  if (inside(reader)) {
    follow(ops_[reader].start, arrival, std::move(conditions));
  } else {
    const double tail = scope_.tails.empty() ? 0 : scope_.tails[reader];
    follow(completion(reader), plus(arrival, CpExpression(grid_.units(tail))),
           std::move(conditions));
  }
}

CpExpression ScheduleModel::State::end_of(OpId op) const {
  if (inside(op)) return ops_[op].end;
  return CpExpression(grid_.units(scope_.ends.empty() ? 0 : scope_.ends[op]));
}

// How long a tensor is under way at least.
Units ScheduleModel::State::move(TensorId tensor, DeviceId from, DeviceId to) const {
  if (from == to) return 0;
  if (problem_.interconnect() == InterconnectKind::links) {
    return grid_.units(problem_.link_time(tensor, from, to));
  }
  const Units once = grid_.units(problem_.host_time(tensor));
  return (problem_.on_host(from) ? 0 : once) + (problem_.on_host(to) ? 0 : once);
}

// The grid of times, and a time by which everything can be done.
void ScheduleModel::State::add_horizon(double at_most) {
  std::vector<double> times;
  double serial = 0;
  double latest = 0;
  double overhead = 0;
  Table<OpId, double> path(problem_.op_count(), 0);
  double longest = 0;
  for (const Device& device : problem_.draft().devices) {
    times.insert(times.end(), {device.send_overhead, device.receive_overhead});
    overhead = std::max({overhead, device.send_overhead, device.receive_overhead});
  }
  for (const OpId op : order_) {
    double most = 0;
    double least = kInfinity;
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.allowed(op, device)) continue;
      times.push_back(problem_.time(op, device));
      most = std::max(most, times.back());
      least = std::min(least, times.back());
    }
    for (const OpId before : problem_.predecessors(op)) path[op] = std::max(path[op], path[before]);
    path[op] += least;
    longest = std::max(longest, path[op]);
    serial += most;
    const double arrival = problem_.model(problem_.op(op).model).arrival;
    times.push_back(arrival);
    latest = std::max(latest, arrival);
  }
  for (const TensorId tensor : tensors_) {
    double most = 0;
    for (const DeviceId from : problem_.devices()) {
      for (const DeviceId to : problem_.devices()) {
        if (from == to || !problem_.reachable(tensor, from, to)) continue;
        const bool host = problem_.interconnect() == InterconnectKind::host;
        const double time =
            host ? problem_.host_time(tensor) : problem_.link_time(tensor, from, to);
        times.push_back(time);
        most = std::max(most, time);
      }
    }
    const std::size_t readers = problem_.consumers(tensor).size();
    const auto journeys = static_cast<double>(1 + std::min(readers, problem_.device_count()));
    serial += journeys * (most + 2 * overhead);
    const OpId producer = problem_.producer(tensor);
    if (!inside(producer) && !scope_.ends.empty()) {
      times.push_back(scope_.ends[producer]);
      latest = std::max(latest, scope_.ends[producer]);
    }
  }
  double tail = 0;
  for (const double time : scope_.tails) tail = std::max(tail, time);
  for (const ScheduleScope::Tail& rest : scope_.after) tail = std::max(tail, rest.time);
  for (const ScheduleScope::Busy& busy : scope_.busy) latest = std::max(latest, busy.end);
  for (const ScheduleScope::Busy& busy : scope_.busy) serial += busy.end - busy.start;
  double end = latest + serial + tail;
  if (latency_) end = std::min(end, at_most);
  grid_ = TimeGrid::for_times(times, std::max(longest, latest), std::max(end, longest),
                              2 * order_.size());
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
      if (head >= kNever) add_clause({!choice.here});
      heads_[op].push_back(std::min(head, horizon_));
    }
  }
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
  for (const ModelId model : problem_.models()) {
    const double weight = problem_.model(model).weight;
    const double arrival = problem_.model(model).arrival;
    const auto factor = static_cast<Units>(std::floor(weight * weight_scale_));
    objective_.terms.push_back({completions_[model.index()], factor});
    heaviest_ = std::max(heaviest_, factor);
    follow(completions_[model.index()], CpExpression(grid_.units(arrival)));
    arrived_ += weight * arrival;
  }
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
      if (tail >= kNever) add_clause({!choice.here});
      tail = std::min(tail, horizon_);
      tails_[op].push_back(tail + grid_.units(problem_.time(op, choice.device)));
      add_term(end, choice.here, tails_[op].back());
    }
    follow(completions_.front(), end);
  }
}

// The literals that say which way a tensor goes, and what that adds to the lengths of ops.
void ScheduleModel::State::add_routes(TensorId tensor) {
  const std::vector<OpId> readers = readers_of(tensor);
  if (readers.empty()) return;
  const bool alone = !congestion_ && !overheads_;
  if (alone) {
    for (const OpId reader : readers) add_link_edge(tensor, reader);
  } else if (problem_.interconnect() == InterconnectKind::host) {
    add_host(tensor, readers);
  } else if (readers.size() == 1) {
    add_link_edge(tensor, readers.front());
  } else {
    add_links(tensor, readers);
  }
  if (!overheads_) return;
  const OpId producer = problem_.producer(tensor);
  for (const Route& route : routes_[tensor]) {
    if (route.from.valid() && inside(producer)) {
      const Units send = grid_.units(problem_.device(route.from).send_overhead);
      if (send == 0 || is_false(route.taken)) continue;
      add_term(ops_[producer].length, route.taken, send);
      ops_[producer].overheads.push_back(route.taken);
    }
  }
  for (const DeviceId device : problem_.devices()) {
    const Units receive = grid_.units(problem_.device(device).receive_overhead);
    const bool enters = std::any_of(routes_[tensor].begin(), routes_[tensor].end(),
                                    [&](const Route& route) { return route.to == device; });
    if (receive == 0 || !enters) continue;
    // Consumers stand in the order of the file; the first in topological order pays.
    std::vector<OpId> ranked = readers;
    std::sort(ranked.begin(), ranked.end(), [&](OpId a, OpId b) {
      return problem_.topological_rank(a) < problem_.topological_rank(b);
    });
    CpLiteral nobody = !on(producer, device);
    for (const OpId reader : ranked) {
      const CpLiteral pays = both(nobody, on(reader, device));
      nobody = both(nobody, !on(reader, device));
      if (!inside(reader) || is_false(pays)) continue;
      add_term(ops_[reader].length, pays, receive);
      ops_[reader].overheads.push_back(pays);
    }
  }
}

// One reader: which pair of devices. The rows "one pair for each device" are tight in the linear
// relaxation.
void ScheduleModel::State::add_link_edge(TensorId tensor, OpId reader) {
  const OpId producer = problem_.producer(tensor);
  const auto from = choices(producer);
  const auto to = choices(reader);
  auto [known, fresh] = pairs_.try_emplace({problem_.group(producer), problem_.group(reader)});
  std::vector<CpLiteral>& pairs = known->second;
  if (fresh) {
    const bool given = from.size() == 1 || to.size() == 1;
    for (const Choice& a : from) {
      for (const Choice& b : to) {
        if (given) {
          pairs.push_back(from.size() == 1 ? b.here : a.here);
          continue;
        }
        const CpVariable pair = model_.add_bool();
        derived_.emplace_back(pair, [a = a.here, b = b.here](const Values& values) {
          return value(values, a) != 0 && value(values, b) != 0;
        });
        pairs.emplace_back(pair);
      }
    }
    for (std::size_t a = 0; !given && a < from.size(); ++a) {
      std::vector<CpLiteral> row{!from[a].here};
      for (std::size_t b = 0; b < to.size(); ++b) row.push_back(pairs[a * to.size() + b]);
      model_.add_exactly_one(row);
    }
    for (std::size_t b = 0; !given && b < to.size(); ++b) {
      std::vector<CpLiteral> column{!to[b].here};
      for (std::size_t a = 0; a < from.size(); ++a) column.push_back(pairs[a * to.size() + b]);
      model_.add_exactly_one(column);
    }
  }
  for (std::size_t a = 0; a < from.size(); ++a) {
    for (std::size_t b = 0; b < to.size(); ++b) {
      if (from[a].device == to[b].device) continue;
      const CpLiteral pair = pairs[a * to.size() + b];
      if (!problem_.reachable(tensor, from[a].device, to[b].device)) {
        add_clause({!pair});
        continue;
      }
      routes_[tensor].push_back({tensor, Leg::direct, from[a].device, to[b].device, pair,
                                 move(tensor, from[a].device, to[b].device)});
    }
  }
}

// Several readers: the tensor goes once to each device that reads it.
void ScheduleModel::State::add_links(TensorId tensor, std::span<const OpId> readers) {
  const OpId producer = problem_.producer(tensor);
  for (const DeviceId to : problem_.devices()) {
    std::vector<CpLiteral> here;
    for (const OpId reader : readers) here.push_back(on(reader, to));
    const CpLiteral read_here = any(here);
    if (is_false(read_here)) continue;
    for (const Choice& from : choices(producer)) {
      if (from.device == to) continue;
      if (!problem_.reachable(tensor, from.device, to)) {
        add_clause({!from.here, !read_here});
        continue;
      }
      const CpLiteral taken = both(from.here, read_here);
      if (is_false(taken)) continue;
      routes_[tensor].push_back(
          {tensor, Leg::direct, from.device, to, taken, move(tensor, from.device, to)});
    }
  }
}

void ScheduleModel::State::add_host(TensorId tensor, std::span<const OpId> readers) {
  const OpId producer = problem_.producer(tensor);
  const Units once = grid_.units(problem_.host_time(tensor));
  for (const Choice& from : choices(producer)) {
    if (problem_.on_host(from.device)) continue;
    std::vector<CpLiteral> elsewhere;
    for (const OpId reader : readers) elsewhere.push_back(!on(reader, from.device));
    const CpLiteral taken = both(from.here, any(elsewhere));
    if (is_false(taken)) continue;
    routes_[tensor].push_back({tensor, Leg::out, from.device, DeviceId{}, taken, once});
  }
  for (const DeviceId to : problem_.devices()) {
    if (problem_.on_host(to)) continue;
    std::vector<CpLiteral> here;
    for (const OpId reader : readers) here.push_back(on(reader, to));
    const CpLiteral taken = both(!on(producer, to), any(here));
    if (is_false(taken)) continue;
    routes_[tensor].push_back({tensor, Leg::in, DeviceId{}, to, taken, once});
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
        for (const CpLiteral overhead : variables.overheads) longer.push_back(overhead);
        occupies = both(choice.here, any(longer));
      }
      if (is_false(occupies)) continue;
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

void ScheduleModel::State::add_movements() {
  for (const TensorId tensor : tensors_) {
    const OpId producer = problem_.producer(tensor);
    const std::vector<OpId> readers = readers_of(tensor);
    // Routes of a single reader say this already.
    const bool said = readers.size() == 1 || (!congestion_ && !overheads_);
    for (const OpId reader : problem_.consumers(tensor)) {
      if (!inside(reader) && !inside(producer)) continue;
      if (!said || problem_.group(reader) == problem_.group(producer)) {
        reach(reader, end_of(producer));
      }
    }
    if (readers.empty()) continue;
    if (!congestion_ && !overheads_) {
      // Each reader has its own routes, in the order in which they were added.
      std::size_t next = 0;
      for (const OpId reader : readers) {
        CpExpression arrival = end_of(producer);
        for (const Choice& from : choices(producer)) {
          for (const Choice& to : choices(reader)) {
            if (from.device == to.device || !problem_.reachable(tensor, from.device, to.device)) {
              continue;
            }
            const Route& route = routes_[tensor][next++];
            add_term(arrival, route.taken, route.length);
          }
        }
        reach(reader, arrival);
      }
    } else if (problem_.interconnect() == InterconnectKind::host) {
      move_by_host(readers, tensor);
    } else {
      move_by_links(readers, tensor);
    }
  }
}

void ScheduleModel::State::move_by_links(const std::vector<OpId>& readers, TensorId tensor) {
  const CpExpression ready = end_of(problem_.producer(tensor));
  const auto arrival_of = [&](std::vector<Route> routes) {
    CpExpression arrival = ready;
    if (congestion_) {
      Sending sending{add_time(0), tensor, Leg::direct, std::move(routes)};
      follow(sending.start, ready);
      arrival = CpExpression(sending.start);
      for (const Route& route : sending.routes) add_term(arrival, route.taken, route.length);
      occupy_ports(sending);
      sendings_.push_back(std::move(sending));
    } else {
      for (const Route& route : routes) add_term(arrival, route.taken, route.length);
    }
    return arrival;
  };
  if (readers.size() == 1) {
    reach(readers.front(), arrival_of(routes_[tensor]));
    return;
  }
  for (const DeviceId device : problem_.devices()) {
    std::vector<Route> routes;
    for (const Route& route : routes_[tensor]) {
      if (route.to == device) routes.push_back(route);
    }
    if (routes.empty()) continue;
    const CpExpression arrival = arrival_of(std::move(routes));
    for (const OpId reader : readers) reach(reader, arrival, {on(reader, device)});
  }
}

void ScheduleModel::State::move_by_host(const std::vector<OpId>& readers, TensorId tensor) {
  const OpId producer = problem_.producer(tensor);
  const CpExpression ready = end_of(producer);
  Sending out{CpVariable{}, tensor, Leg::out, {}};
  CpExpression in_host_memory = ready;
  CpExpression straight = ready;
  for (const Route& route : routes_[tensor]) {
    add_term(straight, route.taken, route.length);
    if (route.leg == Leg::out) out.routes.push_back(route);
  }
  if (congestion_ && !out.routes.empty()) {
    out.start = add_time(0);
    follow(out.start, ready);
    in_host_memory = CpExpression(out.start);
    occupy_ports(out);
    sendings_.push_back(out);
  }
  for (const Route& route : out.routes) add_term(in_host_memory, route.taken, route.length);
  if (readers.size() == 1) reach(readers.front(), straight);

  for (const DeviceId device : problem_.devices()) {
    if (!problem_.on_host(device)) continue;
    for (const OpId reader : readers) reach(reader, in_host_memory, {on(reader, device)});
  }
  for (const Route& route : routes_[tensor]) {
    if (route.leg != Leg::in) continue;
    CpExpression arrival = in_host_memory;
    if (congestion_) {
      Sending in{add_time(0), tensor, Leg::in, {route}};
      follow(in.start, ready);
      follow(in.start, in_host_memory, {route.taken});
      arrival = CpExpression(in.start);
      occupy_ports(in);
      sendings_.push_back(std::move(in));
    }
    arrival.offset += route.length;
    for (const OpId reader : readers) {
      reach(reader, arrival, {on(reader, route.to), route.taken});
    }
  }
}

void ScheduleModel::State::occupy_ports(const Sending& sending) {
  for (const Route& route : sending.routes) {
    if (route.length == 0) continue;
    const CpInterval interval = is_true(route.taken)
                                    ? model_.add_interval(sending.start, route.length)
                                    : model_.add_interval(sending.start, route.length, route.taken);
    if (route.from.valid()) out_[route.from].push_back(interval);
    if (route.to.valid()) in_[route.to].push_back(interval);
  }
}

Units ScheduleModel::State::after(Resource resource, DeviceId device) const {
  double time = 0;
  for (const ScheduleScope::Tail& tail : scope_.after) {
    if (tail.resource == resource && tail.device == device) time = std::max(time, tail.time);
  }
  return grid_.units(time);
}

void ScheduleModel::State::add_after() {
  if (scope_.after.empty()) return;
  for (const DeviceId device : problem_.devices()) {
    const Units rest = after(Resource::compute, device);
    for (const OpId op : order_) {
      const CpLiteral here = on(op, device);
      if (rest == 0 || is_false(here)) continue;
      follow(completion(op), plus(ops_[op].end, CpExpression(rest)), {here});
    }
  }
  for (const Sending& sending : sendings_) {
    for (const Route& route : sending.routes) {
      Units rest = 0;
      if (route.from.valid()) rest = std::max(rest, after(Resource::out_port, route.from));
      if (route.to.valid()) rest = std::max(rest, after(Resource::in_port, route.to));
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
    auto& intervals = busy.resource == Resource::compute    ? compute_
                      : busy.resource == Resource::out_port ? out_
                                                            : in_;
    intervals[busy.device].push_back(model_.add_interval(CpExpression(start), length));
  }
  for (const DeviceId device : problem_.devices()) {
    const auto lanes = static_cast<std::size_t>(problem_.device(device).lanes);
    if (lanes == 1) {
      if (compute_[device].size() > 1) model_.add_no_overlap(compute_[device]);
    } else if (compute_[device].size() > lanes) {
      const std::vector<CpExpression> one(compute_[device].size(), CpExpression(1));
      model_.add_cumulative(CpExpression(static_cast<Units>(lanes)), compute_[device], one);
    }
    if (out_[device].size() > 1) model_.add_no_overlap(out_[device]);
    if (in_[device].size() > 1) model_.add_no_overlap(in_[device]);
  }
}

// A device is not done before it has done its work.
void ScheduleModel::State::add_work() {
  if (!latency_) return;
  for (const DeviceId device : problem_.devices()) {
    CpExpression spare;
    spare.terms.push_back({completions_.front(), problem_.device(device).lanes});
    for (const OpId op : order_) {
      const CpLiteral here = on(op, device);
      if (!is_false(here)) add_term(spare, here, -grid_.units(problem_.time(op, device)));
    }
    model_.add_linear(spare, {0, kCpMaximum});
  }
}

void ScheduleModel::State::add_memory() {
  const MemoryGrid grid(problem_);
  Placement outside(problem_.op_count());
  for (const OpId op : problem_.ops()) {
    if (!inside(op) && !scope_.given.empty()) outside[op] = scope_.given[op];
  }
  const MemoryLedger ledger(problem_, outside);
  Table<DeviceId, CpExpression> load(problem_.device_count());
  Table<GroupId, double> bytes(problem_.group_count(), 0);
  for (const OpId op : order_) bytes[problem_.group(op)] += problem_.memory(op);
  for (const GroupId group : problem_.groups()) {
    for (const Choice& choice : choices_[group]) {
      add_term(load[choice.device], choice.here, grid.size(bytes[group]));
    }
  }
  add_shared_weights(load, grid);
  for (const DeviceId device : problem_.devices()) {
    const double capacity = problem_.device(device).memory;
    if (capacity == kInfinity) continue;
    const double room = capacity * (1 + kMemoryTolerance) - ledger.used(device);
    model_.add_linear(load[device], {kCpMinimum, grid.room(room)});
  }
}

void ScheduleModel::State::add_shared_weights(Table<DeviceId, CpExpression>& load,
                                              const MemoryGrid& grid) {
  for (const SharedWeight& weight : problem_.draft().shared_weights) {
    for (const DeviceId device : problem_.devices()) {
      bool there_already = false;
      std::vector<CpLiteral> here;
      for (const OpId op : weight.ops) {
        if (inside(op)) {
          here.push_back(on(op, device));
        } else if (!scope_.given.empty() && scope_.given[op] == device) {
          there_already = true;
        }
      }
      if (!there_already) add_term(load[device], any(here), grid.size(weight.bytes));
    }
  }
}

std::int64_t ScheduleModel::State::value(const Values& values, CpLiteral literal) {
  const int code = literal.code();
  return code >= 0 ? values[static_cast<std::size_t>(code)]
                   : 1 - values[static_cast<std::size_t>(-code - 1)];
}

std::int64_t ScheduleModel::State::value(const Values& values, const CpExpression& sum) {
  std::int64_t total = sum.offset;
  for (const auto& term : sum.terms) {
    total += term.coefficient * values[static_cast<std::size_t>(term.variable.index)];
  }
  return total;
}

Units ScheduleModel::State::earliest(const Values& values, CpVariable variable) const {
  Units time = 0;
  for (const Precedence& before : precedences_[static_cast<std::size_t>(variable.index)]) {
    if (std::all_of(before.conditions.begin(), before.conditions.end(),
                    [&](CpLiteral literal) { return value(values, literal) != 0; })) {
      time = std::max(time, value(values, before.earlier));
    }
  }
  return time;
}

namespace {

// When the resources are free while a hint is timed, one activity after the other.
class FreeTimes {
 public:
  FreeTimes(const Problem& problem, const std::vector<ScheduleScope::Busy>& busy,
            const TimeGrid& grid)
      : lanes_(problem.device_count()), out_(problem.device_count()), in_(problem.device_count()) {
    for (const DeviceId device : problem.devices()) {
      lanes_[device].assign(static_cast<std::size_t>(problem.device(device).lanes), 0);
    }
    for (const ScheduleScope::Busy& taken : busy) {
      busy_.push_back(
          {taken.resource, taken.device, grid.units(taken.start), grid.units(taken.end)});
    }
  }

  Units take_lane(DeviceId device, Units ready, Units length) {
    if (length == 0) return ready;
    auto& lanes = lanes_[device];
    Units& free = *std::min_element(lanes.begin(), lanes.end());
    const Units start = past_busy(Resource::compute, device, std::max(ready, free), length);
    free = start + length;
    return start;
  }

  Units take_ports(DeviceId from, DeviceId to, Units ready, Units length) {
    if (length == 0) return ready;
    Units start = ready;
    if (from.valid()) start = std::max(start, out_[from]);
    if (to.valid()) start = std::max(start, in_[to]);
    for (Units before = -1; before != start;) {
      before = start;
      if (from.valid()) start = past_busy(Resource::out_port, from, start, length);
      if (to.valid()) start = past_busy(Resource::in_port, to, start, length);
    }
    if (from.valid()) out_[from] = start + length;
    if (to.valid()) in_[to] = start + length;
    return start;
  }

 private:
  struct Taken {
    Resource resource;
    DeviceId device;
    Units start;
    Units end;
  };

  [[nodiscard]] Units past_busy(Resource resource, DeviceId device, Units start,
                                Units length) const {
    for (Units before = -1; before != start;) {
      before = start;
      for (const Taken& taken : busy_) {
        if (taken.resource != resource || taken.device != device) continue;
        if (start < taken.end && taken.start < start + length) start = taken.end;
      }
    }
    return start;
  }

  Table<DeviceId, std::vector<Units>> lanes_;
  Table<DeviceId, Units> out_;
  Table<DeviceId, Units> in_;
  std::vector<Taken> busy_;
};

}  // namespace

std::vector<ScheduleModel::State::Activity> ScheduleModel::State::activities_in_order(
    const Schedule& schedule) const {
  std::map<std::tuple<TensorId, Leg, DeviceId>, double> known;
  for (const Transfer& transfer : schedule.transfers) {
    known[{transfer.tensor, transfer.leg, transfer.to}] = transfer.start;
  }
  std::vector<Activity> activities;
  for (const OpId op : order_) {
    activities.push_back({schedule.start[op], 3 * problem_.topological_rank(op), op, nullptr});
  }
  for (const Sending& sending : sendings_) {
    const OpId producer = problem_.producer(sending.tensor);
    double start = inside(producer) ? schedule.end[producer] : 0;
    for (const Route& route : sending.routes) {
      const auto found = known.find({route.tensor, route.leg, route.to});
      if (found != known.end()) start = std::max(start, found->second);
    }
    const std::size_t leg = sending.leg == Leg::in ? 2 : 1;
    activities.push_back({start, 3 * problem_.topological_rank(producer) + leg, OpId{}, &sending});
  }
  std::stable_sort(activities.begin(), activities.end(), [](const Activity& a, const Activity& b) {
    return std::tuple(a.start, a.rank) < std::tuple(b.start, b.rank);
  });
  return activities;
}

// The order of the schedule on the grid: each activity as early as those before it allow.
void ScheduleModel::State::time_activities(Values& values, const Schedule& schedule) const {
  const auto set = [&](CpVariable variable, Units time) {
    values[static_cast<std::size_t>(variable.index)] = time;
  };
  FreeTimes free(problem_, scope_.busy, grid_);
  for (const Activity& activity : activities_in_order(schedule)) {
    if (activity.sending != nullptr) {
      const Sending& sending = *activity.sending;
      Units start = earliest(values, sending.start);
      for (const Route& route : sending.routes) {
        if (value(values, route.taken) == 0) continue;
        start = free.take_ports(route.from, route.to, start, route.length);
      }
      set(sending.start, start);
      continue;
    }
    const OpVariables& variables = ops_[activity.op];
    const Units length = value(values, variables.length);
    DeviceId device;
    for (const Choice& choice : choices(activity.op)) {
      if (value(values, choice.here) != 0) device = choice.device;
    }
    const Units ready = earliest(values, variables.start);
    const Units start = device.valid() ? free.take_lane(device, ready, length) : ready;
    set(variables.start, start);
    if (variables.length_variable) set(*variables.length_variable, length);
    if (variables.end_variable) set(*variables.end_variable, start + length);
  }
  for (const CpVariable completion : completions_) set(completion, earliest(values, completion));
}

void ScheduleModel::State::hint(const Placement& placement, const Schedule& schedule) {
  Values values(static_cast<std::size_t>(model_.variables()), 0);
  values[static_cast<std::size_t>(yes_.code())] = 1;
  for (const OpId op : order_) {
    for (const Choice& choice : choices(op)) {
      if (is_true(choice.here)) continue;
      values[static_cast<std::size_t>(choice.here.code())] = placement[op] == choice.device ? 1 : 0;
    }
  }
  for (const auto& [variable, rule] : derived_) {
    values[static_cast<std::size_t>(variable.index)] = rule(values) ? 1 : 0;
  }
  time_activities(values, schedule);
  for (int i = 0; i < model_.variables(); ++i) {
    model_.set_hint(CpVariable{i}, values[static_cast<std::size_t>(i)]);
  }
}

ScheduleSolution ScheduleModel::State::solve(const ScheduleLimits& limits) const {
  const solvers::CpLimits cp_limits{.time_seconds = limits.seconds,
                                    .deterministic_time = limits.deterministic_time,
                                    .workers = limits.workers,
                                    .seed = static_cast<int>(limits.seed % 0x7fffffff),
                                    .probing_level = 0,
                                    .linearization_level = 0,
                                    .take_turns = limits.take_turns,
                                    .stop = limits.stop};
  const CpResult result = solvers::cp_sat_solve(model_, cp_limits);
  ScheduleSolution solution;
  solution.error = result.error;
  solution.found = result.has_solution();
  solution.complete = result.status == CpStatus::optimal || result.status == CpStatus::infeasible;
  if (result.status == CpStatus::infeasible) {
    solution.lower_bound = kInfinity;
  } else if (std::isfinite(result.best_bound)) {
    solution.lower_bound = std::max(0.0, value_of(result.best_bound));
  }
  if (!solution.found) return solution;
  solution.value = value_of(result.objective);
  solution.placement = scope_.given.empty() ? Placement(problem_.op_count()) : scope_.given;
  solution.schedule.start.assign(problem_.op_count(), 0);
  solution.schedule.end.assign(problem_.op_count(), 0);
  for (const OpId op : order_) {
    for (const Choice& choice : choices(op)) {
      if (result.value(choice.here)) solution.placement[op] = choice.device;
    }
    solution.schedule.start[op] = grid_.time(static_cast<double>(result.value(ops_[op].start)));
    solution.schedule.end[op] = grid_.time(static_cast<double>(value(result.values, ops_[op].end)));
  }
  for (const Sending& sending : sendings_) {
    const double start = grid_.time(static_cast<double>(result.value(sending.start)));
    for (const Route& route : sending.routes) {
      if (!result.value(route.taken)) continue;
      solution.schedule.transfers.push_back(
          {route.tensor, route.leg, route.from, route.to, start,
           start + grid_.time(static_cast<double>(route.length))});
    }
  }
  return solution;
}

ScheduleModel::ScheduleModel(const Problem& problem, ScheduleScope scope, double at_most)
    : state_(std::make_unique<State>(problem, std::move(scope), at_most)) {}
ScheduleModel::ScheduleModel(ScheduleModel&&) noexcept = default;
ScheduleModel& ScheduleModel::operator=(ScheduleModel&&) noexcept = default;
ScheduleModel::~ScheduleModel() = default;

void ScheduleModel::hint(const Placement& placement, const Schedule& schedule) {
  state_->hint(placement, schedule);
}
void ScheduleModel::require_below(double value) {
  state_->require_below(value);
}
void ScheduleModel::require_at_least(double bound) {
  state_->require_at_least(bound);
}
ScheduleSolution ScheduleModel::solve(const ScheduleLimits& limits) {
  return state_->solve(limits);
}
std::size_t ScheduleModel::size() const {
  return state_->size();
}

ScheduleScope ScheduleScope::whole(const Problem& problem) {
  ScheduleScope scope;
  scope.ops.assign(problem.topological_order().begin(), problem.topological_order().end());
  return scope;
}

ScheduleScope ScheduleScope::around(const Problem& problem, const Plan& plan,
                                    std::span<const OpId> free) {
  ScheduleScope scope = whole(problem);
  scope.given = plan.placement;
  Table<GroupId, char> is_free(problem.group_count(), 0);
  for (const OpId op : free) is_free[problem.group(op)] = 1;
  Table<DeviceId, std::vector<OpId>> sequence(problem.device_count());
  for (const OpId op : order_of(problem, *plan.schedule)) {
    if (is_free[problem.group(op)]) {
      scope.given[op] = DeviceId{};
    } else if (plan.schedule->start[op] < plan.schedule->end[op] &&
               problem.device(plan.placement[op]).lanes == 1) {
      sequence[plan.placement[op]].push_back(op);
    }
  }
  for (std::vector<OpId>& ops : sequence) scope.sequences.push_back(std::move(ops));
  return scope;
}

Plan plan_of(const Problem& problem, const ScheduleSolution& solution) {
  return schedule_plan(problem, solution.placement,
                       retime(problem, solution.placement, solution.schedule));
}

}  // namespace placewright
