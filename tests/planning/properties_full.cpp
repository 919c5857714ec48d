// What must hold between a problem and a changed one, whatever the planner: new names and numbers
// change nothing, a scale scales, what only helps never hurts. Asked of the exact optimum (by brute
// force), of every exact planner in the registry, and of every lower bound.

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bounds/bounds.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/brute_force.h"
#include "support/random_cases.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using testing::brute_force_value;
using testing::random_draft;
using testing::RandomProblemOptions;
using testing::RandomSource;

constexpr double kScale = 3.5;

std::vector<std::size_t> permutation(std::size_t count, RandomSource& random) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

template <class Record>
std::vector<Record> permuted(const std::vector<Record>& records,
                             const std::vector<std::size_t>& place) {
  std::vector<Record> moved(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) moved[place[i]] = records[i];
  return moved;
}

ProblemDraft with_ops_renumbered(ProblemDraft draft, RandomSource& random) {
  const auto place = permutation(draft.ops.size(), random);
  const auto rename = [&](OpId& op) { op = OpId{place[op.index()]}; };
  draft.ops = permuted(draft.ops, place);
  for (Tensor& tensor : draft.tensors) {
    rename(tensor.producer);
    for (OpId& reader : tensor.consumers) rename(reader);
  }
  for (auto& group : draft.colocated) std::for_each(group.begin(), group.end(), rename);
  for (auto& weight : draft.shared_weights) {
    std::for_each(weight.ops.begin(), weight.ops.end(), rename);
  }
  for (std::size_t i = 0; i < draft.ops.size(); ++i) draft.ops[i].name = "new" + std::to_string(i);
  return draft;
}

ProblemDraft with_devices_renumbered(ProblemDraft draft, RandomSource& random) {
  const std::size_t count = draft.cluster.devices.size();
  const auto place = permutation(count, random);
  draft.cluster.devices = permuted(draft.cluster.devices, place);
  for (Link& link : draft.cluster.links) {
    link.from = DeviceId{place[link.from.index()]};
    link.to = DeviceId{place[link.to.index()]};
  }
  for (Op& op : draft.ops) {
    if (op.pinned_to.valid()) op.pinned_to = DeviceId{place[op.pinned_to.index()]};
  }
  for (Tensor& tensor : draft.tensors) {
    if (tensor.link_times.empty()) continue;
    const std::vector<double> old = tensor.link_times;
    for (std::size_t from = 0; from < count; ++from) {
      for (std::size_t to = 0; to < count; ++to) {
        tensor.link_times[place[from] * count + place[to]] = old[from * count + to];
      }
    }
  }
  return draft;
}

void scale_transfers(ProblemDraft& draft, double factor) {
  for (Link& link : draft.cluster.links) {
    link.latency *= factor;
    link.bandwidth /= factor;
  }
  for (Tensor& tensor : draft.tensors) {
    tensor.host_time *= factor;
    for (double& time : tensor.link_times) time *= factor;
  }
}

ProblemDraft with_times_scaled(ProblemDraft draft) {
  scale_transfers(draft, kScale);
  for (Op& op : draft.ops) {
    for (double& time : op.time) time *= kScale;
  }
  for (Device& device : draft.cluster.devices) {
    device.send_overhead *= kScale;
    device.receive_overhead *= kScale;
  }
  for (Model& model : draft.models) model.arrival *= kScale;
  return draft;
}

// A device that can run nothing.
ProblemDraft with_useless_device(ProblemDraft draft) {
  const std::size_t count = draft.cluster.devices.size();
  draft.cluster.devices.push_back({.name = "useless", .kind = KindId{draft.cluster.kinds.size()}});
  draft.cluster.kinds.push_back({"useless kind", false});
  for (Op& op : draft.ops) op.time.push_back(kUnsupported);
  for (Tensor& tensor : draft.tensors) {
    if (tensor.link_times.empty()) continue;
    std::vector<double> table((count + 1) * (count + 1), 0);
    for (std::size_t from = 0; from <= count; ++from) {
      for (std::size_t to = 0; to <= count; ++to) {
        if (from == to) continue;
        table[from * (count + 1) + to] =
            from < count && to < count ? tensor.link_times[from * count + to] : kInfinity;
      }
    }
    tensor.link_times = std::move(table);
  }
  return draft;
}

ProblemDraft with_more_memory(ProblemDraft draft) {
  for (Device& device : draft.cluster.devices) device.memory *= 1.5;
  return draft;
}

ProblemDraft with_faster_links(ProblemDraft draft) {
  scale_transfers(draft, 0.5);
  return draft;
}

enum class Relation { equal, scaled, not_worse };

struct Change {
  std::string name;
  Relation relation;
  std::function<ProblemDraft(ProblemDraft, RandomSource&)> apply;
};

