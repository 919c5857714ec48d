#include "profiling/op_times.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "machine/workers.h"
#include "profiling/fused_ops.h"

namespace placewright {
namespace {

// Reads the counters in the order of the executed nodes.
class Counters {
 public:
  explicit Counters(const std::vector<ExecutedNode>& nodes) {
    for (const ExecutedNode& node : nodes) places_.emplace(node.name, places_.size());
  }

  [[nodiscard]] std::vector<double> read(const Request& request) const {
    std::vector<double> means(places_.size(), 0);
    for (const NodeTime& time : request.times()) {
      const auto found = places_.find(time.name);
      if (found != places_.end()) means[found->second] += time.milliseconds;
    }
    return means;
  }

 private:
  std::unordered_map<std::string, std::size_t> places_;
};

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Every op of an executed node has a share where the counters saw nothing at all.
std::vector<double> equal_shares(const std::vector<OpGroup>& ops) {
  std::vector<double> shares(ops.size(), 0);
  for (std::size_t node = 0; node < ops.size(); ++node) shares[node] = ops[node].empty() ? 0 : 1;
  return shares;
}

// Half the difference of the two halves of the runs, less what the rounding may have done.
std::vector<double> spread_of(const CounterReadings& readings, const std::vector<TimedRun>& runs,
                              const std::vector<double>& means) {
  constexpr double kRounding = 0.002;
  std::vector<double> spread(means.size(), 0);
  const std::size_t half = runs.size() / 2;
  if (half < 2) return spread;
  std::vector<TimedRun> first = runs;
  std::vector<TimedRun> second = runs;
  for (std::size_t i = 0; i < runs.size(); ++i) (i < half ? second : first)[i].disturbed = true;
  const std::vector<double> early = undisturbed_means(readings, first);
  const std::vector<double> late = undisturbed_means(readings, second);
  for (std::size_t node = 0; node < means.size(); ++node) {
    const double difference = std::abs(early[node] - late[node]) / 2 - kRounding;
    if (difference > 0 && means[node] > 0) spread[node] = difference / means[node];
  }
  return spread;
}

}  // namespace

std::vector<double> undisturbed_means(const CounterReadings& readings,
                                      const std::vector<TimedRun>& runs) {
  const std::size_t nodes = readings.means_before.size();
  const bool any =
      std::any_of(runs.begin(), runs.end(), [](const TimedRun& r) { return !r.disturbed; });
  std::vector<double> total(nodes, 0);
  std::size_t count = 0;
  // The total of all runs up to and including run r - 1.
  const auto total_at = [&](std::size_t r, std::size_t node) {
    const double mean = r == 0 ? readings.means_before[node] : readings.means[r - 1][node];
    return mean * static_cast<double>(readings.runs_before + r);
  };
  for (std::size_t begin = 0; begin < runs.size();) {
    if (any && runs[begin].disturbed) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < runs.size() && !(any && runs[end].disturbed)) ++end;
    for (std::size_t node = 0; node < nodes; ++node) {
      total[node] += total_at(end, node) - total_at(begin, node);
    }
    count += end - begin;
    begin = end;
  }
  // Rounding can leave a total a little below nothing.
  for (double& time : total)
    time = count == 0 ? 0 : std::max(0.0, time) / static_cast<double>(count);
  return total;
}

MeasuredOps measure_ops(const NeuralModel& model, std::span<const std::size_t> ops,
                        const Target& target, const MeasureOptions& options) {
  const ModelGraph& graph = model.graph();
  CompileOptions compiled = compile_options(target);
  compiled.counters = true;
  const auto part = model.compile(ops, compiled);
  MeasuredOps result;
  result.executed = part->executed();
  const Counters counters(result.executed);
  const Buffers inputs = seeded_inputs(graph, *part, target);
  const auto request = request_with(*part, inputs);

  std::vector<TimedRun> runs;
  CounterReadings readings;
  Workers workers({target});
  workers.run([&](std::size_t) {
    for (std::size_t i = 0; i < options.warm_up; ++i) {
      options.check();
      request->run();
    }
    readings.runs_before = options.warm_up;
    readings.means_before = counters.read(*request);
    RunWatch watch(target);
    const Series series(options);
    while (series.goes_on(runs)) {
      watch.begin();
      request->run();
      runs.push_back(watch.end());
      readings.means.push_back(counters.read(*request));
    }
  });

  result.latency = summary_of(runs);
  runs = with_some_kept(std::move(runs));
  std::vector<double> means = undisturbed_means(readings, runs);
  const std::vector<double> spread = spread_of(readings, runs, means);
  result.counted = sum(means);
  if (result.counted <= 0) means = equal_shares(ops_of_nodes(graph, result.executed));
  const double total = sum(means);
  std::vector<double> deviation(means.size(), 0);
  for (std::size_t node = 0; node < means.size(); ++node) {
    if (total > 0) means[node] *= result.latency.median / total;
    deviation[node] = means[node] * spread[node];
  }
  result.milliseconds = times_of_ops(graph, result.executed, means);
  result.spread = times_of_ops(graph, result.executed, deviation);
  for (std::size_t op = 0; op < result.spread.size(); ++op) {
    if (result.milliseconds[op] > 0) result.spread[op] /= result.milliseconds[op];
  }
  return result;
}

}  // namespace placewright
