#include "verify/resources.h"

#include <algorithm>

namespace placewright::verifying {
namespace {

constexpr double kCapacityTolerance = 1e-9;  // of the capacity

double limit_of(const Problem& problem, ResourceId resource) {
  return problem.resource(resource).capacity * (1 + kCapacityTolerance);
}

}  // namespace

bool shares_resources(const Problem& problem) {
  return std::ranges::any_of(problem.devices(),
                             [&](DeviceId device) { return !problem.uses(device).empty(); });
}

std::vector<ResourceUse> demand_of(const Problem& problem, std::span<const DeviceId> devices,
                                   std::span<const OpId> ops) {
  std::vector<ResourceUse> demand;
  for (const DeviceId device : devices) {
    double share = 0;
    for (const OpId op : ops) share = std::max(share, problem.share(op, device));
    for (const ResourceUse& use : problem.uses(device)) {
      const auto found = std::ranges::find(demand, use.resource, &ResourceUse::resource);
      if (found == demand.end()) {
        demand.push_back({use.resource, share * use.amount});
      } else {
        found->amount += share * use.amount;
      }
    }
  }
  return demand;
}

bool exceeds_capacity(const Problem& problem, const ResourceUse& use) {
  return use.amount > limit_of(problem, use.resource);
}

void ResourceBook::hold(std::span<const ResourceUse> demand, double start, double end,
                        std::size_t item) {
  if (end <= start) return;
  for (const ResourceUse& use : demand) {
    held_[use.resource].push_back({start, end, use.amount, item});
  }
}

bool ResourceBook::fits_at(std::span<const ResourceUse> demand, double start, double end) const {
  return std::ranges::all_of(demand, [&](const ResourceUse& use) {
    std::vector<Holding> together{{start, end, use.amount, 0}};
    for (Holding holding : held_[use.resource]) {
      holding.start = std::max(holding.start, start);
      holding.end = std::min(holding.end, end);
      together.push_back(holding);
    }
    return highest_level(together, tolerance_).level <= limit_of(problem_, use.resource);
  });
}

// What is held only grows at starts, so the first fit is at `earliest` or at the end of something.
double ResourceBook::first_fit(std::span<const ResourceUse> demand, double earliest,
                               double length) const {
  if (length <= tolerance_) return earliest;
  std::vector<double> moments{earliest};
  for (const ResourceUse& use : demand) {
    for (const Holding& holding : held_[use.resource]) {
      if (holding.end > earliest) moments.push_back(holding.end);
    }
  }
  std::ranges::sort(moments);
  const auto found = std::ranges::find_if(
      moments, [&](double start) { return fits_at(demand, start, start + length); });
  return found == moments.end() ? kInfinity : *found;
}

void ResourceBook::check(const std::function<Holder(std::size_t)>& holder,
                         Findings& findings) const {
  for (const ResourceId resource : held_.keys()) {
    for (const Excess& excess :
         excesses(held_[resource], limit_of(problem_, resource), tolerance_)) {
      Holder all;
      for (const std::size_t item : excess.items) {
        const Holder one = holder(item);
        all.name += (all.name.empty() ? "" : ", ") + one.name;
        all.ops.insert(all.ops.end(), one.ops.begin(), one.ops.end());
        all.devices.insert(all.devices.end(), one.devices.begin(), one.devices.end());
      }
      findings.add(ViolationCode::resource_exceeded, std::move(all.ops), std::move(all.devices),
                   "{} take {:.9g} of {} at {:.9g}, it has {:.9g}", all.name, excess.level,
                   called(problem_, resource), excess.time, problem_.resource(resource).capacity);
    }
  }
}

}  // namespace placewright::verifying
