#include "planners/throughput/configuration_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "bounds/rounding.h"
#include "planners/throughput/column_search.h"
#include "solvers/linear_program.h"

namespace placewright::throughput {
namespace {

constexpr double kMostPrizes = 20'000;  // sum of all prizes
constexpr double kLeastPrizes = 400;
constexpr double kMostEntries = 24e6;  // of a search's tables
constexpr double kSmoothing = 0.6;     // weight of the best prizes
constexpr double kCloseEnough = 2e-4;  // relative: bisection ends
constexpr int kMostRounds = 80;        // for one T

constexpr std::size_t kMostBlocks = 2000;  // beyond, a search takes too long to do many

using Prizes = std::vector<double>;

class Configurations {
 public:
  Configurations(const StageModel& model, double lowest, double highest, Control& control,
                 std::size_t most_states)
      : model_(model), bound_(lowest), highest_(highest), control_(control) {
    double entries = 1;
    for (std::size_t c = 0; c < model.classes().size(); ++c) {
      searches_.emplace_back(model, c, most_states);
      const auto devices = static_cast<double>(model.classes()[c].devices.size());
      entries = std::max(entries, static_cast<double>(searches_.back().state_count()) / devices);
    }
    total_ = std::clamp(kMostEntries / (1.25 * entries), kLeastPrizes, kMostPrizes);
    for (std::size_t v = 0; v < model.block_count(); ++v) {
      best_prizes_.push_back(static_cast<double>(model.work(v)));
    }
  }

  double run() {
    double open = highest_;  // no prizes are known to disprove it
    double target = highest_ * (1 - 1e-7);
    while (bound_ < open * (1 - kCloseEnough) && !control_.should_stop(1)) {
      target = std::max(target, bound_);
      if (!disprove(target)) open = target;
      target = (bound_ + open) / 2;
    }
    return bound_;
  }

 private:
  struct Column {
    std::size_t device_class = 0;
    std::vector<std::uint32_t> blocks;
    double load = 0;
    friend bool operator<(const Column& a, const Column& b) {
      return std::tie(a.device_class, a.blocks) < std::tie(b.device_class, b.blocks);
    }
  };

  // Whether prizes were found that no plan of value `target` can collect.
  bool disprove(double target) {
    best_ratio_ = 0;
    price(best_prizes_, target);
    if (bound_ >= target) return true;
    for (int round = 0; round < kMostRounds; ++round) {
      if (control_.should_stop(1)) return false;
      const std::optional<Prizes> wanted = solve_master(target);
      if (!wanted) return false;
      Prizes smoothed = *wanted;
      normalise(smoothed);
      for (std::size_t v = 0; v < smoothed.size(); ++v) {
        smoothed[v] = kSmoothing * best_prizes_[v] + (1 - kSmoothing) * smoothed[v];
      }
      std::size_t added = price(smoothed, target);
      if (bound_ >= target) return true;
      if (added == 0) added = price(*wanted, target);
      if (bound_ >= target) return true;
      if (added == 0) return false;
    }
    return false;
  }

  static void normalise(Prizes& prizes) {
    double sum = 0;
    for (const double prize : prizes) sum += prize;
    if (sum <= 0) return;
    for (double& prize : prizes) prize /= sum;
  }

  // Raises the bound to what the prizes prove, and adds the columns that are worth most within the
  // target. Answers how many are new.
  std::size_t price(Prizes prizes, double target) {
    normalise(prizes);
    std::vector<std::uint32_t> whole;
    std::uint64_t sum = 0;
    for (const double prize : prizes) {
      whole.push_back(static_cast<std::uint32_t>(std::lround(prize * total_)));
      sum += whole.back();
    }
    if (sum == 0) return 0;
    for (std::size_t c = 0; c < searches_.size(); ++c) {
      if (!search(c, whole, sum, target)) return 0;
    }
    const double proven = safe_search(collected_at(sum));
    if (proven > bound_) {
      bound_ = std::min(proven, highest_);
      control_.report(highest_, bound_);
    }
    double reach = 0;
    for (std::size_t c = 0; c < searches_.size(); ++c) reach += collected(c, target);
    if (static_cast<double>(sum) / std::max(1.0, reach) > best_ratio_) {
      best_ratio_ = static_cast<double>(sum) / std::max(1.0, reach);
      best_prizes_ = prizes;
    }
    return add_columns(target);
  }

  // A fair share of the prizes proves what there is to prove; a set worth more than the tables hold
  // cannot be read off them, so they grow until they hold the best one.
  // False: asked to stop.
  bool search(std::size_t c, const std::vector<std::uint32_t>& prizes, std::uint64_t sum,
              double target) {
    ColumnSearch& search = searches_[c];
    const std::uint64_t share = sum / model_.classes()[c].devices.size() + 1;
    for (std::uint64_t most = share + share / 4 + 1;; most *= 2) {
      most = std::min(most, sum + 1);
      if (!search.run(prizes, static_cast<std::uint32_t>(most), highest_, control_)) return false;
      const bool room = static_cast<double>(2 * most * search.state_count()) < 2 * kMostEntries;
      if (most > sum || !room || search.best_prize(target) < most) return true;
    }
  }

