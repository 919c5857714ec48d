#include "formats/stated_rules.h"

namespace placewright {

Rules StatedRules::over(const Rules& others) const {
  return {.contiguity = contiguity.value_or(others.contiguity),
          .transfers = transfers.value_or(others.transfers),
          .training = training.value_or(others.training),
          .memory = memory.value_or(others.memory),
          .congestion = congestion.value_or(others.congestion),
          .calls_per_device = calls_per_device.value_or(others.calls_per_device),
          .max_replicas = max_replicas.value_or(others.max_replicas),
          .replica_bandwidth = replica_bandwidth.value_or(others.replica_bandwidth)};
}

}  // namespace placewright
