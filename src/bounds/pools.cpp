#include "bounds/pools.h"

#include <algorithm>

#include "problem/lanes.h"

namespace placewright {
namespace {

// Each kind's pool; kinds whose devices use the same resource have the same one.
Table<KindId, PoolId> pools_of_kinds(const Problem& problem, Capacity limit) {
  Table<KindId, PoolId> of_kind(problem.kind_count());
  for (const KindId kind : of_kind.keys()) of_kind[kind] = PoolId{kind.index()};
  if (limit == Capacity::devices) return of_kind;
  Table<ResourceId, KindId> user(problem.resource_count());
  for (const DeviceId device : problem.devices()) {
    for (const ResourceUse& use : problem.uses(device)) {
      KindId& first = user[use.resource];
      if (!first.valid()) first = problem.kind_of(device);
      const PoolId joined = of_kind[first];
      const PoolId old = of_kind[problem.kind_of(device)];
      std::ranges::replace(of_kind, old, joined);
    }
  }
  return of_kind;
}

}  // namespace

Pools::Pools(const Problem& problem, Capacity limit)
    : of_kind(pools_of_kinds(problem, limit)),
      capacity(problem.kind_count(), 0),
      amount(problem.kind_count(), kInfinity) {
  const bool lanes_count = is_schedule(problem.objective());
  Table<ResourceId, char> counted(problem.resource_count(), 0);
  for (const DeviceId device : problem.devices()) {
    const KindId kind = problem.kind_of(device);
    if (limit == Capacity::devices || problem.uses(device).empty()) {
      capacity[of_kind[kind]] += lanes_count ? useful_lanes(problem, device) : 1;
      amount[kind] = std::min(amount[kind], 1.0);
      continue;
    }
    double taken = 0;
    for (const ResourceUse& use : problem.uses(device)) {
      taken += use.amount;
      if (counted[use.resource]++ == 0) {
        capacity[of_kind[kind]] += problem.resource(use.resource).capacity;
      }
    }
    amount[kind] = std::min(amount[kind], taken);
  }
}

}  // namespace placewright
