// What workers wrote down while a plan ran, and what follows from it.

#pragma once

#include <cstddef>
#include <vector>

#include "running/execution.h"

namespace placewright {

// Times in milliseconds since the start of the run.
struct WorkerLog {
  std::vector<SegmentEvent> events;
  std::vector<double> begin;  // by sample: when the worker set out (schedules only)
  std::vector<double> lost;   // by sample: time that its core gave to others
};

// The number of samples, from the first on, of which every segment has run.
std::size_t complete_samples(const std::vector<Segment>& segments,
                             const std::vector<WorkerLog>& logs);

// Samples before `first` do not count. The results have no segments and no outputs yet.
RunResult summarise_schedule(const Problem& problem, const std::vector<Segment>& segments,
                             const std::vector<WorkerLog>& logs, std::size_t first);

// The events kept are those of `stretch` samples in the middle, at least.
RunResult summarise_pipeline(const Problem& problem, const std::vector<Segment>& segments,
                             const std::vector<WorkerLog>& logs, std::size_t first,
                             std::size_t stretch);

}  // namespace placewright
