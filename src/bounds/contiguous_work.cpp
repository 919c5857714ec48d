#include "bounds/contiguous_work.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bounds/rounding.h"
#include "coarsen/blocks.h"

namespace placewright {
namespace {

constexpr int kPriceSteps = 20;
constexpr int kBorderSteps = 14;  // of bisection, for each set of prices on time
constexpr double kDamping = 10;

// Whether each block is comparable with all others. Numbers ascend along edges, so all blocks
// before v reach it exactly when each of them has a successor no later than v, and v reaches all
// after it exactly when each of those has a predecessor no earlier than v.
std::vector<char> comparable_with_all(const Blocks& blocks) {
  const std::size_t count = blocks.size();
  std::vector<char> comparable(count, 1);
  std::vector<std::size_t> after_predecessor(count, 0);  // the last one's number + 1; 0: none
  std::size_t farthest = 0;                              // of the first successors of those before
  for (std::size_t v = 0; v < count; ++v) {
    if (farthest > v) comparable[v] = 0;
    std::size_t first_successor = count;
    for (const BlockId to : blocks.successors[BlockId{v}]) {
      first_successor = std::min(first_successor, to.index());
      after_predecessor[to.index()] = v + 1;
    }
    farthest = std::max(farthest, first_successor);
  }
  std::size_t earliest = count;  // of the last predecessors of those after, + 1
  for (std::size_t v = count; v-- > 0;) {
    if (earliest < v + 1) comparable[v] = 0;
    earliest = std::min(earliest, after_predecessor[v]);
  }
  return comparable;
}

// The walk over the segments, and its prices.
class SegmentWalk {
 public:
  explicit SegmentWalk(const Problem& problem)
      : blocks_(blocks_of(problem)),
        kinds_(problem.kind_count()),
        devices_(kinds_, 0),
        borders_(static_cast<double>(problem.device_count()) - 1),
        block_time_(blocks_.size() * kinds_, kInfinity) {
    for (const DeviceId device : problem.devices()) {
      const std::size_t kind = problem.kind_of(device).index();
      ++devices_[kind];
      for (const BlockId block : blocks_.keys()) add_time(problem, block, device, kind);
    }
    const std::vector<char> comparable = comparable_with_all(blocks_);
    for (std::size_t v = 0; v < blocks_.size(); ++v) {
      if (comparable[v] != 0 || v + 1 == blocks_.size()) segment_ends_.push_back(v + 1);
    }
    segment_time_.assign(segment_ends_.size() * kinds_, 0);
    for (std::size_t s = 0; s < segment_ends_.size(); ++s) {
      for (std::size_t v = segment_begin(s); v < segment_ends_[s]; ++v) {
        for (std::size_t c = 0; c < kinds_; ++c) {
          segment_time_[s * kinds_ + c] += block_time_[v * kinds_ + c];
        }
      }
    }
    stays_.resize(segment_ends_.size() * kinds_);
    cheapest_before_.resize(segment_ends_.size());
  }

  double bound(const std::function<bool()>& stop) {
    price_ = equal_prices();
    double best = 0;
    for (int step = 1; step <= kPriceSteps; ++step) {
      price_parted_segments();
      best = std::max(best, best_over_borders(stop));
      if (stop() || !raise_crowded_prices(step)) break;
    }
    return safe_search(best);
  }

 private:
  // Devices of a kind may differ in what is pinned to them: the block may be where any of them may
  // have it.
  void add_time(const Problem& problem, BlockId block, DeviceId device, std::size_t kind) {
    double& entry = block_time_[block.index() * kinds_ + kind];
    if (entry < kInfinity) return;
    double sum = 0;
    for (const OpId op : blocks_.ops[block]) {
      if (!problem.allowed(op, device)) return;
      sum += problem.time(op, device);
    }
    entry = sum;
  }

  [[nodiscard]] std::size_t segment_begin(std::size_t segment) const {
    return segment == 0 ? 0 : segment_ends_[segment - 1];
  }

  // Prices at which all kinds do the whole graph for the same: the best where segments are alike.
  [[nodiscard]] std::vector<double> equal_prices() const {
    std::vector<double> price(kinds_, 1);
    for (std::size_t c = 0; c < kinds_; ++c) {
      double total = 0;
      for (std::size_t v = 0; v < blocks_.size(); ++v) {
        if (block_time_[v * kinds_ + c] < kInfinity) total += block_time_[v * kinds_ + c];
      }
      if (total > 0) price[c] = 1 / total;
    }
    return price;
  }