  [[nodiscard]] double collected(std::size_t c, double load) const {
    return static_cast<double>(searches_[c].best_prize(load)) *
           static_cast<double>(model_.classes()[c].devices.size());
  }

  // The least load with which the devices could collect all prizes.
  [[nodiscard]] double collected_at(std::uint64_t sum) const {
    std::vector<double> loads{highest_};
    for (const ColumnSearch& search : searches_) {
      for (std::uint32_t p = 0; p <= search.most_prize(); ++p) {
        if (search.least_load(p) < highest_) loads.push_back(search.least_load(p));
      }
    }
    std::sort(loads.begin(), loads.end());
    const auto enough = [&](double load) {
      double all = 0;
      for (std::size_t c = 0; c < searches_.size(); ++c) all += collected(c, load);
      return all >= static_cast<double>(sum);
    };
    const auto first = std::partition_point(loads.begin(), loads.end(),
                                            [&](double load) { return !enough(load); });
    return first == loads.end() ? highest_ : *first;
  }

  std::size_t add_columns(double target) {
    std::size_t added = 0;
    for (std::size_t c = 0; c < searches_.size(); ++c) {
      const ColumnSearch& search = searches_[c];
      std::uint32_t prize = std::min(search.best_prize(target), search.most_prize() - 1);
      while (prize > 0 && search.least_load(prize) > target) --prize;
      if (prize == 0) continue;
      Column column{c, search.column(prize), search.least_load(prize)};
      if (known_.insert(column).second) {
        columns_.push_back(std::move(column));
        ++added;
      }
    }
    return added;
  }

  // Prizes of the largest sum such that the columns within the target, one for each device, collect
  // at most 1. Nullopt when that sum is at most 1: the target cannot be disproved.
  std::optional<Prizes> solve_master(double target) {
    const std::size_t blocks = model_.block_count();
    const std::size_t classes = model_.classes().size();
    if (target < master_target_ || !master_) {
      master_.emplace();
      master_columns_ = 0;
      for (std::size_t v = 0; v < blocks; ++v) master_->add_variable(0, 1, -1);
      std::vector<solvers::LinearTerm> budget;
      for (std::size_t c = 0; c < classes; ++c) {
        const int most = master_->add_variable(0, 1, 0);
        budget.push_back({most, static_cast<double>(model_.classes()[c].devices.size())});
      }
      master_->add_row(1, 1, budget);
    } else if (target > master_target_) {
      master_columns_ = 0;  // columns that were too heavy may be within the target now
      in_master_.resize(columns_.size(), 0);
    }
    if (target < master_target_ || in_master_.empty()) in_master_.assign(columns_.size(), 0);
    master_target_ = target;
    in_master_.resize(columns_.size(), 0);
    for (; master_columns_ < columns_.size(); ++master_columns_) {
      const Column& column = columns_[master_columns_];
      if (column.load > target || in_master_[master_columns_] != 0) continue;
      in_master_[master_columns_] = 1;
      std::vector<solvers::LinearTerm> terms;
      for (const std::uint32_t block : column.blocks) {
        terms.push_back({static_cast<int>(block), 1});
      }
      terms.push_back({static_cast<int>(blocks + column.device_class), -1});
      master_->add_row(-solvers::kUnbounded, 0, terms);
    }
    solvers::LinearLimits limits;
    limits.time_seconds = std::max(0.01, control_.remaining());
    limits.stop = control_.interruption();
    const solvers::LinearResult result = master_->solve(limits);
    if (result.status != solvers::LinearStatus::optimal || -result.objective <= 1 + 1e-9) {
      return std::nullopt;
    }
    return Prizes(result.values.begin(),
                  result.values.begin() + static_cast<std::ptrdiff_t>(blocks));
  }

  const StageModel& model_;
  double bound_;
  double highest_;
  Control& control_;
  std::vector<ColumnSearch> searches_;
  double total_ = 0;
  Prizes best_prizes_;
  double best_ratio_ = 0;
  std::vector<Column> columns_;
  std::set<Column> known_;
  std::optional<solvers::LinearProgram> master_;
  double master_target_ = kInfinity;
  std::size_t master_columns_ = 0;
  std::vector<char> in_master_;
};

}  // namespace

double configuration_bound(const StageModel& model, double lowest, double highest, Control& control,
                           std::size_t most_states) {
  if (model.phased() || model.max_replicas() > 1 || !(highest < kInfinity) ||
      model.block_count() > kMostBlocks) {
    return lowest;
  }
  return Configurations(model, lowest, highest, control, most_states).run();
}

}  // namespace placewright::throughput
