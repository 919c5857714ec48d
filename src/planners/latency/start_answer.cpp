#include "planners/latency/start_answer.h"

#include "planners/baselines/baselines.h"

namespace placewright {

Answer start_answer(const Problem& problem, Control& control) {
  Control part = control.part("heft", control.remaining() / 2);
  Answer answer = heft().plan(problem, Settings{}, part);
  if (control.start != nullptr && control.start->value < answer.value()) {
    answer = Answer{};
    answer.plan = *control.start;
  }
  return answer;
}

}  // namespace placewright
