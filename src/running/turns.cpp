#include "running/turns.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "machine/clock.h"

namespace placewright {
namespace {

class Comparison {
 public:
  Comparison(std::span<const Contender> contenders, std::optional<std::size_t> reference)
      : contenders_(contenders),
        reference_(reference),
        times_(contenders.size()),
        in_(contenders.size(), true) {}

  // False: interrupted.
  bool take_turns(int turn) {
    for (const std::size_t i : order_in_turn(turn, contenders_.size())) {
      if (!in_[i]) continue;
      const std::optional<double> time = contenders_[i].take_turn(turn);
      if (!time) return false;
      times_[i].push_back(*time);
    }
    release_far_slower();
    return true;
  }

  // Whether another turn is needed; who is clearly behind is released before it.
  bool goes_on() {
    constexpr double kClearly = 1.05;
    const std::size_t leader = reference_.value_or(fastest());
    std::vector<std::size_t> behind;
    bool undecided = false;
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      if (!in_[i] || i == leader) continue;
      if (!told_apart(times_[i], times_[leader])) {
        undecided = true;
      } else if (median(times_[i]) > kClearly * median(times_[leader])) {
        behind.push_back(i);
      }
    }
    if (!undecided) return false;
    for (const std::size_t i : behind) release(i);
    return true;
  }

 private:
  void release_far_slower() {
    const double least = median(times_[fastest()]);
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      if (in_[i] && i != reference_ && far_slower(times_[i], least)) release(i);
    }
  }

  void release(std::size_t contender) {
    in_[contender] = false;
    contenders_[contender].release();
  }

  // Of those that had all turns.
  [[nodiscard]] std::size_t fastest() const {
    const auto time = [&](std::size_t i) { return in_[i] ? median(times_[i]) : kInfinity; };
    return std::ranges::min(order_in_turn(0, contenders_.size()), {}, time);
  }

  std::span<const Contender> contenders_;
  std::optional<std::size_t> reference_;
  std::vector<std::vector<double>> times_;  // by contender and turn
  std::vector<bool> in_;                    // false: released
};

}  // namespace

std::vector<std::size_t> order_in_turn(int turn, std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (turn % 2 == 1) std::ranges::reverse(order);
  return order;
}

bool far_slower(std::span<const double> turns, double fastest) {
  constexpr double kAfterTwo = 1.3;
  constexpr double kAfterMore = 1.1;
  const double factor = turns.size() > 2 ? kAfterMore : kAfterTwo;
  return turns.size() > 1 && std::ranges::min(turns) > factor * fastest;
}

bool told_apart(std::span<const double> turns, std::span<const double> others) {
  constexpr int kTurnsForAnException = 3;
  int slower = 0;
  int faster = 0;
  for (std::size_t turn = 0; turn < turns.size(); ++turn) {
    if (turns[turn] > others[turn]) ++slower;
    if (turns[turn] < others[turn]) ++faster;
  }
  const int count = static_cast<int>(turns.size());
  return count - std::max(slower, faster) <= (count - kTurns) / kTurnsForAnException;
}

bool compare_in_turns(std::span<const Contender> contenders, std::optional<std::size_t> reference,
                      double longest_decision) {
  Comparison comparison(contenders, reference);
  int turn = 0;
  for (; turn < kTurns; ++turn) {
    if (!comparison.take_turns(turn)) return false;
  }
  const Clock::time_point begin = Clock::now();
  const auto has_time = [&] {
    return milliseconds(Clock::now() - begin) < 1000 * longest_decision;
  };
  for (; turn < kMostTurns && has_time() && comparison.goes_on(); ++turn) {
    if (!comparison.take_turns(turn)) return false;
  }
  return true;
}

std::optional<double> take_turn(LoadedPlan& plan, std::vector<RunResult>& turns) {
  turns.push_back(plan.measure(turns.empty()));
  if (turns.back().interrupted) return std::nullopt;
  return turns.back().value.median;
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
  std::size_t samples = 0;
  bool interrupted = false;
  for (const RunResult& turn : turns) {
    values.push_back(turn.value);
    samples += turn.samples;
    interrupted = interrupted || turn.interrupted;
  }
  const Measured value = over_turns(values);
  const auto typical = std::ranges::min_element(
      turns, {}, [&](const RunResult& turn) { return std::abs(turn.value.median - value.median); });
  RunResult result = *typical;
  result.value = value;
  result.samples = samples;
  result.outputs = std::move(turns.front().outputs);
  result.results = std::move(turns.front().results);
  result.interrupted = interrupted;
  return result;
}

}  // namespace placewright
