#include "bounds/work.h"

#include <algorithm>
#include <cmath>

#include "bounds/pools.h"
#include "bounds/rounding.h"
#include "solvers/linear_program.h"

namespace placewright {
namespace {

constexpr std::size_t kLinearProgramSize = 6000;  // variables; about 0.1 s
constexpr int kSubgradientSteps = 200;

struct Prices {
  Table<PoolId, double> time;
  Table<KindId, double> memory;
};

class WorkRelaxation {
 public:
  WorkRelaxation(const Problem& problem, WorkScope scope, Capacity limit)
      : kinds_(problem.kind_count()),
        pools_(problem, limit),
        memory_(kinds_, 0),
        work_(problem.group_count() * kinds_, kInfinity),
        bytes_(problem.group_count(), 0) {
    for (const DeviceId device : problem.devices()) {
      memory_[problem.kind_of(device)] += problem.device(device).memory;
    }
    for (const GroupId group : problem.groups()) {
      for (const DeviceId device : problem.devices()) {
        double& entry = work_[group.index() * kinds_ + problem.kind_of(device).index()];
        if (entry < kInfinity || !problem.group_allowed(group, device)) continue;
        entry = 0;
        const double amount = pools_.amount[problem.kind_of(device)];
        for (const OpId op : problem.group_ops(group)) {
          if (!counts(problem.op(op), scope)) continue;
          const double share = limit == Capacity::devices ? 1 : problem.share(op, device);
          entry += problem.time(op, device) * share * amount;
        }
      }
      for (const OpId op : problem.group_ops(group)) bytes_[group] += problem.memory(op);
    }
  }

  // What one unit of time on all devices costs.
  [[nodiscard]] double price_of_all(const Prices& prices) const {
    double sum = 0;
    for (const PoolId pool : prices.time.keys()) sum += prices.time[pool] * capacity(pool);
    return sum;
  }

  // The bound that these prices prove.
  [[nodiscard]] double proved_by(const Prices& prices) const {
    const double normal = price_of_all(prices);
    double total = 0;
    for (const KindId kind : ids<KindId>(kinds_)) {
      if (prices.memory[kind] > 0) total -= prices.memory[kind] * memory_[kind];
    }
    if (!(normal > 0)) return 0;
    for (const GroupId group : bytes_.keys()) {
      const double cheapest = cheapest_kind(group, prices).price;
      if (cheapest == kInfinity) return 0;  // no common device: left to the feasibility proofs
      total += cheapest;
    }
    return safe_sum(std::max(0.0, total / normal));
  }

  [[nodiscard]] Prices best_prices(const std::function<bool()>& stop) const {
    return work_.size() <= kLinearProgramSize ? linear_program_prices() : subgradient_prices(stop);
  }

  // A pool that no device draws on cannot carry work, nor a price.
  [[nodiscard]] Prices equal_prices() const {
    Prices prices{Table<PoolId, double>(kinds_, 1), Table<KindId, double>(kinds_, 0)};
    for (const PoolId pool : prices.time.keys()) {
      if (capacity(pool) == 0) prices.time[pool] = 0;
    }
    return prices;
  }

  [[nodiscard]] Prices linear_program_prices() const {
    solvers::LinearProgram program;
    std::vector<std::vector<solvers::LinearTerm>> load(kinds_);
    std::vector<std::vector<solvers::LinearTerm>> bytes(kinds_);
    const int horizon = program.add_variable(0, solvers::kUnbounded, 1);
    for (const GroupId group : bytes_.keys()) {
      std::vector<solvers::LinearTerm> choice;
      for (const KindId kind : ids<KindId>(kinds_)) {
        if (work(group, kind) == kInfinity) continue;
        const int variable = program.add_variable(0, 1, 0);
        choice.push_back({variable, 1});
        load[pools_.of_kind[kind].index()].push_back({variable, work(group, kind)});
        bytes[kind.index()].push_back({variable, bytes_[group]});
      }
      program.add_row(1, 1, choice);
    }
    Prices prices = equal_prices();
    std::vector<std::pair<PoolId, int>> load_rows;
    std::vector<std::pair<KindId, int>> memory_rows;
    for (const PoolId pool : prices.time.keys()) {
      auto& terms = load[pool.index()];
      if (terms.empty()) continue;
      terms.push_back({horizon, -capacity(pool)});
      load_rows.emplace_back(pool, program.add_row(-solvers::kUnbounded, 0, terms));
    }
    for (const KindId kind : ids<KindId>(kinds_)) {
      if (memory_[kind] == kInfinity || bytes[kind.index()].empty()) continue;
      memory_rows.emplace_back(
          kind, program.add_row(-solvers::kUnbounded, memory_[kind], bytes[kind.index()]));
    }
    const solvers::LinearResult result = program.solve({.time_seconds = 2});
    if (result.status != solvers::LinearStatus::optimal) return prices;
    for (double& price : prices.time) price = 0;
    for (const auto& [pool, row] : load_rows) {
      prices.time[pool] = std::max(0.0, -result.row_duals[static_cast<std::size_t>(row)]);
    }
    for (const auto& [kind, row] : memory_rows) {
      prices.memory[kind] = std::max(0.0, -result.row_duals[static_cast<std::size_t>(row)]);
    }
    return prices;
  }

