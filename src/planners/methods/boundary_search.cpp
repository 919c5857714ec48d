#include "planners/methods/boundary_search.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "evaluate/memory.h"

namespace placewright::throughput {
namespace {

constexpr double kUnits = 0x1p40;  // whole numbers up to the cutoff
constexpr std::int64_t kUncut = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::size_t kFirstCandidates = 16;
constexpr std::size_t kCandidateGrowth = 16;
constexpr std::size_t kMostCandidates = 1U << 19;
constexpr std::size_t kMostRefuted = 1U << 19;
constexpr std::size_t kMostBlocks = 2000;

// A set of blocks.
class BlockSet {
 public:
  explicit BlockSet(std::size_t blocks) : words_((blocks + 63) / 64, 0) {}
  [[nodiscard]] bool holds(std::size_t block) const {
    return (words_[block / 64] >> (block % 64) & 1U) != 0;
  }
  void add(std::size_t block) { words_[block / 64] |= std::uint64_t{1} << (block % 64); }
  [[nodiscard]] std::size_t size() const {
    std::size_t count = 0;
    for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }
  [[nodiscard]] const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  std::vector<std::uint64_t> words_;
};

// Blocks of `high` that are not in `low`: what some neighbouring stages hold together.
struct Interval {
  BlockSet low;
  BlockSet high;
  [[nodiscard]] bool holds(std::size_t block) const {
    return high.holds(block) && !low.holds(block);
  }
};

// The model's times in whole numbers.
class WholeCosts {
 public:
  WholeCosts(const StageModel& stage_model, double unit) : model(stage_model) {
    const DeviceClass& device_class = model.classes().front();
    const auto whole = [&](double time) { return static_cast<std::int64_t>(time / unit); };
    for (std::size_t v = 0; v < model.block_count(); ++v) {
      work.push_back(whole(device_class.forward[v] + device_class.backward[v]));
    }
    const auto profile = static_cast<std::size_t>(std::max(0, device_class.profile));
    for (std::uint32_t e = 0; e < model.nets().size(); ++e) {
      in.push_back(device_class.profile < 0 ? 0 : whole(model.cost(e, profile).all_in()));
      out.push_back(device_class.profile < 0 ? 0 : whole(model.cost(e, profile).all_out()));
    }
    ancestors.resize(model.block_count());
    for (std::uint32_t v = 0; v < model.block_count(); ++v) {
      for (const BlockId next : model.blocks().successors[BlockId{v}]) {
        ancestors[next.index()].push_back(v);
      }
    }
  }

  // Of the interval as one stage.
  [[nodiscard]] std::int64_t load(const Interval& interval) const {
    std::int64_t sum = 0;
    for (std::size_t v = 0; v < work.size(); ++v) {
      if (interval.holds(v)) sum += work[v];
    }
    for (std::size_t e = 0; e < in.size(); ++e) {
      const Net& net = model.nets()[e];
      bool reads = false;
      bool misses = false;
      for (const NetReader& reader : net.readers) {
        (interval.holds(reader.block) ? reads : misses) = true;
      }
      if (interval.holds(net.producer)) {
        if (misses) sum += out[e];
      } else if (reads) {
        sum += in[e];
      }
    }
    return sum;
  }

  [[nodiscard]] bool fits_memory(const Interval& interval) const {
    const double memory = model.classes().front().memory;
    if (memory == kInfinity) return true;
    double bytes = 0;
    for (std::size_t v = 0; v < work.size(); ++v) {
      if (interval.holds(v)) bytes += model.bytes(v);
    }
    for (const StageModel::Weight& weight : model.weights()) {
      const bool read = std::any_of(weight.blocks.begin(), weight.blocks.end(),
                                    [&](std::uint32_t block) { return interval.holds(block); });
      if (read) bytes += weight.bytes;
    }
    return within_memory(bytes, memory);
  }

