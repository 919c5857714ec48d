#include "profiling/loading.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "profiling/cut_cost.h"
#include "profiling/segment_chain.h"

namespace placewright {
namespace {

constexpr std::size_t kSegments = 8;      // of a trial
constexpr double kSmall = 0.02;           // ms: the counters of less say little
constexpr double kWorthTheNoise = 0.005;  // own factors must predict better by so much

double sum_over(const OpGroup& group, const std::vector<double>& times) {
  return std::accumulate(group.begin(), group.end(), 0.0,
                         [&](double sum, std::size_t op) { return sum + times[op]; });
}

// Scales the factors of groups that take these times alone, so that all of them together take
// `factor` times as long. What that would put below 1 is 1, and the others bear the rest.
void scale_to(double factor, const std::vector<double>& times, std::vector<double>& own) {
  double rest = factor * std::accumulate(times.begin(), times.end(), 0.0);
  std::vector<std::size_t> scaled(own.size());
  std::iota(scaled.begin(), scaled.end(), std::size_t{0});
  while (!scaled.empty()) {
    double after = 0;
    for (const std::size_t group : scaled) after += times[group] * own[group];
    if (!(after > 0)) return;
    const double scale = rest / after;
    const auto below =
        std::ranges::partition(scaled, [&](std::size_t group) { return scale * own[group] >= 1; });
    for (const std::size_t group : below) {
      own[group] = 1;
      rest -= times[group];
    }
    if (below.empty()) {
      for (const std::size_t group : scaled) own[group] *= scale;
      return;
    }
    scaled.erase(below.begin(), below.end());
  }
}

ChainRuns chain_runs(SegmentChain& chain, const Target& target, BusyDevices& busy,
                     MeasureOptions options) {
  options.repeat = (options.repeat + 1) / 2;  // enough to compare two predictions
  ChainRuns runs;
  const auto series_of_runs = [&] {
    for (std::size_t i = 0; i < options.warm_up; ++i) chain.run();
    const CoreCheck cores(target.cores);
    RunWatch watch(target);
    const Series series(options);
    while (series.goes_on(runs.runs)) {
      options.check();
      chain.run_watched(watch, runs);
    }
    judge(cores, runs.runs);
  };
  busy.beside(target, series_of_runs, options);
  return runs;
}

std::vector<SegmentLoading> segments_of(const SegmentChain& chain, const ChainRuns& before,
                                        const ChainRuns& after, const std::vector<double>& alone,
                                        const std::vector<double>& own) {
  const std::vector<double> times_before = before.segment_times();
  const std::vector<double> times_after = after.segment_times();
  std::vector<SegmentLoading> segments;
  for (std::size_t i = 0; i < times_after.size(); ++i) {
    SegmentLoading& segment = segments.emplace_back();
    segment.alone = times_before[i];
    segment.loaded = times_after[i];
    for (const std::size_t op : chain.segments()[i]) {
      segment.ops_alone += alone[op];
      segment.ops_loaded += alone[op] * own[op];
    }
  }
  return segments;
}

double error_of(const std::vector<SegmentLoading>& trial,
                const std::function<double(const SegmentLoading&)>& factor) {
  double off = 0;
  double total = 0;
  for (const SegmentLoading& segment : trial) {
    off += std::abs(segment.alone * factor(segment) - segment.loaded);
    total += segment.loaded;
  }
  return total > 0 ? off / total : 0;
}

}  // namespace

std::vector<double> factors_of_groups(const std::vector<OpGroup>& groups,
                                      const std::vector<double>& alone,
                                      const std::vector<double>& loaded, double factor) {
  std::vector<double> times;
  std::vector<double> own;
  for (const OpGroup& group : groups) {
    times.push_back(sum_over(group, alone));
    const double beside = sum_over(group, loaded);
    own.push_back(std::max(1.0, (beside + kSmall * factor) / (times.back() + kSmall)));
  }
  scale_to(factor, times, own);
  std::vector<double> factors(alone.size(), factor);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const std::size_t op : groups[group]) factors[op] = own[group];
  }
  return factors;
}

double error_of_one_factor(const std::vector<SegmentLoading>& trial, double factor) {
  return error_of(trial, [&](const SegmentLoading&) { return factor; });
}

double error_of_own_factors(const std::vector<SegmentLoading>& trial) {
  return error_of(trial, [](const SegmentLoading& segment) {
    return segment.ops_alone > 0 ? segment.ops_loaded / segment.ops_alone : 1;
  });
}

std::string Loading::doubt() const {
  const std::string doubt = doubt_of(latency);
  return doubt.empty() ? doubt_of(trial) : doubt;
}

Loading loading_of(const LoadingTrial& trial, const LoadedOps& ops, BusyDevices& busy) {
  const std::vector<double>& alone = ops.alone.milliseconds;
  Loading result;
  result.latency = ops.loaded->latency;
  if (ops.alone.latency.median > 0) {
    result.factor = std::max(1.0, result.latency.median / ops.alone.latency.median);
  }
  std::vector<double> own =
      factors_of_groups(trial.ordered, alone, ops.loaded->milliseconds, result.factor);

  const Buffers inputs = seeded_inputs(trial.model.graph(), kProfileSeed, trial.target);
  SegmentChain chain(trial.model, equal_segments(trial.ordered, alone, trial.whole ? 1 : kSegments),
                     trial.target, inputs);
  BusyDevices nobody;
  const ChainRuns before = chain_runs(chain, trial.target, nobody, trial.options);
  const ChainRuns after = chain_runs(chain, trial.target, busy, trial.options);
  const std::vector<SegmentLoading> segments = segments_of(chain, before, after, alone, own);
  result.trial = summary_of(after.runs);
  result.segments = segments.size();

  const double one = error_of_one_factor(segments, result.factor);
  const double by_op = error_of_own_factors(segments);
  result.by_op = by_op + kWorthTheNoise < one;
  result.error = result.by_op ? by_op : one;
  result.rejected = result.by_op ? one : by_op;
  if (!result.by_op) std::ranges::fill(own, result.factor);
  result.factors = std::move(own);
  return result;
}

}  // namespace placewright
