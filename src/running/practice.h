// How long models take beside each other, measured right before it counts.
//
// A profile knows a model alone and beside copies of itself, on the day it was made. What side by side costs
// depends on who is beside whom, and on the state that the machine is in now. So for each kind of device all of
// its devices that can work at once take the models from one queue. The kinds have several turns, forth and back
// (running/turns.h): what counts for plans is how they compare, and a machine that changes meanwhile
// must change for all of them.
//
// The time of a model on a kind is the median over the inferences that ended while the queue was not
// empty: all devices of the kind were busy then. All of it takes as long as some ten inferences of each model on each
// kind.

#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "problem/draft.h"
#include "problem/problem.h"
#include "running/arrival_run.h"

namespace placewright {

// Milliseconds of one inference of a model on one kind of device.
struct PractisedTime {
  std::size_t model = 0;
  KindId kind;
  double stated = 0;    // by the problem
  double measured = 0;  // beside others
};

// Of all models with places, on the kinds of these. Nullopt: interrupted. Throws RuntimeError.
std::optional<std::vector<PractisedTime>> practise(
    ArrivalRunner& runner, const Problem& problem, const std::vector<ArrivalPlace>& places,
    const std::function<void(const std::string& what)>& progress = {});

// The same models, whose ops take as much longer or shorter.
ProblemDraft as_practised(const Problem& problem, const std::vector<PractisedTime>& times);

}  // namespace placewright
