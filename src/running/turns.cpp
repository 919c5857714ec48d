#include "running/turns.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace placewright {

std::vector<std::size_t> order_in_turn(int turn, std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (turn % 2 == 1) std::ranges::reverse(order);
  return order;
}

bool far_slower(std::span<const double> turns, double fastest) {
  constexpr double kAfterOne = 1.3;
  constexpr double kAfterMore = 1.1;
  return std::ranges::min(turns) > (turns.size() == 1 ? kAfterOne : kAfterMore) * fastest;
}

RunOptions one_turn_of(RunOptions options, const Plan& plan) {
  constexpr int kMostWarmUp = 2;  // all of it is compiled and has run before
  options.warm_up = std::min(options.warm_up, kMostWarmUp);
  options.repeat = (options.repeat + kTurns - 1) / kTurns;
  if (!plan.schedule) {
    std::size_t replicas = 1;
    for (const Stage& stage : plan.stages) replicas = std::max(replicas, stage.devices.size());
    options.repeat = std::max(options.repeat, kFewestOfPipeline) * static_cast<int>(replicas);
  }
  options.duration /= kTurns;
  options.at_least /= kTurns;
  return options;
}

Measured over_turns(const std::vector<Measured>& turns) {
  const auto valid = std::ranges::count_if(turns, &Measured::valid);
  const bool all = 2 * static_cast<std::size_t>(valid) < turns.size();
  std::vector<double> medians;
  std::vector<double> lows;
  std::vector<double> highs;
  Measured result;
  for (const Measured& turn : turns) {
    result.kept += turn.kept;
    result.rejected += turn.rejected;
    result.watched = result.watched && turn.watched;
    if (!all && !turn.valid()) continue;
    medians.push_back(turn.median);
    lows.push_back(turn.low);
    highs.push_back(turn.high);
  }
  result.median = median(std::move(medians));
  result.low = median(std::move(lows));
  result.high = median(std::move(highs));
  return result;
}

RunResult over_turns(std::vector<RunResult> turns) {
  std::vector<Measured> values;
  bool interrupted = false;
  for (const RunResult& turn : turns) {
    values.push_back(turn.value);
    interrupted = interrupted || turn.interrupted;
  }
  const Measured value = over_turns(values);
  const auto typical = std::ranges::min_element(
      turns, {}, [&](const RunResult& turn) { return std::abs(turn.value.median - value.median); });
  RunResult result = *typical;
  result.value = value;
  result.outputs = std::move(turns.front().outputs);
  result.results = std::move(turns.front().results);
  result.interrupted = interrupted;
  return result;
}

}  // namespace placewright
