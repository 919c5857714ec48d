#include <gtest/gtest.h>

#include "coarsen/cut_nodes.h"
#include "planners/decompose_checks.h"

namespace placewright {
namespace {

TEST(Decompose, AgreesWithBruteForce) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) testing::expect_decompose_agrees(seed);
}

// By definition: comparable with every other op, and no edge from an ancestor to a descendant.
TEST(CutNodes, AreThoseOfTheDefinition) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomProblemOptions options;
    options.ops = 8;
    options.edge_probability = 0.2 + 0.05 * static_cast<double>(seed % 6);
    const Problem problem(testing::with_cut_node(options, seed, seed % 2 == 0 ? 0.2 : 0));
    std::vector<std::uint64_t> below(problem.op_count(), 0);
    for (std::size_t i = problem.op_count(); i-- > 0;) {
      const OpId op = problem.topological_order()[i];
      for (const OpId next : problem.successors(op)) {
        below[op.index()] |= below[next.index()] | std::uint64_t{1} << next.index();
      }
    }
    const auto reaches = [&](OpId from, OpId to) {
      return (below[from.index()] >> to.index() & 1U) != 0;
    };
    std::vector<OpId> expected;
    for (const OpId op : problem.topological_order()) {
      bool is_cut = true;
      for (const OpId other : problem.ops()) {
        if (other != op && !reaches(op, other) && !reaches(other, op)) is_cut = false;
        for (const OpId next : problem.successors(other)) {
          if (reaches(other, op) && reaches(op, next)) is_cut = false;
        }
      }
      if (is_cut) expected.push_back(op);
    }
    EXPECT_EQ(cut_nodes(problem), expected);
  }
}

}  // namespace
}  // namespace placewright
