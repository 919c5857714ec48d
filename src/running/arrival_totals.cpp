#include "running/arrival_totals.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace placewright {
namespace {

double total_completion(std::span<const WeightedArrival> arrivals,
                        std::span<const ArrivalState> states) {
  double total = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].stage != ArrivalStage::complete) continue;
    total += arrivals[i].weight * (states[i].end - arrivals[i].time);
  }
  return total;
}

// Who starts in which order, and where.
std::vector<std::pair<std::size_t, DeviceId>> decisions_of(std::span<const ArrivalState> states) {
  std::vector<std::pair<std::size_t, DeviceId>> started;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].device.valid()) started.emplace_back(i, states[i].device);
  }
  std::ranges::stable_sort(started, {}, [&](const auto& each) { return states[each.first].start; });
  return started;
}

bool decide_alike(std::span<const ArrivalRound> some, std::span<const ArrivalRound> others) {
  const auto first = decisions_of(some.front().states);
  const auto same = [&](const ArrivalRound& round) { return decisions_of(round.states) == first; };
  return std::ranges::all_of(some, same) && std::ranges::all_of(others, same);
}

// Total completion over the rounds of some rules.
Measured over_rounds(std::span<const std::size_t> rules, const std::vector<ArrivalTotals>& all,
                     const ArrivalRuns& runs) {
  std::vector<double> kept;
  std::vector<double> rejected;
  bool watched = true;
  for (const std::size_t rule : rules) {
    for (std::size_t run = 0; run < all[rule].totals.size(); ++run) {
      const ArrivalRound& round = runs.rounds[rule][run];
      (round.disturbed ? rejected : kept).push_back(all[rule].totals[run]);
      watched = watched && round.watched;
    }
  }
  Measured total = measured(std::move(kept), rejected);
  total.watched = watched;
  return total;
}

}  // namespace

std::vector<ArrivalTotals> totals_of(const ArrivalRuns& runs,
                                     std::span<const WeightedArrival> arrivals,
                                     std::span<const char> comparable) {
  std::vector<ArrivalTotals> all(runs.rounds.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const ArrivalRound& round : runs.rounds[i]) {
      all[i].totals.push_back(total_completion(arrivals, round.states));
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::size_t> rules = {i};
    for (std::size_t other = 0; other < all.size(); ++other) {
      if (other == i || comparable[i] == 0 || comparable[other] == 0) continue;
      if (!decide_alike(runs.rounds[i], runs.rounds[other])) continue;
      if (!all[i].alike) all[i].alike = other;
      rules.push_back(other);
    }
    all[i].measured = over_rounds(rules, all, runs);
    const auto distance = [&](double total) { return std::abs(total - all[i].measured.median); };
    all[i].typical = static_cast<std::size_t>(
        std::ranges::min_element(all[i].totals, {}, distance) - all[i].totals.begin());
  }
  return all;
}

}  // namespace placewright
