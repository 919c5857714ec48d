// Models of the zoo on made-up devices, and plans that cut them anywhere.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evaluate/placement_plan.h"
#include "openvino/execution.h"
#include "openvino/import.h"
#include "openvino/machine.h"
#include "openvino/runtime.h"
#include "openvino/zoo.h"
#include "problem/problem.h"
#include "support/random_problem.h"

namespace placewright::testing {

// Two devices on the first two cores that may be used; on one core alone both cannot be bound.
inline std::vector<std::string> core_devices(std::size_t count) {
  std::vector<std::string> names;
  for (const int core : openvino::allowed_cores()) {
    if (names.size() < count) names.push_back(openvino::name_of({"CPU", {core}}));
  }
  return names;
}

// The model in `folder`, on the devices, with estimated times; transfers cost a little.
inline ProblemDraft zoo_draft(const std::string& name, const std::string& folder,
                              const std::vector<std::string>& devices, Objective objective) {
  const auto files = openvino::make_zoo_model(name, folder);
  const auto model = openvino::openvino_runtime().read(files.xml);
  ProblemDraft draft =
      openvino::draft_of(model->graph(), name, openvino::source_of(files.xml, {}, ""));
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
  openvino::estimate_times(draft, model->graph(), cluster, {openvino::roofline_of_cores(1)});
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
