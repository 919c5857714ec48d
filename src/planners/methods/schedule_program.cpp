#include "planners/methods/schedule_program.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "evaluate/memory.h"
#include "planners/bound_of_problem.h"
#include "planners/exchange.h"
#include "planners/methods/cpsat_model.h"
#include "planners/methods/start_answer.h"
#include "problem/move_time.h"
#include "solvers/cp_sat.h"

namespace placewright {
namespace {

constexpr double kDeterministicSecondsPerStep = 1e-5;
constexpr double kFirstSlice = 1;
constexpr double kSmallFirstSlice = 0.5;  // of the time that is left
constexpr double kSmallParts = 2000;
constexpr double kWorthBuilding = 1e-3;  // so much less
constexpr double kMostParts = 4e5;

// What the model is made of, and what building it and CP-SAT's first look at it take, which is not
// interrupted.
struct ModelSize {
  double parts = 0;
  const char* what = "";
  double seconds_each = 0;
  double bytes_each = 0;

  [[nodiscard]] double seconds() const { return parts * seconds_each; }
  [[nodiscard]] double bytes() const { return parts * bytes_each; }
};

// Where every transfer takes the same between any two devices, the model has a literal for each
// edge.
bool transfers_are_uniform(const Problem& problem) {
  if (problem.rules().congestion || problem.has_overheads() || problem.has_shared_spaces()) {
    return false;
  }
  for (const TensorId tensor : problem.tensors()) {
    double time = kInfinity;
    for (const DeviceId from : problem.devices()) {
      for (const DeviceId to : problem.devices()) {
        if (from == to) continue;
        const double here = move_time(problem, tensor, from, to);
        if (here == kInfinity || (time < kInfinity && here != time)) return false;
        time = here;
      }
    }
  }
  return true;
}

// A tensor travels between memories, and each device has its price for that. In one memory nothing
// travels: a device for each op, and what it pays for each tensor.
ModelSize size_of_model(const Problem& problem) {
  const auto devices = static_cast<double>(problem.device_count());
  const auto edges = static_cast<double>(problem.edge_count());
  if (problem.has_shared_spaces()) {
    const auto ops = static_cast<double>(problem.op_count());
    const auto spaces = static_cast<double>(problem.space_count());
    return {(ops + edges * spaces) * devices, "devices for ops and edges", 3e-5, 5500};
  }
  if (transfers_are_uniform(problem)) {
    const auto ops = static_cast<double>(problem.op_count());
    return {(ops + 3 * edges) * devices, "devices for ops and edges", 1e-5, 1500};
  }
  return {edges * devices * devices, "pairs of devices for edges", 3e-5, 4000};
}

// The search in slices; `answer` holds the best plan and bound.
class Slices {
 public:
  Slices(const Problem& problem, Control& control, Answer& answer, const ModelSize& size)
      : problem_(problem),
        control_(control),
        answer_(answer),
        first_look_(size.seconds()),
        small_(size.parts <= kSmallParts),
        built_for_(answer.value()),
        model_(problem, ScheduleScope::whole(problem), answer.value()) {
    model_.require_at_least(answer.certificate.lower_bound);
  }

  void run() {
    double slice = std::max(kFirstSlice, 2 * first_look_);
    if (small_ && !counts_steps()) slice = std::max(slice, kSmallFirstSlice * control_.remaining());
    for (; !control_.should_stop() && control_.remaining() > first_look_; slice *= 2) {
      meet_others();
      build_again_for_less();
      if (answer_.plan) model_.hint(answer_.plan->placement, *answer_.plan->schedule);
      const ScheduleSolution solution = model_.solve(limits(slice));
      if (!solution.error.empty()) {
        if (!answer_.plan) answer_.reason = solution.error;
        return;
      }
      take(solution);
      if (solution.complete || answer_.status() == Status::optimal || used_up_) return;
    }
  }

 private:
  [[nodiscard]] bool counts_steps() const {
    return control_.budget().steps < std::numeric_limits<std::uint64_t>::max();
  }

