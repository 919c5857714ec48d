#include "planners/methods/packing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "evaluate/memory.h"
#include "solvers/cp_sat.h"

namespace placewright {
namespace {

using solvers::CpExpression;
using solvers::CpLiteral;
using solvers::CpModel;
using solvers::CpStatus;
using solvers::CpVariable;

// CP-SAT counts in integers below this, so that sums over all groups stay exact.
constexpr double kIntegerScale = 1LL << 40;
constexpr double kCostScale = 1LL << 24;
constexpr std::size_t kMembersBetweenStops = 256;
// Building the model and CP-SAT's first look at it, which is not interrupted, for each choice.
constexpr double kSecondsPerChoice = 1e-5;
constexpr double kBytesPerChoice = 1000;
constexpr double kSearchWithSteps = 20;  // of CP-SAT's deterministic seconds

// `weightless`: nothing takes memory.
enum class Rounding { weightless, optimistic, pessimistic };

using GroupPlacement = Table<GroupId, DeviceId>;

Placement expand(const Problem& problem, const GroupPlacement& groups) {
  Placement placement(problem.op_count());
  for (const OpId op : problem.ops()) placement[op] = groups[problem.group(op)];
  return placement;
}

bool every_link_exists(const Problem& problem, const GroupPlacement& groups) {
  if (problem.interconnect() == InterconnectKind::host) return true;
  for (const TensorId tensor : problem.tensors()) {
    const DeviceId from = groups[problem.group(problem.producer(tensor))];
    for (const OpId consumer : problem.consumers(tensor)) {
      if (!problem.reachable(tensor, from, groups[problem.group(consumer)])) return false;
    }
  }
  return true;
}

GroupPlacement cheapest_devices(const Problem& problem, const PackingCosts& costs) {
  GroupPlacement cheapest(problem.group_count());
  for (const GroupId group : problem.groups()) {
    for (const DeviceId device : problem.devices()) {
      if (costs.at(group, device) == kInfinity) continue;
      DeviceId& best = cheapest[group];
      if (!best.valid() || costs.at(group, device) < costs.at(group, best)) best = device;
    }
  }
  return cheapest;
}

// Moves groups off overfull devices, always the move that costs least per byte freed.
bool repair(const Problem& problem, const PackingCosts& costs, GroupPlacement& groups,
            Control& control) {
  MemoryLedger ledger(problem);
  Table<DeviceId, std::vector<GroupId>> members(problem.device_count());
  for (const GroupId group : problem.groups()) {
    ledger.add_group(group, groups[group]);
    members[groups[group]].push_back(group);
  }
  for (const DeviceId full : problem.devices()) {
    while (!ledger.within(full)) {
      if (control.should_stop(1)) return false;
      std::size_t best_member = 0;
      DeviceId best_target;
      double best_price = kInfinity;
      for (std::size_t i = 0; i < members[full].size(); ++i) {
        if (i % kMembersBetweenStops == 0 && control.should_stop()) return false;
        const GroupId group = members[full][i];
        ledger.remove_group(group, full);
        const double freed = ledger.growth(group, full);
        for (const DeviceId target : problem.devices()) {
          if (target == full || freed <= 0 || costs.at(group, target) == kInfinity) continue;
          const double price = (costs.at(group, target) - costs.at(group, full)) / freed;
          if (price < best_price && ledger.fits_group(group, target)) {
            best_price = price;
            best_member = i;
            best_target = target;
          }
        }
        ledger.add_group(group, full);
      }
      if (!best_target.valid()) return false;
      const GroupId group = members[full][best_member];
      ledger.remove_group(group, full);
      ledger.add_group(group, best_target);
      groups[group] = best_target;
      members[best_target].push_back(group);
      members[full][best_member] = members[full].back();
      members[full].pop_back();
    }
  }
  return every_link_exists(problem, groups);
}

// The packing as a CP-SAT model: a literal for each group and device.
class PackingModel {
 public:
  PackingModel(const Problem& problem, const PackingCosts& costs, Rounding rounding)
      : problem_(problem), costs_(costs), rounding_(rounding), scale_(memory_scale()) {
    add_choices();
    add_memory();
    if (problem.interconnect() == InterconnectKind::links) add_links();
    add_objective();
  }

  [[nodiscard]] const CpModel& model() const { return model_; }

  [[nodiscard]] GroupPlacement read(const solvers::CpResult& result) const {
    GroupPlacement groups(problem_.group_count());
    for (const GroupId group : problem_.groups()) {
      for (const auto& [device, literal] : choices_[group]) {
        if (result.value(literal) != 0) groups[group] = device;
      }
    }
    return groups;
  }

