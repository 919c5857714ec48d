// Small random pipelines on nested sets of cores, to compare `shared-ideals` with brute force.

#pragma once

#include <cstdint>

#include "planners/throughput_checks.h"
#include "problem/part.h"
#include "support/brute_force.h"
#include "support/random_problem.h"

namespace placewright::testing {

// Sets of four cores, and what is left of them when some are taken away: two cores and both, cores
// without a set around them, sets with cores that no smaller set has. Overheads by kind or by
// device, pins, colocation, ops that some widths cannot run, replicas, in changing company.
inline ProblemDraft core_set_pipeline(std::uint64_t number) {
  RandomSource random(number + 1);
  RandomProblemOptions options;
  options.objective = Objective::throughput;
  options.edge_probability = 0.15 + 0.15 * static_cast<double>(number % 5);
  options.zero_times = number % 7 == 0;
  options.integer_times = number % 4 == 0;
  options.colocation = number % 6 == 0;
  const std::size_t devices = 2 + number % 6;
  options.ops = devices <= 3 ? 6 : devices <= 5 ? 5 : 4;
  ProblemDraft draft = core_set_draft(options, number);
  std::vector<DeviceId> kept;
  for (std::size_t i = 0; i < 7; ++i) {
    if (random.below(7 - i) < devices - kept.size()) kept.push_back(DeviceId{i});
  }
  keep_devices(draft, kept);
  const std::size_t kinds = draft.cluster.kinds.size();
  for (Op& op : draft.ops) {
    // Some gain more than the cores that they take, some nothing.
    for (std::size_t kind = 1; kind < kinds; ++kind) op.time[kind] *= 0.6 + 0.8 * random.unit();
    if (number % 9 == 1 && random.chance(0.2)) op.time[random.below(kinds)] = kUnsupported;
  }
  if (number % 5 == 1) {
    for (Tensor& tensor : draft.tensors) tensor.cuts.clear();
    for (Device& device : draft.cluster.devices) {
      device.send_overhead = random.unit();
      device.receive_overhead = random.unit();
    }
  }
  if (number % 5 == 2) {
    const std::size_t op = random.below(draft.ops.size());
    draft.ops[op].pinned_to = DeviceId{random.below(devices)};
  }
  draft.rules.max_replicas = number % 3 == 2 ? 2 + static_cast<int>(number / 3 % 2) : 1;
  return draft;
}

struct SharedIdealsAgreement {
  int served = 0;
  int proved = 0;
};

// Values are the least there are, and bounds hold; without replicas all is proved.
inline SharedIdealsAgreement shared_ideals_agreement(std::uint64_t first, std::uint64_t last) {
  SharedIdealsAgreement agreement;
  for (std::uint64_t number = first; number < last; ++number) {
    const auto problem = problem_from(core_set_pipeline(number));
    if (!problem) continue;
    SCOPED_TRACE(number);
    const std::optional<double> least = brute_force_value(*problem);
    // With one label for each ideal at first, what is merged decides.
    const std::string labels = number % 2 == 0 ? "8" : "1";
    const PlanOutcome outcome = plan_with(*problem, "shared-ideals", 60, {{"labels", labels}});
    EXPECT_EQ(outcome.fault, "");
    ++agreement.served;
    const Status status = outcome.answer.status();
    agreement.proved += status == Status::optimal || status == Status::infeasible ? 1 : 0;
    if (least) {
      EXPECT_NEAR(outcome.value(), *least, 1e-8 * *least);
      EXPECT_LE(outcome.answer.certificate.lower_bound, *least * (1 + 1e-9));
    } else {
      EXPECT_EQ(status, Status::infeasible) << outcome.answer.reason;
    }
    if (problem->rules().max_replicas == 1) {
      EXPECT_TRUE(status == Status::optimal || status == Status::infeasible);
    }
    if (::testing::Test::HasFailure()) return agreement;
  }
  return agreement;
}

}  // namespace placewright::testing
