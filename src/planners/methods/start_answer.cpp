#include "planners/methods/start_answer.h"

#include <utility>

#include "planners/methods/quick_plans.h"

namespace placewright {
namespace {

Answer answer_of(QuickPlan* quick, const char* name, const Problem& problem, const Control& control,
                 double share) {
  Control part = control.part(name, share * control.remaining());
  return quick(problem, part);
}

}  // namespace

Answer start_answer(const Problem& problem, Control& control) {
  Answer answer = answer_of(earliest_end_list, "heft", problem, control, 0.5);
  struct Other {
    const char* name;
    QuickPlan* quick;
  };
  for (const auto& [name, quick] :
       {Other{"etf", earliest_start_list}, Other{"single", best_single_device}}) {
    if (!answer.plan || control.should_stop()) break;
    Answer next = answer_of(quick, name, problem, control, 0.25);
    if (next.value() < answer.value()) answer = std::move(next);
  }
  if (control.start != nullptr && control.start->value < answer.value()) {
    answer = Answer{};
    answer.plan = *control.start;
  }
  return answer;
}

}  // namespace placewright