  [[nodiscard]] std::size_t cheapest_kind(std::size_t block) const {
    const double* time = block_time_.data() + block * kinds_;
    std::size_t cheapest = 0;
    for (std::size_t c = 1; c < kinds_; ++c) {
      if (price_[c] * time[c] < price_[cheapest] * time[cheapest]) cheapest = c;
    }
    return cheapest;
  }

  void price_parted_segments() {
    parted_.assign(segment_ends_.size(), 0);
    for (std::size_t s = 0; s < segment_ends_.size(); ++s) {
      for (std::size_t v = segment_begin(s); v < segment_ends_[s]; ++v) {
        const std::size_t c = cheapest_kind(v);
        const double time = block_time_[v * kinds_ + c];
        if (time < kInfinity) parted_[s] += price_[c] * time;
      }
    }
  }

  double best_over_borders(const std::function<bool()>& stop) {
    double capacity = 0;
    for (std::size_t c = 0; c < kinds_; ++c) capacity += price_[c] * devices_[c];
    double low = 0;
    double high = 0;
    for (const double parted : parted_) high += parted;
    double best = 0;
    for (int step = 0; step < kBorderSteps && !stop(); ++step) {
      const double border_price = (low + high) / 2;
      const Walk walk = cheapest_walk(border_price);
      best = std::max(best, (walk.cost - borders_ * border_price) / capacity);
      (walk.borders > borders_ ? low : high) = border_price;
    }
    return best;
  }

  struct Walk {
    double cost = 0;
    double borders = 0;
    std::size_t last_kind = 0;
  };

  Walk cheapest_walk(double border_price) {
    std::vector<Walk> at(kinds_);
    for (std::size_t c = 0; c < kinds_; ++c) at[c].last_kind = c;
    const auto cheaper = [](const Walk& a, const Walk& b) { return a.cost < b.cost; };
    for (std::size_t s = 0; s < segment_ends_.size(); ++s) {
      const Walk before = *std::min_element(at.begin(), at.end(), cheaper);
      cheapest_before_[s] = before.last_kind;
      const double with_border = before.cost + border_price + parted_[s];
      for (std::size_t c = 0; c < kinds_; ++c) {
        const double staying = at[c].cost + price_[c] * segment_time_[s * kinds_ + c];
        stays_[s * kinds_ + c] = staying <= with_border ? 1 : 0;
        at[c] = staying <= with_border ? Walk{staying, at[c].borders, c}
                                       : Walk{with_border, before.borders + 1, c};
      }
    }
    last_walk_ = *std::min_element(at.begin(), at.end(), cheaper);
    return last_walk_;
  }

  // False: nothing to change. The loads are those of the last walk.
  bool raise_crowded_prices(int step) {
    std::vector<double> load(kinds_, 0);
    std::size_t kind = last_walk_.last_kind;
    for (std::size_t s = segment_ends_.size(); s-- > 0;) {
      if (stays_[s * kinds_ + kind] != 0) {
        load[kind] += segment_time_[s * kinds_ + kind];
        continue;
      }
      for (std::size_t v = segment_begin(s); v < segment_ends_[s]; ++v) {
        const std::size_t c = cheapest_kind(v);
        if (block_time_[v * kinds_ + c] < kInfinity) load[c] += block_time_[v * kinds_ + c];
      }
      kind = cheapest_before_[s];
    }
    double mean = 0;
    double used = 0;
    for (std::size_t c = 0; c < kinds_; ++c) {
      if (devices_[c] == 0) continue;
      load[c] /= devices_[c];
      mean += load[c];
      ++used;
    }
    mean /= used;
    if (mean == 0) return false;
    for (std::size_t c = 0; c < kinds_; ++c) {
      const double change = std::clamp((load[c] / mean - 1) / step, -0.7, 0.7);
      price_[c] *= std::exp(change / kDamping);
    }
    return true;
  }

  Blocks blocks_;
  std::size_t kinds_;
  std::vector<double> devices_;     // by kind
  double borders_;                  // at most
  std::vector<double> block_time_;  // block x kind; kInfinity: not allowed
  std::vector<std::size_t> segment_ends_;
  std::vector<double> segment_time_;  // segment x kind
  std::vector<double> price_;         // by kind
  std::vector<double> parted_;        // by segment: its cost with a border, without p
  // Of the last walk, for the way back.
  Walk last_walk_;
  std::vector<std::uint8_t> stays_;           // segment x kind
  std::vector<std::size_t> cheapest_before_;  // by segment
};

}  // namespace

double contiguous_work_bound(const Problem& problem, const std::function<bool()>& stop) {
  return SegmentWalk(problem).bound(stop);
}

}  // namespace placewright
