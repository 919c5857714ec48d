#include "solvers/min_cut.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace placewright::solvers {
namespace {

constexpr double kUncut = std::numeric_limits<double>::infinity();

// By looking at every set of nodes.
double least_of_all_cuts(int nodes, int source, int target, const std::vector<CutArc>& arcs) {
  double least = kUncut;
  for (unsigned set = 0; set < (1U << static_cast<unsigned>(nodes)); ++set) {
    const auto has = [&](int node) { return ((set >> static_cast<unsigned>(node)) & 1U) != 0; };
    if (!has(source) || has(target)) continue;
    double value = 0;
    for (const CutArc& arc : arcs) {
      if (has(arc.source) && !has(arc.target)) value += arc.capacity;
    }
    least = std::min(least, value);
  }
  return least;
}

TEST(MinimumCut, IsThatOfBruteForceAndNeverMore) {
  std::mt19937 random(1);
  const auto between = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  std::uniform_real_distribution<double> capacity(1e-3, 1);
  for (int round = 0; round < 500; ++round) {
    const int nodes = between(2, 7);
    std::vector<CutArc> arcs;
    for (int i = between(1, 20); i > 0; --i) {
      arcs.push_back({between(0, nodes - 1), between(0, nodes - 1),
                      between(1, 10) == 1 ? kUncut : capacity(random)});
    }
    const double found = minimum_cut(nodes, 0, 1, arcs);
    const double least = least_of_all_cuts(nodes, 0, 1, arcs);
    EXPECT_LE(found, least);
    if (least < kUncut) {
      EXPECT_NEAR(found, least, 1e-9);
    } else {
      EXPECT_EQ(found, kUncut);
    }
  }
}

}  // namespace
}  // namespace placewright::solvers
