#include "evaluate/stage_arrangement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "evaluate/resource_load.h"
#include "evaluate/resource_profile.h"

namespace placewright {
namespace {

// Of the sum of the loads: what is too long for a gap by so little fits (semantics.md, "Rounding").
constexpr double kListTolerance = 1e-9;
// Of the period: moments that differ by less are one.
constexpr double kMoment = 1e-12;

// Whether replicas on resources that they share could work at the same time at all.
bool within_capacity(const Problem& problem, std::span<const ResourceUse> demands) {
  return std::ranges::all_of(demands, [&](const ResourceUse& demand) {
    return demand.amount <= problem.resource(demand.resource).capacity * (1 + kCapacityTolerance);
  });
}

std::vector<std::size_t> order_of_list(std::size_t stages) {
  std::vector<std::size_t> order(stages);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

// A stage that holds something for some time.
struct HoldingStage {
  std::size_t number;
  double load;
  std::span<const ResourceUse> demands;
};

// The trees of arrangements of one period, until one is within all capacities.
class ArrangementTrees {
 public:
  ArrangementTrees(const Problem& problem, std::span<const HoldingStage> stages, PeriodEnd end,
                   double period)
      : problem_(problem),
        stages_(stages),
        wraps_(end == PeriodEnd::wraps),
        period_(period),
        starts_(stages.size(), -1) {}

  // The start of each stage.
  std::optional<std::vector<double>> find() {
    // On a circle any stage may be the one at 0.
    if (wraps_) put(0, 0);
    if (!grow(0, 0)) return std::nullopt;
    return starts_;
  }

 private:
  void put(std::size_t stage, double start) {
    starts_[stage] = start;
    order_.push_back(stage);
  }

  // Trees by levels: what begins at the end of `order_[root - 1]` (root 0: at 0) is decided before
  // what begins at the next one's end, and in the order of numbers from `first` on.
  bool grow(std::size_t root, std::size_t first) {
    if (order_.size() == stages_.size()) return true;
    if (root > order_.size()) return false;
    const double start = root == 0 ? 0 : end_of(order_[root - 1]);
    for (std::size_t stage = first; stage < stages_.size(); ++stage) {
      if (starts_[stage] >= 0 || !fits(stage, start)) continue;
      put(stage, start);
      if (grow(root, stage + 1)) return true;
      starts_[stage] = -1;
      order_.pop_back();
    }
    return grow(root + 1, 0);
  }

  [[nodiscard]] double end_of(std::size_t stage) const {
    const double end = starts_[stage] + stages_[stage].load;
    return wraps_ && end >= period_ * (1 - kMoment) ? std::max(0.0, end - period_) : end;
  }

  [[nodiscard]] bool fits(std::size_t stage, double start) const {
    if (!wraps_ && start + stages_[stage].load > period_ * (1 + kMoment)) return false;
    if (!fits_at(stage, start)) return false;
    return std::ranges::all_of(order_, [&](std::size_t other) {
      return !holds_at(stage, start, starts_[other]) || fits_at(stage, starts_[other]);
    });
  }

  [[nodiscard]] bool holds_at(std::size_t stage, double start, double moment) const {
    double since = moment - start;
    if (since < -kMoment * period_) {
      if (!wraps_) return false;
      since += period_;
    }
    return since < stages_[stage].load - kMoment * period_;
  }

  [[nodiscard]] bool fits_at(std::size_t stage, double moment) const {
    return std::ranges::all_of(stages_[stage].demands, [&](const ResourceUse& demand) {
      double sum = demand.amount;
      for (const std::size_t other : order_) {
        if (!holds_at(other, starts_[other], moment)) continue;
        const auto& uses = stages_[other].demands;
        const auto use = std::ranges::find(uses, demand.resource, &ResourceUse::resource);
        if (use != uses.end()) sum += use->amount;
      }
      return sum <= problem_.resource(demand.resource).capacity * (1 + kCapacityTolerance);
    });
  }

  const Problem& problem_;
  std::span<const HoldingStage> stages_;
  bool wraps_;
  double period_;
  std::vector<double> starts_;  // by stage; below 0: not placed
  std::vector<std::size_t> order_;
};

// Sums of loads of some stages, divided by how often a ring of them goes round, from `least` up to
// below `most`, ascending.
std::vector<double> possible_periods(std::span<const HoldingStage> stages, PeriodEnd end,
                                     double least, double most) {
  const std::size_t rounds = end == PeriodEnd::wraps ? stages.size() : 1;
  std::vector<double> periods{least};  // it may come from a stage that holds nothing
  for (std::size_t set = 1; set < (std::size_t{1} << stages.size()); ++set) {
    double sum = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if ((set >> i & 1U) != 0) sum += stages[i].load;
    }
    for (std::size_t round = 1; round <= rounds; ++round) {
      const double period = sum / static_cast<double>(round);
      if (period >= least * (1 - kMoment) && period < most * (1 - kMoment)) {
        periods.push_back(period);
      }
    }
  }
  std::ranges::sort(periods);
  return periods;
}

// The best arrangement with a period from `least` up to below `most`.
std::optional<Arrangement> best_of_all(const Problem& problem, std::span<const HoldingStage> stages,
                                       PeriodEnd end, double least, double most) {
  std::optional<Arrangement> best;
  const std::vector<double> periods = possible_periods(stages, end, least, most);
  std::size_t first = 0;
  for (std::size_t last = periods.size(); first < last;) {
    const std::size_t middle = first + (last - first) / 2;
    if (auto starts = ArrangementTrees(problem, stages, end, periods[middle]).find()) {
      best = Arrangement{std::move(*starts), periods[middle]};
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  return best;
}

}  // namespace

StageArrangements::StageArrangements(const Problem& problem, std::span<const Stage> stages)
    : problem_(problem), width_(stages.size(), 0) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    demands_.push_back(held_by(problem, stages[i].devices, stages[i].ops));
    possible_ = possible_ && within_capacity(problem, demands_[i]);
    for (const ResourceUse& demand : demands_[i]) {
      width_[i] += demand.amount / problem.resource(demand.resource).capacity;
    }
  }
}

double StageArrangements::bound(std::span<const double> loads) const {
  Table<ResourceId, double> work(problem_.resource_count(), 0);
  double most = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    most = std::max(most, loads[i]);
    for (const ResourceUse& demand : demands_[i]) {
      double& sum = work[demand.resource];
      sum += loads[i] * demand.amount / problem_.resource(demand.resource).capacity;
      most = std::max(most, sum);
    }
  }
  return most;
}

