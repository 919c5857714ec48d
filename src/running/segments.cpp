#include "running/segments.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "evaluate/schedule.h"
#include "problem/exclusion.h"

namespace placewright {
namespace {

// Ops that go together: fused groups, and single ops.
class Units {
 public:
  explicit Units(const Problem& problem) : problem_(problem), unit_of_(problem.op_count()) {
    // A part belongs to one model, whatever shares its device.
    std::vector<char> apart(problem.group_count(), 0);
    for (const OpId op : problem.ops()) {
      const GroupId group = problem.group(op);
      const OpId first = problem.group_ops(group).front();
      if (problem.op(op).model != problem.op(first).model) apart[group.index()] = 1;
    }
    while (true) {
      assign(apart);
      connect();
      const std::vector<std::size_t> stuck = on_or_behind_cycles();
      if (stuck.empty()) return;
      for (const std::size_t unit : stuck) {
        apart[problem.group(ops_[unit].front()).index()] = 1;
      }
    }
  }

  [[nodiscard]] std::size_t count() const { return ops_.size(); }
  [[nodiscard]] std::size_t of(OpId op) const { return unit_of_[op]; }
  [[nodiscard]] const std::vector<OpId>& ops(std::size_t unit) const { return ops_[unit]; }
  [[nodiscard]] const std::vector<std::size_t>& successors(std::size_t unit) const {
    return successors_[unit];
  }
  [[nodiscard]] std::vector<std::size_t> predecessor_counts() const {
    std::vector<std::size_t> counts(count(), 0);
    for (const auto& list : successors_) {
      for (const std::size_t unit : list) ++counts[unit];
    }
    return counts;
  }

 private:
  void assign(const std::vector<char>& apart) {
    ops_.clear();
    constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::vector<std::size_t> of_group(problem_.group_count(), kNone);
    for (const OpId op : problem_.topological_order()) {
      const std::size_t group = problem_.group(op).index();
      if (apart[group] || of_group[group] == kNone) {
        of_group[group] = ops_.size();
        ops_.emplace_back();
      }
      unit_of_[op] = of_group[group];
      ops_[of_group[group]].push_back(op);
    }
  }

  void connect() {
    successors_.assign(ops_.size(), {});
    for (const OpId op : problem_.ops()) {
      for (const OpId next : problem_.successors(op)) {
        if (of(op) != of(next)) successors_[of(op)].push_back(of(next));
      }
    }
    for (auto& list : successors_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  [[nodiscard]] std::vector<std::size_t> on_or_behind_cycles() const {
    std::vector<std::size_t> waiting = predecessor_counts();
    std::vector<std::size_t> ready;
    for (std::size_t unit = 0; unit < count(); ++unit) {
      if (waiting[unit] == 0) ready.push_back(unit);
    }
    while (!ready.empty()) {
      const std::size_t unit = ready.back();
      ready.pop_back();
      for (const std::size_t next : successors_[unit]) {
        if (--waiting[next] == 0) ready.push_back(next);
      }
    }
    std::vector<std::size_t> stuck;
    for (std::size_t unit = 0; unit < count(); ++unit) {
      if (waiting[unit] > 0 && ops_[unit].size() > 1) stuck.push_back(unit);
    }
    return stuck;
  }

  const Problem& problem_;
  Table<OpId, std::size_t> unit_of_;
  std::vector<std::vector<OpId>> ops_;
  std::vector<std::vector<std::size_t>> successors_;
};

// A topological order of the units by increasing key.
template <class Key>
std::vector<std::size_t> ordered(const Units& units, const std::vector<Key>& keys) {
  using Entry = std::pair<Key, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<std::size_t> waiting = units.predecessor_counts();
  for (std::size_t unit = 0; unit < units.count(); ++unit) {
    if (waiting[unit] == 0) ready.emplace(keys[unit], unit);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t unit = ready.top().second;
    ready.pop();
    order.push_back(unit);
    for (const std::size_t next : units.successors(unit)) {
      if (--waiting[next] == 0) ready.emplace(keys[next], next);
    }
  }
  return order;
}

// A segment as the joining sees it.
struct Piece {
  std::vector<std::size_t> units;
  ModelId model;
  DeviceId device;
  double length = 0;
  std::vector<std::size_t> producers;  // the pieces whose tensors it reads
};

// Joins pieces that follow each other on a device, as long as the end does not come later when each
// piece waits for all of its producers. An attempt looks at pieces and the links between them,
// never at ops: O(pieces + links).
class Joining {
 public:
  // In an order in which they can run one after the other.
  Joining(const Problem& problem, std::vector<Piece> pieces)
      : problem_(problem),
        excluded_(excluded_devices(problem)),
        pieces_(std::move(pieces)),
        end_(pieces_.size()) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) order_.push_back(i);
  }