  // Raises the price of kinds that the cheapest assignment overloads; memory stays free.
  [[nodiscard]] Prices subgradient_prices(const std::function<bool()>& stop) const {
    Prices prices = equal_prices();
    Prices best = prices;
    double best_bound = proved_by(best);
    for (int step = 1; step <= kSubgradientSteps && !stop(); ++step) {
      Table<PoolId, double> load(kinds_, 0);
      for (const GroupId group : bytes_.keys()) {
        const KindId kind = cheapest_kind(group, prices).kind;
        if (kind.valid()) load[pools_.of_kind[kind]] += work(group, kind);
      }
      double mean = 0;
      double count = 0;
      for (const PoolId pool : load.keys()) {
        if (capacity(pool) == 0) continue;
        load[pool] /= capacity(pool);
        mean += load[pool];
        ++count;
      }
      mean /= count;
      if (mean == 0) break;
      for (const PoolId pool : load.keys()) {
        if (capacity(pool) == 0) continue;
        prices.time[pool] *= std::exp(std::clamp((load[pool] / mean - 1) / step, -0.7, 0.7));
      }
      const double bound = proved_by(prices);
      if (bound > best_bound) {
        best_bound = bound;
        best = prices;
      }
    }
    return best;
  }

 private:
  struct Cheapest {
    KindId kind;
    double price = kInfinity;
  };

  static bool counts(const Op& op, WorkScope scope) {
    return scope == WorkScope::all || op.backward == (scope == WorkScope::backward);
  }
  [[nodiscard]] double capacity(PoolId pool) const { return pools_.capacity[pool]; }
  [[nodiscard]] double work(GroupId group, KindId kind) const {
    return work_[group.index() * kinds_ + kind.index()];
  }
  [[nodiscard]] Cheapest cheapest_kind(GroupId group, const Prices& prices) const {
    Cheapest best;
    for (const KindId kind : ids<KindId>(kinds_)) {
      if (work(group, kind) == kInfinity) continue;
      const double price = prices.time[pools_.of_kind[kind]] * work(group, kind) +
                           prices.memory[kind] * bytes_[group];
      if (price < best.price) best = Cheapest{kind, price};
    }
    return best;
  }

  std::size_t kinds_;
  Pools pools_;
  Table<KindId, double> memory_;
  std::vector<double> work_;  // group x kind; kInfinity: not allowed
  Table<GroupId, double> bytes_;
};

double bound_within(const Problem& problem, WorkScope scope, Capacity limit,
                    const std::function<bool()>& stop) {
  const WorkRelaxation relaxation(problem, scope, limit);
  const double simple = relaxation.proved_by(relaxation.equal_prices());
  return std::max(simple, relaxation.proved_by(relaxation.best_prices(stop)));
}

}  // namespace

double work_bound(const Problem& problem, WorkScope scope, const std::function<bool()>& stop) {
  const double devices = bound_within(problem, scope, Capacity::devices, stop);
  if (problem.resource_count() == 0 || stop()) return devices;
  return std::max(devices, bound_within(problem, scope, Capacity::resources, stop));
}

Table<KindId, double> work_prices(const Problem& problem) {
  const WorkRelaxation relaxation(problem, WorkScope::all, Capacity::devices);
  const Prices prices = relaxation.subgradient_prices([] { return false; });
  const double normal = relaxation.price_of_all(prices);
  Table<KindId, double> by_kind(problem.kind_count(), 0);
  // Without shared resources each kind is a pool of its own.
  for (const KindId kind : by_kind.keys()) {
    if (normal > 0) by_kind[kind] = prices.time[PoolId{kind.index()}] / normal;
  }
  return by_kind;
}

}  // namespace placewright
