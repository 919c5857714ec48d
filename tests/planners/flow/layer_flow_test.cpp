// The layer's flow: optimal after every change, as LEMON and an LP see it from nothing.

#include "planners/flow/layer_flow.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "solvers/linear_program.h"
#include "solvers/min_cost_flow.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using testing::RandomSource;

struct Layer {
  std::vector<std::int64_t> capacity;
  std::vector<std::vector<double>> costs;  // empty: no such op
};

// source -> model -> op -> place -> sink, as algorithms.md has it; ops belong to three models.
solvers::FlowResult by_lemon(const Layer& layer) {
  constexpr int kModels = 3;
  const int ops = static_cast<int>(layer.costs.size());
  const int places = static_cast<int>(layer.capacity.size());
  const int source = 0;
  const int sink = 1;
  const int first_op = 2 + kModels;
  const int first_place = first_op + ops;
  solvers::FlowNetwork network;
  network.supply.assign(static_cast<std::size_t>(first_place + places), 0);
  const auto arc = [&](int from, int to, std::int64_t capacity, double cost) {
    network.arcs.push_back({.source = from, .target = to, .capacity = capacity, .cost = cost});
  };
  for (int model = 0; model < kModels; ++model) arc(source, 2 + model, ops, 0);
  std::int64_t units = 0;
  for (int op = 0; op < ops; ++op) {
    const auto& costs = layer.costs[static_cast<std::size_t>(op)];
    if (costs.empty()) continue;
    ++units;
    arc(2 + op % kModels, first_op + op, 1, 0);
    for (int place = 0; place < places; ++place) {
      const double cost = costs[static_cast<std::size_t>(place)];
      if (cost < 1e100) arc(first_op + op, first_place + place, 1, cost);
    }
  }
  for (int place = 0; place < places; ++place) {
    const std::int64_t capacity = layer.capacity[static_cast<std::size_t>(place)];
    arc(first_place + place, sink, std::min<std::int64_t>(capacity, ops), 0);
  }
  network.supply[source] = units;
  network.supply[sink] = -units;
  return solvers::min_cost_flow(network);
}

double by_linear_program(const Layer& layer) {
  solvers::LinearProgram program;
  std::vector<std::vector<solvers::LinearTerm>> load(layer.capacity.size());
  for (const auto& costs : layer.costs) {
    if (costs.empty()) continue;
    std::vector<solvers::LinearTerm> choice;
    for (std::size_t place = 0; place < costs.size(); ++place) {
      if (costs[place] > 1e100) continue;
      const int variable = program.add_variable(0, solvers::kUnbounded, costs[place]);
      choice.push_back({variable, 1});
      load[place].push_back({variable, 1});
    }
    program.add_row(1, 1, choice);
  }
  for (std::size_t place = 0; place < layer.capacity.size(); ++place) {
    if (layer.capacity[place] == LayerFlow::kUnlimited) continue;
    program.add_row(-solvers::kUnbounded, static_cast<double>(layer.capacity[place]), load[place]);
  }
  return program.solve().objective;
}

std::vector<double> random_costs(RandomSource& random, std::size_t places, bool ties) {
  std::vector<double> costs;
  for (std::size_t place = 0; place < places; ++place) {
    const double cost = ties ? static_cast<double>(random.below(4)) : 100 * random.unit() - 90;
    const bool missing = place + 1 < places && random.chance(0.15);
    costs.push_back(missing ? std::numeric_limits<double>::infinity() : cost);
  }
  return costs;
}

// The last place takes whatever finds no other.
Layer random_layer(RandomSource& random, std::size_t ops, std::size_t places, bool ties) {
  Layer layer;
  for (std::size_t place = 0; place < places; ++place) {
    layer.capacity.push_back(static_cast<std::int64_t>(random.below(4)));
  }
  layer.capacity.back() = LayerFlow::kUnlimited;
  for (std::size_t op = 0; op < ops; ++op)
    layer.costs.push_back(random_costs(random, places, ties));
  return layer;
}

