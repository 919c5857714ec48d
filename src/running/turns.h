// Measurements that are to be compared, taken in turns.
//
// A machine does not stay as it is: it gets warm, and other programs come and go. Two equal things
// measured one after the other then seem to differ. So everything that is to be compared runs for a
// few samples, one after the other, kTurns times, and what counts is the median over the turns.
// Every other turn goes backwards: what has run before leaves its mark (threads that have not gone
// to sleep yet), and nobody may always have the same one before.
//
// In so few turns chance decides between two that are nearly equal. So those that are not told
// apart have more of them, up to kMostTurns.

#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "problem/measured.h"
#include "problem/plan.h"
#include "running/execution.h"

namespace placewright {

inline constexpr int kTurns = 5;
inline constexpr int kMostTurns = 15;

// Seconds after the first kTurns turns from which on no other begins: who runs a model that is slow
// would not wait for ten more.
inline constexpr double kLongestDecision = 20;

// Seconds for which each of them runs at least: a few samples of a small model tell nothing.
inline constexpr double kShortestComparison = 0.5;

// Whether something is so far behind the fastest (the least median over the turns) that it has no
// further turns, so that a comparison of many takes little more time than one of the few that
// matter. What counts is the best of two turns or more: others may have disturbed one.
bool far_slower(std::span<const double> turns, double fastest);

// Whether two are told apart by their times in the same turns, kTurns or more: one was faster in
// all of them, but for one turn for every three beyond kTurns. How much faster does not count: to
// stop as soon as the difference is large would be to stop where the error is.
bool told_apart(std::span<const double> turns, std::span<const double> others);

// Who runs when in a turn, of so many.
std::vector<std::size_t> order_in_turn(int turn, std::size_t count);

// The samples of one turn of a plan, so that all turns have about as many as `options` say; of a
// pipeline, which shows its pace only when it is full, at least kFewestOfPipeline for each replica.
inline constexpr int kFewestOfPipeline = 5;
RunOptions one_turn_of(RunOptions options, const Plan& plan);

// One of those that are compared.
struct Contender {
  std::function<std::optional<double>(int turn)> take_turn;  // what it took; nullopt: interrupted
  std::function<void()> release;                             // it has no further turns
};

// Lets them take turns until all are told apart from the fastest (the least median over the turns),
// or from the `reference`, which has all turns. Who is far slower is released; after kTurns turns
// also who is told apart and more than 5 % behind, if others go on. Who is told apart but closer
// goes on with them: medians over different turns do not tell close ones apart. False: interrupted.
bool compare_in_turns(std::span<const Contender> contenders,
                      std::optional<std::size_t> reference = std::nullopt,
                      double longest_decision = kLongestDecision);

// A turn of a plan: the result joins those of the turns before. Outputs are compared in the first.
std::optional<double> take_turn(LoadedPlan& plan, std::vector<RunResult>& turns);

// The medians over the turns that are valid, over all of them if those are less than half.
Measured over_turns(const std::vector<Measured>& turns);
// The turn whose value is nearest to the median, with the value over all turns. Outputs are those
// of the first turn.
RunResult over_turns(std::vector<RunResult> turns);

}  // namespace placewright
