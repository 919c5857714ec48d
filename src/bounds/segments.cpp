#include "bounds/segments.h"

#include <algorithm>
#include <vector>

#include "bounds/pools.h"
#include "bounds/rounding.h"
#include "bounds/segment_paths.h"
#include "problem/lanes.h"

namespace placewright {
namespace {

constexpr double kMostWork = 5e7;  // edges x devices^3 x what bisection adds
constexpr int kBisections = 24;

// Whether those who bear the work of a segment can do it in some time: its devices, or the pools of
// resources that they share.
class SegmentWork {
 public:
  SegmentWork(const Problem& problem, const CutSegment& segment, const SegmentPaths& paths,
              Capacity limit)
      : problem_(problem), segment_(segment), paths_(paths) {
    const Pools pools(problem, limit);
    bearers_ = limit == Capacity::devices ? problem.device_count() : problem.kind_count();
    capacity_.assign(bearers_, 0);
    for (const DeviceId device : problem.devices()) {
      const KindId kind = problem.kind_of(device);
      const PoolId pool = pools.of_kind[kind];
      const bool alone = limit == Capacity::devices;
      bearer_.push_back(alone ? device.index() : pool.index());
      capacity_[bearer_.back()] = alone ? useful_lanes(problem, device) : pools.capacity[pool];
      amount_.push_back(alone || problem.uses(device).empty() ? 1 : pools.amount[kind]);
    }
    measure_speeds(limit);
  }

  [[nodiscard]] bool fits(std::size_t entry, std::size_t exit, double length) const {
    std::vector<double> first(bearers_, kInfinity);
    std::vector<double> last(bearers_, kInfinity);
    double total = 0;
    for (std::size_t place = 0; place < segment_.ops.size(); ++place) {
      double least = kInfinity;
      for (const DeviceId device : problem_.devices()) {
        if (paths_.through(entry, exit, place, device) > length * (1 + 1e-12)) continue;
        const std::size_t i = bearer_[device.index()];
        const double own = work(place, device);
        least = std::min(least, speeds_[i] * own);
        if (own == 0) continue;
        first[i] = std::min(first[i], paths_.head(entry, place, device));
        last[i] = std::min(last[i], paths_.tail(exit, place, device));
      }
      if (least == kInfinity) return false;
      total += least;
    }
    double room = 0;
    for (std::size_t i = 0; i < bearers_; ++i) {
      if (first[i] == kInfinity) continue;
      room += speeds_[i] * capacity_[i] * std::max(0.0, length - first[i] - last[i]);
    }
    return total <= room * (1 + 1e-12);
  }

 private:
  [[nodiscard]] double work(std::size_t place, DeviceId device) const {
    return work_[place * problem_.device_count() + device.index()];
  }

  void measure_speeds(Capacity limit) {
    speeds_.assign(bearers_, 1);
    std::vector<double> fastest(bearers_, 0);
    std::vector<double> here(bearers_, 0);
    for (const OpId op : segment_.ops) {
      double time = kInfinity;
      std::vector<double> least(bearers_, kInfinity);
      for (const DeviceId device : problem_.devices()) {
        work_.push_back(kInfinity);
        if (!problem_.allowed(op, device)) continue;
        const double share = limit == Capacity::devices ? 1 : problem_.share(op, device);
        work_.back() = problem_.time(op, device) * share * amount_[device.index()];
        time = std::min(time, problem_.time(op, device));
        double& known = least[bearer_[device.index()]];
        known = std::min(known, work_.back());
      }
      for (std::size_t i = 0; i < bearers_; ++i) {
        if (least[i] == kInfinity) continue;
        fastest[i] += time;
        here[i] += least[i];
      }
    }
    for (std::size_t i = 0; i < bearers_; ++i) {
      if (here[i] > 0) speeds_[i] = fastest[i] / here[i];
    }
  }

  const Problem& problem_;
  const CutSegment& segment_;
  const SegmentPaths& paths_;
  std::size_t bearers_ = 0;
  std::vector<std::size_t> bearer_;  // by device
  std::vector<double> amount_;       // by device: what it takes of its bearer
  std::vector<double> capacity_;     // by bearer
  std::vector<double> work_;         // op x device
  std::vector<double> speeds_;       // by bearer: the weights
};

// The work of one segment on top of its paths.
class SegmentTimes {
 public:
  SegmentTimes(const Problem& problem, const CutSegment& segment)
      : paths_(problem, segment), works_{{problem, segment, paths_, Capacity::devices}} {
    if (problem.resource_count() == 0) return;
    works_.emplace_back(problem, segment, paths_, Capacity::resources);
  }
  SegmentTimes(const SegmentTimes&) = delete;
  SegmentTimes& operator=(const SegmentTimes&) = delete;

  [[nodiscard]] std::size_t entries() const { return paths_.entries(); }
  [[nodiscard]] std::size_t exits() const { return paths_.exits(); }

  // t(s, entry, exit): the critical path, raised by bisection to where the work fits.
  [[nodiscard]] double least(std::size_t entry, std::size_t exit) const {
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
  [[nodiscard]] bool fits(std::size_t entry, std::size_t exit, double length) const {
    return std::ranges::all_of(
        works_, [&](const SegmentWork& work) { return work.fits(entry, exit, length); });
  }

  SegmentPaths paths_;
  std::vector<SegmentWork> works_;
};

}  // namespace

std::vector<double> segment_times(const Problem& problem, const CutSegment& segment) {
  const SegmentTimes times(problem, segment);
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
    const SegmentTimes times(problem, segment);
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
