#include "planners/flow/list_search.h"

#include <gtest/gtest.h>

#include "support/brute_force.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

Table<OpId, double> by_number(const Problem& problem) {
  Table<OpId, double> moments(problem.op_count(), 0);
  for (const OpId op : problem.ops()) moments[op] = static_cast<double>(op.index());
  return moments;
}

// Two models on one device; the long one is first in the list, and last in the best plan.
TEST(ListSearch, LetsTheShortModelGoFirst) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  draft.cluster.kinds = {{"only"}};
  draft.cluster.devices = {{.name = "only", .kind = KindId{0}}};
  draft.models = {{.name = "long"}, {.name = "short"}};
  for (std::size_t i = 0; i < 6; ++i) {
    draft.ops.push_back({.name = std::to_string(i), .model = ModelId{i / 5}, .time = {1}});
  }
  const Problem problem(draft);
  Control control("lists", Budget{.seconds = 600});
  ListSearch lists(problem, control);
  lists.offer(by_number(problem));
  EXPECT_DOUBLE_EQ(lists.best()->value, 5 + 6);
  lists.anneal([] { return false; });
  EXPECT_DOUBLE_EQ(lists.best()->value, 1 + 6);
}

TEST(ListSearch, PlansAreRightAndNeverWorseThanWhatWasOffered) {
  testing::RandomProblemOptions options;
  options.objective = Objective::total_completion;
  options.models = 2;
  options.ops = 5;
  options.devices = 2;
  options.lanes = options.overheads = options.zero_times = options.unsupported = true;
  options.binding_memory = options.colocation = options.pins = true;
  int compared = 0;
  int better = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Problem problem(testing::random_draft(options, seed));
    Control control("lists", Budget{.seconds = 600, .seed = seed});
    ListSearch lists(problem, control);
    lists.offer(by_number(problem));
    const auto least = testing::brute_force_value(problem);
    if (!lists.best() || !least) continue;  // memory may keep a list from its end
    ++compared;
    const double offered = lists.best()->value;
    int left = 500;
    lists.anneal([&] { return left-- == 0; });
    const Plan& plan = *lists.best();
    EXPECT_TRUE(verify(problem, plan).empty()) << "seed " << seed;
    EXPECT_LE(plan.value, offered);
    EXPECT_GE(plan.value, *least * (1 - 1e-9)) << "seed " << seed;
    better += plan.value < offered ? 1 : 0;
  }
  EXPECT_GT(compared, 50);
  EXPECT_GT(better, 10);
}

TEST(ListSearch, TheSameSeedGivesTheSamePlan) {
  testing::RandomProblemOptions options;
  options.objective = Objective::total_completion;
  options.models = 4;
  options.ops = 60;
  options.devices = 3;
  const Problem problem(testing::random_draft(options, 1));
  std::vector<double> values;
  for (int run = 0; run < 2; ++run) {
    Control control("lists", Budget{.seconds = 600, .seed = 3});
    ListSearch lists(problem, control);
    lists.offer(by_number(problem));
    int left = 300;
    lists.anneal([&] { return left-- == 0; });
    values.push_back(lists.best()->value);
  }
  EXPECT_EQ(values[0], values[1]);
}

}  // namespace
}  // namespace placewright
