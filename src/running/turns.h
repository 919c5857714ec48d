// Measurements that are to be compared, taken in turns.
//
// A machine does not stay as it is: it gets warm, and other programs come and go. Two equal things
// measured one after the other then seem to differ. So everything that is to be compared runs for a
// few samples, one after the other, kTurns times, and what counts is the median over the turns. Every
// other turn goes backwards: what has run before leaves its mark (threads that have not gone to sleep
// yet), and nobody may always have the same one before.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "problem/measured.h"
#include "problem/plan.h"
#include "running/execution.h"

namespace placewright {

inline constexpr int kTurns = 5;

// Seconds for which each of them runs at least: a few samples of a small model tell nothing.
inline constexpr double kShortestComparison = 0.5;

// Whether something is so far behind the fastest time of all that it has no further turns, so that a
// comparison of many takes little more time than one of the few that matter. What counts is the best of
// its turns (medians): others may have disturbed one.
bool far_slower(std::span<const double> turns, double fastest);

// Who runs when in a turn, of so many.
std::vector<std::size_t> order_in_turn(int turn, std::size_t count);

// The samples of one turn of a plan, so that all turns have about as many as `options` say; of a
// pipeline, which shows its pace only when it is full, at least kFewestOfPipeline for each replica.
inline constexpr int kFewestOfPipeline = 5;
RunOptions one_turn_of(RunOptions options, const Plan& plan);

// The medians over the turns that are valid, over all of them if those are less than half.
Measured over_turns(const std::vector<Measured>& turns);
// The turn whose value is nearest to the median, with the value over all turns. Outputs are those of
// the first turn.
RunResult over_turns(std::vector<RunResult> turns);

}  // namespace placewright