// Each stage, in the order given, as early as its resources allow beside those before it.
Arrangement StageArrangements::in_order(std::span<const double> loads,
                                        std::span<const std::size_t> order,
                                        std::span<const std::optional<double>> stated) const {
  ResourceProfiles profiles(problem_);
  const double tolerance =
      stated.empty() ? 0 : kListTolerance * std::accumulate(loads.begin(), loads.end(), 0.0);
  Arrangement arrangement{std::vector<double>(order.size(), 0), 0};
  for (const std::size_t i : order) {
    const bool free = stated.empty() || !stated[i];
    const double length = std::max(0.0, loads[i] - tolerance);
    const double start = free ? profiles.earliest(demands_[i], 1, 0, length) : *stated[i];
    profiles.hold(demands_[i], 1, start, loads[i]);
    arrangement.offsets[i] = start;
    arrangement.period = std::max(arrangement.period, start + loads[i]);
  }
  return arrangement;
}

Arrangement StageArrangements::listed(std::span<const double> loads,
                                      std::span<const std::optional<double>> stated) const {
  if (!possible_) return {};
  return in_order(loads, order_of_list(loads.size()), stated);
}

Arrangement StageArrangements::quick(std::span<const double> loads) const {
  std::vector<std::size_t> order = order_of_list(loads.size());
  Arrangement best = in_order(loads, order);
  const auto try_order = [&](auto key) {
    std::ranges::stable_sort(order, std::greater<>{}, key);
    Arrangement other = in_order(loads, order);
    if (other.period < best.period) best = std::move(other);
  };
  try_order([&](std::size_t i) { return loads[i]; });
  try_order([&](std::size_t i) { return width_[i]; });
  try_order([&](std::size_t i) { return width_[i] * loads[i]; });
  return best;
}

Arrangement StageArrangements::best(std::span<const double> loads, PeriodEnd end,
                                    double below) const {
  if (!possible_) return {};
  Arrangement arrangement = quick(loads);
  const double least = bound(loads);
  if (least >= below || arrangement.period <= least * (1 + kMoment)) return arrangement;
  std::vector<HoldingStage> holding;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (loads[i] > 0 && !demands_[i].empty()) holding.push_back({i, loads[i], demands_[i]});
  }
  if (holding.size() > kMostArrangedStages) return arrangement;
  const double most = std::min(below, arrangement.period);
  if (const auto better = best_of_all(problem_, holding, end, least, most)) {
    std::ranges::fill(arrangement.offsets, 0);
    for (std::size_t i = 0; i < holding.size(); ++i) {
      arrangement.offsets[holding[i].number] = better->offsets[i];
    }
    arrangement.period = better->period;
  }
  return arrangement;
}

}  // namespace placewright
