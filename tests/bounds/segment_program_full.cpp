#include "bounds/segment_program_checks.h"

namespace placewright {
namespace {

class SegmentProgramAgainstBruteForce : public ::testing::TestWithParam<testing::SegmentRules> {};

TEST_P(SegmentProgramAgainstBruteForce, IsNeverAboveTheOptimumOfHundreds) {
  testing::expect_programs_below_optimum(GetParam(), 1000, 500);
}

INSTANTIATE_TEST_SUITE_P(AllRules, SegmentProgramAgainstBruteForce,
                         ::testing::ValuesIn(testing::segment_rules()));

}  // namespace
}  // namespace placewright
