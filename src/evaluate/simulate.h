// What each device does while a plan runs, and how much memory it holds at most (docs/semantics.md,
// "Memory").
//
// Schedules are followed through time: tensors live in the producer's memory space from the
// producer's start to their last use there, in a receiving space from the start of the transfer in.
// Pipelines hold the tensors of every sample in flight, and their times are of one sample; replicas
// share the work of a stage. Calls have resident memory only. O((ops +
// tensors) log tensors), whether or not the problem's rules ask for peak memory.

#pragma once

#include <cstddef>
#include <optional>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct DeviceSummary {
  std::size_t ops = 0;
  double compute = 0;    // time of ops; in schedules with cut overheads
  double busy = 0;       // schedules: compute; calls: their length; pipelines: the stage's load
  double idle = 0;       // of all lanes, until the end
  double sending = 0;    // time of the transfers that leave it
  double receiving = 0;  // ... that enter it
  double resident = 0;   // bytes in its memory space
  double peak = 0;       // the most there at any moment, resident included
  double peak_time = 0;  // when the peak is first reached; 0 for pipelines and calls
};

struct Simulation {
  void add(const Transfer& transfer);  // to what its devices send and receive

  double end = 0;  // of the last op, call or transfer; a pipeline: the time per sample
  Table<DeviceId, DeviceSummary> devices;
};

// The plan must be complete and valid apart from memory.
Simulation simulate(const Problem& problem, const Plan& plan);

// The device that exceeds its memory by most when tensors count; nullopt if none does.
std::optional<DeviceId> device_over_peak(const Problem& problem, const Simulation& simulation);

}  // namespace placewright