  const StageModel& model;
  std::vector<std::int64_t> work;  // by block
  std::vector<std::int64_t> in;    // by net
  std::vector<std::int64_t> out;
  std::vector<std::vector<std::uint32_t>> ancestors;  // by block: those just before it
};

// What the two sides of a boundary may bear.
struct Sides {
  std::int64_t left = 0;
  std::int64_t right = 0;
};

// Boundaries inside an interval, by branch and bound over flows.
//
// The network has a node for each block and two for each net. A net with members on both sides
// costs its capacity: members -> entry -> exit -> members, with the capacity in the middle. (A
// producer that comes before all readers is the entry itself.) Whoever is on the left has its
// ancestors there: an edge to each that cannot be cut.
class Boundaries {
 public:
  Boundaries(const WholeCosts& costs, const Interval& interval)
      : costs_(costs), interval_(interval), load_(costs.load(interval)) {
    local_.assign(costs.work.size(), kNowhere);
    for (std::uint32_t v = 0; v < costs.work.size(); ++v) {
      if (!interval.holds(v)) continue;
      local_[v] = static_cast<std::uint32_t>(blocks_.size());
      blocks_.push_back(v);
    }
    edges_of_.resize(blocks_.size());
    before_.resize(blocks_.size());
    after_.resize(blocks_.size());
    add_precedences();
    for (std::uint32_t e = 0; e < costs.in.size(); ++e) add_net(e);
    by_work_.resize(blocks_.size());
    for (std::uint32_t i = 0; i < by_work_.size(); ++i) by_work_[i] = i;
    std::stable_sort(by_work_.begin(), by_work_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return costs.work[blocks_[a]] > costs.work[blocks_[b]];
    });
  }

  // Calls `visit` with each boundary whose sides stay within their limits, until it answers false.
  // False: `visit` or `control` ended it.
  template <class Visit>
  bool for_each(Sides limits, Control& control, Visit visit) {
    limits_ = limits;
    slack_ = limits.left + limits.right - load_;
    if (slack_ < 0) return true;
    side_.assign(blocks_.size(), Side::open);
    work_ = {};
    return descend(0, 0, capacity_, 0, control, visit);
  }

 private:
  enum class Side : std::uint8_t { open, left, right };
  static constexpr std::uint32_t kNowhere = 0xffffffff;
  static constexpr std::uint32_t kStart = 0xfffffffe;

  std::uint32_t add_node() {
    edges_of_.emplace_back();
    return static_cast<std::uint32_t>(edges_of_.size() - 1);
  }

  // Edges come in pairs: e ^ 1 is the way back.
  void add_edge(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
    edges_of_[from].push_back(static_cast<std::uint32_t>(to_.size()));
    to_.push_back(to);
    capacity_.push_back(capacity);
    edges_of_[to].push_back(static_cast<std::uint32_t>(to_.size()));
    to_.push_back(from);
    capacity_.push_back(0);
  }

  void add_precedences() {
    for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
      for (const std::uint32_t ancestor : costs_.ancestors[blocks_[i]]) {
        const std::uint32_t before = local_[ancestor];
        if (before == kNowhere) continue;
        before_[i].push_back(before);
        after_[before].push_back(i);
        add_edge(i, before, kUncut);
      }
    }
  }

  // What a boundary between its members adds to the load of the interval: another stage takes it
  // in, and it is sent out where it was not before.
  void add_net(std::uint32_t e) {
    const Net& net = costs_.model.nets()[e];
    std::vector<std::uint32_t> members;
    bool sent = false;
    for (const NetReader& reader : net.readers) {
      const std::uint32_t member = local_[reader.block];
      if (member == kNowhere) {
        sent = true;
      } else {
        members.push_back(member);
      }
    }
    const std::uint32_t producer = local_[net.producer];
    std::int64_t cost = costs_.in[e];
    if (producer != kNowhere) {
      members.push_back(producer);
      if (!sent) cost += costs_.out[e];
    }
    if (members.size() < 2 || cost == 0) return;
    const bool leads = producer != kNowhere && leads_net(net);
    const std::uint32_t entry = leads ? producer : add_node();
    const std::uint32_t exit = add_node();
    add_edge(entry, exit, cost);
    for (const std::uint32_t member : members) {
      if (member == entry) continue;
      if (!leads) add_edge(member, entry, kUncut);
      add_edge(exit, member, kUncut);
    }
  }

