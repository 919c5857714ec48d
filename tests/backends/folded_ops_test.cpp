#include "backends/folded_ops.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace placewright {
namespace {

TensorKey made_by(std::size_t op) {
  return {op, 0};
}

// input -> convert -> product -> reshape -> transpose -> add of two -> relu, and a ShapeOf that the
// reshape reads.
ModelGraph small_graph() {
  const TensorKey input{TensorKey::kModelInput, 0};
  ModelGraph graph;
  const auto add = [&](const std::string& type, std::vector<TensorKey> inputs) {
    graph.ops.push_back({.name = type, .type = type, .inputs = std::move(inputs), .outputs = {{}}});
  };
  add("Convert", {input});
  add("MatMul", {made_by(0)});
  add("ShapeOf", {made_by(1)});
  add("Reshape", {made_by(1), made_by(2)});
  add("Transpose", {made_by(3)});
  add("Add", {made_by(4), made_by(1)});
  add("Relu", {made_by(5)});
  return graph;
}

TEST(FoldedOps, StayWithWhatMakesOrReadsThem) {
  const std::vector<std::vector<OpId>> groups = folded_together(small_graph());
  ASSERT_EQ(groups.size(), 2U);
  const std::vector<OpId> product = {OpId{0}, OpId{1}, OpId{2}, OpId{3}, OpId{4}};
  const std::vector<OpId> sum = {OpId{5}, OpId{6}};
  EXPECT_TRUE(std::ranges::find(groups, product) != groups.end());
  EXPECT_TRUE(std::ranges::find(groups, sum) != groups.end()) << "a sum of two has its own place";
}

TEST(FoldedOps, ViewsAndShapesTakeNoTime) {
  EXPECT_EQ(takes_no_time(small_graph()),
            (std::vector<bool>{false, false, true, true, false, false, false}));
}

TEST(FoldedOps, AModelOfOneOpHasNoGroups) {
  ModelGraph graph;
  graph.ops.push_back({.name = "r", .type = "Reshape", .inputs = {{TensorKey::kModelInput, 0}}});
  EXPECT_TRUE(folded_together(graph).empty());
}

}  // namespace
}  // namespace placewright
