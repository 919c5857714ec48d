#include "tuning/correction.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace placewright {
namespace {

// What of a segment the correction looks at.
struct Sample {
  std::size_t segment = 0;
  std::size_t kind = 0;
  double ops = 0;  // sum of their times
  double transfers = 0;
  double measured = 0;
};

std::size_t kind_of_segment(const Problem& problem, const Segment& segment) {
  return problem.kind_of(segment.devices.front()).index();
}

std::vector<Sample> samples_of(const Problem& problem, const std::vector<Segment>& segments,
                               const std::vector<std::optional<double>>& measured) {
  const std::vector<std::size_t> transfers = transfers_of(problem, segments);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!measured[i] || *measured[i] <= 0) continue;
    Sample sample{i, kind_of_segment(problem, segments[i]), 0, static_cast<double>(transfers[i]),
                  *measured[i]};
    for (const OpId op : segments[i].ops) sample.ops += problem.op(op).time[sample.kind];
    samples.push_back(sample);
  }
  return samples;
}

// Absent where no segment of the kind has a transfer.
std::optional<double> fitted_overhead(const std::vector<Sample>& samples, std::size_t kind) {
  double products = 0;
  double squares = 0;
  for (const Sample& sample : samples) {
    if (sample.kind != kind) continue;
    products += sample.transfers * (sample.measured - sample.ops);
    squares += sample.transfers * sample.transfers;
  }
  if (squares == 0) return std::nullopt;
  return std::max(0.0, products / squares);
}

}  // namespace

std::vector<std::size_t> transfers_of(const Problem& problem,
                                      const std::vector<Segment>& segments) {
  Table<OpId, std::size_t> segment_of(problem.op_count(), 0);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    for (const OpId op : segments[i].ops) segment_of[op] = i;
  }
  const auto device_of = [&](OpId op) { return segments[segment_of[op]].devices.front(); };
  std::vector<std::size_t> transfers(segments.size(), 0);
  for (const TensorId tensor : problem.tensors()) {
    const OpId producer = problem.producer(tensor);
    // The first reader on each device, by topological rank.
    std::vector<OpId> readers(problem.consumers(tensor).begin(), problem.consumers(tensor).end());
    std::sort(readers.begin(), readers.end(), [&](OpId a, OpId b) {
      return problem.topological_rank(a) < problem.topological_rank(b);
    });
    std::set<DeviceId> reached{device_of(producer)};
    for (const OpId reader : readers) {
      if (!reached.insert(device_of(reader)).second) continue;
      ++transfers[segment_of[producer]];
      ++transfers[segment_of[reader]];
    }
  }
  return transfers;
}

ProblemDraft corrected(const Problem& problem, const std::vector<Segment>& segments,
                       const std::vector<std::optional<double>>& measured) {
  const std::vector<Sample> samples = samples_of(problem, segments, measured);
  ProblemDraft draft = problem.draft();
  std::vector<double> overheads(problem.kind_count(), 0);
  for (std::size_t kind = 0; kind < overheads.size(); ++kind) {
    const std::optional<double> fitted = fitted_overhead(samples, kind);
    for (Device& device : draft.cluster.devices) {
      if (device.kind.index() != kind) continue;
      if (fitted) device.send_overhead = device.receive_overhead = *fitted;
      overheads[kind] = (device.send_overhead + device.receive_overhead) / 2;
    }
  }
  double smallest = 1;
  double largest = 1;
  for (const Sample& sample : samples) {
    if (sample.ops <= 0) continue;
    const double own = sample.measured - overheads[sample.kind] * sample.transfers;
    const double factor = std::clamp(own / sample.ops, 1 / kLargestFactor, kLargestFactor);
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
