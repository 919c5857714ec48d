#include "coarsen/matching.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "evaluate/mean_transfer.h"
#include "evaluate/schedule.h"
#include "support/random_plan.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

MatchingCosts costs_of(const Problem& problem) {
  MatchingCosts costs{.work = Table<OpId, double>(problem.op_count()),
                      .transfer = mean_transfer_times(problem)};
  for (const OpId op : problem.ops()) costs.work[op] = mean_time(problem, op);
  return costs;
}

std::size_t count_of(const Partition& partition) {
  std::size_t count = 0;
  for (const CoarseSet set : partition) count = std::max(count, set.index() + 1);
  return count;
}

// Coarsening splits sets that lie on a cycle, so as many ops as sets are left exactly when there is
// none.
TEST(Matching, LeavesAnAcyclicGraphOfPairs) {
  std::size_t joined = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomProblemOptions options;
    options.ops = 8 + seed % 40;
    options.edge_probability = 0.02 + 0.03 * static_cast<double>(seed % 6);
    const Problem problem(testing::random_draft(options, seed));
    const Partition pairs = matched(problem, costs_of(problem), Placement(problem.op_count()));
    std::vector<std::size_t> members(count_of(pairs), 0);
    for (const OpId op : problem.ops()) ++members[pairs[op].index()];
    for (const std::size_t number : members) EXPECT_LE(number, 2U);
    const Coarsening coarsening(problem, pairs);
    EXPECT_EQ(coarsening.coarse().op_count(), members.size());
    joined += problem.op_count() - members.size();
  }
  EXPECT_GT(joined, 2000U);
}

TEST(Matching, JoinsOpsOfOneDeviceUpToAWeight) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomProblemOptions options;
    options.ops = 30;
    options.edge_probability = 0.1;
    const Problem problem(testing::random_draft(options, seed));
    testing::RandomSource random(seed);
    const Placement placement = testing::random_placement(problem, random);
    MatchingCosts costs = costs_of(problem);
    costs.heaviest = 1.5 * costs.work[OpId{0}];
    const Partition pairs = matched(problem, costs, placement);
    Table<CoarseSet, OpId> first(count_of(pairs));
    for (const OpId op : problem.ops()) {
      OpId& other = first[pairs[op]];
      if (other.valid()) {
        EXPECT_EQ(placement[op], placement[other]);
        EXPECT_LE(costs.work[op] + costs.work[other], costs.heaviest);
      }
      other = op;
    }
  }
}

}  // namespace
}  // namespace placewright
