#include "bounds/completion_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "bounds/critical_path.h"
#include "bounds/rounding.h"
#include "problem/lanes.h"

namespace placewright {
namespace {

constexpr std::size_t kMostModels = 14;
constexpr std::size_t kPairModels = 6;
constexpr double kMostWork = 1e8;  // prices looked at: of an op on a kind of device
constexpr int kSectionSteps = 24;
constexpr int kRounds = 2;
constexpr double kWidest = 12;  // prices differ by a factor of at most e^12

class Pricing {
 public:
  explicit Pricing(const Problem& problem)
      : problem_(problem), kinds_(problem.kind_count()), lanes_(kinds_, 0) {
    for (const DeviceId device : problem.devices()) {
      lanes_[problem.kind_of(device)] += useful_lanes(problem, device);
    }
    std::vector<std::pair<ModelId, OpId>> pairs;
    times_.assign(problem.op_count() * kinds_, kInfinity);
    for (const OpId op : problem.ops()) {
      pairs.emplace_back(problem.op(op).model, op);
      for (const DeviceId device : problem.devices()) {
        if (!problem.allowed(op, device)) continue;
        times_[op.index() * kinds_ + problem.kind_of(device).index()] = problem.time(op, device);
      }
    }
    ops_ = Rows<ModelId, OpId>::from_pairs(problem.model_count(), pairs);
  }

  std::vector<PricedWork> run() {
    add(std::vector<double>(kinds_, 0));
    std::vector<std::vector<ModelId>> sets;
    std::vector<ModelId> all;
    for (const ModelId model : problem_.models()) all.push_back(model);
    sets.push_back(all);
    for (const ModelId model : all) sets.push_back({model});
    if (all.size() <= kPairModels) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) sets.push_back({all[i], all[j]});
      }
    }
    if (kinds_ > 1) {
      for (const auto& set : sets) {
        if (looked_at_ > kMostWork) break;
        add(best_prices(set));
      }
    }
    return std::move(works_);
  }

 private:
  [[nodiscard]] double least(OpId op, const std::vector<double>& prices) const {
    double best = kInfinity;
    for (std::size_t kind = 0; kind < kinds_; ++kind) {
      best = std::min(best, prices[kind] * times_[op.index() * kinds_ + kind]);
    }
    return best;
  }

  [[nodiscard]] std::vector<double> exponentials(const std::vector<double>& logarithms) const {
    std::vector<double> prices(kinds_);
    for (std::size_t kind = 0; kind < kinds_; ++kind) prices[kind] = std::exp(logarithms[kind]);
    return prices;
  }

  [[nodiscard]] double capacity(const std::vector<double>& prices) const {
    double total = 0;
    for (std::size_t kind = 0; kind < kinds_; ++kind) total += prices[kind] * lanes_[KindId{kind}];
    return total;
  }

  double bound(const std::vector<ModelId>& models, const std::vector<double>& logarithms) {
    const std::vector<double> prices = exponentials(logarithms);
    double work = 0;
    for (const ModelId model : models) {
      for (const OpId op : ops_[model]) work += least(op, prices);
      looked_at_ += static_cast<double>(ops_[model].size() * kinds_);
    }
    return work / capacity(prices);
  }

  // The bound is quasi-concave in each price, so a golden section finds the best along it.
  std::vector<double> best_prices(const std::vector<ModelId>& models) {
    constexpr double kGolden = 0.6180339887498949;
    std::vector<double> logarithms(kinds_, 0);
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t kind = 1; kind < kinds_; ++kind) {
        if (looked_at_ > kMostWork) return logarithms;  // any prices are a bound
        if (lanes_[KindId{kind}] == 0) continue;
        const auto at = [&](double position) {
          logarithms[kind] = position;
          return bound(models, logarithms);
        };
        double low = -kWidest;
        double high = kWidest;
        double first = high - kGolden * (high - low);
        double second = low + kGolden * (high - low);
        double at_first = at(first);
        double at_second = at(second);
        for (int step = 0; step < kSectionSteps; ++step) {
          if (at_first < at_second) {
            low = first;
            first = std::exchange(second, first + kGolden * (high - first));
            at_first = std::exchange(at_second, at(second));
          } else {
            high = second;
            second = std::exchange(first, second - kGolden * (second - low));
            at_second = std::exchange(at_first, at(first));
          }
        }
        logarithms[kind] = at_first < at_second ? second : first;
      }
    }
    return logarithms;
  }

  void add(const std::vector<double>& logarithms) {
    PricedWork work;
    const std::vector<double> prices = exponentials(logarithms);
    work.price = Table<KindId, double>(prices);
    work.capacity = capacity(prices);
    work.op = Table<OpId, double>(problem_.op_count());
    work.model = Table<ModelId, double>(problem_.model_count(), 0);
    for (const OpId op : problem_.ops()) {
      work.op[op] = least(op, prices);
      work.model[problem_.op(op).model] += work.op[op];
    }
    works_.push_back(std::move(work));
  }

  const Problem& problem_;
  std::size_t kinds_;
  Table<KindId, double> lanes_;
  std::vector<double> times_;  // op x kind
  Rows<ModelId, OpId> ops_;
  double looked_at_ = 0;
  std::vector<PricedWork> works_;
};

