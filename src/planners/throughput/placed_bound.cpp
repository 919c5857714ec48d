#include "planners/throughput/placed_bound.h"

#include <algorithm>

#include "bounds/rounding.h"
#include "evaluate/pipeline.h"

namespace placewright::throughput {

PlacedBound::PlacedBound(const Problem& problem, std::span<const GroupId> order)
    : problem_(problem),
      order_(order.begin(), order.end()),
      pools_(problem, Capacity::resources),
      most_replicas_(problem.rules().max_replicas),
      spaces_are_single_(problem.space_count() == problem.device_count()),
      energy_(order.size() * problem.kind_count(), kInfinity),
      time_(energy_.size(), kInfinity) {
  for (const double capacity : pools_.capacity) capacity_ += capacity;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const DeviceId device : problem.devices()) {
      if (!problem.group_allowed(order[i], device)) continue;
      const KindId kind = problem.kind_of(device);
      const std::size_t entry = i * problem.kind_count() + kind.index();
      double sum = 0;
      double energy = 0;
      for (const OpId op : problem.group_ops(order[i])) {
        const double time = problem.time(op, device);
        const double share = problem.uses(device).empty() ? 1 : problem.share(op, device);
        sum += time;
        energy += time * share * pools_.amount[kind];
      }
      // Devices of a kind have the same times; that one uses resources and another none is no rule.
      time_[entry] = sum;
      energy_[entry] = std::min(energy_[entry], energy);
    }
  }
  look_below(kInfinity);
}

void PlacedBound::look_below(double value) {
  const std::size_t kinds = problem_.kind_count();
  rest_.assign(order_.size() + 1, 0);
  for (std::size_t i = order_.size(); i-- > 0;) {
    double least = kInfinity;
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      const std::size_t entry = i * kinds + kind;
      if (time_[entry] < kInfinity && time_[entry] / most_replicas_ < value) {
        least = std::min(least, energy_[entry]);
      }
    }
    rest_[i] = rest_[i + 1] + least;
  }
}

double PlacedBound::operator()(const Placement& placement, std::size_t placed) const {
  const TransferMode mode = problem_.rules().transfers;
  const Table<DeviceId, DeviceLoad> loads = pipeline_loads(problem_, placement);
  Table<DeviceId, double> share(problem_.device_count(), 0);
  for (std::size_t i = 0; i < placed; ++i) {
    for (const OpId op : problem_.group_ops(order_[i])) {
      const DeviceId device = placement[op];
      const double taken = problem_.uses(device).empty() ? 1 : problem_.share(op, device);
      share[device] = std::max(share[device], taken);
    }
  }
  Table<ResourceId, double> held(problem_.resource_count(), 0);
  double energy = rest_[placed];
  double most = 0;
  for (const DeviceId device : problem_.devices()) {
    PassLoad both = loads[device].both();
    // What enters a shared space is borne by its first reader, who may be yet to come.
    if (!spaces_are_single_) both.in = 0;
    const double load = both.load(mode);
    // Transfers that hide behind what is placed may hide behind the rest as well.
    const double lasting = mode == TransferMode::sequential ? load : both.compute;
    energy += lasting * share[device] * pools_.amount[problem_.kind_of(device)];
    most = std::max(most, load / most_replicas_);
    for (const ResourceUse& use : problem_.uses(device)) {
      held[use.resource] += load * share[device] * use.amount;
    }
  }
  for (const ResourceId resource : held.keys()) {
    most = std::max(most, held[resource] / problem_.resource(resource).capacity / most_replicas_);
  }
  return safe_sum(std::max(most, energy / capacity_));
}

}  // namespace placewright::throughput