std::vector<Change> changes() {
  const auto plain = [](ProblemDraft (*change)(ProblemDraft)) {
    return [change](ProblemDraft draft, RandomSource&) { return change(std::move(draft)); };
  };
  return {{"ops renumbered", Relation::equal, with_ops_renumbered},
          {"devices renumbered", Relation::equal, with_devices_renumbered},
          {"times scaled", Relation::scaled, plain(with_times_scaled)},
          {"a useless device", Relation::equal, plain(with_useless_device)},
          {"more memory", Relation::not_worse, plain(with_more_memory)},
          {"faster links", Relation::not_worse, plain(with_faster_links)}};
}

void expect_related(std::optional<double> before, std::optional<double> after,
                    const Change& change) {
  if (!before) {
    EXPECT_FALSE(after.has_value() && change.relation != Relation::not_worse);
    return;
  }
  ASSERT_TRUE(after.has_value());
  const double expected = change.relation == Relation::scaled ? kScale * *before : *before;
  EXPECT_LE(*after, expected * (1 + 1e-9));
  if (change.relation == Relation::not_worse) return;
  EXPECT_GE(*after, expected * (1 - 1e-9));
}

void expect_bounds_below(const Problem& problem, double best) {
  for (const Bound& bound : lower_bounds(problem)) {
    EXPECT_LE(bound.value, best * (1 + 1e-9)) << bound.name;
  }
}

// Every exact planner that fits proves the optimum, or does not claim to.
std::size_t expect_exact_planners_agree(const Problem& problem, const Registry& registry,
                                        std::optional<double> best) {
  std::size_t proofs = 0;
  for (const PlannerEntry* entry : registry.fitting(problem)) {
    if (entry->strength != Strength::exact) continue;
    PlanRequest request;
    request.planner = entry->name;
    request.budget.seconds = 5;
    const PlanOutcome outcome = make_plan(problem, registry, request);
    EXPECT_EQ(outcome.fault, "") << entry->name;
    if (outcome.answer.status() == Status::infeasible) {
      ++proofs;
      EXPECT_FALSE(best.has_value()) << entry->name;
    }
    if (!best) {
      EXPECT_FALSE(outcome.answer.plan.has_value()) << entry->name;
      continue;
    }
    EXPECT_LE(outcome.answer.certificate.lower_bound, *best * (1 + 1e-6)) << entry->name;
    if (outcome.answer.status() != Status::optimal) continue;
    ++proofs;
    EXPECT_NEAR(outcome.value(), *best, 1e-6 * *best) << entry->name;
  }
  return proofs;
}

struct PropertyCase {
  Objective objective;
  InterconnectKind interconnect;
};

class Properties : public ::testing::TestWithParam<PropertyCase> {};

INSTANTIATE_TEST_SUITE_P(
    Objectives, Properties,
    ::testing::Values(PropertyCase{Objective::latency, InterconnectKind::links},
                      PropertyCase{Objective::latency, InterconnectKind::host},
                      PropertyCase{Objective::total_completion, InterconnectKind::links},
                      PropertyCase{Objective::throughput, InterconnectKind::links},
                      PropertyCase{Objective::throughput, InterconnectKind::host}),
    [](const auto& test_case) {
      std::string name{name_of(test_case.param.objective)};
      name += test_case.param.interconnect == InterconnectKind::host ? "_host" : "_links";
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST_P(Properties, HoldForTheOptimumExactPlannersAndBounds) {
  const Registry registry = planning_registry();
  for (const std::uint64_t seed : testing::random_cases(40)) {
    RandomProblemOptions options;
    options.objective = GetParam().objective;
    options.interconnect = GetParam().interconnect;
    options.ops = 5;
    options.devices = seed % 2 == 0 ? 3 : 2;
    options.models = options.objective == Objective::total_completion ? 2 : 1;
    options.congestion = seed % 3 != 0;
    options.binding_memory = seed % 2 == 1;
    options.unsupported = seed % 4 == 1;
    options.colocation = seed % 5 == 2;
    // The reader that bears a receive overhead depends on the ops' numbers: none here.
    options.overheads = false;
    options.training = options.objective == Objective::throughput && seed % 3 == 1;
    const ProblemDraft draft = random_draft(options, seed);
    const Problem problem(draft);
    const std::optional<double> best = brute_force_value(problem);
    if (best) expect_bounds_below(problem, *best);
    expect_exact_planners_agree(problem, registry, best);
    RandomSource random(seed);
    for (const Change& change : changes()) {
      SCOPED_TRACE(change.name + ", seed " + std::to_string(seed));
      const Problem changed(change.apply(draft, random));
      const std::optional<double> value = brute_force_value(changed);
      expect_related(best, value, change);
      if (value) expect_bounds_below(changed, *value);
      expect_exact_planners_agree(changed, registry, value);
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace placewright
