#include "planners/latency/device_symmetry.h"

#include <utility>

namespace placewright {
namespace {

// First `before`, then `next`.
DeviceExchange composed(DeviceExchange before, const DeviceExchange& next) {
  for (DeviceId& device : before) device = next[device];
  return before;
}

}  // namespace

DeviceSymmetry::DeviceSymmetry(const Problem& problem)
    : devices_(problem.device_count()), ways_(devices_ * devices_) {
  std::vector<DeviceExchange> generators;
  if (problem.space_count() == 1) generators = device_symmetries(problem);
  representatives_.resize(ways_.size());
  for (const DeviceId first : problem.devices()) {
    for (const DeviceId second : problem.devices()) {
      if (ways_[index({first, second})].empty()) reach_from({first, second}, generators);
    }
  }
}

DeviceSymmetry::Pair DeviceSymmetry::representative(Pair pair) const {
  const std::size_t place = representatives_[index(pair)];
  return {DeviceId{place / devices_}, DeviceId{place % devices_}};
}

void DeviceSymmetry::reach_from(Pair pair, const std::vector<DeviceExchange>& generators) {
  const std::size_t representative = index(pair);
  DeviceExchange identity(devices_);
  for (const DeviceId device : identity.keys()) identity[device] = device;
  representatives_[representative] = representative;
  ways_[representative] = std::move(identity);
  std::vector<Pair> reached{pair};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const DeviceExchange& generator : generators) {
      const Pair image{generator[reached[i].first], generator[reached[i].second]};
      if (!ways_[index(image)].empty()) continue;
      representatives_[index(image)] = representative;
      ways_[index(image)] = composed(ways_[index(reached[i])], generator);
      reached.push_back(image);
    }
  }
}

}  // namespace placewright
