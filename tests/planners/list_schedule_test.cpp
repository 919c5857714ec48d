// List schedulers against what they promise.

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "evaluate/partial_schedule.h"
#include "evaluate/schedule.h"
#include "planners/baselines/baselines.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

Answer answer_of(const PlannerEntry& planner, const Problem& problem) {
  Control control("test", Budget{.seconds = 600});
  return planner.plan(problem, Settings{planner.options}, control);
}

// ETF as it is defined: of all ready ops and devices the pair with the earliest start, of these the
// op of highest rank, and for an op the device where it ends first. Every pair is looked at each
// time.
Placement earliest_start_placement(const Problem& problem) {
  const Table<OpId, double> ranks = upward_ranks(problem);
  PartialSchedule schedule(problem, Gaps::append);
  Table<OpId, char> placed(problem.op_count(), 0);
  for (std::size_t done = 0; done < problem.op_count(); ++done) {
    using Key = std::tuple<double, double, OpId, double, DeviceId>;
    std::optional<Key> best;
    for (const OpId op : problem.ops()) {
      const auto before = problem.predecessors(op);
      if (placed[op] != 0 ||
          !std::all_of(before.begin(), before.end(), [&](OpId other) { return placed[other]; })) {
        continue;
      }
      for (const DeviceId device : problem.devices()) {
        if (!problem.allowed(op, device)) continue;
        const PartialSchedule::Slot slot = schedule.probe(op, device);
        const Key key{slot.start, -ranks[op], op, slot.end, device};
        if (!best || key < *best) best = key;
      }
    }
    schedule.place(std::get<OpId>(*best), std::get<DeviceId>(*best));
    placed[std::get<OpId>(*best)] = 1;
  }
  return schedule.placement();
}

TEST(Etf, TakesThePairWithTheEarliestStart) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomProblemOptions options;
    options.ops = 40;
    options.devices = 2 + seed % 4;
    options.edge_probability = seed % 3 == 0 ? 0.02 : 0.1;
    options.interconnect = seed % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
    options.congestion = seed % 5 != 0;
    options.lanes = seed % 4 == 0;
    options.unsupported = seed % 6 == 0;
    options.zero_times = seed % 7 == 0;
    const Problem problem(testing::random_draft(options, seed));
    const Answer answer = answer_of(etf(), problem);
    ASSERT_TRUE(answer.plan);
    EXPECT_EQ(answer.plan->placement, earliest_start_placement(problem));
  }
}

Problem generated(GraphFamily family, std::size_t devices) {
  GenerateOptions options;
  options.family = family;
  options.objective = Objective::latency;
  options.ops = 2000;
  options.devices = devices;
  return Problem(generate(options));
}

TEST(Lists, PricesHelpWhereDevicesAreFull) {
  const Problem problem = generated(GraphFamily::layered, 8);
  EXPECT_LT(answer_of(lists(), problem).value(), 0.99 * answer_of(heft(), problem).value());
}

TEST(Lists, FewerDevicesHelpWhereTransfersDecide) {
  const Problem problem = generated(GraphFamily::transformer, 16);
  EXPECT_LT(answer_of(lists(), problem).value(), answer_of(heft(), problem).value());
}

}  // namespace
}  // namespace placewright
