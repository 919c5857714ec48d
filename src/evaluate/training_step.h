// What a training step costs: the value of a TrainingPlan (docs/semantics.md, "Training steps").
//
// A stage takes a slot of time for each micro-batch: the forward and backward passes of its layers,
// then what it exchanges with its neighbours, one after the other. A step is
//
//   sum over stages of the slowest slot                       fill and drain
//   + max over replicas of (micro-batches - 1) x slot         the busiest replica
//   + the longest update + the longest all-reduce of gradients.
//
// A StepModel holds prefix sums over the layers, so that the cost of a stage takes constant time.

#pragma once

#include <cstddef>
#include <vector>

#include "problem/training.h"

namespace placewright {

struct ReplicaCost {
  double compute = 0;  // seconds of a micro-batch, forward and backward
  double sends = 0;    // seconds of a micro-batch
  double update = 0;
  double memory = 0;  // bytes on each of its GPUs

  [[nodiscard]] double slot() const { return compute + sends; }
};

struct StageCost {
  double slot = 0;    // of the slowest replica
  double steady = 0;  // max over replicas of (micro-batches - 1) x slot
  double update = 0;
  double all_reduce = 0;
  double memory = 0;
  bool fits = true;  // every replica in the memory of its kind
  std::vector<ReplicaCost> replicas;
};

struct StepCost {
  double fill = 0;
  double steady = 0;
  double update = 0;
  double all_reduce = 0;
  double seconds = 0;
  double price = 0;
  double memory = 0;  // on the fullest GPU
  bool fits = true;
  std::vector<StageCost> stages;

  [[nodiscard]] double value(TrainingObjective objective) const {
    return objective == TrainingObjective::step_time ? seconds : price;
  }
};

class StepModel {
 public:
  // The problem must outlive the model.
  explicit StepModel(const TrainingProblem& problem);

  [[nodiscard]] const TrainingProblem& problem() const { return *problem_; }

  // The plan must be one that `verify/` accepts, memory apart.
  [[nodiscard]] StepCost cost(const TrainingPlan& plan) const;

  // What the objective counts when a step of this plan takes so long.
  [[nodiscard]] double value_of(double seconds, const TrainingPlan& plan) const;

  // Seconds that a group needs for the layers of a micro-batch; infinite where nothing was
  // measured.
  [[nodiscard]] double compute(std::size_t kind, int degree, int micro_batch, std::size_t first,
                               std::size_t last) const;
  [[nodiscard]] double update(std::size_t kind, int degree, int micro_batch, std::size_t first,
                              std::size_t last) const;
  // Bytes on a GPU with that many micro-batches in flight.
  [[nodiscard]] double memory(int degree, int micro_batch, std::size_t first, std::size_t last,
                              int in_flight) const;
  // Seconds to send the output behind layer `last - 1` and to receive its gradient.
  [[nodiscard]] double exchange(std::size_t pool, std::size_t other, int degree, int micro_batch,
                                std::size_t last) const;
  [[nodiscard]] double all_reduce(const TrainingStage& stage) const;
  // Bytes per second between a node of each pool with `gpus` GPUs of each sending at once.
  [[nodiscard]] double bandwidth(std::size_t pool, std::size_t other, int gpus, double bytes) const;

 private:
  struct Times {  // prefix sums over the layers
    int degree;
    int micro_batch;
    std::vector<double> compute;
    std::vector<double> update;
  };
  struct Sizes {
    int degree;
    std::vector<double> parameters;
    std::vector<double> activations;
  };

  [[nodiscard]] const Times* times(std::size_t kind, int degree, int micro_batch) const;
  [[nodiscard]] const Sizes& sizes(int degree) const;
  [[nodiscard]] StageCost stage_cost(const TrainingPlan& plan, std::size_t stage) const;
  [[nodiscard]] double sends(const TrainingPlan& plan, std::size_t stage,
                             std::size_t replica) const;

  const TrainingProblem* problem_;
  std::vector<std::vector<Times>> times_;  // by kind
  std::vector<Sizes> sizes_;
};

}  // namespace placewright
