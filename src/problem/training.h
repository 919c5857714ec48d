// The nouns of training one large model on a cluster: a chain of layers, nodes of GPUs, and plans
// that join tensor, pipeline and data parallelism.
//
// They stand beside Problem and Plan, not inside them. There an op has a time on a device; here a
// layer has a time for a kind of GPU, a degree of tensor parallelism and a micro-batch size, and a
// plan is stages with replicas, not a placement. docs/semantics.md says what a plan costs.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "problem/cluster.h"
#include "problem/spelling.h"

namespace placewright {

// Sizes of every layer on each GPU of a group of this many GPUs (its degree).
struct LayerSizes {
  int degree = 1;
  std::vector<double> parameters;   // numbers, not bytes
  std::vector<double> activations;  // bytes kept for the backward pass, for each sample
  std::vector<double> outputs;      // bytes that the next stage reads, for each sample
};

// Measured seconds of every layer on a group of this degree, its collectives included.
struct LayerTimes {
  int degree = 1;
  int micro_batch = 1;
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> update;
};

struct GpuKind {
  std::string name;
  double memory = 0;  // bytes
  double price = 0;   // of one GPU for an hour, in any currency
  std::vector<LayerTimes> times;
};

// Equal nodes in one place.
struct NodePool {
  std::size_t kind = 0;
  std::string zone;
  int gpus = 1;  // of a node
  int count = 1;
};

// What was measured between two nodes with `gpus` GPUs of each talking at once. With x = log2(bytes
// / 1e6), a x^2 + b x + c is the bandwidth in 1e9 bytes/s; it never exceeds `best` (bytes/s).
struct PoolLink {
  std::size_t from = 0;
  std::size_t to = 0;
  int gpus = 1;
  double a = 0;
  double b = 0;
  double c = 0;
  double best = 0;
};

// What runs of a cluster teach beyond its profiles (docs/semantics.md says what each one means).
struct TrainingConstants {
  double hidden_launches = 0;
  double all_reduce_efficiency = 1;
  double bytes_per_parameter = 20;
  double activation_factor = 1;
  double framework = 0;          // bytes on every GPU
  double framework_per_gpu = 0;  // more bytes for each GPU of its group

  friend bool operator==(const TrainingConstants&, const TrainingConstants&) = default;
};

enum class TrainingObjective { step_time, step_price };
template <>
inline constexpr auto kSpellings<TrainingObjective> = std::to_array<Spelling<TrainingObjective>>(
    {{TrainingObjective::step_time, "step-time", "seconds of a training step"},
     {TrainingObjective::step_price, "step-price", "price of the GPUs in use during a step"}});

struct TrainingProblem {
  std::string name;
  TrainingObjective objective = TrainingObjective::step_time;
  int batch = 1;  // samples of a step
  std::vector<LayerSizes> sizes;
  std::vector<GpuKind> kinds;
  std::vector<NodePool> pools;
  std::vector<PoolLink> links;
  TrainingConstants constants;

  [[nodiscard]] std::size_t layers() const {
    return sizes.empty() ? 0 : sizes.front().parameters.size();
  }
  // nullptr if nothing was measured for it.
  [[nodiscard]] const LayerSizes* sizes_of(int degree) const;
  [[nodiscard]] const LayerTimes* times_of(std::size_t kind, int degree, int micro_batch) const;
};

// Pools have no names of their own: "KIND@ZONE", or "KIND" where the zone is empty.
std::string pool_name(const TrainingProblem& problem, std::size_t pool);

// A group of `degree` GPUs of one node, and how many micro-batches of the step pass through it.
struct StageReplica {
  std::size_t pool = 0;
  int degree = 1;
  int micro_batches = 1;

  friend bool operator==(const StageReplica&, const StageReplica&) = default;
};

// The layers from `first` to before `last`, on one or more groups.
struct TrainingStage {
  std::size_t first = 0;
  std::size_t last = 0;
  std::vector<StageReplica> replicas;

  friend bool operator==(const TrainingStage&, const TrainingStage&) = default;
};

struct TrainingPlan {
  int micro_batch = 1;
  std::vector<TrainingStage> stages;

  friend bool operator==(const TrainingPlan&, const TrainingPlan&) = default;
};

int gpus_of(const TrainingPlan& plan);

// The fewest nodes of this many GPUs that hold groups of these degrees, by first fit, largest
// first. It is exact where every degree divides the next larger one and the node, as powers of two
// do.
int nodes_needed(std::vector<int> degrees, int gpus);

// A plan with what is known of it.
struct TrainingAnswer {
  TrainingPlan plan;
  double value = kInfinity;
  double lower_bound = 0;
  std::string bound_method;
  std::string planner;
  double seconds = 0;          // of planning
  double measured = 0;         // seconds of a real step; 0: it was not run
  double measured_memory = 0;  // bytes on the fullest GPU

  [[nodiscard]] double gap() const { return value > 0 ? (value - lower_bound) / value : 0; }
};

}  // namespace placewright
