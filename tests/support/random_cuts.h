// Models on devices with estimated times, and plans that cut them anywhere.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/import.h"
#include "backends/opened_models.h"
#include "backends/runtime.h"
#include "evaluate/placement_plan.h"
#include "problem/problem.h"
#include "problem/stated_precision.h"
#include "running/execution.h"
#include "support/backend_case.h"
#include "support/random_problem.h"

namespace placewright::testing {

// The model in `folder`, on the devices, with estimated times; transfers cost a little.
inline ProblemDraft model_draft(const BackendCase& each, const std::string& folder,
                                const std::vector<std::string>& devices, Objective objective) {
  const std::string path = model_file(each, folder);
  const auto model = runtime_named(each.backend).read(path);
  ProblemDraft draft = draft_of(model->graph(), each.model, source_of(path, {}, ""));
  state_precision(draft, Precision::by_default);
  Cluster cluster;
  cluster.kinds = {{.name = "cpu-1"}};
  for (const std::string& device : devices) {
    cluster.devices.push_back({.name = device, .kind = KindId{0}});
  }
  for (std::size_t from = 0; from < devices.size(); ++from) {
    for (std::size_t to = 0; to < devices.size(); ++to) {
      if (from == to) continue;
      cluster.links.push_back(
          {.from = DeviceId{from}, .to = DeviceId{to}, .latency = 0.005, .bandwidth = 5e6});
    }
  }
  estimate_times(draft, model->graph(), cluster,
                 {PeakRates{.flops = 96e9, .bandwidth = 14e9, .launch = 2e-6}});
  draft.objective = objective;
  return draft;
}

// Runs of ops in topological order change device at random: `cuts` times on average.
inline Plan random_cut_plan(const Problem& problem, double cuts, RandomSource& random) {
  Plan plan;
  plan.placement.assign(problem.op_count(), DeviceId{0});
  std::size_t device = random.below(problem.device_count());
  for (const OpId op : problem.topological_order()) {
    if (random.chance(cuts / static_cast<double>(problem.op_count()))) {
      device = random.below(problem.device_count());
    }
    plan.placement[op] = DeviceId{device};
  }
  if (auto made = plan_of_placement(problem, plan.placement)) return std::move(*made);
  return plan;  // a pipeline that is not contiguous
}

}  // namespace placewright::testing
