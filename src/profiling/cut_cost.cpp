#include "profiling/cut_cost.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "backends/part_inputs.h"
#include "machine/workers.h"
#include "profiling/robust_line.h"
#include "profiling/segment_chain.h"

namespace placewright {
namespace {

// In a turn a chain first runs once without counting: what ran before it has filled the caches with
// weights of its own. Then it runs more than once, since that run costs as much as one that counts.
// Most of the time of a profile goes by here, and a trial has one time to tell where the groups
// apart have one for each of them: so it runs half as often.
constexpr int kRunsInATurn = 4;
constexpr int kRunsOfATrial = 2;

// `alone`: by group, what it took as a segment.
std::vector<GroupTime> group_times(const std::vector<OpGroup>& ordered,
                                   const std::vector<double>& alone,
                                   const std::vector<double>& op_times) {
  std::vector<GroupTime> groups;
  for (std::size_t group = 0; group < alone.size(); ++group) {
    double inside = 0;
    for (const std::size_t op : ordered[group]) inside += op_times[op];
    groups.push_back({inside, alone[group]});
  }
  return groups;
}

// By op, its place in a list of sets.
std::vector<std::size_t> places_of(const std::vector<OpGroup>& sets, std::size_t ops) {
  std::vector<std::size_t> places(ops, 0);
  for (std::size_t place = 0; place < sets.size(); ++place) {
    for (const std::size_t op : sets[place]) places[op] = place;
  }
  return places;
}

std::map<TensorKey, double> means_over_readers(const EntriesOfReaders& entries) {
  std::map<TensorKey, double> means;
  for (const auto& [tensor, readers] : entries) {
    double sum = 0;
    for (const auto& [group, entry] : readers) sum += entry;
    means[tensor] = sum / static_cast<double>(readers.size());
  }
  return means;
}

// Chains that run in turns: the whole model, then others.
class CutTrials {
 public:
  explicit CutTrials(const Cutting& cutting)
      : cutting_(cutting),
        graph_(cutting.model.graph()),
        inputs_(seeded_inputs(graph_, kProfileSeed, cutting.target)) {
    add(equal_segments(cutting.ordered, cutting.op_times, 1));
  }

  void add(std::vector<OpGroup> segments) {
    cutting_.options.check();
    chains_.push_back(std::make_unique<SegmentChain>(cutting_.model, std::move(segments),
                                                     cutting_.target, inputs_));
    runs_.emplace_back();
  }
  void add_equal(std::initializer_list<std::size_t> counts) {
    std::size_t most = 1;
    for (const std::size_t count : counts) {
      std::vector<OpGroup> segments = equal_segments(cutting_.ordered, cutting_.op_times, count);
      if (segments.size() > most) add(segments);
      most = std::max(most, segments.size());
    }
  }
  void add_random(std::initializer_list<std::size_t> counts) {
    for (const std::size_t count : counts) {
      if (count <= cutting_.ordered.size()) {
        add(random_segments(cutting_.ordered, count, kProfileSeed + count));
      }
    }
  }

  // The chains from `first_trial` on are trials.
  void run(std::size_t first_trial) {
    Workers workers({cutting_.target});
    workers.run([&](std::size_t) {
      const CoreCheck cores(cutting_.target.cores);
      RunWatch watch(cutting_.target);
      const Series series(cutting_.options);
      while (series.goes_on(runs_.front().runs)) {
        for (std::size_t chain = 0; chain < chains_.size(); ++chain) {
          const int count = chain < first_trial ? kRunsInATurn : kRunsOfATrial;
          chains_[chain]->run();
          for (int i = 0; i < count; ++i) chains_[chain]->run_watched(watch, runs_[chain]);
        }
      }
      for (ChainRuns& chain : runs_) judge(cores, chain.runs);
    });
  }

  [[nodiscard]] const ChainRuns& runs(std::size_t chain) const { return runs_[chain]; }

