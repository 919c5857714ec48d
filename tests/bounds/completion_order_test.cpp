#include "bounds/completion_order.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "bounds/bounds.h"
#include "bounds/critical_path.h"
#include "support/brute_force.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

double bound_of(const Problem& problem) {
  return completion_order_bound(problem, critical_paths(problem));
}

// Models with arrivals and weights, on devices that share resources in any way.
TEST(CompletionOrder, IsNeverAboveTheOptimumWhereResourcesAreShared) {
  testing::RandomProblemOptions options;
  options.objective = Objective::total_completion;
  options.ops = 4;
  options.devices = 3;
  options.resources = options.zero_times = options.unsupported = options.colocation = true;
  options.spaces = options.overheads = options.pins = true;
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    options.models = 1 + seed % 4;
    options.edge_probability = seed % 3 == 0 ? 0.1 : 0.6;
    const Problem problem(testing::random_draft(options, seed));
    const auto least = testing::brute_force_value(problem);
    if (!least) continue;
    ++compared;
    EXPECT_LE(bound_of(problem), *least * (1 + 1e-9)) << "seed " << seed;
  }
  EXPECT_GT(compared, 2000);
}

// With models without ops beside them there are too many for all subsets; their completion costs
// nothing.
TEST(CompletionOrder, IsNeverAboveTheOptimumBesideManyModelsWithoutOps) {
  testing::RandomProblemOptions options;
  options.objective = Objective::total_completion;
  options.ops = 4;
  options.devices = 3;
  options.resources = options.zero_times = options.colocation = options.spaces = true;
  int compared = 0;
  int differ = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    options.models = 2 + seed % 3;
    options.edge_probability = seed % 3 == 0 ? 0.1 : 0.6;
    ProblemDraft draft = seed % 4 == 3 ? testing::core_set_draft(options, seed)
                                       : testing::random_draft(options, seed);
    const Problem few(draft);
    const auto least = testing::brute_force_value(few);
    if (!least) continue;
    for (std::size_t i = 0; i < 14; ++i) {
      draft.models.push_back({.name = "idle" + std::to_string(i),
                              .arrival = static_cast<double>(i % 5),
                              .weight = 1 + static_cast<double>(i % 3),
                              .deadline = {}});
    }
    const double bound = bound_of(Problem(std::move(draft)));
    EXPECT_LE(bound, *least * (1 + 1e-9)) << "seed " << seed;
    ++compared;
    differ += bound != bound_of(few) ? 1 : 0;
  }
  EXPECT_GT(compared, 700);
  EXPECT_GT(differ, 0);
}

TEST(CompletionOrder, IsNeverAboveTheOptimumOnSetsOfCores) {
  testing::RandomProblemOptions options;
  options.objective = Objective::total_completion;
  options.ops = 4;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    options.models = 2 + seed % 3;
    const Problem problem(testing::core_set_draft(options, seed));
    const auto least = testing::brute_force_value(problem);
    ASSERT_TRUE(least);
    EXPECT_LE(bound_of(problem), *least * (1 + 1e-9)) << "seed " << seed;
  }
}

// What is shared only takes away, and the bound without it was there before.
TEST(CompletionOrder, IsNoWeakerForWhatIsShared) {
  testing::RandomProblemOptions options;
  options.objective = Objective::total_completion;
  options.ops = 12;
  int raised = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    options.models = 1 + seed % 4;
    ProblemDraft draft = testing::core_set_draft(options, seed);
    const double shared = bound_of(Problem(draft));
    for (Device& device : draft.cluster.devices) device.uses.clear();
    draft.cluster.resources.clear();
    const double apart = bound_of(Problem(std::move(draft)));
    EXPECT_GE(shared, apart) << "seed " << seed;
    raised += shared > 1.05 * apart ? 1 : 0;
  }
  EXPECT_GT(raised, 50);
}

// Models of one op each for a machine of two cores, on one of them or on both.
Problem one_op_each(const std::vector<Model>& models, const std::vector<double>& on_both) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  draft.cluster.kinds = {{"one"}, {"both"}};
  draft.cluster.resources = {{"core 0", 1}, {"core 1", 1}};
  draft.cluster.spaces = {{.name = "memory"}};
  const ResourceUse first{ResourceId{0}, 1};
  const ResourceUse second{ResourceId{1}, 1};
  const auto device = [](const char* name, std::size_t kind, std::vector<ResourceUse> uses) {
    return Device{.name = name, .kind = KindId{kind}, .uses = std::move(uses), .space = SpaceId{0}};
  };
  draft.cluster.devices = {device("0", 0, {first}), device("1", 0, {second}),
                           device("0-1", 1, {first, second})};
  draft.models = models;
  for (std::size_t i = 0; i < models.size(); ++i) {
    draft.models[i].name = std::to_string(i);
    draft.ops.push_back(
        {.name = std::to_string(i), .model = ModelId{i}, .time = {2 * on_both[i], on_both[i]}});
  }
  return Problem(std::move(draft));
}

