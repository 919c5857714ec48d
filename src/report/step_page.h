// One step of a training plan as a page: how long its parts take, and who is busy when.

#pragma once

#include <string>

#include "evaluate/training_step.h"
#include "problem/training.h"

namespace placewright {

// A row for each stage and kind of group: its fullest replica. Time runs to the right. A row waits
// for the first micro-batch, then has a block for each of its own (many are drawn as one), the
// update and the all-reduce. Where it falls in a row is that of the formula of docs/semantics.md:
// micro-batches of a row follow each other, and the last one drains through the stages before.
std::string step_chart(const TrainingProblem& problem, const TrainingPlan& plan,
                       const StepCost& cost);

// A self-contained HTML page with the chart and a table of the stages.
std::string step_page(const TrainingProblem& problem, const TrainingAnswer& answer);

}  // namespace placewright
