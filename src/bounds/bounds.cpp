#include "bounds/bounds.h"

#include <algorithm>

#include "bounds/call_ideals.h"
#include "bounds/completion_order.h"
#include "bounds/contiguous_work.h"
#include "bounds/critical_path.h"
#include "bounds/forced_company.h"
#include "bounds/rounding.h"
#include "bounds/segments.h"
#include "bounds/work.h"
#include "coarsen/deletion.h"
#include "problem/least_time.h"

namespace placewright {
namespace {

// Bounds one after the other, until asked to stop; the first in any case.
class BoundList {
 public:
  explicit BoundList(const StopBounds& stop) : stop_(stop) {}

  template <class Compute>
  void add(const char* name, const Compute& compute) {
    if (bounds_.empty() || !stop_()) bounds_.push_back({name, compute()});
  }

  [[nodiscard]] double best() const {
    double best = 0;
    for (const Bound& bound : bounds_) best = std::max(best, bound.value);
    return best;
  }
  [[nodiscard]] std::vector<Bound> take() { return std::move(bounds_); }

 private:
  const StopBounds& stop_;
  std::vector<Bound> bounds_;
};

// The best that leaving ops out gives; 0 where it gives nothing.
double hub_bound(const Problem& problem, const StopBounds& stop) {
  double best = 0;
  for (const Remainder& rest : remainders(problem)) {
    if (stop()) break;
    best = std::max(best, segment_bound(rest.problem));
  }
  return best;
}

std::vector<Bound> latency_bounds(const Problem& problem, const StopBounds& stop) {
  const auto paths = critical_paths(problem, stop);
  double longest = 0;
  double first_arrival = kInfinity;
  // Latency is the latest end of an op: a model without ops has no part in it.
  for (const OpId op : problem.ops()) {
    const ModelId model = problem.op(op).model;
    longest = std::max(longest, paths[model]);
    first_arrival = std::min(first_arrival, problem.model(model).arrival);
  }
  BoundList bounds(stop);
  bounds.add("critical path", [&] { return longest; });
  bounds.add("path and work between cut nodes", [&] { return segment_bound(problem); });
  bounds.add("work", [&] { return first_arrival + work_bound(problem, WorkScope::all, stop); });
  if (const double hubs = stop() ? 0 : hub_bound(problem, stop); hubs > 0) {
    bounds.add("path and work between hubs, some ops left out", [&] { return hubs; });
  }
  if (refuses_forced_company(problem).empty()) {
    bounds.add("ops that are forced onto one device",
               [&] { return forced_company_bound(problem, bounds.best(), stop); });
  }
  return bounds.take();
}

std::vector<Bound> total_completion_bounds(const Problem& problem, const StopBounds& stop) {
  const auto paths = critical_paths(problem, stop);
  double total = 0;
  for (const ModelId model : problem.models()) {
    const Model& record = problem.model(model);
    total += record.weight * (paths[model] - record.arrival);
  }
  BoundList bounds(stop);
  bounds.add("critical paths", [&] { return total; });
  bounds.add(
      problem.resource_count() > 0 ? "work and energy of sets of models" : "work of sets of models",
      [&] { return completion_order_bound(problem, paths); });
  return bounds.take();
}

// Without replicas some device bears the whole of each group.
double largest_group(const Problem& problem, WorkScope scope) {
  double largest = 0;
  for (const GroupId group : problem.groups()) {
    double fastest = kInfinity;
    KindId last;  // devices of a kind are mostly neighbours, and take the same time
    for (const DeviceId device : problem.devices()) {
      if (problem.kind_of(device) == last || !problem.group_allowed(group, device)) continue;
      last = problem.kind_of(device);
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

std::vector<Bound> throughput_bounds(const Problem& problem, const StopBounds& stop) {
  const bool phased =
      problem.rules().training == TrainingMode::phased && problem.has_backward_ops();
  const std::vector<WorkScope> scopes =
      phased ? std::vector{WorkScope::forward, WorkScope::backward} : std::vector{WorkScope::all};
  const auto sum_of = [&](const auto& bound) {
    double sum = 0;
    for (const WorkScope scope : scopes) sum += bound(scope);
    return sum;
  };
  BoundList bounds(stop);
  bounds.add("work",
             [&] { return sum_of([&](WorkScope s) { return work_bound(problem, s, stop); }); });
  bounds.add("largest group",
             [&] { return sum_of([&](WorkScope s) { return largest_group(problem, s); }); });
  if (!phased) {
    bounds.add("work of contiguous segments", [&] { return contiguous_work_bound(problem, stop); });
  }
  return bounds.take();
}

// Calls: an op takes at least its time on the fastest device, transfers are left out.
double fastest_path(const Problem& problem) {
  Table<OpId, double> end(problem.op_count(), 0);
  double longest = 0;
  for (const OpId op : problem.topological_order()) {
    double ready = 0;
    for (const OpId before : problem.predecessors(op)) ready = std::max(ready, end[before]);
    end[op] = ready + least_time(problem, op);
    longest = std::max(longest, end[op]);
  }
  return longest;
}

// Few enough ideals to take a fraction of a second.
constexpr std::size_t kQuickIdeals = 600;

double tails_over_ideals(const Problem& problem, const StopBounds& stop) {
  CallIdeals ideals = finest_ideals(problem, kQuickIdeals, problem.rules().calls_per_device, stop);
  const double tails = ideals.bound(stop).value_or(0);
  // Infinite: no plan exists, which is not for a bound to say.
  return tails < kInfinity ? safe_search(tails) : 0;
}

std::vector<Bound> call_bounds(const Problem& problem, const StopBounds& stop) {
  BoundList bounds(stop);
  bounds.add("critical path", [&] { return fastest_path(problem); });
  bounds.add("tails over ideals", [&] { return tails_over_ideals(problem, stop); });
  return bounds.take();
}

}  // namespace

std::vector<Bound> lower_bounds(const Problem& problem, const StopBounds& stop) {
  switch (problem.objective()) {
    case Objective::latency:
      return latency_bounds(problem, stop);
    case Objective::total_completion:
      return total_completion_bounds(problem, stop);
    case Objective::throughput:
      return throughput_bounds(problem, stop);
    case Objective::call_latency:
      return call_bounds(problem, stop);
  }
  return {};
}

Certificate best_lower_bound(const Problem& problem, const StopBounds& stop) {
  Certificate best;
  for (Bound& bound : lower_bounds(problem, stop)) {
    if (bound.value > best.lower_bound) best = Certificate{bound.value, std::move(bound.name)};
  }
  return best;
}

}  // namespace placewright
