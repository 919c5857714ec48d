#include "solvers/min_cost_flow.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "solvers/linear_program.h"

namespace placewright::solvers {
namespace {

// The same problem as an LP, the independent opinion.
LinearResult solve_as_lp(const FlowNetwork& network) {
  LinearProgram program;
  std::vector<std::vector<LinearTerm>> balance(network.supply.size());
  for (const FlowArc& arc : network.arcs) {
    const double capacity =
        arc.capacity == kUnlimitedFlow ? kUnbounded : static_cast<double>(arc.capacity);
    const int flow = program.add_variable(static_cast<double>(arc.lower), capacity, arc.cost);
    balance[static_cast<std::size_t>(arc.source)].push_back({flow, 1});
    balance[static_cast<std::size_t>(arc.target)].push_back({flow, -1});
  }
  for (std::size_t i = 0; i < balance.size(); ++i) {
    const auto supply = static_cast<double>(network.supply[i]);
    program.add_row(supply, supply, balance[i]);
  }
  return program.solve();
}

FlowNetwork random_network(std::mt19937& random, bool whole_costs) {
  FlowNetwork network;
  const int nodes = 2 + static_cast<int>(random() % 8);
  network.supply.assign(static_cast<std::size_t>(nodes), 0);
  for (int i = 0; i < nodes; ++i) {
    const auto amount = static_cast<std::int64_t>(random() % 5);
    network.supply[random() % network.supply.size()] += amount;
    network.supply[random() % network.supply.size()] -= amount;
  }
  const auto arcs = random() % 30;
  for (std::size_t i = 0; i < arcs; ++i) {
    FlowArc arc;
    arc.source = static_cast<int>(random() % static_cast<unsigned>(nodes));
    arc.target = static_cast<int>(random() % static_cast<unsigned>(nodes));
    arc.lower = random() % 4 == 0 ? 1 : 0;
    arc.capacity = random() % 3 == 0 ? kUnlimitedFlow : static_cast<std::int64_t>(1 + random() % 9);
    arc.cost = static_cast<double>(random() % 1000) / (whole_costs ? 1 : 7.3) -
               (random() % 4 == 0 ? 50 : 0);
    if (whole_costs) arc.cost = static_cast<double>(static_cast<int>(arc.cost));
    network.arcs.push_back(arc);
  }
  return network;
}

TEST(MinCostFlow, AgreesWithTheLpOnRandomNetworks) {
  std::mt19937 random(11);
  int optimal = 0;
  for (int round = 0; round < 400; ++round) {
    const FlowNetwork network = random_network(random, round % 2 == 0);
    const FlowResult flow = min_cost_flow(network);
    const LinearResult lp = solve_as_lp(network);
    if (flow.status == FlowStatus::infeasible) {
      EXPECT_EQ(lp.status, LinearStatus::infeasible) << "round " << round;
    } else if (flow.status == FlowStatus::unbounded) {
      EXPECT_TRUE(lp.status == LinearStatus::unbounded || lp.status == LinearStatus::infeasible)
          << "round " << round;
    } else {
      ++optimal;
      ASSERT_EQ(flow.status, FlowStatus::optimal) << flow.error;
      ASSERT_EQ(lp.status, LinearStatus::optimal) << "round " << round;
      EXPECT_NEAR(flow.cost, lp.objective, 1e-6) << "round " << round;
      for (std::size_t i = 0; i < network.arcs.size(); ++i) {
        const FlowArc& arc = network.arcs[i];
        const double reduced = arc.cost + flow.potential[static_cast<std::size_t>(arc.source)] -
                               flow.potential[static_cast<std::size_t>(arc.target)];
        if (flow.flow[i] < arc.capacity) {
          EXPECT_GE(reduced, -1e-6);
        }
        if (flow.flow[i] > arc.lower) {
          EXPECT_LE(reduced, 1e-6);
        }
      }
    }
  }
  EXPECT_GT(optimal, 50);
}

TEST(MinCostFlow, SaysInfeasibleUnboundedAndWrong) {
  EXPECT_EQ(min_cost_flow({{3, -2}, {{0, 1}}}).status, FlowStatus::infeasible);
  EXPECT_EQ(min_cost_flow({{3, -3}, {{0, 1, 0, 2, 1.0}}}).status, FlowStatus::infeasible);
  EXPECT_EQ(min_cost_flow({{3, -3}, {}}).status, FlowStatus::infeasible);
  EXPECT_EQ(min_cost_flow({{0, 0}, {{0, 1, 0, kUnlimitedFlow, -1.0}, {1, 0}}}).status,
            FlowStatus::unbounded);
  const FlowResult wrong = min_cost_flow({{0, 0}, {{0, 7}}});
  EXPECT_EQ(wrong.status, FlowStatus::error);
  EXPECT_EQ(wrong.error, "arc 0 leaves the network");
  EXPECT_EQ(min_cost_flow({}).status, FlowStatus::optimal);
}

TEST(MinCostFlow, HandlesTinyAndHugeCosts) {
  const FlowResult tiny =
      min_cost_flow({{2, 0, -2}, {{0, 2, 0, 1, 1e-12}, {0, 1, 0, 9, 1e-12}, {1, 2, 0, 9, 2e-12}}});
  ASSERT_EQ(tiny.status, FlowStatus::optimal);
  EXPECT_NEAR(tiny.cost, 4e-12, 1e-20);
  const FlowResult huge = min_cost_flow({{1, -1}, {{0, 1, 0, 9, 1e200}, {0, 1, 0, 9, 0.9e200}}});
  ASSERT_EQ(huge.status, FlowStatus::optimal);
  EXPECT_EQ(huge.flow, (std::vector<std::int64_t>{0, 1}));
}

}  // namespace
}  // namespace placewright::solvers