  // Whether every reader inside has the producer just before it.
  [[nodiscard]] bool leads_net(const Net& net) const {
    return std::all_of(net.readers.begin(), net.readers.end(), [&](const NetReader& reader) {
      const auto& before = costs_.ancestors[reader.block];
      return local_[reader.block] == kNowhere ||
             std::find(before.begin(), before.end(), net.producer) != before.end();
    });
  }

  // Sends more flow from left to right. What was placed before lets no more pass, so paths begin at
  // the blocks placed since then if these are on the left, and end at them if on the right. False:
  // more than the slack must cross.
  bool augment(std::size_t placed, std::vector<std::int64_t>& capacity, std::int64_t& flow) {
    if (placed == placed_.size()) return true;
    const Side side = side_[placed_.back()];
    const std::uint32_t back = side == Side::left ? 0 : 1;
    for (;;) {
      const std::uint32_t end = reach(placed, side, capacity);
      if (end == kNowhere) return true;
      const auto for_each_edge = [&](auto act) {
        for (std::uint32_t at = end; came_by_[at] != kStart; at = to_[came_by_[at] ^ 1U]) {
          act(came_by_[at] ^ back);
        }
      };
      std::int64_t most = kUncut;
      for_each_edge([&](std::uint32_t e) { most = std::min(most, capacity[e]); });
      flow += most;
      if (flow > slack_) return false;
      for_each_edge([&](std::uint32_t e) {
        capacity[e] -= most;
        capacity[e ^ 1U] += most;
      });
    }
  }

  // Breadth first from the blocks placed last, on this side, along edges with room (against them
  // from the right); a block of the other side that it reaches, or kNowhere.
  std::uint32_t reach(std::size_t placed, Side side, const std::vector<std::int64_t>& capacity) {
    const Side other = side == Side::left ? Side::right : Side::left;
    const std::uint32_t back = side == Side::left ? 0 : 1;
    came_by_.assign(edges_of_.size(), kNowhere);
    queue_.assign(placed_.begin() + static_cast<std::ptrdiff_t>(placed), placed_.end());
    for (const std::uint32_t i : queue_) came_by_[i] = kStart;
    for (std::size_t next = 0; next < queue_.size(); ++next) {
      for (const std::uint32_t e : edges_of_[queue_[next]]) {
        const std::uint32_t to = to_[e];
        if (came_by_[to] != kNowhere || capacity[e ^ back] == 0) continue;
        came_by_[to] = e;
        if (to < blocks_.size() && side_[to] == other) return to;
        queue_.push_back(to);
      }
    }
    return kNowhere;
  }

  // Puts the block and all that must go with it on a side; they are appended to `placed_`.
  void place(std::uint32_t block, Side side) {
    const auto& follow = side == Side::left ? before_ : after_;
    std::int64_t& work = side == Side::left ? work_.left : work_.right;
    std::size_t next = placed_.size();
    const auto put = [&](std::uint32_t i) {
      if (side_[i] != Side::open) return;
      side_[i] = side;
      work += costs_.work[blocks_[i]];
      placed_.push_back(i);
    };
    for (put(block); next < placed_.size(); ++next) {
      for (const std::uint32_t other : follow[placed_[next]]) put(other);
    }
  }

  void take_back(std::size_t placed) {
    for (; placed_.size() > placed; placed_.pop_back()) {
      const std::uint32_t i = placed_.back();
      (side_[i] == Side::left ? work_.left : work_.right) -= costs_.work[blocks_[i]];
      side_[i] = Side::open;
    }
  }

  template <class Visit>
  bool descend(std::size_t order, std::size_t placed, const std::vector<std::int64_t>& before,
               std::int64_t flow, Control& control, Visit& visit) {
    if (work_.left > limits_.left || work_.right > limits_.right) return true;
    if (control.should_stop(1)) return false;
    std::vector<std::int64_t> capacity = before;
    if (!augment(placed, capacity, flow)) return true;
    while (order < by_work_.size() && side_[by_work_[order]] != Side::open) ++order;
    if (order == by_work_.size()) return offer(visit);
    for (const Side side : {Side::left, Side::right}) {
      const std::size_t before_it = placed_.size();
      place(by_work_[order], side);
      const bool go_on = descend(order + 1, before_it, capacity, flow, control, visit);
      take_back(before_it);
      if (!go_on) return false;
    }
    return true;
  }