  // The pieces that are left, in order.
  std::vector<Piece> run() {
    double best = simulated_end(order_, kNone, kNone);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t place = 0; place < order_.size(); ++place) {
        const std::size_t next = next_on_device(place);
        if (next == kNone) continue;
        const std::vector<std::size_t> order = order_if_joined(place, next);
        if (order.empty()) continue;
        const double end = simulated_end(order, order_[place], order_[next]);
        if (end > best * (1 + 1e-9)) continue;
        best = end;
        changed = true;
        join(order_[place], order_[next]);
        order_ = order;
      }
    }
    std::vector<Piece> left;
    for (const std::size_t piece : order_) left.push_back(std::move(pieces_[piece]));
    return left;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  // The place of the next piece on the same device; none where that is of another model, or where
  // a device that needs the same resources comes first.
  [[nodiscard]] std::size_t next_on_device(std::size_t place) const {
    const Piece& piece = pieces_[order_[place]];
    for (std::size_t i = place + 1; i < order_.size(); ++i) {
      const Piece& other = pieces_[order_[i]];
      if (other.device == piece.device) return other.model == piece.model ? i : kNone;
      if (exclude_each_other(problem_, other.device, piece.device)) return kNone;
    }
    return kNone;
  }

  // The joined piece takes a place where all it reads is before it and all that reads it behind:
  // whatever lies between the two and depends on the first would have to be behind, so there must
  // be nothing there that the second depends on. Empty if there is.
  [[nodiscard]] std::vector<std::size_t> order_if_joined(std::size_t first,
                                                         std::size_t second) const {
    std::vector<char> depends(pieces_.size(), 0);
    depends[order_[first]] = 1;
    const auto reads_dependent = [&](std::size_t piece) {
      return std::ranges::any_of(pieces_[piece].producers,
                                 [&](std::size_t producer) { return depends[producer] != 0; });
    };
    std::vector<std::size_t> order(order_.begin(), order_.begin() + offset(first));
    std::vector<std::size_t> behind;
    for (std::size_t i = first + 1; i < second; ++i) {
      const std::size_t piece = order_[i];
      depends[piece] = reads_dependent(piece) ? 1 : 0;
      (depends[piece] ? behind : order).push_back(piece);
    }
    depends[order_[first]] = 0;
    if (reads_dependent(order_[second])) return {};
    order.push_back(order_[first]);
    order.insert(order.end(), behind.begin(), behind.end());
    order.insert(order.end(), order_.begin() + offset(second + 1), order_.end());
    return order;
  }

  // Of the pieces in that order, `second` being part of `first`.
  double simulated_end(const std::vector<std::size_t>& order, std::size_t first,
                       std::size_t second) {
    std::vector<double> free(problem_.device_count(), 0);
    std::vector<double> completion(problem_.model_count(), 0);
    const auto inputs_there = [&](const Piece& piece) {
      double there = 0;
      for (const std::size_t producer : piece.producers) there = std::max(there, end_[producer]);
      return there;
    };
    if (first != kNone) end_[first] = 0;  // what the second reads of it waits for nothing
    for (const std::size_t id : order) {
      const Piece& piece = pieces_[id];
      double start = std::max(
          {free[piece.device.index()], problem_.model(piece.model).arrival, inputs_there(piece)});
      double length = piece.length;
      if (id == first) {
        start = std::max(start, inputs_there(pieces_[second]));
        length += pieces_[second].length;
      }
      end_[id] = start + length;
      if (id == first) end_[second] = end_[id];
      for (const DeviceId device : excluded_[piece.device]) free[device.index()] = end_[id];
      double& last = completion[piece.model.index()];
      last = std::max(last, end_[id]);
    }
    double value = 0;
    for (const ModelId model : problem_.models()) {
      const double time = completion[model.index()];
      if (problem_.objective() == Objective::total_completion) {
        value += problem_.model(model).weight * time;
      } else {
        value = std::max(value, time);
      }
    }
    return value;
  }

