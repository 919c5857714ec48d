// The least period of stages that share resources, against every offset on a grid that is fine
// enough.

#include "evaluate/stage_arrangement.h"

#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "planners/random_numbers.h"
#include "problem/draft.h"

namespace placewright {
namespace {

// One op for each device, which is the stage.
struct StagesOnResources {
  Problem problem;
  std::vector<Stage> stages;
  std::vector<double> loads;
};

StagesOnResources stages_on(std::vector<double> capacities,
                            const std::vector<std::vector<ResourceUse>>& uses,
                            std::vector<double> loads) {
  ProblemDraft draft;
  draft.name = "stages";
  draft.objective = Objective::throughput;
  draft.models = {{.name = "model"}};
  draft.cluster.kinds = {{"kind", false}};
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    draft.cluster.resources.push_back({"r" + std::to_string(i), capacities[i]});
  }
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    Device device{.name = "d" + std::to_string(i), .kind = KindId{0}};
    device.uses = uses[i];
    draft.cluster.devices.push_back(std::move(device));
    Op op;
    op.name = "op" + std::to_string(i);
    op.time = {loads[i]};
    draft.ops.push_back(std::move(op));
    stages.push_back({{DeviceId{i}}, {OpId{i}}});
  }
  return {Problem(std::move(draft)), std::move(stages), std::move(loads)};
}

double least_period(const StagesOnResources& each, PeriodEnd end) {
  return StageArrangements(each.problem, each.stages).best(each.loads, end, kInfinity).period;
}

// Sets {i, i + 1} of as many cores in a ring.
StagesOnResources ring(std::size_t count) {
  std::vector<std::vector<ResourceUse>> uses;
  for (std::size_t i = 0; i < count; ++i) {
    uses.push_back({{ResourceId{i}, 1}, {ResourceId{(i + 1) % count}, 1}});
  }
  return stages_on(std::vector<double>(count, 1), uses, std::vector<double>(count, 1));
}

TEST(StageArrangements, ThreeSetsThatAllOverlapTakeTurns) {
  EXPECT_DOUBLE_EQ(least_period(ring(3), PeriodEnd::wraps), 3);
}

TEST(StageArrangements, FiveSetsInARingGoRoundTwice) {
  EXPECT_DOUBLE_EQ(least_period(ring(5), PeriodEnd::wraps), 2.5);
  EXPECT_DOUBLE_EQ(least_period(ring(5), PeriodEnd::last_stage), 3);
}

// Whether demands stay within the capacities, on a circle of `moments` steps.
bool fits(const StagesOnResources& each, const std::vector<std::size_t>& starts,
          const std::vector<std::size_t>& lengths, std::size_t moments) {
  for (const ResourceId resource : ids<ResourceId>(each.problem.resource_count())) {
    std::vector<double> level(moments, 0);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      for (const ResourceUse& use : each.problem.uses(DeviceId{i})) {
        if (use.resource != resource) continue;
        for (std::size_t k = 0; k < lengths[i]; ++k) level[(starts[i] + k) % moments] += use.amount;
      }
    }
    for (const double sum : level) {
      if (sum > each.problem.resource(resource).capacity) return false;
    }
  }
  return true;
}

bool some_starts_fit(const StagesOnResources& each, std::vector<std::size_t>& starts,
                     const std::vector<std::size_t>& lengths, std::size_t moments, bool wraps) {
  const std::size_t next = starts.size();
  if (next == lengths.size()) return fits(each, starts, lengths, moments);
  if (lengths[next] > moments) return false;
  // On a circle the first may be anywhere.
  const std::size_t last = wraps ? (next == 0 ? 0 : moments - 1) : moments - lengths[next];
  for (std::size_t start = 0; start <= last; ++start) {
    starts.push_back(start);
    if (some_starts_fit(each, starts, lengths, moments, wraps)) return true;
    starts.pop_back();
  }
  return false;
}

// Loads are whole numbers, so periods are whole numbers of k-th parts of a unit.
double least_period_on_grids(const StagesOnResources& each, bool wraps) {
  double best = std::accumulate(each.loads.begin(), each.loads.end(), 0.0);
  for (std::size_t parts = 1; parts <= (wraps ? each.loads.size() : 1); ++parts) {
    std::vector<std::size_t> lengths;
    for (const double load : each.loads) {
      lengths.push_back(static_cast<std::size_t>(std::lround(load)) * parts);
    }
    for (std::size_t moments = 1; static_cast<double>(moments) < best * static_cast<double>(parts);
         ++moments) {
      std::vector<std::size_t> starts;
      if (!some_starts_fit(each, starts, lengths, moments, wraps)) continue;
      best = static_cast<double>(moments) / static_cast<double>(parts);
    }
  }
  return best;
}

// As whoever checks a list of offsets does it.
TEST(StageArrangements, AListFillsAGapThatIsTooShortByARounding) {
  const std::vector<ResourceUse> core{{ResourceId{0}, 1}};
  const StagesOnResources each = stages_on({1}, {core, core, core}, {0.1, 0.2, 0.3 + 1e-12});
  const std::vector<std::optional<double>> stated{0.0, 0.4, std::nullopt};
  const Arrangement listed =
      StageArrangements(each.problem, each.stages).listed(each.loads, stated);
  EXPECT_EQ(listed.offsets[2], 0.1);
}

TEST(StageArrangements, AreTheBestOfAllOffsets) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers random(seed);
    std::vector<double> capacities;
    for (std::size_t i = random.between(1, 4); i > 0; --i) {
      capacities.push_back(static_cast<double>(random.between(1, 4)));
    }
    // The grids of five stages are long, so those have loads of one.
    std::vector<std::vector<ResourceUse>> uses(seed % 10 == 3 ? 5 : 4);
    std::vector<double> loads;
    for (auto& of_stage : uses) {
      for (std::size_t r = 0; r < capacities.size(); ++r) {
        const auto most = static_cast<std::size_t>(capacities[r]);
        if (random.chance(0.6)) {
          of_stage.push_back({ResourceId{r}, static_cast<double>(random.between(1, most))});
        }
      }
      loads.push_back(static_cast<double>(random.between(1, uses.size() == 5 ? 1 : 3)));
    }
    const StagesOnResources each = stages_on(capacities, uses, loads);
    EXPECT_NEAR(least_period(each, PeriodEnd::wraps), least_period_on_grids(each, true), 1e-9);
    EXPECT_NEAR(least_period(each, PeriodEnd::last_stage), least_period_on_grids(each, false),
                1e-9);
  }
}

}  // namespace
}  // namespace placewright
