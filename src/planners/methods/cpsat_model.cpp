#include <algorithm>
#include <cmath>

#include "evaluate/schedule.h"
#include "planners/methods/cpsat_model_state.h"

namespace placewright {
namespace {

using solvers::CpExpression;
using solvers::CpLiteral;
using solvers::CpResult;
using solvers::CpStatus;
using solvers::CpVariable;
using solvers::kCpMaximum;
using solvers::kCpMinimum;
using Units = std::int64_t;

}  // namespace

ScheduleModel::State::State(const Problem& problem, ScheduleScope scope, double at_most)
    : problem_(problem),
      scope_(std::move(scope)),
      latency_(problem.objective() == Objective::latency),
      congestion_(problem.rules().congestion),
      yes_(model_.add_integer(1, 1)),
      inside_(problem.op_count(), 0),
      member_(problem.space_count()),
      choices_(problem.group_count()),
      places_(problem.group_count()),
      ops_(problem.op_count()),
      heads_(problem.op_count()),
      tails_(problem.op_count()),
      routes_(problem.tensor_count()),
      compute_(problem.device_count()),
      computing_(problem.device_count()),
      out_(problem.space_count()),
      in_(problem.space_count()) {
  overheads_ = problem.has_overheads();
  for (const DeviceId device : problem.devices()) member_[problem.space(device)] = device;
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
  add_symmetries();
  add_company(at_most);
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
  add_shared_resources();
  add_pool();
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

CpLiteral ScheduleModel::State::in(OpId op, SpaceId space) const {
  for (const Place& place : places(op)) {
    if (place.space == space) return place.here;
  }
  return !yes_;
}

std::vector<CpLiteral> ScheduleModel::State::beside(OpId op, DeviceId device) const {
  if (is_true(in(op, problem_.space(device)))) return {!on(op, device)};
  std::vector<CpLiteral> here;
  for (const Choice& choice : choices(op)) {
    if (choice.device != device && problem_.same_space(choice.device, device)) {
      here.push_back(choice.here);
    }
  }
  return here;
}

CpExpression ScheduleModel::State::plus(CpExpression sum, const CpExpression& other, Units factor) {
  for (const auto& term : other.terms) {
    sum.terms.push_back({term.variable, term.coefficient * factor});
  }
  sum.offset += other.offset * factor;
  return sum;
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
  if (problem_.same_space(from, to)) return 0;
  if (problem_.interconnect() == InterconnectKind::links) {
    return grid_.units(problem_.link_time(tensor, from, to));
  }
  const Units once = grid_.units(problem_.host_time(tensor));
  return (problem_.on_host(from) ? 0 : once) + (problem_.on_host(to) ? 0 : once);
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
  solution.deterministic_time = result.deterministic_time;
  solution.found = result.has_solution();
  solution.complete = result.status == CpStatus::optimal || result.status == CpStatus::infeasible;
  if (result.status == CpStatus::infeasible) {
    solution.lower_bound = kInfinity;
  } else if (std::isfinite(result.best_bound)) {
    solution.lower_bound = bound_of(result.best_bound);
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
      const auto device = [&](SpaceId space) {
        return space.valid() ? member_[space] : DeviceId{};
      };
      solution.schedule.transfers.push_back(
          {route.tensor, route.leg, device(route.from), device(route.to), start,
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
