#include "bounds/bounds.h"

#include <algorithm>
#include <array>

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

// What bounds have in common.
struct Bounding {
  const Problem& problem;
  const StopBounds& stop;
  Table<ModelId, double> paths = {};  // schedules: when each model can be complete, were it alone
  double best = 0;                    // of the bounds before
};

// A bound and where it holds; its value is 0 where it gives nothing.
struct BoundRecord {
  const char* name;
  Objective objective;
  Features knows;
  double (*value)(const Bounding&);
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

// Latency is the latest end of an op: a model without ops has no part in it.
double longest_path(const Bounding& bounding) {
  double longest = 0;
  for (const OpId op : bounding.problem.ops()) {
    longest = std::max(longest, bounding.paths[bounding.problem.op(op).model]);
  }
  return longest;
}

double work_after_arrival(const Bounding& bounding) {
  double first_arrival = kInfinity;
  for (const OpId op : bounding.problem.ops()) {
    first_arrival =
        std::min(first_arrival, bounding.problem.model(bounding.problem.op(op).model).arrival);
  }
  return first_arrival + work_bound(bounding.problem, WorkScope::all, bounding.stop);
}

double sum_of_paths(const Bounding& bounding) {
  double total = 0;
  for (const ModelId model : bounding.problem.models()) {
    const Model& record = bounding.problem.model(model);
    total += record.weight * (bounding.paths[model] - record.arrival);
  }
  return total;
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

// Of both passes where they come one after the other.
template <class Value>
double sum_over_passes(const Problem& problem, const Value& value) {
  if (!problem.features().has(Feature::phased_training)) return value(WorkScope::all);
  return value(WorkScope::forward) + value(WorkScope::backward);
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

constexpr auto kBounds = std::to_array<BoundRecord>({
    {"critical path", Objective::latency, kCommonAndSharing, longest_path},
    {"path and work between cut nodes", Objective::latency, kCommonAndSharing,
     [](const Bounding& b) { return segment_bound(b.problem); }},
    {"work", Objective::latency, kCommonAndSharing, work_after_arrival},
    {"ops that are forced onto one device", Objective::latency, kCommonAndSharing,
     [](const Bounding& b) {
       const bool applies = refuses_forced_company(b.problem).empty();
       return applies ? forced_company_bound(b.problem, b.best, b.stop) : 0;
     }},
    {"path and work between hubs, some ops left out", Objective::latency, kCommonAndSharing,
     [](const Bounding& b) { return hub_bound(b.problem, b.stop); }},
    {"critical paths", Objective::total_completion, kCommonAndSharing, sum_of_paths},
    {"work of sets of models", Objective::total_completion, kCommonAndSharing,
     [](const Bounding& b) {
       return b.problem.resource_count() > 0 ? 0 : completion_order_bound(b.problem, b.paths);
     }},
    {"work and energy of sets of models", Objective::total_completion, kCommonAndSharing,
     [](const Bounding& b) {
       return b.problem.resource_count() > 0 ? completion_order_bound(b.problem, b.paths) : 0;
     }},
    {"work", Objective::throughput, kCommonAndSharing,
     [](const Bounding& b) {
       return sum_over_passes(b.problem,
                              [&](WorkScope s) { return work_bound(b.problem, s, b.stop); });
     }},
    {"largest group", Objective::throughput, kCommonAndSharing,
     [](const Bounding& b) {
       return sum_over_passes(b.problem, [&](WorkScope s) { return largest_group(b.problem, s); });
     }},
    {"work of contiguous segments", Objective::throughput, kContiguousWorkKnows,
     [](const Bounding& b) { return contiguous_work_bound(b.problem, b.stop); }},
    {"critical path", Objective::call_latency, kCommonAndSharing,
     [](const Bounding& b) { return fastest_path(b.problem); }},
    {"tails over ideals", Objective::call_latency, kCommonAndSharing,
     [](const Bounding& b) { return tails_over_ideals(b.problem, b.stop); }},
});

}  // namespace

std::vector<Bound> lower_bounds(const Problem& problem, const StopBounds& stop) {
  Bounding bounding{problem, stop};
  if (is_schedule(problem.objective())) bounding.paths = critical_paths(problem, stop);
  std::vector<Bound> bounds;
  for (const BoundRecord& record : kBounds) {
    if (record.objective != problem.objective()) continue;
    if (!record.knows.covers(problem.features())) continue;
    if (!bounds.empty() && stop()) break;  // the first in any case
    const double value = record.value(bounding);
    if (bounds.empty() || value > 0) bounds.push_back({record.name, value});
    bounding.best = std::max(bounding.best, value);
  }
  return bounds;
}

Certificate best_lower_bound(const Problem& problem, const StopBounds& stop) {
  Certificate best;
  for (Bound& bound : lower_bounds(problem, stop)) {
    if (bound.value > best.lower_bound) best = Certificate{bound.value, std::move(bound.name)};
  }
  return best;
}

}  // namespace placewright