void expect_optimal(const LayerFlow& flow, const Layer& layer) {
  const solvers::FlowResult expected = by_lemon(layer);
  ASSERT_EQ(expected.status, solvers::FlowStatus::optimal) << expected.error;
  EXPECT_NEAR(flow.cost(), expected.cost, 1e-6);
  EXPECT_TRUE(flow.potentials_prove_optimality());
  std::vector<std::int64_t> used(layer.capacity.size(), 0);
  for (std::size_t op = 0; op < layer.costs.size(); ++op) {
    if (layer.costs[op].empty()) continue;
    const std::size_t place = flow.place(op);
    ASSERT_LT(place, used.size());
    EXPECT_LE(++used[place], layer.capacity[place]);
  }
}

TEST(LayerFlow, IsOptimalAsLemonAndAnLpSeeIt) {
  RandomSource random(5);
  for (int trial = 0; trial < 300; ++trial) {
    const Layer layer =
        random_layer(random, 1 + random.below(30), 2 + random.below(7), trial % 3 == 0);
    LayerFlow flow(layer.capacity);
    for (const auto& costs : layer.costs) (void)flow.add(costs);
    expect_optimal(flow, layer);
    if (trial % 5 == 0) {
      EXPECT_NEAR(flow.cost(), by_linear_program(layer), 1e-6);
    }
  }
}

TEST(LayerFlow, StaysOptimalUnderEveryChange) {
  RandomSource random(6);
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t places = 2 + random.below(6);
    const bool ties = trial % 3 == 0;
    Layer layer = random_layer(random, 12, places, ties);
    LayerFlow flow(layer.capacity);
    for (const auto& costs : layer.costs) (void)flow.add(costs);
    for (int change = 0; change < 40; ++change) {
      const std::size_t op = random.below(layer.costs.size());
      const bool there = !layer.costs[op].empty();
      switch (random.below(4)) {
        case 0: {
          const std::size_t place = random.below(places - 1);
          layer.capacity[place] = static_cast<std::int64_t>(random.below(5));
          flow.set_capacity(place, layer.capacity[place]);
          break;
        }
        case 1:
          if (!there) break;
          flow.remove(op);
          layer.costs[op].clear();
          break;
        case 2:
          if (!there) break;
          layer.costs[op] = random_costs(random, places, ties);
          flow.set_costs(op, layer.costs[op]);
          break;
        default: {
          const std::vector<double> costs = random_costs(random, places, ties);
          const std::size_t number = flow.add(costs);
          if (number == layer.costs.size()) layer.costs.emplace_back();
          ASSERT_TRUE(layer.costs[number].empty());
          layer.costs[number] = costs;
        }
      }
      expect_optimal(flow, layer);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(LayerFlow, AStartedOpLeavesWithItsRoom) {
  RandomSource random(7);
  Layer layer = random_layer(random, 20, 5, false);
  LayerFlow flow(layer.capacity);
  for (const auto& costs : layer.costs) (void)flow.add(costs);
  for (std::size_t op = 0; op < 20; op += 2) {
    const std::size_t place = flow.place(op);
    flow.retire(op);
    layer.costs[op].clear();
    if (layer.capacity[place] != LayerFlow::kUnlimited) --layer.capacity[place];
    expect_optimal(flow, layer);
  }
}

TEST(LayerFlow, OpsWithoutRoomWaitForIt) {
  const std::vector<std::int64_t> capacity = {1};
  LayerFlow flow(capacity);
  const std::vector<double> costs = {1};
  const std::size_t first = flow.add(costs);
  const std::size_t second = flow.add(costs);
  EXPECT_EQ(flow.place(first), 0U);
  EXPECT_EQ(flow.place(second), LayerFlow::kNowhere);
  flow.remove(first);
  EXPECT_EQ(flow.place(second), 0U);
  flow.set_capacity(0, 0);
  EXPECT_EQ(flow.place(second), LayerFlow::kNowhere);
  flow.set_capacity(0, 1);
  EXPECT_EQ(flow.place(second), 0U);
}

}  // namespace
}  // namespace placewright
