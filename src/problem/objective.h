// What is minimised, and under which variant of the rules (algorithms.md, section 0).

#pragma once

#include <optional>
#include <string_view>

namespace placewright {

enum class Objective {
  throughput,        // the load of the busiest device while samples stream through a pipeline
  call_latency,      // one sample, accelerators run contiguous sets of ops as calls
  latency,           // one sample as a schedule: the makespan
  total_completion,  // several models: sum of weight x (completion - arrival)
};

// How compute and transfers of one device share its time in a pipeline.
enum class TransferMode {
  sequential,  // compute + in + out
  overlapped,  // max(compute, in + out)
  duplex,      // max(compute, in, out)
};

// How forward and backward passes of a training pipeline add up.
enum class TrainingMode {
  interleaved,  // max over devices of (forward + backward), as 1F1B
  phased,       // max over devices of forward + max over devices of backward, as GPipe
};

enum class Contiguity {
  none,
  joint,       // the devices can be ordered so that every prefix of them is a down-set of the graph
  per_device,  // each device's own set is convex; devices may wait for each other in a cycle
};

enum class MemoryModel {
  resident,  // weights only
  peak,      // weights and the tensors alive at any moment
};

enum class TimeUnit { none, seconds, milliseconds, microseconds };

struct Rules {
  Contiguity contiguity = Contiguity::joint;          // throughput
  TransferMode transfers = TransferMode::sequential;  // throughput
  TrainingMode training = TrainingMode::interleaved;  // throughput
  MemoryModel memory = MemoryModel::resident;         // all objectives
  bool congestion = true;                             // latency, total-completion
  int calls_per_device = 1;                           // call-latency
  int max_replicas = 1;                               // throughput: devices that may share a stage
  double replica_bandwidth = 0;                       // throughput: bytes per time unit for
                                                      // gradient exchange; 0 = costs nothing

  friend bool operator==(const Rules&, const Rules&) = default;
};

// The spellings used in files, flags and tables.
std::string_view name_of(Objective objective);
std::string_view name_of(TransferMode mode);
std::string_view name_of(TrainingMode mode);
std::string_view name_of(Contiguity contiguity);
std::string_view name_of(MemoryModel memory);
std::string_view name_of(TimeUnit unit);

std::optional<Objective> objective_named(std::string_view name);
std::optional<TransferMode> transfer_mode_named(std::string_view name);
std::optional<TrainingMode> training_mode_named(std::string_view name);
std::optional<Contiguity> contiguity_named(std::string_view name);
std::optional<MemoryModel> memory_model_named(std::string_view name);
std::optional<TimeUnit> time_unit_named(std::string_view name);

// Schedules have start times; the other two objectives look at sets of ops.
constexpr bool is_schedule(Objective objective) {
  return objective == Objective::latency || objective == Objective::total_completion;
}

}  // namespace placewright
