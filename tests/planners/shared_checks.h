// Small random pipelines on devices that share resources, under every rule in turn.

#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "planners/throughput_checks.h"
#include "support/brute_force.h"
#include "support/random_problem.h"

namespace placewright::testing {

// Every third case is on nested sets of four cores, the others have any amounts of any resources.
inline ProblemDraft shared_pipeline(std::uint64_t number) {
  RandomProblemOptions options;
  options.objective = Objective::throughput;
  options.interconnect = number % 4 == 1 ? InterconnectKind::host : InterconnectKind::links;
  const bool cores = number % 3 == 0;
  options.ops = cores ? 4 : 5;
  options.devices = 3 + number % 2;
  options.resources = true;
  options.spaces = number % 4 >= 2;
  options.overheads = number % 5 < 2;
  options.cuts = number % 5 == 2;
  options.pins = number % 7 == 1;
  options.colocation = number % 7 == 2;
  options.unsupported = number % 7 == 3;
  options.binding_memory = number % 7 == 4;
  options.training = number % 5 >= 3;
  options.zero_times = number % 11 == 0;
  ProblemDraft draft = cores ? core_set_draft(options, number) : random_draft(options, number);
  if (cores && number % 2 == 0) draft.ops[0].pinned_to = DeviceId{number % 7};
  if (cores && number % 4 == 1) draft.ops[1].share.assign(draft.cluster.kinds.size(), 0.5);
  Rules& rules = draft.rules;
  rules.contiguity = number % 8 == 6   ? Contiguity::none
                     : number % 8 == 7 ? Contiguity::per_device
                                       : Contiguity::joint;
  rules.transfers = number % 9 == 7   ? TransferMode::overlapped
                    : number % 9 == 8 ? TransferMode::duplex
                                      : TransferMode::sequential;
  if (number % 10 == 3) rules.training = TrainingMode::phased;
  rules.max_replicas = number % 4 == 3 ? 2 : 1;
  rules.replica_bandwidth = number % 8 == 3 ? 5 : 0;
  return draft;
}

// A chain of six ops on two cores and the set of both, on which nothing is faster.
inline ProblemDraft chain_on_two_cores() {
  ProblemDraft draft;
  draft.name = "chain";
  draft.objective = Objective::throughput;
  draft.models = {{.name = "model"}};
  Cluster& cluster = draft.cluster;
  cluster.kinds = {{"cpu-1", false}, {"cpu-2", false}};
  cluster.resources = {{"core 0", 1}, {"core 1", 1}};
  cluster.spaces = {{"memory", kInfinity}};
  for (std::size_t i = 0; i < 3; ++i) {
    Device device{.name = i < 2 ? "cpu:" + std::to_string(i) : "cpu:0-1", .kind = KindId{i / 2}};
    device.space = SpaceId{0};
    if (i != 1) device.uses.push_back({ResourceId{0}, 1});
    if (i != 0) device.uses.push_back({ResourceId{1}, 1});
    cluster.devices.push_back(std::move(device));
  }
  for (std::size_t i = 0; i < 6; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.time = {1, 1};
    draft.ops.push_back(std::move(op));
    if (i > 0) {
      Tensor tensor;
      tensor.producer = OpId{i - 1};
      tensor.consumers = {OpId{i}};
      draft.tensors.push_back(std::move(tensor));
    }
  }
  return draft;
}

// What comes of comparing planners with brute force on some of the cases.
struct SharedAgreement {
  int served = 0;
  int found = 0;  // the search has the least value
};

inline SharedAgreement shared_agreement(std::uint64_t first, std::uint64_t last,
                                        std::uint64_t steps) {
  SharedAgreement agreement;
  for (std::uint64_t number = first; number < last; ++number) {
    const auto problem = problem_from(shared_pipeline(number));
    if (!problem || problem->resource_count() == 0) continue;
    SCOPED_TRACE(number);
    const std::optional<double> least = brute_force_value(*problem);
    const PlanOutcome proved = plan_with(*problem, "exhaustive");
    EXPECT_EQ(proved.fault, "");
    EXPECT_EQ(proved.answer.status(), least ? Status::optimal : Status::infeasible);
    if (!least) continue;
    EXPECT_NEAR(proved.value(), *least, 1e-9 * (1 + *least));
    PlanRequest request;
    request.planner = "shared-search";
    request.budget.steps = steps;
    request.budget.seconds = 60;
    const PlanOutcome searched = make_plan(*problem, registry(), request);
    EXPECT_EQ(searched.fault, "");
    EXPECT_LE(searched.answer.certificate.lower_bound, *least * (1 + 1e-9));
    EXPECT_GE(searched.value(), *least * (1 - 1e-9));
    ++agreement.served;
    agreement.found += searched.value() <= *least * (1 + 1e-9) ? 1 : 0;
    if (::testing::Test::HasFailure()) return agreement;
  }
  return agreement;
}

}  // namespace placewright::testing
