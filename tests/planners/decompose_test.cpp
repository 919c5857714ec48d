#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "coarsen/cut_nodes.h"
#include "planners/decompose_checks.h"
#include "planners/latency/latency.h"

namespace placewright {
namespace {

TEST(Decompose, AgreesWithBruteForce) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) testing::expect_decompose_agrees(seed);
}

// A transformer whose layers are all alike.
ProblemDraft equal_layers(std::size_t layers) {
  constexpr std::size_t kOpsOfLayer = 20;
  return generate(
      {.family = GraphFamily::transformer, .ops = 1 + kOpsOfLayer * layers, .variation = 0});
}

// Equal modules are searched once: a step limit that proves ten layers proves a thousand, and every
// further layer takes as long as the one before.
TEST(Decompose, LooksAtEqualLayersOnce) {
  const PlannerEntry planner = decompose();
  const auto latency = [&](std::size_t layers) {
    const Problem problem(equal_layers(layers));
    Control control("decompose", {.seconds = 600, .steps = 400'000});
    const Answer answer = planner.plan(problem, Settings{planner.options}, control);
    EXPECT_EQ(answer.status(), Status::optimal) << layers;
    return answer.value();
  };
  const double of_one_more = latency(11) - latency(10);
  EXPECT_NEAR(latency(1000), latency(10) + 990 * of_one_more, 1e-6 * latency(1000));
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
