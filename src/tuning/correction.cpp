#include "tuning/correction.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "evaluate/schedule.h"

namespace placewright {
namespace {

// What of a segment the correction looks at.
struct Sample {
  std::size_t segment = 0;
  std::size_t kind = 0;
  double ops = 0;        // sum of their times
  double overheads = 0;  // of its cuts, before they are fitted
  double measured = 0;
};

std::size_t kind_of_segment(const Problem& problem, const Segment& segment) {
  return problem.kind_of(segment.devices.front()).index();
}

bool states_cuts(const ProblemDraft& draft, std::size_t kind) {
  return std::ranges::any_of(draft.tensors, [&](const Tensor& tensor) {
    return std::ranges::any_of(tensor.cuts,
                               [&](const CutOverhead& cut) { return cut.kind.index() == kind; });
  });
}

void scale_overheads(ProblemDraft& draft, std::size_t kind, double factor) {
  for (Device& device : draft.cluster.devices) {
    if (device.kind.index() != kind) continue;
    device.send_overhead *= factor;
    device.receive_overhead *= factor;
  }
  for (Tensor& tensor : draft.tensors) {
    for (CutOverhead& cut : tensor.cuts) {
      if (cut.kind.index() != kind) continue;
      cut.send *= factor;
      cut.receive *= factor;
    }
  }
}

// Overheads of 1 for the devices of a kind, so that a factor on them is an overhead.
void set_unit_overheads(ProblemDraft& draft, std::size_t kind) {
  for (Device& device : draft.cluster.devices) {
    if (device.kind.index() == kind) device.send_overhead = device.receive_overhead = 1;
  }
}

std::vector<Sample> samples_of(const Problem& problem, const std::vector<Segment>& segments,
                               const std::vector<std::optional<double>>& measured) {
  const std::vector<double> overheads = overheads_of(problem, segments);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!measured[i] || *measured[i] <= 0) continue;
    Sample sample{i, kind_of_segment(problem, segments[i]), 0, overheads[i], *measured[i]};
    for (const OpId op : segments[i].ops) sample.ops += problem.op(op).time[sample.kind];
    samples.push_back(sample);
  }
  return samples;
}

// What the overheads of the kind have to be multiplied by; absent where no segment bears any.
std::optional<double> fitted_factor(const std::vector<Sample>& samples, std::size_t kind) {
  double products = 0;
  double squares = 0;
  for (const Sample& sample : samples) {
    if (sample.kind != kind) continue;
    products += sample.overheads * (sample.measured - sample.ops);
    squares += sample.overheads * sample.overheads;
  }
  if (squares == 0) return std::nullopt;
  return std::max(0.0, products / squares);
}

double within_limits(double factor) {
  return std::clamp(factor, 1 / kLargestFactor, kLargestFactor);
}

// Fits the overheads of the kind in the draft, and in the samples what their segments bear.
void fit_overheads(ProblemDraft& draft, std::vector<Sample>& samples, std::size_t kind) {
  const std::optional<double> fitted = fitted_factor(samples, kind);
  if (!fitted) return;
  const bool stated = states_cuts(draft, kind);
  const double factor = stated ? within_limits(*fitted) : *fitted;
  if (!stated) set_unit_overheads(draft, kind);
  scale_overheads(draft, kind, factor);
  for (Sample& sample : samples) {
    if (sample.kind == kind) sample.overheads *= factor;
  }
}

// The problem in whose overheads the samples are counted: those of the tensors where they state
// any, else one for each transfer.
Problem with_unit_overheads(const Problem& problem) {
  ProblemDraft draft = problem.draft();
  for (std::size_t kind = 0; kind < problem.kind_count(); ++kind) {
    if (!states_cuts(draft, kind)) set_unit_overheads(draft, kind);
  }
  return Problem(std::move(draft));
}

}  // namespace

std::vector<double> overheads_of(const Problem& problem, const std::vector<Segment>& segments) {
  Placement placement(problem.op_count());
  for (const Segment& segment : segments) {
    for (const OpId op : segment.ops) placement[op] = segment.devices.front();
  }
  const Table<OpId, double> durations = op_durations(problem, placement);
  std::vector<double> overheads;
  for (const Segment& segment : segments) {
    double sum = 0;
    for (const OpId op : segment.ops) sum += durations[op] - problem.time(op, placement[op]);
    overheads.push_back(sum);
  }
  return overheads;
}

ProblemDraft corrected(const Problem& problem, const std::vector<Segment>& segments,
                       const std::vector<std::optional<double>>& measured) {
  std::vector<Sample> samples = samples_of(with_unit_overheads(problem), segments, measured);
  ProblemDraft draft = problem.draft();
  for (std::size_t kind = 0; kind < problem.kind_count(); ++kind) {
    fit_overheads(draft, samples, kind);
  }
  double smallest = 1;
  double largest = 1;
  for (const Sample& sample : samples) {
    if (sample.ops <= 0) continue;
    const double factor = within_limits((sample.measured - sample.overheads) / sample.ops);
    for (const OpId op : segments[sample.segment].ops) {
      draft.ops[op.index()].time[sample.kind] *= factor;
    }
    smallest = std::min(smallest, factor);
    largest = std::max(largest, factor);
  }
  draft.origin.push_back(
      fmt::format("corrected by a run of {} segments: op times by factors from {:.3f} to {:.3f}",
                  samples.size(), smallest, largest));
  return draft;
}

}  // namespace placewright
