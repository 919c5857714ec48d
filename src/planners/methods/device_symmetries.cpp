#include "planners/methods/device_symmetries.h"

#include <algorithm>
#include <optional>

namespace placewright {
namespace {

using ResourceExchange = Table<ResourceId, ResourceId>;

bool by_number(const ResourceUse& a, const ResourceUse& b) {
  return a.resource < b.resource;
}

std::vector<ResourceUse> sorted_uses(const Problem& problem, DeviceId device) {
  const auto uses = problem.uses(device);
  std::vector<ResourceUse> sorted(uses.begin(), uses.end());
  std::ranges::sort(sorted, by_number);
  return sorted;
}

// Each resource of `a` for the one of `b` in the same position; what both have stays. Nullopt: they
// overlap otherwise, or differ.
std::optional<ResourceExchange> exchange_resources(const Problem& problem, DeviceId a, DeviceId b) {
  const std::vector<ResourceUse> first = sorted_uses(problem, a);
  const std::vector<ResourceUse> second = sorted_uses(problem, b);
  if (first.size() != second.size()) return std::nullopt;
  ResourceExchange exchange(problem.resource_count());
  for (const ResourceId resource : exchange.keys()) exchange[resource] = resource;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const ResourceId from = first[i].resource;
    const ResourceId to = second[i].resource;
    if (exchange[from] != from || exchange[to] != to) return std::nullopt;
    if (first[i].amount != second[i].amount) return std::nullopt;
    if (problem.resource(from).capacity != problem.resource(to).capacity) return std::nullopt;
    exchange[from] = to;
    exchange[to] = from;
  }
  return exchange;
}

bool alike(const Problem& problem, DeviceId a, DeviceId b) {
  const Device& first = problem.device(a);
  const Device& second = problem.device(b);
  return first.kind == second.kind && first.memory == second.memory &&
         first.lanes == second.lanes && first.send_overhead == second.send_overhead &&
         first.receive_overhead == second.receive_overhead &&
         problem.space_memory(problem.space(a)) == problem.space_memory(problem.space(b)) &&
         std::ranges::all_of(problem.groups(), [&](GroupId group) {
           return problem.group_allowed(group, a) == problem.group_allowed(group, b);
         });
}

// By device, the first one that is alike.
Table<DeviceId, DeviceId> classes_of(const Problem& problem) {
  Table<DeviceId, DeviceId> classes(problem.device_count());
  for (const DeviceId device : problem.devices()) {
    const auto all = problem.devices();
    classes[device] =
        *std::ranges::find_if(all, [&](DeviceId other) { return alike(problem, device, other); });
  }
  return classes;
}

bool same_uses(const std::vector<ResourceUse>& a, const std::vector<ResourceUse>& b) {
  return std::ranges::equal(a, b, [](const ResourceUse& x, const ResourceUse& y) {
    return x.resource == y.resource && x.amount == y.amount;
  });
}

// Where the exchange of resources takes each device: to `a` and `b` as asked, else to one that is
// alike and has the exchanged resources, itself where it can.
std::optional<DeviceExchange> exchange_devices(const Problem& problem,
                                               const Table<DeviceId, DeviceId>& classes,
                                               const ResourceExchange& resources, DeviceId a,
                                               DeviceId b) {
  DeviceExchange exchange(problem.device_count());
  exchange[a] = b;
  exchange[b] = a;
  for (const DeviceId device : problem.devices()) {
    if (exchange[device].valid()) continue;
    std::vector<ResourceUse> wanted = sorted_uses(problem, device);
    for (ResourceUse& use : wanted) use.resource = resources[use.resource];
    std::ranges::sort(wanted, by_number);
    const auto serves = [&](DeviceId other) {
      return !exchange[other].valid() && classes[device] == classes[other] &&
             same_uses(sorted_uses(problem, other), wanted);
    };
    const auto all = problem.devices();
    const auto partner =
        serves(device) ? std::ranges::find(all, device) : std::ranges::find_if(all, serves);
    if (partner == all.end()) return std::nullopt;
    const DeviceId other = *partner;
    exchange[device] = other;
    exchange[other] = device;
  }
  return exchange;
}

bool keeps_ways(const Problem& problem, const DeviceExchange& exchange) {
  for (const DeviceId a : problem.devices()) {
    if (problem.on_host(a) != problem.on_host(exchange[a])) return false;
    for (const DeviceId b : problem.devices()) {
      if (problem.same_space(a, b) != problem.same_space(exchange[a], exchange[b])) return false;
      if (problem.interconnect() != InterconnectKind::links || problem.same_space(a, b)) continue;
      for (const TensorId tensor : problem.tensors()) {
        if (problem.link_time(tensor, a, b) !=
            problem.link_time(tensor, exchange[a], exchange[b])) {
          return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

std::vector<DeviceExchange> device_symmetries(const Problem& problem) {
  std::vector<DeviceExchange> found;
  const Table<DeviceId, DeviceId> classes = classes_of(problem);
  for (const DeviceId a : problem.devices()) {
    for (const DeviceId b : problem.devices()) {
      if (!(a < b) || classes[a] != classes[b]) continue;
      const auto resources = exchange_resources(problem, a, b);
      if (!resources) continue;
      auto devices = exchange_devices(problem, classes, *resources, a, b);
      if (devices && keeps_ways(problem, *devices)) found.push_back(std::move(*devices));
    }
  }
  return found;
}

}  // namespace placewright