  void join(std::size_t first, std::size_t second) {
    Piece& piece = pieces_[first];
    Piece& other = pieces_[second];
    piece.units.insert(piece.units.end(), other.units.begin(), other.units.end());
    piece.length += other.length;
    piece.producers.insert(piece.producers.end(), other.producers.begin(), other.producers.end());
    std::erase(piece.producers, first);
    for (Piece& reader : pieces_) std::ranges::replace(reader.producers, second, first);
    for (Piece& reader : pieces_) {
      std::ranges::sort(reader.producers);
      const auto twice = std::ranges::unique(reader.producers);
      reader.producers.erase(twice.begin(), twice.end());
    }
  }

  static std::ptrdiff_t offset(std::size_t place) { return static_cast<std::ptrdiff_t>(place); }

  const Problem& problem_;
  Table<DeviceId, std::vector<DeviceId>> excluded_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> order_;
  std::vector<double> end_;
};

// The segments while they are made: units, devices and who waits for whom.
class Cutting {
 public:
  Cutting(const Problem& problem, const Placement& placement, const Units& units)
      : problem_(problem),
        placement_(placement),
        units_(units),
        segment_of_(units.count(), kNone) {}

  [[nodiscard]] DeviceId device_of(std::size_t unit) const {
    return placement_[units_.ops(unit).front()];
  }
  [[nodiscard]] ModelId model_of(std::size_t unit) const {
    return problem_.op(units_.ops(unit).front()).model;
  }

  // Schedules: a segment ends where another device waits, and begins where it waits for another.
  void cut_schedule(const std::vector<std::size_t>& order) {
    const Table<DeviceId, std::vector<DeviceId>> excluded = excluded_devices(problem_);
    std::vector<std::size_t> open(problem_.device_count(), kNone);
    // The number of segments of each other device that a device knows to be finished.
    std::vector<std::vector<std::size_t>> known(
        problem_.device_count(), std::vector<std::size_t>(problem_.device_count(), 0));
    std::vector<std::size_t> closed(problem_.device_count(), 0);
    std::vector<std::size_t> rank;  // of a segment on its device, from 1
    for (const std::size_t unit : order) {
      const std::size_t device = device_of(unit).index();
      std::vector<std::size_t> awaited = known[device];
      for (const std::size_t producer : foreign_producers(unit)) {
        const std::size_t segment = segment_of_[producer];
        const std::size_t other = device_of(producer).index();
        awaited[other] = std::max(awaited[other], rank[segment]);
      }
      for (const DeviceId other : excluded[device_of(unit)]) {
        if (other.index() != device) open[other.index()] = kNone;
      }
      std::size_t& current = open[device];
      const bool waits = awaited != known[device];
      if (current == kNone || waits || models_[current] != model_of(unit)) {
        current = add_segment(unit);
        rank.push_back(++closed[device]);
      }
      known[device] = awaited;
      add(unit, current);
      if (read_elsewhere(unit)) current = kNone;
    }
  }

  // Pipelines: stay on a device as long as it has something ready.
  void cut_pipeline(const std::vector<std::size_t>& stage_of_device) {
    std::vector<std::size_t> waiting = units_.predecessor_counts();
    // Ready units by stage; within a stage in the order in which they became ready.
    std::vector<std::vector<std::size_t>> ready(problem_.device_count());
    for (std::size_t unit = 0; unit < units_.count(); ++unit) {
      if (waiting[unit] == 0) ready[device_of(unit).index()].push_back(unit);
    }
    std::vector<std::size_t> devices(problem_.device_count());
    for (std::size_t i = 0; i < devices.size(); ++i) devices[i] = i;
    std::stable_sort(devices.begin(), devices.end(), [&](std::size_t a, std::size_t b) {
      return stage_of_device[a] < stage_of_device[b];
    });
    for (bool more = true; more;) {
      more = false;
      for (const std::size_t device : devices) {
        if (ready[device].empty()) continue;
        more = true;
        std::size_t current = kNone;
        while (!ready[device].empty()) {
          const std::size_t unit = ready[device].back();
          ready[device].pop_back();
          if (current == kNone || models_[current] != model_of(unit)) current = add_segment(unit);
          add(unit, current);
          for (const std::size_t next : units_.successors(unit)) {
            if (--waiting[next] == 0) ready[device_of(next).index()].push_back(next);
          }
        }
      }
    }
  }