  template <class Visit>
  bool offer(Visit& visit) {
    BlockSet middle = interval_.low;
    for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
      if (side_[i] == Side::left) middle.add(blocks_[i]);
    }
    if (costs_.load({interval_.low, middle}) > limits_.left) return true;
    if (costs_.load({middle, interval_.high}) > limits_.right) return true;
    return visit(std::move(middle));
  }

  const WholeCosts& costs_;
  const Interval& interval_;
  std::int64_t load_;
  std::vector<std::uint32_t> blocks_;
  std::vector<std::uint32_t> local_;  // by block of the model
  std::vector<std::vector<std::uint32_t>> before_;
  std::vector<std::vector<std::uint32_t>> after_;
  std::vector<std::uint32_t> by_work_;                // heaviest first
  std::vector<std::uint32_t> to_;                     // by edge
  std::vector<std::vector<std::uint32_t>> edges_of_;  // by node
  std::vector<std::int64_t> capacity_;                // of the network without flow
  // Of the search.
  Sides limits_;
  std::int64_t slack_ = 0;
  Sides work_;
  std::vector<Side> side_;
  std::vector<std::uint32_t> placed_;
  std::vector<std::uint32_t> came_by_;  // by node: an edge
  std::vector<std::uint32_t> queue_;
};

class BoundarySearch {
 public:
  BoundarySearch(const StageModel& model, double cutoff, Control& control)
      : model_(model), costs_(model, cutoff / kUnits), control_(control) {}

  ProgramResult run() {
    const std::size_t devices = model_.classes().front().devices.size();
    BlockSet none(model_.block_count());
    BlockSet all = none;
    for (std::size_t v = 0; v < model_.block_count(); ++v) all.add(v);
    const Outcome outcome = cover({none, all}, devices);
    if (outcome == Outcome::stopped) return {};
    if (outcome == Outcome::impossible) return {true, std::nullopt};
    return {true, split()};
  }

 private:
  enum class Outcome { covered, impossible, stopped };

  [[nodiscard]] static std::int64_t limit(std::size_t devices) {
    return static_cast<std::int64_t>(kUnits) * static_cast<std::int64_t>(devices);
  }

  // Whether so many devices can share the interval; then its stages are in `stages_`.
  Outcome cover(const Interval& interval, std::size_t devices) {
    if (costs_.load(interval) > limit(devices)) return Outcome::impossible;
    if (devices == 1) {
      if (!costs_.fits_memory(interval)) return Outcome::impossible;
      stages_.push_back(interval);
      return Outcome::covered;
    }
    const Key key = key_of(interval, devices);
    if (refuted_.contains(key)) return Outcome::impossible;
    const Outcome outcome = cover_anew(interval, devices);
    if (outcome == Outcome::impossible && refuted_.size() < kMostRefuted) refuted_.insert(key);
    return outcome;
  }

  Outcome cover_anew(const Interval& interval, std::size_t devices) {
    Boundaries boundaries(costs_, interval);
    if (devices == 2) return cover_by_two(interval, boundaries);
    std::optional<Candidates> fewest;
    for (std::size_t most = kFirstCandidates; !fewest; most *= kCandidateGrowth) {
      if (most > kMostCandidates) return Outcome::stopped;
      for (std::size_t left = 1; left < devices; ++left) {
        const std::size_t at_most = fewest ? fewest->middles.size() : most;
        Candidates found{left, {}};
        const bool all = boundaries.for_each({limit(left), limit(devices - left)}, control_,
                                             [&](BlockSet middle) {
                                               found.middles.push_back(std::move(middle));
                                               return found.middles.size() <= at_most;
                                             });
        if (control_.should_stop()) return Outcome::stopped;
        if (!all) continue;
        if (found.middles.empty()) return Outcome::impossible;
        if (!fewest || found.middles.size() < fewest->middles.size()) fewest = std::move(found);
      }
    }
    return cover_through(interval, devices, *fewest);
  }

