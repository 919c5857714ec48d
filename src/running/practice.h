// How long models take beside each other, measured right before it counts.
//
// A profile knows a model alone and beside copies of itself, on the day it was made. What side by
// side costs depends on who is beside whom, on who was there before, and on the state that the
// machine is in now. So for each kind of device the models of a trace are all there at once, as
// often as they arrive (kMostRuns times at most), and all devices of the kind that can work at once
// take them from one queue, the shortest first. On the kind that has all cores that is one model
// after the other; on the others it is a plan as any other may be. The kinds have several turns,
// forth and back (running/turns.h): plans are chosen by how kinds compare, and a machine that
// changes meanwhile must change for all of them.
//
// The time of a model on a kind is the mean over its inferences in a turn, the median over the
// turns: where one core is slower than another it is slow in every turn, and one turn may be
// disturbed.

#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
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

// Of the models that arrive, on the kinds of their places. Nullopt: interrupted. Throws
// RuntimeError.
inline constexpr std::size_t kMostRuns = 8;
std::optional<std::vector<PractisedTime>> practise(
    ArrivalRunner& runner, const Problem& problem, std::span<const ArrivingModel> arrivals,
    const std::vector<ArrivalPlace>& places,
    const std::function<void(const std::string& what)>& progress = {});

// The same models, whose ops take as much longer or shorter.
ProblemDraft as_practised(const Problem& problem, const std::vector<PractisedTime>& times);

}  // namespace placewright
