#include "bounds/segments.h"

#include <algorithm>
#include <vector>

#include "bounds/rounding.h"
#include "bounds/segment_paths.h"
#include "problem/lanes.h"

namespace placewright {
namespace {

constexpr double kMostWork = 5e7;  // edges x devices^3 x what bisection adds
constexpr int kBisections = 24;

// The work of one segment on top of its paths.
class SegmentTimes {
 public:
  SegmentTimes(const Problem& problem, const CutSegment& segment)
      : problem_(problem),
        segment_(segment),
        paths_(problem, segment),
        devices_(problem.device_count()) {
    measure_speeds();
  }

  [[nodiscard]] std::size_t entries() const { return paths_.entries(); }
  [[nodiscard]] std::size_t exits() const { return paths_.exits(); }

  // t(s, entry, exit): the critical path, raised by bisection to where the work fits.
  [[nodiscard]] double least(std::size_t entry, std::size_t exit) {
    double low = paths_.longest(entry, exit);
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

  [[nodiscard]] bool fits(std::size_t entry, std::size_t exit, double length) {
    std::vector<double> first(devices_, kInfinity);
    std::vector<double> last(devices_, kInfinity);
    double work = 0;
    for (std::size_t place = 0; place < segment_.ops.size(); ++place) {
      const OpId op = segment_.ops[place];
      double least = kInfinity;
      for (const DeviceId device : problem_.devices()) {
        if (paths_.through(entry, exit, place, device) > length * (1 + 1e-12)) continue;
        const std::size_t i = device.index();
        const double time = problem_.time(op, device);
        least = std::min(least, speeds_[i] * time);
        if (time == 0) continue;
        first[i] = std::min(first[i], paths_.head(entry, place, device));
        last[i] = std::min(last[i], paths_.tail(exit, place, device));
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
  SegmentPaths paths_;
  std::size_t devices_;
  std::vector<double> speeds_;
};

}  // namespace

std::vector<double> segment_times(const Problem& problem, const CutSegment& segment) {
  SegmentTimes times(problem, segment);
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
  std::vector<double> distance(1,
                               0.0);  // by device of the cut node before; one if there is none
  for (const CutSegment& segment : cut_segments(problem)) {
    SegmentTimes times(problem, segment);
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
