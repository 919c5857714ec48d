#include "bounds/segment_paths.h"

#include <algorithm>

#include "problem/move_time.h"

namespace placewright {

SegmentPaths::SegmentPaths(const Problem& problem, const CutSegment& segment)
    : problem_(problem), segment_(segment), devices_(problem.device_count()) {
  const std::size_t cells = segment.ops.size() * devices_;
  heads_.assign(entries() * cells, kInfinity);
  tails_.assign(exits() * cells, kInfinity);
  for (std::size_t entry = 0; entry < entries(); ++entry) measure_heads(entry);
  for (std::size_t exit = 0; exit < exits(); ++exit) measure_tails(exit);
}

double SegmentPaths::arrival(TensorId input, std::size_t entry, DeviceId device) const {
  const OpId producer = problem_.producer(input);
  if (producer == segment_.entry) return move_time(problem_, input, DeviceId{entry}, device);
  double earliest = kInfinity;
  for (const DeviceId from : problem_.devices()) {
    const double start = head(entry, place(producer), from);
    if (start >= earliest) continue;
    earliest = std::min(
        earliest, start + problem_.time(producer, from) + move_time(problem_, input, from, device));
  }
  return earliest;
}

void SegmentPaths::measure_heads(std::size_t entry) {
  for (std::size_t place = 0; place < segment_.ops.size(); ++place) {
    const OpId op = segment_.ops[place];
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.allowed(op, device)) continue;
      double ready = segment_.entry.valid() ? 0 : problem_.model(problem_.op(op).model).arrival;
      for (const TensorId input : problem_.inputs(op)) {
        ready = std::max(ready, arrival(input, entry, device));
      }
      heads_[cell(entry, place, device)] = ready;
    }
  }
}

double SegmentPaths::rest_after(OpId op, DeviceId device, std::size_t exit) const {
  double longest = 0;
  for (const TensorId output : problem_.outputs(op)) {
    for (const OpId consumer : problem_.consumers(output)) {
      double shortest = kInfinity;
      for (const DeviceId to : problem_.devices()) {
        const double rest = tail(exit, place(consumer), to);
        if (rest >= shortest) continue;
        shortest = std::min(
            shortest, move_time(problem_, output, device, to) + problem_.time(consumer, to) + rest);
      }
      longest = std::max(longest, shortest);
    }
  }
  return longest;
}

void SegmentPaths::measure_tails(std::size_t exit) {
  for (std::size_t place = segment_.ops.size(); place-- > 0;) {
    const OpId op = segment_.ops[place];
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.allowed(op, device)) continue;
      double& tail = tails_[cell(exit, place, device)];
      if (op == segment_.exit) {
        if (device.index() == exit) tail = 0;
      } else {
        tail = rest_after(op, device, exit);
      }
    }
  }
}

double SegmentPaths::through(std::size_t entry, std::size_t exit, std::size_t place,
                             DeviceId device) const {
  const double start = head(entry, place, device);
  if (start == kInfinity) return kInfinity;
  return start + problem_.time(segment_.ops[place], device) + tail(exit, place, device);
}

double SegmentPaths::longest(std::size_t entry, std::size_t exit) const {
  double longest = 0;
  for (std::size_t place = 0; place < segment_.ops.size(); ++place) {
    double shortest = kInfinity;
    for (const DeviceId device : problem_.devices()) {
      shortest = std::min(shortest, through(entry, exit, place, device));
    }
    longest = std::max(longest, shortest);
  }
  return longest;
}

}  // namespace placewright
