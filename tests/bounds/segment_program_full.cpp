#include "bounds/segment_program_checks.h"
#include "support/random_cases.h"

namespace placewright {
namespace {

class SegmentProgramAgainstBruteForce : public ::testing::TestWithParam<testing::SegmentRules> {};

TEST_P(SegmentProgramAgainstBruteForce, IsNeverAboveTheOptimumOfHundreds) {
  testing::expect_programs_below_optimum(GetParam(), testing::random_cases(200).first, 200);
}

INSTANTIATE_TEST_SUITE_P(AllRules, SegmentProgramAgainstBruteForce,
                         ::testing::ValuesIn(testing::segment_rules()));

}  // namespace
}  // namespace placewright
