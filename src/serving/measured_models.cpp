#include "serving/measured_models.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "backends/part_inputs.h"
#include "formats/input_error.h"
#include "formats/json_fields.h"
#include "formats/text_file.h"
#include "machine/workers.h"
#include "problem/measured.h"
#include "profiling/crowding.h"
#include "profiling/op_times.h"
#include "profiling/segment_chain.h"
#include "serving/stated_models.h"

namespace placewright {

// Numbers of ops fit into a double.
struct KeptSegment {
  std::vector<double> ops;
  double time = 0;
};
struct KeptBatch {
  int size = 0;
  double time = 0;
};
struct KeptModel {
  double whole = 0;
  std::vector<KeptSegment> segments;
  std::vector<KeptBatch> batches;
  double on_half = 0;
};
template <>
inline constexpr auto kFields<KeptBatch> =
    std::tuple{required("size", &KeptBatch::size), required("time", &KeptBatch::time)};
template <>
inline constexpr auto kFields<KeptSegment> =
    std::tuple{required("ops", &KeptSegment::ops), required("time", &KeptSegment::time)};
template <>
inline constexpr auto kFields<KeptModel> =
    std::tuple{required("whole", &KeptModel::whole), required("segments", &KeptModel::segments),
               required("batches", &KeptModel::batches), required("on_half", &KeptModel::on_half)};

namespace {

OpGroup all_ops(const NeuralModel& model) {
  OpGroup ops(model.graph().ops.size());
  std::iota(ops.begin(), ops.end(), std::size_t{0});
  return ops;
}

// By border (behind a group): how many tensors cross it.
std::vector<std::size_t> crossings(const ModelGraph& graph, const std::vector<OpGroup>& ordered) {
  std::vector<std::size_t> place(graph.ops.size(), 0);
  for (std::size_t group = 0; group < ordered.size(); ++group) {
    for (const std::size_t op : ordered[group]) place[op] = group;
  }
  std::map<TensorKey, std::size_t> last_reader;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    for (const TensorKey& tensor : graph.ops[op].inputs) {
      if (tensor.is_model_input()) continue;
      std::size_t& last = last_reader[tensor];
      last = std::max(last, place[op]);
    }
  }
  std::vector<std::size_t> crossing(ordered.size(), 0);
  for (const auto& [tensor, last] : last_reader) {
    for (std::size_t border = place[tensor.op]; border < last; ++border) ++crossing[border];
  }
  return crossing;
}

// Chains that take turns on the target, the first one uncut: the runs of each.
std::vector<ChainRuns> run_in_turns(std::vector<SegmentChain*> chains, const Target& target,
                                    const MeasureOptions& options) {
  std::vector<ChainRuns> runs(chains.size());
  Workers workers({target});
  workers.run([&](std::size_t) {
    RunWatch watch(target);
    const Series series(options);
    for (SegmentChain* chain : chains) chain->run();
    while (series.goes_on(runs.front().runs)) {
      for (std::size_t i = 0; i < chains.size(); ++i) chains[i]->run_watched(watch, runs[i]);
    }
  });
  return runs;
}

}  // namespace

std::vector<OpGroup> narrow_segments(const ModelGraph& graph, const std::vector<OpGroup>& ordered,
                                     const std::vector<double>& op_times, std::size_t count) {
  constexpr double kReach = 0.3;  // of a segment: how far a border may lie from its place
  std::vector<double> ends;       // by group
  double total = 0;
  for (const OpGroup& group : ordered) {
    for (const std::size_t op : group) total += op_times[op];
    ends.push_back(total);
  }
  const std::vector<std::size_t> crossing = crossings(graph, ordered);
  const double length = total / static_cast<double>(count);
  std::set<std::size_t> borders;
  for (std::size_t segment = 1; segment < count; ++segment) {
    const double wanted = length * static_cast<double>(segment);
    std::optional<std::size_t> best;
    const auto cost = [&](std::size_t border) {
      return std::pair(crossing[border], std::abs(ends[border] - wanted));
    };
    for (std::size_t border = 0; border + 1 < ordered.size(); ++border) {
      if (std::abs(ends[border] - wanted) > kReach * length) continue;
      if (!best || cost(border) < cost(*best)) best = border;
    }
    if (best) borders.insert(*best);
  }
  std::vector<OpGroup> segments(1);
  for (std::size_t group = 0; group < ordered.size(); ++group) {
    OpGroup& segment = segments.back();
    segment.insert(segment.end(), ordered[group].begin(), ordered[group].end());
    if (borders.contains(group)) segments.emplace_back();
  }
  for (OpGroup& segment : segments) std::ranges::sort(segment);
  return segments;
}

