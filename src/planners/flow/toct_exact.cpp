// Exact total completion of several models: labels over down-sets, then CP-SAT.
//
// Starts from the plan given, else from `talos`. Where nothing but lanes and precedence ties the
// ops together, the labels of completion_labels.h prove the best plan, or find a better one, for
// small and medium problems: a few models of some tens of ops. Where they do not fit (transfers
// that wait for each other, binding memory, colocation, shared resources, cut overheads) or become
// too many, the rest of the time goes to CP-SAT on the whole schedule (methods/schedule_program.h),
// where its library is there.
//
// Memory: at most 4e6 labels. A step is one label taken up.

#include <utility>

#include "bounds/rounding.h"
#include "evaluate/schedule.h"
#include "planners/bound_of_problem.h"
#include "planners/flow/completion_labels.h"
#include "planners/flow/flow.h"
#include "planners/methods/schedule_program.h"

namespace placewright {
namespace {

constexpr std::size_t kMostLabels = 4'000'000;
// A plan that is better by less is not looked for.
constexpr double kGain = 1e-8;

Plan plan_of(const Problem& problem, const std::vector<CompletionLabels::Step>& steps) {
  std::vector<OpId> order;
  Placement placement(problem.op_count());
  for (const auto& [op, device] : steps) {
    order.push_back(op);
    placement[op] = device;
  }
  ScheduleEvaluator evaluator(problem);
  Schedule schedule = retime(problem, placement, evaluator.schedule(order, placement));
  return schedule_plan(problem, std::move(placement), std::move(schedule));
}

void search_labels(const Problem& problem, Answer& answer, Control& control) {
  const double cutoff = answer.plan ? answer.value() * (1 - kGain) : kInfinity;
  CompletionLabels labels(problem);
  const auto result = labels.search(
      cutoff, kMostLabels, [&](std::uint64_t taken) { return control.should_stop(taken); });
  if (!result.steps.empty()) {
    Plan plan = plan_of(problem, result.steps);
    if (plan.value < answer.value()) answer.plan = std::move(plan);
  }
  const double bound =
      result.complete && cutoff == kInfinity && !answer.plan ? 0 : safe_search(result.lower_bound);
  if (bound > answer.certificate.lower_bound) {
    answer.certificate = {bound, "labels over down-sets"};
  }
  if (answer.plan) control.report(*answer.plan, answer.certificate.lower_bound);
}

Answer first_answer(const Problem& problem, const Control& control) {
  if (control.start != nullptr) {
    Answer given;
    given.plan = *control.start;
    return given;
  }
  const PlannerEntry first = talos();
  Control part = control.part(first.name, 0.3 * control.remaining());
  return first.plan(problem, Settings{first.options}, part);
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  Answer answer = first_answer(problem, control);
  if (answer.proved_infeasible) return answer;
  answer.certificate = bound_of_problem(problem, control);
  if (answer.plan) control.report(*answer.plan, answer.certificate.lower_bound);
  const auto done = [&] { return answer.status() == Status::optimal || control.should_stop(); };
  if (done()) return answer;
  if (CompletionLabels::obstacle(problem).empty()) search_labels(problem, answer, control);
  if (done() || !kScheduleProgramKnows.covers(problem.features()) ||
      !refuses_schedule_program(problem).empty()) {
    return answer;
  }
  Control rest = control.part("cpsat", control.remaining());
  if (answer.plan) rest.start = &*answer.plan;
  Answer proved = solve_schedule_program(problem, rest);
  if (proved.value() < answer.value()) answer.plan = std::move(proved.plan);
  if (!answer.plan) {
    answer.proved_infeasible = proved.proved_infeasible;
    answer.reason = std::move(proved.reason);
  }
  if (proved.certificate.lower_bound > answer.certificate.lower_bound) {
    answer.certificate = std::move(proved.certificate);
  }
  return answer;
}

}  // namespace

PlannerEntry toct_exact() {
  return PlannerEntry{.name = "toct-exact",
                      .summary = "labels over down-sets, then CP-SAT: proves small and medium sets",
                      .objectives = {Objective::total_completion},
                      .strength = Strength::exact,
                      .effort = Effort::anytime,
                      .knows = kCommonAndSharing,
                      .plan = plan};
}

}  // namespace placewright
