// Moirai: the schedule as a mixed-integer program on HiGHS, as published (moirai_model.h).
//
// First the ops that an inference backend fuses are merged (coarsen/coarsening.h; option `fusion`):
// as in the paper this makes the program smaller, and its optimum that of the fused problem. Models
// without op types, as the published inputs, are left as they are.
//
// Starts from the best plan made at once (methods/start_answer.h); that plan also makes the
// program's constants tight. Exact on small problems (about a dozen ops); on large ones HiGHS
// improves the start little in a minute, and its bound stays near the critical path. Above
// `most-orders` order variables nothing is tried: the program would not fit memory or its first
// relaxation would not end in time.
//
// A branch-and-bound node counts as a thousand steps, and the root as a hundred for each order
// variable: where that is beyond the step limit, the start is the answer.

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "bounds/rounding.h"
#include "coarsen/coarsening.h"
#include "evaluate/memory.h"
#include "planners/bound_of_problem.h"
#include "planners/methods/start_answer.h"
#include "planners/published/moirai_model.h"
#include "planners/published/published.h"

namespace placewright {
namespace {

// Finding the pairs of ops takes time and memory of the order of ops^2, the rows for each tensor
// and pair of devices that it may go between many times more than one pair; neither is interrupted.
constexpr std::size_t kMostOps = 5000;
// Of a row with a thousand units (moirai_model.cpp) it lets 1e-7 of the value go.
constexpr double kIntegrality = 1e-7;
constexpr double kBetweenLooks = 0.3;  // seconds: HiGHS looks at the clock now and then
constexpr double kSecondsPerPair = 5e-7;
constexpr double kBytesPerPair = 130;
constexpr double kSecondsPerMove = 7e-5;
constexpr double kBytesPerMove = 1.2e4;
constexpr std::uint64_t kStepsPerNode = 1000;
constexpr std::uint64_t kStepsPerOrder = 100;

std::string refuses(const Problem& problem) {
  if (problem.op_count() > kMostOps) {
    return fmt::format("its model is for at most {} ops, and there are {}", kMostOps,
                       problem.op_count());
  }
  return {};
}

solvers::LinearLimits limits_of(const Control& control) {
  const Budget& budget = control.budget();
  solvers::LinearLimits limits;
  const double left = control.remaining();
  limits.time_seconds = std::max(0.01, left - std::min(kBetweenLooks, kBetweenLooks * left));
  limits.integrality = kIntegrality;
  limits.threads = budget.threads;
  limits.seed = static_cast<int>(budget.seed % 0x7fffffff);
  limits.stop = control.interruption();
  if (budget.steps < std::numeric_limits<std::uint64_t>::max()) {
    limits.node_limit = static_cast<std::int64_t>(
        std::min(budget.steps / kStepsPerNode + 1, std::uint64_t{1} << 40U));
  }
  return limits;
}

void take(const Problem& problem, const MoiraiModel& model, std::span<const double> values,
          Answer& answer) {
  Plan plan = model.plan(values);
  if (plan.value < answer.value() && memory_fits(problem, plan.placement)) {
    answer.plan = std::move(plan);
  }
}

Answer solve(const Problem& problem, const Settings& settings, Control& control) {
  Answer answer = start_answer(problem, control);
  if (answer.proved_infeasible) return answer;
  answer.certificate = bound_of_problem(problem, control);
  if (answer.plan) control.report(*answer.plan, answer.certificate.lower_bound);
  if (answer.status() == Status::optimal || control.should_stop()) return answer;

  const auto pairs = static_cast<double>(problem.op_count() * problem.op_count());
  const std::size_t targets =
      problem.interconnect() == InterconnectKind::links ? problem.device_count() : 1;
  const auto moves = static_cast<double>(problem.edge_count() * problem.device_count() * targets);
  if (const std::string obstacle =
          control.cannot_afford(pairs * kSecondsPerPair + moves * kSecondsPerMove,
                                pairs * kBytesPerPair + moves * kBytesPerMove);
      !obstacle.empty()) {
    if (!answer.plan) answer.reason = "the program was not begun: " + obstacle;
    return answer;
  }
  const std::optional<Plan> start = answer.plan;
  MoiraiModel model(problem, start ? &*start : nullptr);
  const auto most = static_cast<std::size_t>(settings.integer("most-orders"));
  if (model.order_variables() > most) {
    answer.plan.reset();
    answer.reason =
        fmt::format("the program would have {} order variables, above {} (option most-orders)",
                    model.order_variables(), most);
    return answer;
  }
  if (model.order_variables() > control.budget().steps / kStepsPerOrder) return answer;
  model.add_orders();
  const solvers::LinearResult result =
      model.solve(limits_of(control), [&](const solvers::LinearProgress& progress) {
        if (!progress.values.empty()) take(problem, model, progress.values, answer);
        control.report(answer.value(), answer.certificate.lower_bound);
      });
  if (result.has_solution()) take(problem, model, result.values, answer);
  const double bound = safe_program(model.value(result.dual_bound));
  if (bound > answer.certificate.lower_bound && bound < kInfinity) {
    answer.certificate = Certificate{bound, "Moirai's program on HiGHS"};
  }
  if (answer.plan) {
    control.report(*answer.plan, answer.certificate.lower_bound);
  } else if (result.status == solvers::LinearStatus::infeasible) {
    answer.proved_infeasible = true;
    answer.reason = "no placement and order of the ops obeys all rules (proved by HiGHS)";
  } else {
    answer.reason = result.error.empty()
                        ? fmt::format("HiGHS found no plan before the {}", control.stop_reason())
                        : result.error;
  }
  return answer;
}

// The fused problem's plan is one of the problem itself; its bound is not, unless nothing is lost.
Answer solve_fused(const Problem& problem, const Coarsening& fused, const Settings& settings,
                   Control& control) {
  Control part = control.part("moirai", control.remaining());
  part.check_incumbent = {};
  Answer answer = solve(fused.coarse(), settings, part);
  if (answer.plan) answer.plan = fused.expand(*answer.plan);
  if (fused.lossless()) return answer;
  if (answer.proved_infeasible) return solve(problem, settings, control);
  answer.certificate = Certificate{};
  return answer;
}

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  if (settings.flag("fusion")) {
    const Coarsening fused(problem, CoarsenOptions{.method = CoarsenMethod::fusion});
    if (fused.coarse().op_count() < problem.op_count()) {
      return solve_fused(problem, fused, settings, control);
    }
  }
  return solve(problem, settings, control);
}

}  // namespace

PlannerEntry moirai() {
  return PlannerEntry{.name = "moirai",
                      .summary = "the whole schedule as a mixed-integer program (Moirai, HiGHS)",
                      .objectives = {Objective::latency, Objective::total_completion},
                      .role = Role::published,
                      .strength = Strength::exact,
                      .effort = Effort::anytime,
                      .knows = kCommonFeatures - Features{Feature::peak_memory, Feature::lanes,
                                                          Feature::cut_overheads},
                      .options = {{.name = "fusion",
                                   .text = "merge what a backend fuses before planning (GCOF)",
                                   .standard = true},
                                  {.name = "most-orders",
                                   .text = "nothing is tried with more order variables than this",
                                   .standard = std::int64_t{100'000},
                                   .lower = 0,
                                   .upper = 1e9}},
                      .refuses = refuses,
                      .plan = plan};
}

}  // namespace placewright
