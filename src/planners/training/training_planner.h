// Plans of training steps: cuts of the chain of layers into stages, groups of GPUs for each stage,
// the micro-batch size and the shares of micro-batches (docs/semantics.md, "Training steps on
// clusters").
//
// Small clusters (up to 8 GPUs, 6 layers): branch and bound over all plans, exact. Larger ones:
// three families of plans, improved by local search.
//   * mixed stages: every stage has groups of every pool, in equal numbers; the cuts balance the
//     slots.
//   * sized stages: every stage has as many groups of one pool and degree as its work needs
//     (sized_stages.cpp); free groups join the busiest stages.
//   * chained stages: every stage has the same number of replicas, all on groups of one pool and
//     degree; a dynamic program over (stages from the end, layer, GPUs used of each pool) keeps the
//     best few (sum, maximum) pairs of slots.
// All for every micro-batch size. Time and memory: seconds and some 100 MB for 512 GPUs of four
// kinds. It puts groups of one stage on nodes of different degrees only by local search.
//
// The lower bound holds for every plan and is the better of two. The first is the work of all
// layers spread over all GPUs at the best degree of each pool (a linear program), the stages that
// memory forces beside the busiest one, the shortest update, and the least all-reduce where the
// model is one stage. The second goes over all partitions of the layers (partition_bound.h). It
// also proves that no plan exists where memory forbids all.
//
// Related: Sailor (SOSP 2025), Metis (ATC 2024), Piper (NeurIPS 2021), Alpa (OSDI 2022).

#pragma once

#include <atomic>

#include "evaluate/training_step.h"
#include "problem/training.h"

namespace placewright {

struct TrainingLimits {
  double seconds = 10;
  const std::atomic<bool>* stop = nullptr;
};

// The value is infinite if no plan was found; `proved_infeasible` tells whether none exists.
struct TrainingOutcome {
  TrainingAnswer answer;
  bool proved_infeasible = false;
};

TrainingOutcome plan_training(const TrainingProblem& problem, const TrainingLimits& limits = {});

}  // namespace placewright
