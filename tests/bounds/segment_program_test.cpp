#include "bounds/segment_program.h"

#include <gtest/gtest.h>

#include "bounds/segment_program_checks.h"
#include "bounds/segments.h"

namespace placewright {
namespace {

class SegmentProgramAgainstBruteForce : public ::testing::TestWithParam<testing::SegmentRules> {};

TEST_P(SegmentProgramAgainstBruteForce, IsNeverAboveTheOptimum) {
  testing::expect_programs_below_optimum(GetParam(), 0, 40);
}

INSTANTIATE_TEST_SUITE_P(AllRules, SegmentProgramAgainstBruteForce,
                         ::testing::ValuesIn(testing::segment_rules()));

// Three ops of 2 between a fork and a join on d0; their tensors take 3 to d1 and 3 back. All on d0
// take 6, and one on d1 takes 8. The work of two devices alone says 3.
TEST(SegmentProgram, SeesThatOpsElsewhereWaitForTheirTransfers) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"x"}, {"y"}};
  draft.cluster.devices = {{.name = "d0", .kind = KindId{0}}, {.name = "d1", .kind = KindId{1}}};
  draft.models = {{.name = "m"}};
  draft.ops = {{.name = "fork", .pinned_to = DeviceId{0}, .time = {0, 0}},
               {.name = "a", .time = {2, 2}},
               {.name = "b", .time = {2, 2}},
               {.name = "c", .time = {2, 2}},
               {.name = "join", .pinned_to = DeviceId{0}, .time = {0, 0}}};
  const std::vector<double> move{0, 3, 3, 0};
  draft.tensors = {
      {.producer = OpId{0}, .consumers = {OpId{1}, OpId{2}, OpId{3}}, .link_times = move}};
  for (std::size_t i = 1; i < 4; ++i) {
    draft.tensors.push_back({.producer = OpId{i}, .consumers = {OpId{4}}, .link_times = move});
  }
  const Problem problem(draft);
  EXPECT_NEAR(testing::program_bound(problem, 6), 6, 1e-6);
  EXPECT_LT(segment_bound(problem), 6 + 1e-6);
}

}  // namespace
}  // namespace placewright
