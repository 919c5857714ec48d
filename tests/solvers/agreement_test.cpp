// The solvers against each other and against brute force.

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "solvers/cp_sat.h"
#include "solvers/linear_program.h"

namespace placewright::solvers {
namespace {

struct Knapsack {
  std::vector<int> worth, weight_a, weight_b;
  int room_a = 0;
  int room_b = 0;
};

Knapsack random_knapsack(std::mt19937& random) {
  Knapsack knapsack;
  const std::size_t items = 4 + random() % 9;
  for (std::size_t i = 0; i < items; ++i) {
    knapsack.worth.push_back(static_cast<int>(1 + random() % 50));
    knapsack.weight_a.push_back(static_cast<int>(1 + random() % 20));
    knapsack.weight_b.push_back(static_cast<int>(1 + random() % 20));
  }
  knapsack.room_a = static_cast<int>(10 + random() % 60);
  knapsack.room_b = static_cast<int>(10 + random() % 60);
  return knapsack;
}

int by_brute_force(const Knapsack& knapsack) {
  const std::size_t items = knapsack.worth.size();
  int best = 0;
  for (std::uint32_t chosen = 0; chosen < (1U << items); ++chosen) {
    int worth = 0;
    int a = 0;
    int b = 0;
    for (std::size_t i = 0; i < items; ++i) {
      if ((chosen >> i & 1U) == 0) continue;
      worth += knapsack.worth[i];
      a += knapsack.weight_a[i];
      b += knapsack.weight_b[i];
    }
    if (a <= knapsack.room_a && b <= knapsack.room_b) best = std::max(best, worth);
  }
  return best;
}

double by_milp(const Knapsack& knapsack) {
  LinearProgram program;
  std::vector<LinearTerm> a;
  std::vector<LinearTerm> b;
  for (std::size_t i = 0; i < knapsack.worth.size(); ++i) {
    const int item = program.add_variable(0, 1, -knapsack.worth[i], Integrality::integer);
    a.push_back({item, static_cast<double>(knapsack.weight_a[i])});
    b.push_back({item, static_cast<double>(knapsack.weight_b[i])});
  }
  program.add_row(-kUnbounded, knapsack.room_a, a);
  program.add_row(-kUnbounded, knapsack.room_b, b);
  const LinearResult result = program.solve();
  EXPECT_EQ(result.status, LinearStatus::optimal) << result.error;
  EXPECT_NEAR(result.dual_bound, result.objective, 1e-6);
  return -result.objective;
}

double by_cp_sat(const Knapsack& knapsack) {
  CpModel model;
  CpExpression a;
  CpExpression b;
  CpExpression cost;
  for (std::size_t i = 0; i < knapsack.worth.size(); ++i) {
    const CpVariable item = model.add_bool();
    a.terms.push_back({item, knapsack.weight_a[i]});
    b.terms.push_back({item, knapsack.weight_b[i]});
    cost.terms.push_back({item, -knapsack.worth[i]});
  }
  model.add_linear(a, CpRange{kCpMinimum, knapsack.room_a});
  model.add_linear(b, CpRange{kCpMinimum, knapsack.room_b});
  model.minimize(cost);
  const CpResult result = cp_sat_solve(model);
  EXPECT_EQ(result.status, CpStatus::optimal) << result.error;
  return -result.objective;
}

TEST(Agreement, KnapsackByMilpByCpSatAndByBruteForce) {
  std::mt19937 random(2024);
  for (int round = 0; round < 60; ++round) {
    const Knapsack knapsack = random_knapsack(random);
    const int best = by_brute_force(knapsack);
    EXPECT_NEAR(by_milp(knapsack), best, 1e-6) << "round " << round;
    EXPECT_NEAR(by_cp_sat(knapsack), best, 1e-6) << "round " << round;
  }
}

}  // namespace
}  // namespace placewright::solvers