  // A better plan and a better bound of the planners that run beside this one.
  void meet_others() {
    if (!control_.exchange) return;
    if (const auto other = control_.exchange->better_than(answer_.value())) answer_.plan = *other;
    model_.require_at_least(control_.exchange->bound());
  }

  // What a better plan leaves out makes the model smaller.
  void build_again_for_less() {
    if (!(answer_.value() < (1 - kWorthBuilding) * built_for_)) return;
    built_for_ = answer_.value();
    model_ = ScheduleModel(problem_, ScheduleScope::whole(problem_), built_for_);
    model_.require_at_least(answer_.certificate.lower_bound);
    if (control_.exchange) model_.require_at_least(control_.exchange->bound());
  }

  ScheduleLimits limits(double slice) {
    const Budget& budget = control_.budget();
    ScheduleLimits limits{.workers = budget.threads,
                          .seed = budget.seed,
                          .take_turns = budget.threads == 1,
                          .stop = control_.interruption()};
    limits.seconds = std::max(0.01, control_.remaining());
    if (counts_steps()) {
      const double whole = static_cast<double>(budget.steps) * kDeterministicSecondsPerStep;
      limits.deterministic_time = std::min(slice, whole - deterministic_);
      deterministic_ += limits.deterministic_time;
      used_up_ = deterministic_ >= whole;
    } else {
      limits.seconds = std::min(limits.seconds, slice);
    }
    return limits;
  }

  void take(const ScheduleSolution& solution) {
    Certificate& bound = answer_.certificate;
    if (solution.lower_bound > bound.lower_bound && solution.lower_bound < kInfinity) {
      bound = Certificate{solution.lower_bound, "CP-SAT on the whole schedule"};
      model_.require_at_least(bound.lower_bound);
    }
    if (!solution.found) {
      answer_.proved_infeasible = solution.complete && !answer_.plan;
      return;
    }
    if (!memory_fits(problem_, solution.placement)) return;
    Plan plan = plan_of(problem_, solution);
    if (plan.value < answer_.value()) {
      answer_.plan = std::move(plan);
      control_.report(*answer_.plan, bound.lower_bound);
    }
  }

  const Problem& problem_;
  Control& control_;
  Answer& answer_;
  double first_look_;  // seconds of each slice that are not interrupted
  bool small_;
  double built_for_;  // solutions above are left out of the model
  ScheduleModel model_;
  double deterministic_ = 0;
  bool used_up_ = false;
};

}  // namespace

std::string refuses_schedule_program(const Problem& problem) {
  if (const ModelSize size = size_of_model(problem); size.parts > kMostParts) {
    return fmt::format("its model would have {:.0f} {}, above {:.0f}", size.parts, size.what,
                       kMostParts);
  }
  return solvers::cp_sat_available() ? std::string{} : solvers::cp_sat_load_error();
}

Answer solve_schedule_program(const Problem& problem, Control& control) {
  Answer answer = start_answer(problem, control);
  if (answer.proved_infeasible) return answer;
  answer.certificate = bound_of_problem(problem, control);
  if (answer.plan) control.report(*answer.plan, answer.certificate.lower_bound);
  if (answer.status() == Status::optimal || control.should_stop()) return answer;
  const ModelSize size = size_of_model(problem);
  if (const std::string obstacle = control.cannot_afford(size.seconds(), size.bytes());
      !obstacle.empty()) {
    if (!answer.plan) answer.reason = "the constraint program was not begun: " + obstacle;
    return answer;
  }
  Slices(problem, control, answer, size).run();
  if (answer.proved_infeasible) {
    answer.reason = "no placement and order of the ops obeys all rules (proved by CP-SAT)";
  } else if (!answer.plan && answer.reason.empty()) {
    answer.reason = fmt::format("CP-SAT found no plan before the {}", control.stop_reason());
  }
  return answer;
}

}  // namespace placewright
