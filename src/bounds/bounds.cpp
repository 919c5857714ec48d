#include "bounds/bounds.h"

#include <algorithm>

#include "bounds/call_ideals.h"
#include "bounds/completion_order.h"
#include "bounds/contiguous_work.h"
#include "bounds/critical_path.h"
#include "bounds/rounding.h"
#include "bounds/segments.h"
#include "bounds/work.h"
#include "coarsen/deletion.h"

namespace placewright {
namespace {

// The best that leaving ops out gives; 0 where it gives nothing.
double hub_bound(const Problem& problem) {
  double best = 0;
  for (const Remainder& rest : remainders(problem)) {
    best = std::max(best, segment_bound(rest.problem));
  }
  return best;
}

std::vector<Bound> latency_bounds(const Problem& problem) {
  const auto paths = critical_paths(problem);
  double longest = 0;
  double first_arrival = kInfinity;
  // Latency is the latest end of an op: a model without ops has no part in it.
  for (const OpId op : problem.ops()) {
    const ModelId model = problem.op(op).model;
    longest = std::max(longest, paths[model]);
    first_arrival = std::min(first_arrival, problem.model(model).arrival);
  }
  std::vector<Bound> bounds{{"critical path", longest},
                            {"path and work between cut nodes", segment_bound(problem)},
                            {"work", first_arrival + work_bound(problem)}};
  if (const double hubs = hub_bound(problem); hubs > 0) {
    bounds.push_back({"path and work between hubs, some ops left out", hubs});
  }
  return bounds;
}

std::vector<Bound> total_completion_bounds(const Problem& problem) {
  const auto paths = critical_paths(problem);
  double total = 0;
  for (const ModelId model : problem.models()) {
    const Model& record = problem.model(model);
    total += record.weight * (paths[model] - record.arrival);
  }
  return {{"critical paths", total}, {"work of sets of models", completion_order_bound(problem)}};
}

// Without replicas some device bears the whole of each group.
double largest_group(const Problem& problem, WorkScope scope) {
  double largest = 0;
  for (const GroupId group : problem.groups()) {
    double fastest = kInfinity;
    for (const DeviceId device : problem.devices()) {
      if (!problem.group_allowed(group, device)) continue;
      double time = 0;
      for (const OpId op : problem.group_ops(group)) {
        const bool backward = problem.op(op).backward;
        if (scope == WorkScope::all || backward == (scope == WorkScope::backward)) {
          time += problem.time(op, device);
        }
      }
      fastest = std::min(fastest, time);
    }
    if (fastest < kInfinity) largest = std::max(largest, fastest);
  }
  return largest / problem.rules().max_replicas;
}

std::vector<Bound> throughput_bounds(const Problem& problem) {
  if (problem.rules().training == TrainingMode::phased && problem.has_backward_ops()) {
    return {{"work",
             work_bound(problem, WorkScope::forward) + work_bound(problem, WorkScope::backward)},
            {"largest group", largest_group(problem, WorkScope::forward) +
                                  largest_group(problem, WorkScope::backward)}};
  }
  return {{"work", work_bound(problem)},
          {"largest group", largest_group(problem, WorkScope::all)},
          {"work of contiguous segments", contiguous_work_bound(problem)}};
}

// Calls: an op takes at least its time on the fastest device, transfers are left out.
double fastest_path(const Problem& problem) {
  Table<OpId, double> end(problem.op_count(), 0);
  double longest = 0;
  for (const OpId op : problem.topological_order()) {
    double ready = 0;
    for (const OpId before : problem.predecessors(op)) ready = std::max(ready, end[before]);
    double fastest = kInfinity;
    for (const DeviceId device : problem.devices()) {
      if (problem.allowed(op, device)) fastest = std::min(fastest, problem.time(op, device));
    }
    end[op] = ready + fastest;
    longest = std::max(longest, end[op]);
  }
  return longest;
}

// Few enough ideals to take a fraction of a second.
constexpr std::size_t kQuickIdeals = 600;

std::vector<Bound> call_bounds(const Problem& problem) {
  CallIdeals ideals =
      finest_ideals(problem, kQuickIdeals, problem.rules().calls_per_device, [] { return false; });
  const double tails = *ideals.bound([] { return false; });
  // Infinite: no plan exists, which is not for a bound to say.
  return {{"critical path", fastest_path(problem)},
          {"tails over ideals", tails < kInfinity ? safe_search(tails) : 0}};
}

}  // namespace

std::vector<Bound> lower_bounds(const Problem& problem) {
  switch (problem.objective()) {
    case Objective::latency:
      return latency_bounds(problem);
    case Objective::total_completion:
      return total_completion_bounds(problem);
    case Objective::throughput:
      return throughput_bounds(problem);
    case Objective::call_latency:
      return call_bounds(problem);
  }
  return {};
}

Certificate best_lower_bound(const Problem& problem) {
  Certificate best;
  for (Bound& bound : lower_bounds(problem)) {
    if (bound.value > best.lower_bound) best = Certificate{bound.value, std::move(bound.name)};
  }
  return best;
}

}  // namespace placewright
