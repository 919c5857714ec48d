// Small random pipelines, and their best value by enumeration.

#pragma once

#include <cstdint>
#include <optional>

#include "problem/problem.h"

namespace placewright::testing {

struct RandomPipelineOptions {
  std::size_t ops = 7;
  std::size_t accelerators = 3;
  std::size_t cores = 1;
  Contiguity contiguity = Contiguity::joint;
};

// Everything else (binding memory, unsupported ops, colours, training with orphans, zero times,
// transfer mode, training mode, overheads by device and by tensor, two kinds of accelerators, pins,
// shared weights) is drawn from the seed.
ProblemDraft random_pipeline(const RandomPipelineOptions& options, std::uint64_t seed);

// The least value over all placements (and replicas, where the rules allow them) that keep every
// rule; nothing when there is none. Of devices that are alike the first unused one is tried only.
std::optional<double> least_pipeline_value(const Problem& problem);

}  // namespace placewright::testing
