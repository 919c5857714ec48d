// Small random schedule problems with every rule in turn, for comparison with brute force.

#pragma once

#include "support/random_problem.h"

namespace placewright::testing {

// The case of this number: links and host, congestion, memory that binds, lanes, overheads, pins,
// colocation, … in changing company.
inline RandomProblemOptions exact_case(std::uint64_t number) {
  RandomProblemOptions options;
  const auto one_in = [&](std::uint64_t period, std::uint64_t phase) {
    return (number / period) % 4 == phase;
  };
  options.interconnect = number % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
  options.congestion = number / 2 % 2 == 0;
  options.objective = number % 5 == 4 ? Objective::total_completion : Objective::latency;
  options.models = options.objective == Objective::total_completion ? 2 : 1;
  options.ops = 4 + number % 3;
  options.devices = 2 + number / 3 % 2;
  options.edge_probability = 0.25 + 0.15 * static_cast<double>(number % 4);
  options.binding_memory = one_in(1, 3);
  options.unsupported = one_in(3, 2);
  options.pins = one_in(5, 1);
  options.colocation = one_in(7, 3);
  options.shared_weights = one_in(11, 2);
  options.lanes = one_in(13, 0);
  options.overheads = one_in(17, 1);
  options.missing_links = options.interconnect == InterconnectKind::links && one_in(19, 2);
  options.integer_times = number % 3 == 0;
  options.zero_times = one_in(23, 1);
  return options;
}

}  // namespace placewright::testing
