// What every planner promises (suite_checks.h), on all problems of the suite.

#include <gtest/gtest.h>

#include "planners/suite_checks.h"

namespace placewright::testing {
namespace {

// `make soak` asks for more answers, of more problems.
constexpr Extent kAtLength{.steps = 3000};

class PlannersAtLength : public ::testing::TestWithParam<PlannerCase> {};

TEST_P(PlannersAtLength, FindSoundPlansWhereNothingStandsInTheWay) {
  expect_sound_plans_where_nothing_stands_in_the_way(GetParam(), kAtLength);
}

TEST_P(PlannersAtLength, AreSoundUnderEveryRule) {
  expect_soundness_under_every_rule(GetParam(), kAtLength);
}

TEST_P(PlannersAtLength, GiveTheSamePlanForTheSameSeed) {
  expect_the_same_plan_for_the_same_seed(GetParam(), kAtLength);
}

TEST_P(PlannersAtLength, RespectPinsAndColocation) {
  expect_pins_and_colocation(GetParam(), kAtLength);
}

TEST_P(PlannersAtLength, NeverMakeTheStartPlanWorse) {
  expect_no_worse_than_the_start_plan(GetParam(), kAtLength);
}

TEST_P(PlannersAtLength, PlanPublishedInputs) {
  expect_published_inputs_to_be_planned(GetParam(), kAtLength);
}

INSTANTIATE_TEST_SUITE_P(Registry, PlannersAtLength, ::testing::ValuesIn(all_planner_cases()),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace placewright::testing