// The best order over all subsets.
double best_order(const Problem& problem, const Table<ModelId, double>& paths,
                  const std::vector<PricedWork>& works) {
  const std::size_t models = problem.model_count();
  const std::size_t subsets = std::size_t{1} << models;
  std::vector<double> complete(subsets, 0);  // when a set can be complete
  std::vector<double> arrival(subsets, kInfinity);
  for (std::size_t set = 1; set < subsets; ++set) {
    const ModelId first{static_cast<std::size_t>(std::countr_zero(set))};
    const std::size_t rest = set & (set - 1);
    complete[set] = std::max(complete[rest], paths[first]);
    arrival[set] = std::min(arrival[rest], problem.model(first).arrival);
  }
  std::vector<double> work(subsets, 0);
  for (const PricedWork& priced : works) {
    for (std::size_t set = 1; set < subsets; ++set) {
      const ModelId first{static_cast<std::size_t>(std::countr_zero(set))};
      work[set] = work[set & (set - 1)] + priced.model[first];
      const double done = arrival[set] + safe_sum(work[set] / priced.capacity);
      complete[set] = std::max(complete[set], done);
    }
  }
  std::vector<double> total(subsets, kInfinity);
  total[0] = 0;
  for (std::size_t set = 1; set < subsets; ++set) {
    for (std::size_t left = set; left != 0; left &= left - 1) {
      const std::size_t bit = left & (~left + 1);
      const Model& last = problem.model(ModelId{static_cast<std::size_t>(std::countr_zero(left))});
      total[set] =
          std::min(total[set], total[set ^ bit] + last.weight * (complete[set] - last.arrival));
    }
  }
  return total.back();
}

// All devices as one machine, for one set of prices.
double smith_order(const Problem& problem, const PricedWork& priced) {
  std::vector<ModelId> order;
  double clock = kInfinity;
  for (const ModelId model : problem.models()) {
    order.push_back(model);
    clock = std::min(clock, problem.model(model).arrival);
  }
  std::sort(order.begin(), order.end(), [&](ModelId a, ModelId b) {
    return problem.model(a).weight * priced.model[b] > problem.model(b).weight * priced.model[a];
  });
  double total = 0;
  for (const ModelId model : order) {
    clock += safe_sum(priced.model[model] / priced.capacity);
    total += problem.model(model).weight * (clock - problem.model(model).arrival);
  }
  return total;
}

}  // namespace

std::vector<PricedWork> priced_works(const Problem& problem) {
  return Pricing(problem).run();
}

double completion_order_bound(const Problem& problem) {
  const std::vector<PricedWork> works = priced_works(problem);
  if (problem.model_count() <= kMostModels) {
    return best_order(problem, critical_paths(problem), works);
  }
  double best = 0;
  for (const PricedWork& priced : works) best = std::max(best, smith_order(problem, priced));
  return best;
}

}  // namespace placewright
