// What is minimised, and under which variant of the rules (docs/semantics.md).
//
// A new value of a rule is a line in its enumeration and a line in the table below it; files,
// flags, help and completion know it from there.

#pragma once

#include "placewright/problem/spelling.h"

namespace placewright {

enum class Objective { throughput, call_latency, latency, total_completion };
template <>
inline constexpr auto kSpellings<Objective> = std::to_array<Spelling<Objective>>({
    {Objective::throughput, "throughput", "the load of the busiest device of a pipeline"},
    {Objective::call_latency, "call-latency", "one sample, accelerators run sets of ops as calls"},
    {Objective::latency, "latency", "one sample as a schedule: the makespan"},
    {Objective::total_completion, "total-completion", "sum of weight x (completion - arrival)"},
});

// What a plan says beside where ops are: times of ops and transfers, stages of a pipeline, calls.
enum class PlanForm { schedule, stages, calls };

// What an objective asks of problems and plans. evaluate/cost_model.h computes with each form.
struct ObjectiveRecord {
  Objective objective;
  PlanForm form;
  bool one_host = false;      // the host is one device, which runs any number of ops at once
  bool holds_tensors = true;  // peak memory: tensors alive count
  bool runs = true;           // backends can run its plans
};
inline constexpr auto kObjectives =
    std::to_array<ObjectiveRecord>({{Objective::throughput, PlanForm::stages},
                                    {.objective = Objective::call_latency,
                                     .form = PlanForm::calls,
                                     .one_host = true,
                                     .holds_tensors = false,
                                     .runs = false},
                                    {Objective::latency, PlanForm::schedule},
                                    {Objective::total_completion, PlanForm::schedule}});

static_assert([] {
  for (std::size_t i = 0; i < kObjectives.size(); ++i) {
    if (static_cast<std::size_t>(kObjectives[i].objective) != i) return false;
  }
  return kObjectives.size() == kSpellings<Objective>.size();
}());

constexpr const ObjectiveRecord& record_of(Objective objective) {
  return kObjectives[static_cast<std::size_t>(objective)];
}

// How compute and transfers of one device share its time in a pipeline.
enum class TransferMode { sequential, overlapped, duplex };
template <>
inline constexpr auto kSpellings<TransferMode> = std::to_array<Spelling<TransferMode>>({
    {TransferMode::sequential, "sequential", "compute + in + out"},
    {TransferMode::overlapped, "overlapped", "max(compute, in + out)"},
    {TransferMode::duplex, "duplex", "max(compute, in, out)"},
});

// How forward and backward passes of a training pipeline add up.
enum class TrainingMode { interleaved, phased };
template <>
inline constexpr auto kSpellings<TrainingMode> = std::to_array<Spelling<TrainingMode>>({
    {TrainingMode::interleaved, "interleaved", "max of (forward + backward), as 1F1B"},
    {TrainingMode::phased, "phased", "max of forward + max of backward, as GPipe"},
});

// In which order the stages of a training pipeline work on the micro-batches of a step, and so how
// many of them a stage holds at once.
enum class PipelineSchedule { one_forward_one_backward, gpipe, interleaved };
template <>
inline constexpr auto kSpellings<PipelineSchedule> = std::to_array<Spelling<PipelineSchedule>>({
    {PipelineSchedule::one_forward_one_backward, "1f1b", "as many as stages follow, and one more"},
    {PipelineSchedule::gpipe, "gpipe", "all micro-batches of a step"},
    {PipelineSchedule::interleaved, "interleaved", "1F1B with several stages in each memory space"},
});

// Which sets of ops a device of a pipeline may have.
enum class Contiguity { none, joint, per_device };
template <>
inline constexpr auto kSpellings<Contiguity> = std::to_array<Spelling<Contiguity>>({
    {Contiguity::none, "none", "any"},
    {Contiguity::joint, "joint", "in some order of the devices every prefix is a down-set"},
    {Contiguity::per_device, "per-device", "each is convex; devices may wait in a cycle"},
});

// What must fit into a device.
enum class MemoryModel { resident, peak };
template <>
inline constexpr auto kSpellings<MemoryModel> = std::to_array<Spelling<MemoryModel>>({
    {MemoryModel::resident, "resident", "weights only"},
    {MemoryModel::peak, "peak", "weights and the tensors alive at any moment"},
});

enum class TimeUnit { none, seconds, milliseconds, microseconds };
template <>
inline constexpr auto kSpellings<TimeUnit> = std::to_array<Spelling<TimeUnit>>({
    {TimeUnit::none, "none"},
    {TimeUnit::seconds, "s"},
    {TimeUnit::milliseconds, "ms"},
    {TimeUnit::microseconds, "us"},
});

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
  // throughput, peak memory: micro-batches that a stage holds; 0 in a step: a stream without end
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int micro_batches = 0;

  friend bool operator==(const Rules&, const Rules&) = default;
};

constexpr bool is_schedule(Objective objective) {
  return record_of(objective).form == PlanForm::schedule;
}

// Whether a device, or a call, may only have sets of ops that nothing leaves and comes back to.
constexpr bool asks_contiguity(Objective objective, const Rules& rules) {
  const PlanForm form = record_of(objective).form;
  return form == PlanForm::calls ||
         (form == PlanForm::stages && rules.contiguity != Contiguity::none);
}

}  // namespace placewright