// What one machine can do that may interrupt a model at whole moments: at each moment any model
// that is there goes on for a unit of time.
double best_interrupted(const std::vector<Model>& models, std::vector<int> left, int clock) {
  if (std::ranges::all_of(left, [](int units) { return units == 0; })) return 0;
  double best = kInfinity;
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (left[i] == 0 || models[i].arrival > clock) continue;
    --left[i];
    const double cost = left[i] == 0 ? models[i].weight * (clock + 1 - models[i].arrival) : 0;
    best = std::min(best, cost + best_interrupted(models, left, clock + 1));
    ++left[i];
  }
  return best < kInfinity ? best : best_interrupted(models, std::move(left), clock + 1);
}

struct Machine {
  std::vector<Model> models;
  std::vector<int> units;
  std::vector<double> on_both;
};

Machine random_machine(std::size_t models, bool equal_weights, std::uint64_t seed) {
  testing::RandomSource random(seed);
  Machine machine;
  for (std::size_t i = 0; i < models; ++i) {
    const auto arrival = static_cast<double>(random.between(0, 5));
    const auto weight = static_cast<double>(equal_weights ? 2 : random.between(1, 4));
    machine.models.push_back({.name = {}, .arrival = arrival, .weight = weight, .deadline = {}});
    machine.units.push_back(static_cast<int>(random.between(1, 3)));
    machine.on_both.push_back(machine.units.back());
  }
  return machine;
}

// Ops that are as good on two cores as on one make a machine of the cores: few models are its
// optimum.
TEST(CompletionOrder, IsWhatOneMachineCanDo) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Machine machine = random_machine(4, seed % 2 == 0, seed);
    const double best = best_interrupted(machine.models, machine.units, 0);
    const Problem problem = one_op_each(machine.models, machine.on_both);
    EXPECT_NEAR(bound_of(problem), best, 1e-6) << "seed " << seed;
  }
}

// With models of no work beside them there are too many for all subsets.
TEST(CompletionOrder, IsBelowWhatOneMachineCanDoWithManyModels) {
  double sum_of_quotients = 0;
  constexpr int kSeeds = 60;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Machine machine = random_machine(5, seed % 2 == 0, seed);
    const double best = best_interrupted(machine.models, machine.units, 0);
    for (std::size_t i = 0; i < 12; ++i) {
      machine.models.push_back({.name = {},
                                .arrival = static_cast<double>(i),
                                .weight = machine.models.front().weight,
                                .deadline = {}});
      machine.on_both.push_back(0);
    }
    const double bound = bound_of(one_op_each(machine.models, machine.on_both));
    EXPECT_LE(bound, best * (1 + 1e-9)) << "seed " << seed;
    if (seed % 2 == 0) {
      EXPECT_NEAR(bound, best, 1e-6) << "equal weights, seed " << seed;
    }
    sum_of_quotients += bound / best;
  }
  EXPECT_GT(sum_of_quotients / kSeeds, 0.95);
}

// Late in a long trace a clock has few digits for short models.
TEST(CompletionOrder, SaysTheSameWheneverTheModelsArrive) {
  constexpr double kLate = 1 << 24;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Machine machine = random_machine(16, false, seed);
    for (double& time : machine.on_both) time /= 64;
    for (Model& model : machine.models) model.arrival /= 64;
    const double early = bound_of(one_op_each(machine.models, machine.on_both));
    for (Model& model : machine.models) model.arrival += kLate;
    const double late = bound_of(one_op_each(machine.models, machine.on_both));
    EXPECT_NEAR(late, early, 1e-7 * early) << "seed " << seed;
  }
}

// Two models that both cores must do one after the other: 2 and 4. By devices they would be three
// machines, and the critical paths say 2 each.
TEST(CompletionOrder, KnowsThatSetsOfCoresAreOneMachine) {
  const Model model{.name = {}, .arrival = 0, .weight = 1, .deadline = {}};
  const Problem problem = one_op_each({model, model}, {2, 2});
  EXPECT_NEAR(bound_of(problem), 6, 1e-9);
  const Certificate certificate = best_lower_bound(problem);
  EXPECT_NEAR(certificate.lower_bound, 6, 1e-9);
  EXPECT_EQ(certificate.method, "work and energy of sets of models");
}

// A late model does not make the work of the early ones begin earlier, nor they its own.
TEST(CompletionOrder, CountsTheWorkOfLateModelsFromTheirArrival) {
  const Model early{.name = {}, .arrival = 0, .weight = 1, .deadline = {}};
  const Model late{.name = {}, .arrival = 10, .weight = 1, .deadline = {}};
  const Problem problem = one_op_each({early, late, late}, {1, 2, 2});
  EXPECT_NEAR(bound_of(problem), 1 + 2 + 4, 1e-9);
}

}  // namespace
}  // namespace placewright
