// What a file states of the rules; the others stay as they are.

#pragma once

#include <optional>

#include "problem/objective.h"

namespace placewright {

struct StatedRules {
  std::optional<Contiguity> contiguity = {};
  std::optional<TransferMode> transfers = {};
  std::optional<TrainingMode> training = {};
  std::optional<MemoryModel> memory = {};
  std::optional<bool> congestion = {};
  std::optional<int> calls_per_device = {};
  std::optional<int> max_replicas = {};
  std::optional<double> replica_bandwidth = {};

  [[nodiscard]] Rules over(const Rules& others) const;
};

}  // namespace placewright
