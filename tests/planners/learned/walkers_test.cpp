// Walkers stay where ops may go, climb down, and do the same for the same seed.

#include "planners/learned/walkers.h"

#include <gtest/gtest.h>

#include "problem/problem.h"
#include "support/random_problem.h"

namespace placewright::learned {
namespace {

constexpr double kGuided = 0.5;

class WalkersTest : public ::testing::Test {
 protected:
  static Problem made() {
    testing::RandomProblemOptions options;
    options.ops = 30;
    options.devices = 3;
    options.unsupported = true;
    return Problem(testing::random_draft(options, 2));
  }

  // How many nodes are not on the last device that they may use.
  [[nodiscard]] double distance(std::span<const std::int32_t> row) const {
    double count = 0;
    for (std::size_t node = 0; node < row.size(); ++node) count += row[node] == goal_[node] ? 0 : 1;
    return count;
  }

  // The best value after some rounds in which the policy draws what `drawn` says.
  double walked(std::uint64_t seed, std::size_t rounds, const std::vector<std::int32_t>& drawn) {
    Walkers walkers(graph_, seed);
    std::vector<std::int32_t> rows;
    for (int i = 0; i < 8; ++i) rows.insert(rows.end(), drawn.begin(), drawn.end());
    ValuedRow best{first_, distance(first_)};
    for (std::size_t round = 0; round < rounds; ++round) {
      walkers.begin_round(best);
      for (std::size_t i = 0; i < walkers.size(); ++i) {
        walkers.walk(i, rows, group_of_, kGuided, [&](std::span<const std::int32_t> row) {
          for (const NodeId node : ids<NodeId>(row.size())) {
            EXPECT_TRUE(graph_.may_go(node, DeviceId{static_cast<std::size_t>(row[node.index()])}));
          }
          return distance(row);
        });
        EXPECT_EQ(walkers.best_of(i).value, distance(walkers.best_of(i).row));
        if (walkers.best_of(i).value < best.value) best = walkers.best_of(i);
      }
      walkers.end_round();
    }
    return best.value;
  }

  void SetUp() override {
    for (const NodeId node : ids<NodeId>(graph_.node_count())) {
      std::int32_t least = -1;
      std::int32_t most = -1;
      for (const DeviceId device : problem_.devices()) {
        if (!graph_.may_go(node, device)) continue;
        most = static_cast<std::int32_t>(device.index());
        if (least < 0) least = most;
      }
      first_.push_back(least);
      goal_.push_back(most);
      group_of_.push_back(static_cast<std::int64_t>(node.index() / 2));
    }
  }

  Problem problem_ = made();
  PlacementGraph graph_ = placement_graph(problem_, {}, Placement(problem_.op_count()));
  std::vector<std::int32_t> first_;
  std::vector<std::int32_t> goal_;
  std::vector<std::int64_t> group_of_;
};

TEST_F(WalkersTest, FindTheGoalStepByStep) {
  ASSERT_GT(distance(first_), 10);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    // A policy that draws what is there already is no help.
    EXPECT_EQ(walked(seed, 500, first_), 0) << "seed " << seed;
  }
}

TEST_F(WalkersTest, APolicyThatKnowsTheGoalLeadsThereSooner) {
  double alone = 0;
  double led = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    alone += walked(seed, 10, first_);
    led += walked(seed, 10, goal_);
  }
  EXPECT_LT(led, alone);
}

TEST_F(WalkersTest, TheSameSeedWalksTheSameWay) {
  EXPECT_EQ(walked(7, 5, first_), walked(7, 5, first_));
}

}  // namespace
}  // namespace placewright::learned