  // By what the groups cost, with the chains from `first` on as trials.
  [[nodiscard]] CutCost cost_of(GroupEntries groups, std::size_t first) const {
    CutCost cost;
    cost.whole = summary_of(runs_.front().runs);
    cost.entries = means_over_readers(entries_of_readers(graph_, cutting_.ordered, groups.entries));
    for (std::size_t i = first; i < chains_.size(); ++i) {
      cost.trials.push_back(trial_of(i, groups, cost.whole.median));
    }
    cost.groups = std::move(groups);
    return cost;
  }

 private:
  // A segment in which a group reads something from outside has all that this group reads from
  // outside: so it bears the group's whole entry.
  [[nodiscard]] CutTrial trial_of(std::size_t number, const GroupEntries& groups,
                                  double whole) const {
    const SegmentChain& chain = *chains_[number];
    const std::vector<std::size_t> segment_of = places_of(chain.segments(), graph_.ops.size());
    const std::vector<std::size_t> group_of = places_of(cutting_.ordered, graph_.ops.size());
    CutTrial trial{.segments = chain.segments().size(), .time = summary_of(runs_[number].runs)};
    trial.predicted = whole + groups.call * static_cast<double>(trial.segments - 1);
    std::set<std::size_t> entered;
    for (std::size_t op = 0; op < graph_.ops.size(); ++op) {
      for (const TensorKey& tensor : graph_.ops[op].inputs) {
        if (tensor.is_model_input() || segment_of[tensor.op] == segment_of[op]) continue;
        entered.insert(group_of[op]);
      }
    }
    for (const std::size_t group : entered) trial.predicted += groups.entries[group];
    for (std::size_t segment = 0; segment < trial.segments; ++segment) {
      for (const TensorKey& tensor : chain.part(segment).inputs()) {
        if (tensor.is_model_input()) continue;
        ++trial.transfers;
        trial.bytes += type_of(graph_, tensor).bytes;
      }
    }
    return trial;
  }

  const Cutting& cutting_;
  const ModelGraph& graph_;
  Buffers inputs_;
  std::vector<std::unique_ptr<SegmentChain>> chains_;
  std::vector<ChainRuns> runs_;  // by chain
};

}  // namespace

double CutTrial::error() const {
  return time.median > 0 ? std::abs(predicted / time.median - 1) : 0;
}

double CutCost::receive(const TensorKey& tensor) const {
  const auto found = entries.find(tensor);
  return groups.call + (found == entries.end() ? 0 : found->second);
}

double CutCost::per_transfer() const {
  double sum = 0;
  for (const auto& [tensor, entry] : entries) sum += send() + receive(tensor);
  return entries.empty() ? 0 : sum / static_cast<double>(entries.size());
}

double CutCost::error() const {
  std::vector<double> errors;
  for (const CutTrial& trial : trials) errors.push_back(trial.error());
  return median(std::move(errors));
}

std::string CutCost::doubt() const {
  if (const std::string doubt = doubt_of(whole); !doubt.empty()) return doubt;
  const std::string alone = apart ? doubt_of(*apart) : "";
  if (!alone.empty()) return "with groups apart " + alone;
  for (const CutTrial& trial : trials) {
    const std::string doubt = doubt_of(trial.time);
    if (!doubt.empty()) return fmt::format("with {} segments {}", trial.segments, doubt);
  }
  return {};
}

std::vector<OpGroup> equal_segments(const std::vector<OpGroup>& ordered,
                                    const std::vector<double>& op_times, std::size_t count) {
  const double total = std::accumulate(op_times.begin(), op_times.end(), 0.0);
  std::vector<OpGroup> segments;
  double done = 0;
  std::size_t last = count;  // no segment yet
  for (const OpGroup& group : ordered) {
    double time = 0;
    for (const std::size_t op : group) time += op_times[op];
    // By the middle of the group; without any time the groups would all be in the first segment.
    const double middle = total > 0 ? (done + time / 2) / total : 0;
    const std::size_t place =
        std::min(count - 1, static_cast<std::size_t>(middle * static_cast<double>(count)));
    if (place != last) segments.emplace_back();
    last = place;
    segments.back().insert(segments.back().end(), group.begin(), group.end());
    done += time;
  }
  for (OpGroup& segment : segments) std::sort(segment.begin(), segment.end());
  return segments;
}

std::vector<OpGroup> random_segments(const std::vector<OpGroup>& ordered, std::size_t count,
                                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::set<std::size_t> borders;
  while (borders.size() + 1 < std::min(count, ordered.size())) {
    borders.insert(1 + random() % (ordered.size() - 1));
  }
  std::vector<OpGroup> segments(1);
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    if (borders.contains(i)) segments.emplace_back();
    segments.back().insert(segments.back().end(), ordered[i].begin(), ordered[i].end());
  }
  for (OpGroup& segment : segments) std::sort(segment.begin(), segment.end());
  return segments;
}

