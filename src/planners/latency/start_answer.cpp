#include "planners/latency/start_answer.h"

#include <utility>

#include "planners/baselines/baselines.h"

namespace placewright {
namespace {

Answer answer_of(const PlannerEntry& planner, const Problem& problem, const Control& control,
                 double share) {
  Control part = control.part(planner.name, share * control.remaining());
  return planner.plan(problem, Settings{}, part);
}

}  // namespace

Answer start_answer(const Problem& problem, Control& control) {
  Answer answer = answer_of(heft(), problem, control, 0.5);
  for (const PlannerEntry& other : {etf(), single()}) {
    if (!answer.plan || control.should_stop()) break;
    Answer next = answer_of(other, problem, control, 0.25);
    if (next.value() < answer.value()) answer = std::move(next);
  }
  if (control.start != nullptr && control.start->value < answer.value()) {
    answer = Answer{};
    answer.plan = *control.start;
  }
  return answer;
}

}  // namespace placewright