 private:
  using Choice = std::pair<DeviceId, CpVariable>;

  // Whole numbers stay as they are where they fit, so that exactly full devices are packed exactly.
  [[nodiscard]] double memory_scale() const {
    double total = 0;
    bool whole = true;
    const auto look_at = [&](double bytes) {
      total += bytes;
      whole = whole && bytes == std::floor(bytes);
    };
    for (const OpId op : problem_.ops()) look_at(problem_.memory(op));
    for (const SharedWeight& weight : problem_.draft().shared_weights) look_at(weight.bytes);
    if (total == 0 || (whole && total < kIntegerScale * 1024)) return 1;
    return kIntegerScale / total;
  }
  [[nodiscard]] std::int64_t size_of(double bytes) const {
    if (rounding_ == Rounding::weightless) return 0;
    const double scaled = bytes * scale_;
    return static_cast<std::int64_t>(rounding_ == Rounding::optimistic ? std::floor(scaled)
                                                                       : std::ceil(scaled));
  }
  [[nodiscard]] std::int64_t capacity_of(double bytes) const {
    const double scaled = std::min(bytes * scale_ * (1 + kMemoryTolerance), 1e18);
    // Whole sizes never fill the fraction of a byte that a capacity may end with.
    const bool upwards = rounding_ == Rounding::optimistic && scale_ != 1;
    return static_cast<std::int64_t>(upwards ? std::ceil(scaled) : std::floor(scaled));
  }

  void add_choices() {
    choices_ = Table<GroupId, std::vector<Choice>>(problem_.group_count());
    for (const GroupId group : problem_.groups()) {
      std::vector<CpLiteral> literals;
      for (const DeviceId device : problem_.devices()) {
        if (costs_.at(group, device) == kInfinity) continue;
        const CpVariable literal = model_.add_bool();
        choices_[group].emplace_back(device, literal);
        literals.emplace_back(literal);
      }
      model_.add_exactly_one(literals);
    }
  }

  void add_memory() {
    Table<DeviceId, CpExpression> load(problem_.device_count());
    for (const GroupId group : problem_.groups()) {
      double bytes = 0;
      for (const OpId op : problem_.group_ops(group)) bytes += problem_.memory(op);
      for (const auto& [device, literal] : choices_[group]) {
        load[device].terms.push_back({literal, size_of(bytes)});
      }
    }
    add_shared_weights(load);
    for (const DeviceId device : problem_.devices()) {
      if (problem_.device(device).memory == kInfinity) continue;
      model_.add_linear(load[device], {0, capacity_of(problem_.device(device).memory)});
    }
  }

  void add_shared_weights(Table<DeviceId, CpExpression>& load) {
    for (const SharedWeight& weight : problem_.draft().shared_weights) {
      for (const DeviceId device : problem_.devices()) {
        const CpVariable held = model_.add_bool();
        load[device].terms.push_back({held, size_of(weight.bytes)});
        for (const OpId op : weight.ops) {
          for (const auto& [place, literal] : choices_[problem_.group(op)]) {
            if (place != device) continue;
            const CpLiteral implies[] = {CpLiteral(held)};
            const CpLiteral condition[] = {CpLiteral(literal)};
            model_.add_bool_or(implies, condition);
          }
        }
      }
    }
  }

  void add_links() {
    for (const TensorId tensor : problem_.tensors()) {
      const GroupId from = problem_.group(problem_.producer(tensor));
      for (const OpId consumer : problem_.consumers(tensor)) {
        for (const auto& [a, producer_here] : choices_[from]) {
          for (const auto& [b, consumer_here] : choices_[problem_.group(consumer)]) {
            if (problem_.reachable(tensor, a, b)) continue;
            const CpLiteral either[] = {!CpLiteral(producer_here), !CpLiteral(consumer_here)};
            model_.add_bool_or(either);
          }
        }
      }
    }
  }

  void add_objective() {
    double largest = 0;
    for (const GroupId group : problem_.groups()) {
      for (const auto& choice : choices_[group]) {
        largest = std::max(largest, costs_.at(group, choice.first));
      }
    }
    if (largest == 0) return;
    CpExpression total;
    for (const GroupId group : problem_.groups()) {
      for (const auto& [device, literal] : choices_[group]) {
        const double cost = costs_.at(group, device) * (kCostScale / largest);
        total.terms.push_back({literal, static_cast<std::int64_t>(std::ceil(cost))});
      }
    }
    model_.minimize(total);
  }