double measure_whole(const NeuralModel& model, const Target& target,
                     const MeasureOptions& options) {
  const Buffers inputs = seeded_inputs(model.graph(), kProfileSeed, target);
  SegmentChain whole(model, {all_ops(model)}, target, inputs);
  return summary_of(run_in_turns({&whole}, target, options).front().runs).median;
}

ModelCuts measure_model_cuts(const NeuralModel& model, const Target& target, double quantum,
                             const MeasureOptions& options) {
  constexpr double kFirstGuess = 0.05;  // milliseconds for each cut
  BusyDevices nobody;
  const OpGroup ops = all_ops(model);
  const MeasuredOps times = measure_ops(model, ops, target, nobody, options).alone;
  ModelCuts cuts{.whole = times.latency.median};
  const auto ordered = ordered_groups(model.graph(), fused_groups(model.graph(), {times.executed}));
  const Buffers inputs = seeded_inputs(model.graph(), kProfileSeed, target);
  SegmentChain whole(model, {ops}, target, inputs);
  std::size_t count = wanted_segments(cuts.whole, quantum, kFirstGuess);
  while (count > 1) {
    options.check();
    auto segments = narrow_segments(model.graph(), ordered, times.milliseconds, count);
    if (segments.size() < 2) break;
    SegmentChain cut(model, segments, target, inputs);
    const std::vector<ChainRuns> runs = run_in_turns({&whole, &cut}, target, options);
    cuts.whole = summary_of(runs[0].runs).median;
    const double in_segments = summary_of(runs[1].runs).median;
    if (in_segments - cuts.whole <= kCutShare * in_segments) {
      cuts.segments = std::move(segments);
      cuts.times = runs[1].segment_times();
      break;
    }
    count = segments.size() * 2 / 3;
  }
  return cuts;
}

std::string KeptCuts::path_of(const std::string& key) const {
  return (std::filesystem::path(folder_) / fmt::format("serving-{}.json", digest_of(key))).string();
}

std::optional<ModelCuts> KeptCuts::find(const std::string& key) const {
  if (folder_.empty() || !std::filesystem::exists(path_of(key))) return std::nullopt;
  try {
    const std::string path = path_of(key);
    const JsonDocument document(read_whole(path), path);
    KeptModel kept;
    ReadingContext context;
    read_record(document.root(), kept, context);
    ModelCuts cuts{.whole = kept.whole, .on_half = kept.on_half};
    for (const KeptBatch& batch : kept.batches) {
      cuts.batches[static_cast<std::size_t>(batch.size)] = batch.time;
    }
    for (const KeptSegment& segment : kept.segments) {
      OpGroup& ops = cuts.segments.emplace_back();
      for (const double op : segment.ops) ops.push_back(static_cast<std::size_t>(op));
      cuts.times.push_back(segment.time);
    }
    return cuts;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

void KeptCuts::keep(const std::string& key, const ModelCuts& cuts) const {
  if (folder_.empty()) return;
  KeptModel kept{.whole = cuts.whole, .segments = {}, .batches = {}, .on_half = cuts.on_half};
  for (const auto& [size, time] : cuts.batches) {
    kept.batches.push_back({static_cast<int>(size), time});
  }
  for (std::size_t i = 0; i < cuts.segments.size(); ++i) {
    kept.segments.push_back({{cuts.segments[i].begin(), cuts.segments[i].end()}, cuts.times[i]});
  }
  std::string text;
  append_record(text, kept, WritingContext{}, Written::all);
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  try {
    write_whole(path_of(key), text + "\n");
  } catch (const OutputError&) {
    return;
  }
}

}  // namespace placewright