GroupEntries entries_of(const std::vector<GroupTime>& groups) {
  constexpr double kSmall = 0.02;  // ms: what takes less is mostly a call
  std::vector<LinePoint> points;
  for (const GroupTime& group : groups) points.push_back({group.inside, group.alone});
  const Line line = robust_line(points, kSmall);
  GroupEntries result{line.offset, {}};
  for (const LinePoint& point : points) {
    result.entries.push_back(std::max(0.0, point.y - line.at(point.x)));
  }
  return result;
}

EntriesOfReaders entries_of_readers(const ModelGraph& graph, const std::vector<OpGroup>& ordered,
                                    const std::vector<double>& entries) {
  const std::vector<std::size_t> group_of = places_of(ordered, graph.ops.size());
  EntriesOfReaders result;
  for (std::size_t group = 0; group < ordered.size(); ++group) {
    std::map<TensorKey, double> read;
    double bytes = 0;
    for (const std::size_t op : ordered[group]) {
      for (const TensorKey& tensor : graph.ops[op].inputs) {
        if (tensor.is_model_input() || group_of[tensor.op] == group) continue;
        const double size = type_of(graph, tensor).bytes;
        if (read.emplace(tensor, size).second) bytes += size;
      }
    }
    for (const auto& [tensor, size] : read) {
      result[tensor][group] = entries[group] * (bytes > 0 ? std::min(1.0, 2 * size / bytes) : 1);
    }
  }
  return result;
}

void raise_call(CutCost& cost) {
  // A model that was compiled once more may be slower as a whole, however often it is cut: that is
  // the line's offset, and all trials count alike.
  constexpr double kManySegments = 100;
  std::vector<LinePoint> missing;
  for (const CutTrial& trial : cost.trials) {
    missing.push_back(
        {static_cast<double>(trial.segments - 1), trial.time.median - trial.predicted});
  }
  const double more = robust_line(missing, kManySegments).slope;
  cost.groups.call += more;
  for (CutTrial& trial : cost.trials) {
    trial.predicted += more * static_cast<double>(trial.segments - 1);
  }
}

CutCost measure_cuts(const Cutting& cutting) {
  CutTrials trials(cutting);
  trials.add(cutting.ordered);
  trials.add_equal({2, 4, 8});
  trials.add_random({3, 6, 12});
  trials.run(2);
  const ChainRuns& apart = trials.runs(1);
  const auto groups = group_times(cutting.ordered, apart.segment_times(), cutting.op_times);
  CutCost cost = trials.cost_of(entries_of(groups), 2);
  cost.apart = summary_of(apart.runs);
  raise_call(cost);
  return cost;
}

CutCost try_cuts(const Cutting& cutting, GroupEntries supposed) {
  CutTrials trials(cutting);
  trials.add_equal({8});
  trials.add_random({12});
  trials.run(1);
  return trials.cost_of(std::move(supposed), 1);
}

}  // namespace placewright