  struct Part {
    Interval interval;
    std::size_t devices = 0;
  };

  // For each device: the side with less of it is refuted sooner.
  [[nodiscard]] std::int64_t room(const Part& part) const {
    return (limit(part.devices) - costs_.load(part.interval)) /
           static_cast<std::int64_t>(part.devices);
  }

  // Every way to put the boundary behind the first `left` devices.
  struct Candidates {
    std::size_t left = 0;
    std::vector<BlockSet> middles;
  };

  Outcome cover_through(const Interval& interval, std::size_t devices,
                        const Candidates& candidates) {
    const std::size_t stages = stages_.size();
    for (const BlockSet& middle : candidates.middles) {
      Part first{{interval.low, middle}, candidates.left};
      Part second{{middle, interval.high}, devices - candidates.left};
      if (room(second) < room(first)) std::swap(first, second);
      Outcome outcome = cover(first.interval, first.devices);
      if (outcome == Outcome::covered) outcome = cover(second.interval, second.devices);
      if (outcome != Outcome::impossible) return outcome;
      stages_.erase(stages_.begin() + static_cast<std::ptrdiff_t>(stages), stages_.end());
    }
    return Outcome::impossible;
  }

  // The first boundary will do.
  Outcome cover_by_two(const Interval& interval, Boundaries& boundaries) {
    bool covered = false;
    const bool all = boundaries.for_each({limit(1), limit(1)}, control_, [&](BlockSet middle) {
      const Interval left{interval.low, middle};
      const Interval right{std::move(middle), interval.high};
      if (!costs_.fits_memory(left) || !costs_.fits_memory(right)) return true;
      stages_.push_back(left);
      stages_.push_back(right);
      covered = true;
      return false;
    });
    if (covered) return Outcome::covered;
    return all ? Outcome::impossible : Outcome::stopped;
  }

  using Key = std::vector<std::uint64_t>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t hash = 0x9e3779b97f4a7c15U;
      for (const std::uint64_t word : key)
        hash = (hash ^ word) * 0xff51afd7ed558ccdU + (hash >> 29U);
      return hash;
    }
  };
  static Key key_of(const Interval& interval, std::size_t devices) {
    Key key = interval.low.words();
    key.insert(key.end(), interval.high.words().begin(), interval.high.words().end());
    key.push_back(devices);
    return key;
  }

  // The stages were found in any order; each begins where the one before it ends.
  [[nodiscard]] Split split() {
    std::sort(stages_.begin(), stages_.end(),
              [](const Interval& a, const Interval& b) { return a.low.size() < b.low.size(); });
    Split split;
    for (const Interval& stage : stages_) {
      SplitStage made{{}, {0}};
      for (std::uint32_t v = 0; v < model_.block_count(); ++v) {
        if (stage.holds(v)) made.blocks.push_back(v);
      }
      if (!made.blocks.empty()) split.stages.push_back(std::move(made));
    }
    return split;
  }

  const StageModel& model_;
  WholeCosts costs_;
  Control& control_;
  std::vector<Interval> stages_;
  std::unordered_set<Key, KeyHash> refuted_;
};

}  // namespace

std::string refuses_boundary_search(const StageModel& model) {
  if (model.classes().size() != 1) return "its boundaries are between devices of one class";
  if (model.phased()) return "its boundaries do not know phased training";
  if (model.max_replicas() > 1) return "its boundaries do not know replicas";
  if (model.component_count() > 1) return "its boundaries know sequential transfers only";
  if (model.block_count() > kMostBlocks) return "there are too many blocks";
  const auto& allowed = model.classes().front().allowed;
  if (std::find(allowed.begin(), allowed.end(), 0) != allowed.end()) return "some op has no device";
  return {};
}

ProgramResult split_within(const StageModel& model, double cutoff, Control& control) {
  return BoundarySearch(model, cutoff, control).run();
}

}  // namespace placewright::throughput