  // Joins neighbours on a device as long as the simulated end does not come later.
  void join(const Table<OpId, double>& durations) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      Piece piece{segments_[i], models_[i], device_of(segments_[i].front()), 0, producers_of(i)};
      for (const std::size_t unit : piece.units) {
        for (const OpId op : units_.ops(unit)) piece.length += durations[op];
      }
      pieces.push_back(std::move(piece));
    }
    segments_.clear();
    models_.clear();
    for (Piece& piece : Joining(problem_, std::move(pieces)).run()) {
      for (const std::size_t unit : piece.units) segment_of_[unit] = segments_.size();
      segments_.push_back(std::move(piece.units));
      models_.push_back(piece.model);
    }
  }

  [[nodiscard]] std::vector<Segment> finish(const Table<OpId, double>& durations) const {
    std::vector<Segment> result(segments_.size());
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      Segment& segment = result[i];
      segment.model = models_[i];
      segment.devices = {device_of(segments_[i].front())};
      for (const std::size_t unit : segments_[i]) {
        for (const OpId op : units_.ops(unit)) {
          segment.ops.push_back(op);
          segment.predicted += durations[op];
        }
      }
      std::sort(segment.ops.begin(), segment.ops.end(), [&](OpId a, OpId b) {
        return problem_.topological_rank(a) < problem_.topological_rank(b);
      });
      segment.inputs = producers_of(i);
      for (const std::size_t producer : segment.inputs) result[producer].outputs.push_back(i);
    }
    return result;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::size_t add_segment(std::size_t unit) {
    segments_.emplace_back();
    models_.push_back(model_of(unit));
    return segments_.size() - 1;
  }

  void add(std::size_t unit, std::size_t segment) {
    segments_[segment].push_back(unit);
    segment_of_[unit] = segment;
  }

  [[nodiscard]] std::vector<std::size_t> foreign_producers(std::size_t unit) const {
    std::vector<std::size_t> result;
    for (const OpId op : units_.ops(unit)) {
      for (const OpId before : problem_.predecessors(op)) {
        if (placement_[before] != placement_[op]) result.push_back(units_.of(before));
      }
    }
    return result;
  }

  [[nodiscard]] bool read_elsewhere(std::size_t unit) const {
    for (const OpId op : units_.ops(unit)) {
      for (const OpId next : problem_.successors(op)) {
        if (placement_[next] != placement_[op]) return true;
      }
    }
    return false;
  }

  [[nodiscard]] std::vector<std::size_t> producers_of(std::size_t segment) const {
    std::vector<std::size_t> producers;
    for (const std::size_t unit : segments_[segment]) {
      for (const OpId op : units_.ops(unit)) {
        for (const OpId before : problem_.predecessors(op)) {
          const std::size_t producer = segment_of_[units_.of(before)];
          if (producer != segment) producers.push_back(producer);
        }
      }
    }
    std::sort(producers.begin(), producers.end());
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
    return producers;
  }

  const Problem& problem_;
  const Placement& placement_;
  const Units& units_;
  std::vector<std::vector<std::size_t>> segments_;  // units
  std::vector<ModelId> models_;
  std::vector<std::size_t> segment_of_;
};

// When it starts, when it ends, its rank. At one moment what takes no time goes first: the last
// reshape of a model must not wait for the model that follows it.
using StartKey = std::tuple<double, double, std::size_t>;

// A fused unit starts when the op that bears its time does.
std::vector<StartKey> start_keys(const Problem& problem, const Units& units,
                                 const Schedule& schedule) {
  std::vector<StartKey> keys(units.count());
  for (std::size_t unit = 0; unit < units.count(); ++unit) {
    double start = 0;
    double end = 0;
    for (const OpId op : units.ops(unit)) {
      start = std::max(start, schedule.start[op]);
      end = std::max(end, schedule.end[op]);
    }
    keys[unit] = {start, end, problem.topological_rank(units.ops(unit).front())};
  }
  return keys;
}

std::vector<std::size_t> stages_of_devices(const Problem& problem, const Plan& plan) {
  std::vector<std::size_t> stage(problem.device_count(), plan.stages.size());
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    for (const DeviceId device : plan.stages[i].devices) stage[device.index()] = i;
  }
  return stage;
}

}  // namespace

std::vector<Segment> segments_of(const Problem& problem, const Plan& plan) {
  const Units units(problem);
  Cutting cutting(problem, plan.placement, units);
  const Table<OpId, double> durations = op_durations(problem, plan.placement);
  if (plan.schedule) {
    cutting.cut_schedule(ordered(units, start_keys(problem, units, *plan.schedule)));
    cutting.join(durations);
    return cutting.finish(durations);
  }
  cutting.cut_pipeline(stages_of_devices(problem, plan));
  std::vector<Segment> segments = cutting.finish(durations);
  for (Segment& segment : segments) {
    for (const Stage& stage : plan.stages) {
      if (stage.devices.front() == segment.devices.front()) segment.devices = stage.devices;
    }
  }
  return segments;
}

}  // namespace placewright
