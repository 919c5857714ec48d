#include "bounds/segments.h"

#include <algorithm>
#include <vector>

#include "bounds/rounding.h"
#include "problem/lanes.h"
#include "problem/move_time.h"

namespace placewright {
namespace {

constexpr double kMostWork = 5e7;  // edges x devices^3 x what bisection adds
constexpr int kBisections = 24;

// All that is asked of one segment; ops by their place in it, devices by number.
class SegmentTimes {
 public:
  SegmentTimes(const Problem& problem, const CutSegment& segment, std::vector<std::size_t>& places)
      : problem_(problem), segment_(segment), places_(places), devices_(problem.device_count()) {
    for (std::size_t i = 0; i < segment.ops.size(); ++i) places_[segment.ops[i].index()] = i;
    const std::size_t cells = segment.ops.size() * devices_;
    heads_.assign(entries() * cells, kInfinity);
    tails_.assign(exits() * cells, kInfinity);
    for (std::size_t entry = 0; entry < entries(); ++entry) measure_heads(entry);
    for (std::size_t exit = 0; exit < exits(); ++exit) measure_tails(exit);
    measure_speeds();
  }

  [[nodiscard]] std::size_t entries() const { return segment_.entry.valid() ? devices_ : 1; }
  [[nodiscard]] std::size_t exits() const { return segment_.exit.valid() ? devices_ : 1; }

  // t(s, entry, exit): the critical path, raised by bisection to where the work fits.
  [[nodiscard]] double least(std::size_t entry, std::size_t exit) {
    double low = critical_path(entry, exit);
    if (low == kInfinity || fits(entry, exit, low)) return low;
    double high = 2 * low;
    while (!fits(entry, exit, high)) {
      low = high;
      high *= 2;
      if (high == kInfinity) return low;
    }
    for (int i = 0; i < kBisections; ++i) {
      const double middle = (low + high) / 2;
      (fits(entry, exit, middle) ? high : low) = middle;
    }
    return low;
  }

 private:
  // When the op can start on the device; from its end there to the end of the segment.
  double& head(std::size_t entry, std::size_t place, DeviceId device) {
    return heads_[(entry * segment_.ops.size() + place) * devices_ + device.index()];
  }
  double& tail(std::size_t exit, std::size_t place, DeviceId device) {
    return tails_[(exit * segment_.ops.size() + place) * devices_ + device.index()];
  }

  [[nodiscard]] double arrival(TensorId input, std::size_t entry, DeviceId device) {
    const OpId producer = problem_.producer(input);
    if (producer == segment_.entry) return move_time(problem_, input, DeviceId{entry}, device);
    const std::size_t place = places_[producer.index()];
    double earliest = kInfinity;
    for (const DeviceId from : problem_.devices()) {
      const double start = head(entry, place, from);
      if (start >= earliest) continue;
      earliest = std::min(earliest, start + problem_.time(producer, from) +
                                        move_time(problem_, input, from, device));
    }
    return earliest;
  }

  void measure_heads(std::size_t entry) {
    for (std::size_t place = 0; place < segment_.ops.size(); ++place) {
      const OpId op = segment_.ops[place];
      for (const DeviceId device : problem_.devices()) {
        if (!problem_.allowed(op, device)) continue;
        double ready = segment_.entry.valid() ? 0 : problem_.model(problem_.op(op).model).arrival;
        for (const TensorId input : problem_.inputs(op)) {
          ready = std::max(ready, arrival(input, entry, device));
        }
        head(entry, place, device) = ready;
      }
    }
  }

  void measure_tails(std::size_t exit) {
    for (std::size_t place = segment_.ops.size(); place-- > 0;) {
      const OpId op = segment_.ops[place];
      for (const DeviceId device : problem_.devices()) {
        if (!problem_.allowed(op, device)) continue;
        if (op == segment_.exit) {
          if (device.index() == exit) tail(exit, place, device) = 0;
          continue;
        }
        double longest = 0;
        for (const TensorId output : problem_.outputs(op)) {
          for (const OpId consumer : problem_.consumers(output)) {
            double shortest = kInfinity;
            const std::size_t next = places_[consumer.index()];
            for (const DeviceId to : problem_.devices()) {
              const double rest = tail(exit, next, to);
              if (rest >= shortest) continue;
              shortest = std::min(shortest, move_time(problem_, output, device, to) +
                                                problem_.time(consumer, to) + rest);
            }
            longest = std::max(longest, shortest);
          }
        }
        tail(exit, place, device) = longest;
      }
    }
  }

