#include "profiling/op_times.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "backends/part_inputs.h"
#include "backends/target_devices.h"

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

// Ops compiled with counters, which go on from one series of runs to the next.
class CountedPart {
 public:
  CountedPart(const NeuralModel& model, std::span<const std::size_t> ops, const Target& target)
      : graph_(model.graph()),
        target_(target),
        part_(model.compile(ops, options_for(target))),
        executed_(part_->executed()),
        counters_(executed_),
        inputs_(seeded_inputs(graph_, *part_, target)),
        request_(request_with(*part_, inputs_)) {}

  MeasuredOps measure(BusyDevices& busy, const MeasureOptions& options) {
    std::vector<TimedRun> runs;
    CounterReadings readings;
    const auto series_of_runs = [&] {
      for (std::size_t i = 0; i < options.warm_up; ++i) {
        options.check();
        run();
      }
      readings.runs_before = runs_;
      readings.means_before = counters_.read(*request_);
      const CoreCheck cores(target_.cores);
      RunWatch watch(target_);
      const Series series(options);
      while (series.goes_on(runs)) {
        watch.begin();
        run();
        runs.push_back(watch.end());
        readings.means.push_back(counters_.read(*request_));
      }
      judge(cores, runs);
    };
    busy.beside(target_, series_of_runs, options);
    return times_of(readings, std::move(runs));
  }

 private:
  static CompileOptions options_for(const Target& target) {
    CompileOptions options = compile_options(target);
    options.counters = true;
    return options;
  }

  void run() {
    request_->run();
    ++runs_;
  }

  // Scaled so that they sum up to the latency.
  [[nodiscard]] MeasuredOps times_of(const CounterReadings& readings,
                                     std::vector<TimedRun> runs) const {
    MeasuredOps result;
    result.executed = executed_;
    result.precision = part_->precision();
    result.latency = summary_of(runs);
    runs = with_some_kept(std::move(runs));
    std::vector<double> means = undisturbed_means(readings, runs);
    const std::vector<double> spread = spread_of(readings, runs, means);
    result.counted = sum(means);
    if (result.counted <= 0) means = equal_shares(ops_of_nodes(graph_, executed_));
    const double total = sum(means);
    std::vector<double> deviation(means.size(), 0);
    for (std::size_t node = 0; node < means.size(); ++node) {
      if (total > 0) means[node] *= result.latency.median / total;
      deviation[node] = means[node] * spread[node];
    }
    result.milliseconds = times_of_ops(graph_, executed_, means);
    result.spread = times_of_ops(graph_, executed_, deviation);
    for (std::size_t op = 0; op < result.spread.size(); ++op) {
      if (result.milliseconds[op] > 0) result.spread[op] /= result.milliseconds[op];
    }
    return result;
  }

  const ModelGraph& graph_;
  const Target& target_;
  std::unique_ptr<CompiledPart> part_;
  std::vector<ExecutedNode> executed_;
  Counters counters_;
  Buffers inputs_;
  std::unique_ptr<Request> request_;  // gone before the part
  std::size_t runs_ = 0;
};

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

LoadedOps measure_ops(const NeuralModel& model, std::span<const std::size_t> ops,
                      const Target& target, BusyDevices& busy, const MeasureOptions& options) {
  CountedPart part(model, ops, target);
  BusyDevices nobody;
  LoadedOps result{part.measure(nobody, options), {}};
  if (busy.count() > 0 && !options.late()) result.loaded = part.measure(busy, options);
  return result;
}

void gather_times(const ModelGraph& graph, const std::vector<OpGroup>& groups, MeasuredOps& times) {
  const std::vector<std::optional<std::size_t>> gates = gates_of(graph, groups);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (!gates[group]) continue;
    double sum = 0;
    double deviation = 0;
    for (const std::size_t op : groups[group]) {
      sum += times.milliseconds[op];
      deviation += times.milliseconds[op] * times.spread[op];
      times.milliseconds[op] = times.spread[op] = 0;
    }
    times.milliseconds[*gates[group]] = sum;
    if (sum > 0) times.spread[*gates[group]] = deviation / sum;
  }
}

}  // namespace placewright
