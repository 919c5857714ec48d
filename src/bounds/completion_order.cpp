#include "bounds/completion_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <queue>
#include <utility>

#include "bounds/rounding.h"

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
  Pricing(const Problem& problem, Capacity limit)
      : problem_(problem), kinds_(problem.kind_count()), pools_(problem, limit) {
    std::vector<std::pair<ModelId, OpId>> pairs;
    work_.assign(problem.op_count() * kinds_, kInfinity);
    for (const OpId op : problem.ops()) {
      pairs.emplace_back(problem.op(op).model, op);
      for (const DeviceId device : problem.devices()) {
        if (!problem.allowed(op, device)) continue;
        const KindId kind = problem.kind_of(device);
        const double share = limit == Capacity::devices ? 1 : problem.share(op, device);
        work_[op.index() * kinds_ + kind.index()] =
            problem.time(op, device) * share * pools_.amount[kind];
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
    if (priced_pools() > 1) {
      for (const auto& set : sets) {
        if (looked_at_ > kMostWork) break;
        add(best_prices(set));
      }
    }
    return std::move(works_);
  }

 private:
  // There are as many pools as kinds, some of them no kind's.
  [[nodiscard]] std::ptrdiff_t priced_pools() const {
    return std::ranges::count_if(pools_.capacity, [](double capacity) { return capacity > 0; });
  }

  [[nodiscard]] double least(OpId op, const std::vector<double>& prices) const {
    double best = kInfinity;
    for (std::size_t kind = 0; kind < kinds_; ++kind) {
      const double price = prices[pools_.of_kind[KindId{kind}].index()];
      best = std::min(best, price * work_[op.index() * kinds_ + kind]);
    }
    return best;
  }

  [[nodiscard]] std::vector<double> exponentials(const std::vector<double>& logarithms) const {
    std::vector<double> prices(kinds_);
    for (std::size_t pool = 0; pool < kinds_; ++pool) prices[pool] = std::exp(logarithms[pool]);
    return prices;
  }

  [[nodiscard]] double capacity(const std::vector<double>& prices) const {
    double total = 0;
    for (const PoolId pool : pools_.capacity.keys()) {
      total += prices[pool.index()] * pools_.capacity[pool];
    }
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
      for (std::size_t pool = 1; pool < kinds_; ++pool) {
        if (looked_at_ > kMostWork) return logarithms;  // any prices are a bound
        if (pools_.capacity[PoolId{pool}] == 0) continue;
        const auto at = [&](double position) {
          logarithms[pool] = position;
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
        logarithms[pool] = at_first < at_second ? second : first;
      }
    }
    return logarithms;
  }

  void add(const std::vector<double>& logarithms) {
    PricedWork work;
    const std::vector<double> prices = exponentials(logarithms);
    work.price = Table<KindId, double>(kinds_);
    for (const KindId kind : work.price.keys()) {
      work.price[kind] = prices[pools_.of_kind[kind].index()];
    }
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
  Pools pools_;
  std::vector<double> work_;  // op x kind
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
    // Models that arrive late are a set of their own.
    for (std::size_t left = set; left != 0; left &= left - 1) {
      const std::size_t bit = left & (~left + 1);
      complete[set] = std::max(complete[set], complete[set ^ bit]);
    }
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
class OneMachine {
 public:
  OneMachine(const Problem& problem, const Table<ModelId, double>& paths, const PricedWork& priced)
      : problem_(problem), paths_(paths), length_(problem.model_count()) {
    for (const ModelId model : problem.models()) {
      length_[model] = safe_sum(priced.model[model] / priced.capacity);
      by_arrival_.push_back(model);
    }
    std::ranges::sort(by_arrival_, {}, [&](ModelId model) { return problem.model(model).arrival; });
  }

  // Any models may be left out and counted with their paths. Those whose path says more than the
  // machine are, as long as there are any.
  [[nodiscard]] double bound() {
    double best = 0;
    double outside = 0;
    while (!by_arrival_.empty()) {
      const Table<ModelId, double> flows = run();
      double total = outside;
      for (const ModelId model : by_arrival_) total += weight(model) * flows[model];
      best = std::max(best, total);
      const auto waits = [&](ModelId model) {
        const double path = paths_[model] - arrival(model);
        if (path <= flows[model]) return false;
        outside += weight(model) * path;
        return true;
      };
      if (std::erase_if(by_arrival_, waits) == 0) return best;
    }
    return std::max(best, outside);
  }

 private:
  struct Waiting {
    double order;  // the least comes first
    double left;
    ModelId model;
    friend bool operator<(const Waiting& a, const Waiting& b) { return a.order > b.order; }
  };

  [[nodiscard]] double weight(ModelId model) const { return problem_.model(model).weight; }
  [[nodiscard]] double arrival(ModelId model) const { return problem_.model(model).arrival; }

  // Times from arrivals to completions, or numbers of which the weighted sum is no more than that
  // of these. All count from the arrivals: late in a long trace a clock has few digits for what is
  // short.
  [[nodiscard]] Table<ModelId, double> run() const {
    const bool alike = std::ranges::all_of(
        by_arrival_, [&](ModelId model) { return weight(model) == weight(by_arrival_.front()); });
    Table<ModelId, double> flow(problem_.model_count(), 0);
    Table<ModelId, double> busy(problem_.model_count(), 0);  // the integral of its busy time
    std::priority_queue<Waiting> waiting;
    double clock = 0;
    for (auto next = by_arrival_.begin(); next != by_arrival_.end() || !waiting.empty();) {
      if (waiting.empty()) clock = std::max(clock, arrival(*next));
      for (; next != by_arrival_.end() && arrival(*next) <= clock; ++next) {
        const double length = length_[*next];
        const double by_weight = weight(*next) > 0 ? length / weight(*next) : kInfinity;
        waiting.push({alike ? length : by_weight, length, *next});
      }
      Waiting now = waiting.top();
      waiting.pop();
      const double until = next == by_arrival_.end() ? kInfinity : arrival(*next);
      const bool ends = now.left <= until - clock;
      const double piece = ends ? now.left : until - clock;
      const double waited = clock - arrival(now.model);
      busy[now.model] += piece * (waited + piece / 2);
      now.left -= piece;
      clock = ends ? clock + piece : until;
      if (ends) {
        flow[now.model] = waited + piece;
      } else {
        if (alike) now.order = now.left;
        waiting.push(now);
      }
    }
    if (alike) return flow;
    for (const ModelId model : by_arrival_) {
      const double length = length_[model];
      // What takes no time is complete when it arrives.
      flow[model] = length > 0 ? busy[model] / length + length / 2 : 0;
    }
    return flow;
  }

  const Problem& problem_;
  const Table<ModelId, double>& paths_;
  Table<ModelId, double> length_;
  std::vector<ModelId> by_arrival_;  // those on the machine
};

}  // namespace

std::vector<PricedWork> priced_works(const Problem& problem, Capacity limit) {
  return Pricing(problem, limit).run();
}

double completion_order_bound(const Problem& problem, const Table<ModelId, double>& paths) {
  std::vector<PricedWork> works = priced_works(problem, Capacity::devices);
  if (problem.resource_count() > 0) {
    std::ranges::move(priced_works(problem, Capacity::resources), std::back_inserter(works));
  }
  if (problem.model_count() <= kMostModels) return best_order(problem, paths, works);
  double best = 0;
  for (const PricedWork& priced : works) {
    best = std::max(best, OneMachine(problem, paths, priced).bound());
  }
  return best;
}

}  // namespace placewright
