#include "problem/spelling.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coarsen/coarsen_method.h"
#include "planners/planner.h"
#include "problem/cluster.h"
#include "problem/objective.h"
#include "problem/plan.h"

namespace placewright {
namespace {

using ::testing::ElementsAre;

template <class Enum>
class SpelledEnum : public ::testing::Test {};

using AllSpelled =
    ::testing::Types<Objective, TransferMode, TrainingMode, PipelineSchedule, Contiguity,
                     MemoryModel, TimeUnit, InterconnectKind, Leg, Status, Strength, CoarsenMethod>;
TYPED_TEST_SUITE(SpelledEnum, AllSpelled);

// The values of each of these are 0, 1, 2, …: a value that was left out of its table leaves a gap,
// or is past the end and has no name.
TYPED_TEST(SpelledEnum, EveryValueHasOneNameOfItsOwn) {
  std::set<std::string_view> names;
  std::set<int> values;
  for (const TypeParam value : values_of<TypeParam>()) {
    EXPECT_FALSE(name_of(value).empty());
    EXPECT_EQ(value_named<TypeParam>(name_of(value)), value);
    names.insert(name_of(value));
    values.insert(static_cast<int>(value));
  }
  EXPECT_EQ(names.size(), values_of<TypeParam>().size());
  EXPECT_EQ(*values.begin(), 0);
  EXPECT_EQ(*values.rbegin() + 1, static_cast<int>(values.size()));
}

TEST(Spelling, UnknownNamesHaveNoValue) {
  EXPECT_EQ(value_named<Objective>("speed"), std::nullopt);
  EXPECT_EQ(value_named<Objective>(""), std::nullopt);
  EXPECT_THAT(names_of<Contiguity>(), ElementsAre("none", "joint", "per-device"));
}

}  // namespace
}  // namespace placewright