  void measure_speeds() {
    speeds_.assign(devices_, 1);
    std::vector<double> fastest(devices_, 0);
    std::vector<double> here(devices_, 0);
    for (const OpId op : segment_.ops) {
      double least = kInfinity;
      for (const DeviceId device : problem_.devices()) {
        if (problem_.allowed(op, device)) least = std::min(least, problem_.time(op, device));
      }
      for (const DeviceId device : problem_.devices()) {
        if (!problem_.allowed(op, device)) continue;
        fastest[device.index()] += least;
        here[device.index()] += problem_.time(op, device);
      }
    }
    for (std::size_t i = 0; i < devices_; ++i) {
      if (here[i] > 0) speeds_[i] = fastest[i] / here[i];
    }
  }

  [[nodiscard]] double through(std::size_t entry, std::size_t exit, std::size_t place,
                               DeviceId device) {
    const double start = head(entry, place, device);
    if (start == kInfinity) return kInfinity;
    return start + problem_.time(segment_.ops[place], device) + tail(exit, place, device);
  }

  [[nodiscard]] double critical_path(std::size_t entry, std::size_t exit) {
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

  [[nodiscard]] bool fits(std::size_t entry, std::size_t exit, double length) {
    std::vector<double> first(devices_, kInfinity);
    std::vector<double> last(devices_, kInfinity);
    double work = 0;
    for (std::size_t place = 0; place < segment_.ops.size(); ++place) {
      const OpId op = segment_.ops[place];
      double least = kInfinity;
      for (const DeviceId device : problem_.devices()) {
        if (through(entry, exit, place, device) > length * (1 + 1e-12)) continue;
        const std::size_t i = device.index();
        const double time = problem_.time(op, device);
        least = std::min(least, speeds_[i] * time);
        if (time == 0) continue;
        first[i] = std::min(first[i], head(entry, place, device));
        last[i] = std::min(last[i], tail(exit, place, device));
      }
      if (least == kInfinity) return false;
      work += least;
    }
    double room = 0;
    for (const DeviceId device : problem_.devices()) {
      const std::size_t i = device.index();
      if (first[i] == kInfinity) continue;
      room +=
          speeds_[i] * useful_lanes(problem_, device) * std::max(0.0, length - first[i] - last[i]);
    }
    return work <= room * (1 + 1e-12);
  }

  const Problem& problem_;
  const CutSegment& segment_;
  std::vector<std::size_t>& places_;
  std::size_t devices_;
  std::vector<double> heads_;
  std::vector<double> tails_;
  std::vector<double> speeds_;
};

}  // namespace

std::vector<double> segment_times(const Problem& problem, const CutSegment& segment) {
  std::vector<std::size_t> places(problem.op_count());
  SegmentTimes times(problem, segment, places);
  std::vector<double> table;
  for (std::size_t entry = 0; entry < times.entries(); ++entry) {
    for (std::size_t exit = 0; exit < times.exits(); ++exit) {
      table.push_back(safe_search(times.least(entry, exit)));
    }
  }
  return table;
}

double segment_bound(const Problem& problem) {
  const double devices = static_cast<double>(problem.device_count());
  const double edges = static_cast<double>(problem.edge_count() + problem.op_count());
  if (problem.model_count() != 1 || 8 * edges * devices * devices * devices > kMostWork) return 0;
  std::vector<std::size_t> places(problem.op_count());
  std::vector<double> distance(1,
                               0.0);  // by device of the cut node before; one if there is none
  for (const CutSegment& segment : cut_segments(problem)) {
    SegmentTimes times(problem, segment, places);
    std::vector<double> next(times.exits(), kInfinity);
    for (std::size_t entry = 0; entry < times.entries(); ++entry) {
      if (distance[entry] == kInfinity) continue;
      for (std::size_t exit = 0; exit < times.exits(); ++exit) {
        next[exit] = std::min(next[exit], distance[entry] + times.least(entry, exit));
      }
    }
    distance = std::move(next);
  }
  const double least = *std::min_element(distance.begin(), distance.end());
  return least < kInfinity ? safe_search(least) : 0;
}

}  // namespace placewright