  const Problem& problem_;
  const PackingCosts& costs_;
  Rounding rounding_;
  double scale_;
  CpModel model_;
  Table<GroupId, std::vector<Choice>> choices_;
};

// Why there is no packing: is there one if nothing takes memory?
std::string reason_for_none(const Problem& problem, const PackingCosts& costs,
                            const solvers::CpLimits& limits) {
  const PackingModel packing(problem, costs, Rounding::weightless);
  const bool for_links =
      solvers::cp_sat_solve(packing.model(), limits).status == CpStatus::infeasible;
  return fmt::format("no assignment of ops to devices {} (proved by CP-SAT)",
                     for_links ? "has all the links that it needs" : "fits their memory");
}

Packing solve(const Problem& problem, const PackingCosts& costs, Control& control) {
  const auto choices = static_cast<double>(problem.group_count() * problem.device_count());
  if (std::string obstacle =
          control.cannot_afford(choices * kSecondsPerChoice, choices * kBytesPerChoice);
      !obstacle.empty()) {
    return Packing{std::nullopt, false, "the packing by CP-SAT was not begun: " + obstacle};
  }
  const bool steps_limited = control.budget().steps < Budget{}.steps;
  std::string reason = "no placement that fits memory was found";
  for (const Rounding rounding : {Rounding::optimistic, Rounding::pessimistic}) {
    const PackingModel packing(problem, costs, rounding);
    const solvers::CpLimits limits{
        .time_seconds = std::max(0.01, control.remaining() / 2),
        .deterministic_time = steps_limited ? kSearchWithSteps : kInfinity,
        .workers = 1,
        .seed = static_cast<int>(control.budget().seed % 0x7fffffff),
        .relative_gap = 0.05,
        .stop = control.interruption()};
    const solvers::CpResult result = solvers::cp_sat_solve(packing.model(), limits);
    if (result.has_solution()) {
      const GroupPlacement groups = packing.read(result);
      Placement placement = expand(problem, groups);
      if (memory_fits(problem, placement)) return Packing{std::move(placement), false, {}};
    } else if (result.status == CpStatus::infeasible && rounding == Rounding::optimistic) {
      return Packing{std::nullopt, true, reason_for_none(problem, costs, limits)};
    } else if (result.status == CpStatus::error) {
      return Packing{std::nullopt, false, result.error};
    } else {
      reason = fmt::format("no placement that fits memory was found ({})", control.stop_reason());
    }
  }
  return Packing{std::nullopt, false, reason};
}

}  // namespace

PackingCosts::PackingCosts(const Problem& problem)
    : devices_(problem.device_count()), costs_(problem.group_count() * devices_, 0) {
  for (const GroupId group : problem.groups()) {
    for (const DeviceId device : problem.devices()) {
      if (!problem.group_allowed(group, device)) at(group, device) = kInfinity;
    }
  }
}

PackingCosts cost_of_leaving(const Problem& problem, const Placement& wish) {
  PackingCosts costs(problem);
  const auto time_on = [&](GroupId group, DeviceId device) {
    double time = 0;
    for (const OpId op : problem.group_ops(group)) time += problem.time(op, device);
    return time;
  };
  for (const GroupId group : problem.groups()) {
    const DeviceId home = wish[problem.group_ops(group).front()];
    const double at_home = time_on(group, home);
    for (const DeviceId device : problem.devices()) {
      if (device == home || costs.at(group, device) == kInfinity) continue;
      const double away = time_on(group, device);
      costs.at(group, device) = std::max(away - at_home, 0.01 * (away + at_home) + 1e-9);
    }
  }
  return costs;
}

Packing pack(const Problem& problem, const PackingCosts& costs, Control& control) {
  for (const GroupId group : problem.groups()) {
    const auto devices = problem.devices();
    if (std::none_of(devices.begin(), devices.end(),
                     [&](DeviceId device) { return costs.at(group, device) < kInfinity; })) {
      return Packing{std::nullopt, true,
                     fmt::format("op '{}' and the ops it is colocated with have no common device",
                                 problem.op(problem.group_ops(group).front()).name)};
    }
  }
  GroupPlacement groups = cheapest_devices(problem, costs);
  if (repair(problem, costs, groups, control)) return Packing{expand(problem, groups), false, {}};
  return solve(problem, costs, control);
}

}  // namespace placewright
