#include "bounds/segments.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "bounds/pools.h"
#include "bounds/rounding.h"
#include "bounds/segment_paths.h"
#include "problem/lanes.h"
#include "solvers/min_cut.h"

namespace placewright {
namespace {

constexpr double kMostWork = 5e7;  // edges x devices^3 x what bisection adds
constexpr int kBisections = 24;
constexpr double kMostCutWork = 1e5;  // ops^2 of each segment x devices; about 0.2 s

// Whether those who bear the work of a segment can do it in some time: its devices, or the pools of
// resources that they share.
class SegmentWork {
 public:
  SegmentWork(const Problem& problem, const CutSegment& segment, const SegmentPaths& paths,
              Capacity limit)
      : problem_(problem),
        segment_(segment),
        paths_(paths),
        by_share_(limit == Capacity::resources) {
    limit == Capacity::devices ? bear_on_devices() : bear_in_pools();
    measure_speeds();
  }

  [[nodiscard]] bool fits(std::size_t entry, std::size_t exit, double length) const {
    std::vector<double> first(bearers_, kInfinity);
    std::vector<double> last(bearers_, kInfinity);
    double total = 0;
    for (std::size_t place = 0; place < segment_.ops.size(); ++place) {
      double least = kInfinity;
      for (const DeviceId device : problem_.devices()) {
        if (paths_.through(entry, exit, place, device) > loose_sum(length)) continue;
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
    return total <= loose_sum(room);
  }

  // Weighted work: of an op, of handing a tensor out, and of taking it in. Infinite: nobody may,
  // there.
  [[nodiscard]] double weighted(std::size_t place, DeviceId device) const {
    return speeds_[bearer_[device.index()]] * work(place, device);
  }
  // Devices of the host read and write its memory for nothing.
  [[nodiscard]] double sending(TensorId tensor, DeviceId device) const {
    const double own = rate(problem_.producer(tensor), device);
    if (own == kInfinity) return own;
    return at_host(device) ? 0 : own * problem_.send_overhead(tensor, device);
  }
  [[nodiscard]] double receiving(TensorId tensor, DeviceId device) const {
    double least = kInfinity;
    for (const OpId reader : problem_.consumers(tensor)) {
      least = std::min(least, rate(reader, device));
    }
    if (least == kInfinity) return least;
    return at_host(device) ? 0 : least * problem_.receive_overhead(tensor, device);
  }
  // In a unit of time by all bearers together.
  [[nodiscard]] double most() const {
    return std::inner_product(speeds_.begin(), speeds_.end(), capacity_.begin(), 0.0);
  }

 private:
  void bear_on_devices() {
    bearers_ = problem_.device_count();
    for (const DeviceId device : problem_.devices()) {
      bearer_.push_back(device.index());
      capacity_.push_back(useful_lanes(problem_, device));
      amount_.push_back(1);
    }
  }
  void bear_in_pools() {
    const Pools pools(problem_, Capacity::resources);
    bearers_ = problem_.kind_count();
    capacity_.assign(bearers_, 0);
    for (const DeviceId device : problem_.devices()) {
      const KindId kind = problem_.kind_of(device);
      const PoolId pool = pools.of_kind[kind];
      bearer_.push_back(pool.index());
      capacity_[pool.index()] = pools.capacity[pool];
      amount_.push_back(problem_.uses(device).empty() ? 1 : pools.amount[kind]);
    }
  }

  [[nodiscard]] bool at_host(DeviceId device) const {
    return problem_.interconnect() == InterconnectKind::host && problem_.on_host(device);
  }

  // Weighted, of an op for each unit of its time.
  [[nodiscard]] double rate(OpId op, DeviceId device) const {
    if (!problem_.allowed(op, device)) return kInfinity;
    const std::size_t i = device.index();
    return speeds_[bearer_[i]] * amount_[i] * (by_share_ ? problem_.share(op, device) : 1);
  }
  [[nodiscard]] double work(std::size_t place, DeviceId device) const {
    return work_[place * problem_.device_count() + device.index()];
  }

  void measure_speeds() {
    speeds_.assign(bearers_, 1);
    std::vector<double> fastest(bearers_, 0);
    std::vector<double> here(bearers_, 0);
    for (const OpId op : segment_.ops) {
      double time = kInfinity;
      std::vector<double> least(bearers_, kInfinity);
      for (const DeviceId device : problem_.devices()) {
        work_.push_back(kInfinity);
        if (!problem_.allowed(op, device)) continue;
        const double share = by_share_ ? problem_.share(op, device) : 1;
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
  bool by_share_;
  std::size_t bearers_ = 0;
  std::vector<std::size_t> bearer_;  // by device
  std::vector<double> amount_;       // by device: what it takes of its bearer
  std::vector<double> capacity_;     // by bearer
  std::vector<double> work_;         // op x device
  std::vector<double> speeds_;       // by bearer: the weights
};

// The ops of a segment between one device and all others, what goes on among the others being free:
// a network whose cuts are the splits, and their capacities the weighted work with its overheads.
// Ops on the source's side are on the device.
class SplitNetwork {
 public:
  // `away`, if it is valid, is not on the device.
  SplitNetwork(const Problem& problem, const SegmentPaths& paths, const SegmentWork& work,
               std::size_t entry, std::size_t exit, DeviceId one, OpId away)
      : problem_(problem), paths_(paths), work_(work), entry_(entry), exit_(exit), one_(one) {
    const CutSegment& segment = paths.segment();
    nodes_ = kFirstOp + static_cast<int>(segment.ops.size());
    for (const OpId op : segment.ops) add_op(op, op != away);
    if (segment.entry.valid()) add_outputs(segment.entry);
    for (const OpId op : segment.ops) {
      if (op != segment.exit) add_outputs(op);
    }
  }

  // The time that the split of least work takes at least.
  [[nodiscard]] double least_time() const {
    return solvers::minimum_cut(nodes_, kHere, kThere, arcs_) / work_.most();
  }

 private:
  static constexpr int kHere = 0;   // the source
  static constexpr int kThere = 1;  // the target
  static constexpr int kFirstOp = 2;

  [[nodiscard]] int node(OpId op) const {
    if (op == paths_.segment().entry) return entry_ == one_.index() ? kHere : kThere;
    return kFirstOp + static_cast<int>(paths_.place(op));
  }

  void add_op(OpId op, bool may_be_here) {
    double here = kInfinity;
    double there = kInfinity;
    for (const DeviceId device : problem_.devices()) {
      if (op == paths_.segment().exit && device.index() != exit_) continue;
      if (device == one_ && !may_be_here) continue;
      double& known = device == one_ ? here : there;
      known = std::min(known, work_.weighted(paths_.place(op), device));
    }
    arcs_.push_back({node(op), kThere, here});
    arcs_.push_back({kHere, node(op), there});
  }

  // Readers on the other side cost one overhead here and one there, however many they are. What the
  // entry bears was before its end.
  void add_outputs(OpId producer) {
    const bool bears = producer != paths_.segment().entry;
    for (const TensorId tensor : problem_.outputs(producer)) {
      if (problem_.consumers(tensor).empty()) continue;
      double sending = kInfinity;
      double receiving = kInfinity;
      for (const DeviceId device : problem_.devices()) {
        if (device == one_) continue;
        sending = std::min(sending, work_.sending(tensor, device));
        receiving = std::min(receiving, work_.receiving(tensor, device));
      }
      const int read_there = nodes_++;
      const int read_here = nodes_++;
      arcs_.push_back(
          {node(producer), read_there, receiving + (bears ? work_.sending(tensor, one_) : 0)});
      arcs_.push_back(
          {read_here, node(producer), work_.receiving(tensor, one_) + (bears ? sending : 0)});
      for (const OpId reader : problem_.consumers(tensor)) {
        arcs_.push_back({read_there, node(reader), kInfinity});
        arcs_.push_back({node(reader), read_here, kInfinity});
      }
    }
  }

  const Problem& problem_;
  const SegmentPaths& paths_;
  const SegmentWork& work_;
  std::size_t entry_;
  std::size_t exit_;
  DeviceId one_;
  int nodes_ = 0;
  std::vector<solvers::CutArc> arcs_;
};

// The work of one segment on top of its paths.
class SegmentTimes {
 public:
  SegmentTimes(const Problem& problem, const CutSegment& segment, bool counts_overheads)
      : problem_(problem),
        paths_(problem, segment),
        works_{{problem, segment, paths_, Capacity::devices}},
        counts_overheads_(counts_overheads) {
    if (problem.resource_count() == 0) return;
    works_.emplace_back(problem, segment, paths_, Capacity::resources);
  }
  SegmentTimes(const SegmentTimes&) = delete;
  SegmentTimes& operator=(const SegmentTimes&) = delete;

  [[nodiscard]] std::size_t entries() const { return paths_.entries(); }
  [[nodiscard]] std::size_t exits() const { return paths_.exits(); }

  // t(s, entry, exit).
  [[nodiscard]] double least(std::size_t entry, std::size_t exit) const {
    const double work = without_overheads(entry, exit);
    return work < kInfinity && counts_overheads_ ? std::max(work, with_overheads(entry, exit))
                                                 : work;
  }

 private:
  // Either all of the segment is on the device of its entry, or its exit, or some op is not. If
  // those are two devices, one of them hands over and the other takes.
  [[nodiscard]] double with_overheads(std::size_t entry, std::size_t exit) const {
    const CutSegment& segment = paths_.segment();
    const bool enters = segment.entry.valid();
    if (!enters && !segment.exit.valid()) return 0;
    const DeviceId one{enters ? entry : exit};
    if (enters && segment.exit.valid() && entry != exit) {
      return std::max(split(entry, exit, one, OpId{}), split(entry, exit, DeviceId{exit}, OpId{}));
    }
    double least = time_on(one);
    for (const OpId op : segment.ops) {
      if (op == segment.exit) continue;
      least = std::min(least, split(entry, exit, one, op));
    }
    return least;
  }

  [[nodiscard]] double split(std::size_t entry, std::size_t exit, DeviceId one, OpId away) const {
    double least = 0;
    for (const SegmentWork& work : works_) {
      const SplitNetwork network(problem_, paths_, work, entry, exit, one, away);
      least = std::max(least, network.least_time());
    }
    return least;
  }

  [[nodiscard]] double time_on(DeviceId device) const {
    double time = 0;
    for (const OpId op : paths_.segment().ops) {
      time += problem_.allowed(op, device) ? problem_.time(op, device) : kInfinity;
    }
    return time / useful_lanes(problem_, device);
  }

  // The critical path, raised by bisection to where the work fits.
  [[nodiscard]] double without_overheads(std::size_t entry, std::size_t exit) const {
    const auto fits = [&](double length) {
      return std::ranges::all_of(
          works_, [&](const SegmentWork& work) { return work.fits(entry, exit, length); });
    };
    double low = paths_.longest(entry, exit);
    if (low == kInfinity || fits(low)) return low;
    double high = 2 * low;
    while (!fits(high)) {
      low = high;
      high *= 2;
      if (high == kInfinity) return low;
    }
    for (int i = 0; i < kBisections; ++i) {
      const double middle = (low + high) / 2;
      (fits(middle) ? high : low) = middle;
    }
    return low;
  }

  const Problem& problem_;
  SegmentPaths paths_;
  std::vector<SegmentWork> works_;
  bool counts_overheads_;
};

// Without shared resources transfers say more than overheads do.
bool overheads_count(const Problem& problem, std::span<const CutSegment> segments) {
  if (!problem.has_overheads() || problem.resource_count() == 0) return false;
  double work = 0;
  for (const CutSegment& segment : segments) {
    const auto ops = static_cast<double>(segment.ops.size());
    work += ops * ops * static_cast<double>(problem.device_count());
  }
  return work <= kMostCutWork;
}

}  // namespace

std::vector<double> segment_times(const Problem& problem, const CutSegment& segment,
                                  const SegmentFilter& wanted) {
  const SegmentTimes times(problem, segment, overheads_count(problem, {&segment, 1}));
  std::vector<double> table;
  for (std::size_t entry = 0; entry < times.entries(); ++entry) {
    for (std::size_t exit = 0; exit < times.exits(); ++exit) {
      const bool asked = !wanted || wanted(entry, exit);
      table.push_back(asked ? safe_search(times.least(entry, exit)) : 0);
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
  const std::vector<CutSegment> segments = cut_segments(problem);
  const bool counts_overheads = overheads_count(problem, segments);
  for (const CutSegment& segment : segments) {
    const SegmentTimes times(problem, segment, counts_overheads);
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
