#include "planners/methods/program_solvers.h"

#include <algorithm>
#include <cmath>

#include "bounds/rounding.h"
#include "evaluate/memory.h"
#include "planners/methods/contiguous_search.h"
#include "planners/methods/cp_sat_limits.h"
#include "planners/methods/placement_program.h"
#include "planners/methods/stage_program.h"
#include "solvers/cp_sat.h"
#include "solvers/linear_program.h"

namespace placewright::throughput {
namespace {

// Building a row, handing it over and the solver's first look at it, which is not interrupted.
constexpr double kSecondsPerRow = 1e-5;       // CP-SAT
constexpr double kSecondsPerRowHighs = 3e-5;  // its presolve looks at the clock rarely
constexpr double kBytesPerRow = 1000;

// Why the program is too large to be begun; empty: it is not.
std::string too_large(const Problem& problem, double seconds_per_row, const Control& control) {
  const double rows = estimated_rows(problem);
  const std::string obstacle = control.cannot_afford(rows * seconds_per_row, rows * kBytesPerRow);
  return obstacle.empty() ? obstacle : "the program was not begun: " + obstacle;
}

double highest_value(const Problem& problem, const Incumbent& incumbent) {
  if (incumbent.plan()) return cutoff_above(incumbent.value());
  return highest_cutoff(StageModel(problem, program_blocks(problem)));
}

bool is_objective(const PlacementProgram& program, std::size_t variable) {
  return variable >= program.variables().size() - program.objective().size();
}

solvers::CpModel whole_number_model(const PlacementProgram& program, double scale) {
  solvers::CpModel model;
  const auto most = static_cast<std::int64_t>(std::ceil(program.highest() * scale)) + 1;
  for (std::size_t i = 0; i < program.variables().size(); ++i) {
    if (is_objective(program, i)) {
      model.add_integer(0, most);
    } else if (program.variables()[i].upper == 1) {
      model.add_bool();
    } else {
      model.add_integer(0, program.variables()[i].upper);
    }
  }
  for (const ProgramRow& row : program.rows()) {
    const double factor = row.whole ? 1 : row.bytes ? kByteSteps / std::max(1.0, row.upper) : scale;
    solvers::CpExpression sum;
    for (const ProgramTerm& term : row.terms) {
      const bool time = !row.whole && !row.bytes;
      const bool objective = time && is_objective(program, static_cast<std::size_t>(term.variable));
      const double coefficient = objective ? term.coefficient : term.coefficient * factor;
      sum.terms.push_back(
          {solvers::CpVariable{term.variable}, static_cast<std::int64_t>(std::floor(coefficient))});
    }
    const auto upper =
        row.upper == kInfinity ? solvers::kCpMaximum
        : row.bytes
            ? static_cast<std::int64_t>(std::ceil(row.upper * factor * (1 + kMemoryTolerance)))
            : static_cast<std::int64_t>(row.upper);
    const auto lower =
        row.lower == -kInfinity ? solvers::kCpMinimum : static_cast<std::int64_t>(row.lower);
    model.add_linear(sum, {lower, upper});
  }
  solvers::CpExpression objective;
  for (const int part : program.objective()) {
    objective.terms.push_back({solvers::CpVariable{part}, 1});
  }
  model.minimize(objective);
  return model;
}

constexpr const char* kNoSolution =
    "the constraint program has no solution: no placement keeps all rules";
constexpr const char* kNothingFound = "CP-SAT found no placement in the time given";

ProgramOutcome solve_stages(const StageModel& model, Incumbent& incumbent, Control& control) {
  const double highest = incumbent.plan() ? cutoff_above(incumbent.value()) : highest_cutoff(model);
  const Plan* start = incumbent.plan() ? &*incumbent.plan() : nullptr;
  const StageProgramResult result =
      solve_stage_program(model, incumbent.bound(), highest, start, control);
  if (!result.error.empty()) return {false, result.error};
  if (result.split) {
    if (const auto plan = plan_of_split(model, *result.split)) incumbent.offer(plan->placement);
  }
  if (result.infeasible && !incumbent.plan()) return {true, kNoSolution};
  incumbent.raise_bound(result.lower_bound, "constraint program over stages (CP-SAT)");
  return {false, kNothingFound};
}

Answer run(const Problem& problem, const Settings& settings, Control& control, Solve solve) {
  Incumbent incumbent(problem, control);
  if (settings.flag("warm-start")) incumbent.take_contiguous_plan(0.1);
  ProgramOutcome outcome;
  if (control.should_stop(1)) {
    outcome.reason = control.stop_reason();
  } else {
    outcome = solve(problem, incumbent, control);
  }
  return incumbent.answer(outcome.reason, outcome.infeasible);
}

}  // namespace

// HiGHS 1.15.1 is told of no plan, neither as a start nor as the objective's upper bound. Bounds of
// variables that probing derives from such a bound make presolve and cuts lose better plans, in one
// of a hundred small programs (cuts: its issues 3170 and 3171).
ProgramOutcome solve_with_highs(const Problem& problem, Incumbent& incumbent, Control& control) {
  if (std::string reason = too_large(problem, kSecondsPerRowHighs, control); !reason.empty()) {
    return {false, reason};
  }
  const PlacementProgram program(problem, kInfinity);
  solvers::LinearProgram linear;
  for (std::size_t i = 0; i < program.variables().size(); ++i) {
    if (is_objective(program, i)) {
      linear.add_variable(0, kInfinity, 1);
    } else {
      linear.add_variable(0, program.variables()[i].upper, 0, solvers::Integrality::integer);
    }
  }
  for (const ProgramRow& row : program.rows()) {
    // Bytes in units of the device's memory: large coefficients spoil the factorisation.
    const double unit = row.bytes && row.upper > 0 ? row.upper : 1;
    std::vector<solvers::LinearTerm> terms;
    for (const ProgramTerm& term : row.terms) {
      terms.push_back({term.variable, term.coefficient / unit});
    }
    linear.add_row(row.lower / unit,
                   row.bytes ? row.upper / unit * (1 + kMemoryTolerance) : row.upper, terms);
  }
  solvers::LinearLimits limits;
  limits.time_seconds = std::max(0.0, control.remaining());
  limits.threads = control.budget().threads;
  limits.seed = static_cast<int>(control.budget().seed % 1'000'000);
  limits.mip_gap = kOptimalGap / 10;
  limits.stop = control.interruption();
  if (control.budget().steps < static_cast<std::uint64_t>(limits.node_limit)) {
    limits.node_limit = static_cast<std::int64_t>(control.budget().steps);
  }
  const solvers::LinearResult result =
      linear.solve(limits, [&](const solvers::LinearProgress& progress) {
        control.report(incumbent.value(), std::max(incumbent.bound(), progress.bound));
      });
  if (result.has_solution()) {
    if (const auto placement = program.placement(result.values)) incumbent.offer(*placement);
  }
  if (result.status == solvers::LinearStatus::error) return {false, "HiGHS: " + result.error};
  if (result.status == solvers::LinearStatus::infeasible && !incumbent.plan()) {
    return {true, "the integer program has no solution: no placement keeps all rules"};
  }
  // A bound that the plan in hand refutes says nothing, not even up to the plan's value.
  const double bound = safe_program(result.dual_bound);
  if (std::isfinite(bound) && bound <= incumbent.value()) {
    incumbent.raise_bound(bound, "integer program (HiGHS)");
  }
  return {false, "HiGHS found no placement in the time given"};
}

ProgramOutcome solve_with_cp_sat(const Problem& problem, Incumbent& incumbent, Control& control) {
  if (problem.rules().contiguity == Contiguity::joint &&
      control.cannot_afford(seconds_of_stage_model(problem), 0).empty()) {
    const StageModel model = contiguous_model(problem);
    if (refuses_stage_program(model).empty()) return solve_stages(model, incumbent, control);
  }
  if (std::string reason = too_large(problem, kSecondsPerRow, control); !reason.empty()) {
    return {false, reason};
  }
  const PlacementProgram program(problem, highest_value(problem, incumbent));
  const double scale = kTimeSteps / std::max(program.highest(), 1e-300);
  solvers::CpModel model = whole_number_model(program, scale);
  if (incumbent.plan()) {
    if (const auto start = program.start(incumbent.plan()->placement)) {
      for (std::size_t i = 0; i < start->size(); ++i) {
        if (std::isnan((*start)[i])) continue;
        model.set_hint(solvers::CpVariable{static_cast<int>(i)},
                       static_cast<std::int64_t>((*start)[i]));
      }
    }
  }
  const solvers::CpResult result = solvers::cp_sat_solve(model, cp_sat_limits(control));
  if (result.status == solvers::CpStatus::error) return {false, "CP-SAT: " + result.error};
  if (result.has_solution()) {
    std::vector<double> values(result.values.begin(), result.values.end());
    if (const auto placement = program.placement(values)) incumbent.offer(*placement);
  }
  if (result.status == solvers::CpStatus::infeasible && !incumbent.plan()) {
    return {true, kNoSolution};
  }
  if (std::isfinite(result.best_bound)) {
    incumbent.raise_bound(safe_sum(result.best_bound / scale), "constraint program (CP-SAT)");
  }
  return {false, kNothingFound};
}

PlannerEntry program_entry(std::string name, std::string summary, Solve solve) {
  return PlannerEntry{
      .name = std::move(name),
      .summary = std::move(summary),
      .objectives = {Objective::throughput},
      .strength = Strength::exact,
      .effort = Effort::anytime,
      .knows = kProgramKnows,
      .options = {{"warm-start", "start from the best contiguous plan", true}},
      .plan = [solve](const Problem& problem, const Settings& settings, Control& control) {
        return run(problem, settings, control, solve);
      }};
}

}  // namespace placewright::throughput
