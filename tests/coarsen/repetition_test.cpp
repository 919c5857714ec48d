#include "coarsen/repetition.h"

#include <gtest/gtest.h>

#include "analysis/generate.h"

namespace placewright {
namespace {

constexpr std::size_t kOpsOfLayer = 20;  // of a generated transformer

TEST(Repetition, FindsTheLayersOfATransformerWhateverTheirTimes) {
  for (const double variation : {0.0, 0.25, 1.0}) {
    SCOPED_TRACE(variation);
    const Problem problem(generate(
        {.family = GraphFamily::transformer, .ops = 1 + 50 * kOpsOfLayer, .variation = variation}));
    const auto found = longest_repetition(problem);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->period, kOpsOfLayer);
    EXPECT_GE(found->count, 49U);
    // Ops of the same place in their layers have the same type.
    const auto order = problem.topological_order();
    for (std::size_t i = found->begin; i + found->period < found->end(); ++i) {
      EXPECT_EQ(problem.op(order[i]).type, problem.op(order[i + found->period]).type);
    }
  }
}

// An op that every layer reads, as a mask, does not hide them.
TEST(Repetition, FindsLayersThatReadAMask) {
  ProblemDraft draft = generate({.family = GraphFamily::transformer, .ops = 1 + 50 * kOpsOfLayer});
  Op mask = draft.ops.front();
  mask.name = "mask";
  const OpId number{draft.ops.size()};
  draft.ops.push_back(mask);
  Tensor tensor{.producer = number, .bytes = 1024};
  for (std::size_t i = 0; i < number.index(); ++i) {
    if (draft.ops[i].type == "Softmax") tensor.consumers.push_back(OpId{i});
  }
  draft.tensors.push_back(tensor);
  const auto found = longest_repetition(Problem(std::move(draft)));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->period, kOpsOfLayer);
  EXPECT_GE(found->count, 20U);  // the first ones are near the mask
}

TEST(Repetition, FindsNoneInRandomGraphs) {
  for (const GraphFamily family : {GraphFamily::layered, GraphFamily::series_parallel}) {
    EXPECT_FALSE(longest_repetition(Problem(generate({.family = family, .ops = 1000}))));
  }
}

}  // namespace
}  // namespace placewright
