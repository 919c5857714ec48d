#include "running/unplanned_models.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "backends/target_devices.h"
#include "machine/clock.h"
#include "problem/time_unit.h"
#include "running/run_log.h"

namespace placewright {

UnplannedModels::UnplannedModels(const Problem& problem,
                                 const std::vector<std::unique_ptr<NeuralModel>>& models,
                                 const std::vector<Target>& targets, const RunOptions& options)
    : problem_(problem) {
  const double unit = milliseconds_in(problem.unit());
  for (const ModelId model : problem.models()) {
    arrivals_.push_back({model.index(), problem.model(model).arrival * unit});
  }
  std::vector<ArrivalPlace> places;
  for (std::size_t place = 0; place < targets.size(); ++place) {
    for (std::size_t model = 0; model < models.size(); ++model) {
      places.push_back({model, DeviceId{place}, targets[place]});
    }
  }
  runner_ = std::make_unique<ArrivalRunner>(
      problem, models, arrivals_, places,
      ArrivalRunOptions{.seed = options.seed, .inputs = options.inputs, .stop = options.stop});
  for (std::size_t place = 0; place < targets.size(); ++place) {
    const std::vector<DeviceId> devices(models.size(), DeviceId{place});
    std::vector<double> times = times_on(DeviceId{place});
    const std::string name = name_of(targets[place]);
    policies_.push_back({.name = fmt::format("in turn on {}, shortest first", name),
                         .rule = shortest_first(devices, times),
                         .target = targets[place],
                         .times = std::move(times)});
    policies_.push_back({.name = fmt::format("all at once on {}", name),
                         .rule = all_at_once(devices),
                         .target = targets[place]});
  }
}

// By model, each alone, the median of some rounds; zeros if it was interrupted.
std::vector<double> UnplannedModels::times_on(DeviceId place) {
  constexpr int kRounds = 5;
  std::vector<double> none(arrivals_.size(), 0);
  const ArrivalRule in_turn = shortest_first(std::vector<DeviceId>(none.size(), place), none);
  std::vector<std::vector<double>> times(none.size());
  for (int i = 0; i < kRounds; ++i) {
    const auto round = runner_->run(in_turn);
    if (!round) return none;
    for (std::size_t model = 0; model < times.size(); ++model) {
      const ArrivalState& state = round->states[model];
      times[model].push_back(state.end - state.start);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& of_model : times) medians.push_back(median(std::move(of_model)));
  return medians;
}

UnplannedModels::Sample UnplannedModels::sample_of(const ArrivalRound& round) const {
  // The workers of a plan are awake when a sample begins: nor does it count here that the first to start wakes up.
  double origin = kInfinity;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    origin = std::min(origin, round.states[i].start - arrivals_[i].time);
  }
  std::vector<double> ends;
  for (const ArrivalState& state : round.states) ends.push_back(state.end - origin);
  return {value_of_ends(problem_, ends), std::ranges::max(ends)};
}

std::optional<double> UnplannedModels::take_turn(Policy& policy, const RunOptions& options) {
  std::vector<double> values;
  std::vector<double> disturbed_values;
  std::vector<double> latencies;
  std::vector<double> disturbed_latencies;
  bool watched = true;
  const Clock::time_point begin = Clock::now();
  const auto goes_on = [&](int samples) {
    return samples < options.warm_up + options.repeat ||
           milliseconds(Clock::now() - begin) < 1000 * options.at_least;
  };
  for (int i = 0; goes_on(i); ++i) {
    const auto round = runner_->run(policy.rule);
    if (!round) return std::nullopt;
    if (i < options.warm_up) continue;
    const Sample sample = sample_of(*round);
    (round->disturbed ? disturbed_values : values).push_back(sample.value);
    (round->disturbed ? disturbed_latencies : latencies).push_back(sample.latency);
    watched = watched && round->watched;
  }
  policy.values.push_back(measured(std::move(values), disturbed_values));
  policy.latencies.push_back(measured(std::move(latencies), disturbed_latencies));
  policy.values.back().watched = policy.latencies.back().watched = watched;
  return policy.values.back().median;
}

bool UnplannedModels::is_policy(const Plan& plan, const Policy& policy) const {
  if (policy.times.empty() || !plan.schedule) return false;
  const DeviceId first = plan.placement[OpId{0}];
  if (std::ranges::any_of(plan.placement, [&](DeviceId device) { return device != first; })) {
    return false;
  }
  if (kind_of(target_named(problem_.device(first).name)) != kind_of(policy.target)) return false;
  std::vector<double> starts(arrivals_.size(), kInfinity);
  std::vector<double> ends(arrivals_.size(), 0);
  for (const OpId op : problem_.ops()) {
    const std::size_t model = problem_.op(op).model.index();
    starts[model] = std::min(starts[model], plan.schedule->start[op]);
    ends[model] = std::max(ends[model], plan.schedule->end[op]);
  }
  std::vector<std::size_t> order(arrivals_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t model) { return starts[model]; });
  // The end of the last does not depend on the order.
  const bool any_order = problem_.objective() != Objective::total_completion;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (starts[order[i]] < ends[order[i - 1]]) return false;
    if (!any_order && policy.times[order[i]] < policy.times[order[i - 1]]) return false;
  }
  return true;
}

}  // namespace placewright
