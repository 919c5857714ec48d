#include "bounds/work.h"

#include <algorithm>
#include <cmath>

#include "bounds/rounding.h"
#include "problem/lanes.h"
#include "solvers/linear_program.h"

namespace placewright {
namespace {

constexpr std::size_t kLinearProgramSize = 6000;  // variables; about 0.1 s
constexpr int kSubgradientSteps = 200;

struct Prices {
  Table<KindId, double> time;
  Table<KindId, double> memory;
};

class WorkRelaxation {
 public:
  WorkRelaxation(const Problem& problem, WorkScope scope)
      : kinds_(problem.kind_count()),
        capacity_(kinds_, 0),
        memory_(kinds_, 0),
        work_(problem.group_count() * kinds_, kInfinity),
        bytes_(problem.group_count(), 0) {
    const bool lanes_count = is_schedule(problem.objective());
    for (const DeviceId device : problem.devices()) {
      const KindId kind = problem.kind_of(device);
      capacity_[kind] += lanes_count ? useful_lanes(problem, device) : 1;
      memory_[kind] += problem.device(device).memory;
    }
    for (const GroupId group : problem.groups()) {
      for (const DeviceId device : problem.devices()) {
        double& entry = work_[group.index() * kinds_ + problem.kind_of(device).index()];
        if (entry < kInfinity || !problem.group_allowed(group, device)) continue;
        entry = 0;
        for (const OpId op : problem.group_ops(group)) {
          if (counts(problem.op(op), scope)) entry += problem.time(op, device);
        }
      }
      for (const OpId op : problem.group_ops(group)) bytes_[group] += problem.memory(op);
    }
  }

  [[nodiscard]] std::size_t size() const { return work_.size(); }

  // The bound that these prices prove.
  [[nodiscard]] double proved_by(const Prices& prices) const {
    double normal = 0;
    double total = 0;
    for (const KindId kind : ids<KindId>(kinds_)) {
      normal += prices.time[kind] * capacity_[kind];
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

  // A kind that no device has cannot carry work, nor a price.
  [[nodiscard]] Prices equal_prices() const {
    Prices prices{Table<KindId, double>(kinds_, 1), Table<KindId, double>(kinds_, 0)};
    for (const KindId kind : ids<KindId>(kinds_)) {
      if (capacity_[kind] == 0) prices.time[kind] = 0;
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
        load[kind.index()].push_back({variable, work(group, kind)});
        bytes[kind.index()].push_back({variable, bytes_[group]});
      }
      program.add_row(1, 1, choice);
    }
    Prices prices = equal_prices();
    std::vector<std::pair<KindId, int>> load_rows;
    std::vector<std::pair<KindId, int>> memory_rows;
    for (const KindId kind : ids<KindId>(kinds_)) {
      auto& terms = load[kind.index()];
      if (terms.empty()) continue;
      terms.push_back({horizon, -capacity_[kind]});
      load_rows.emplace_back(kind, program.add_row(-solvers::kUnbounded, 0, terms));
      if (memory_[kind] == kInfinity) continue;
      memory_rows.emplace_back(
          kind, program.add_row(-solvers::kUnbounded, memory_[kind], bytes[kind.index()]));
    }
    const solvers::LinearResult result = program.solve({.time_seconds = 2});
    if (result.status != solvers::LinearStatus::optimal) return prices;
    for (double& price : prices.time) price = 0;
    for (const auto& [kind, row] : load_rows) {
      prices.time[kind] = std::max(0.0, -result.row_duals[static_cast<std::size_t>(row)]);
    }
    for (const auto& [kind, row] : memory_rows) {
      prices.memory[kind] = std::max(0.0, -result.row_duals[static_cast<std::size_t>(row)]);
    }
    return prices;
  }

  // Raises the price of kinds that the cheapest assignment overloads; memory stays free.
  [[nodiscard]] Prices subgradient_prices() const {
    Prices prices = equal_prices();
    Prices best = prices;
    double best_bound = proved_by(best);
    for (int step = 1; step <= kSubgradientSteps; ++step) {
      Table<KindId, double> load(kinds_, 0);
      for (const GroupId group : bytes_.keys()) {
        const KindId kind = cheapest_kind(group, prices).kind;
        if (kind.valid()) load[kind] += work(group, kind);
      }
      double mean = 0;
      double count = 0;
      for (const KindId kind : ids<KindId>(kinds_)) {
        if (capacity_[kind] == 0) continue;
        load[kind] /= capacity_[kind];
        mean += load[kind];
        ++count;
      }
      mean /= count;
      if (mean == 0) break;
      for (const KindId kind : ids<KindId>(kinds_)) {
        if (capacity_[kind] == 0) continue;
        prices.time[kind] *= std::exp(std::clamp((load[kind] / mean - 1) / step, -0.7, 0.7));
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
  [[nodiscard]] double work(GroupId group, KindId kind) const {
    return work_[group.index() * kinds_ + kind.index()];
  }
  [[nodiscard]] Cheapest cheapest_kind(GroupId group, const Prices& prices) const {
    Cheapest best;
    for (const KindId kind : ids<KindId>(kinds_)) {
      if (work(group, kind) == kInfinity) continue;
      const double price =
          prices.time[kind] * work(group, kind) + prices.memory[kind] * bytes_[group];
      if (price < best.price) best = Cheapest{kind, price};
    }
    return best;
  }

  std::size_t kinds_;
  Table<KindId, double> capacity_;
  Table<KindId, double> memory_;
  std::vector<double> work_;  // group x kind; kInfinity: not allowed
  Table<GroupId, double> bytes_;
};

}  // namespace

double work_bound(const Problem& problem, WorkScope scope) {
  const WorkRelaxation relaxation(problem, scope);
  const double simple = relaxation.proved_by(relaxation.equal_prices());
  const Prices prices = relaxation.size() <= kLinearProgramSize ? relaxation.linear_program_prices()
                                                                : relaxation.subgradient_prices();
  return std::max(simple, relaxation.proved_by(prices));
}

}  // namespace placewright
