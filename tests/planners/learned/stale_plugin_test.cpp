// A plugin of the learned planners that was built for another interface.

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/locations.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

// In a process of its own: a plugin is loaded once.
TEST(LearnedPlugin, BuiltForAnotherInterfaceIsRefusedBeforeAnyCall) {
  ::setenv("PLACEWRIGHT_LEARNED_PLUGIN", plugin_path("stale_learned").c_str(), 1);
  const auto result = run(
      {"plan", example_path("moirai/example-1.json"), "--planner", "hsdag", "--time-limit", "1s"});
  ::unsetenv("PLACEWRIGHT_LEARNED_PLUGIN");
  EXPECT_EQ(result.exit_code, 4) << result.out;
  EXPECT_THAT(result.err,
              ::testing::HasSubstr("was built for another version of Placewright: build it again"));
}

}  // namespace
}  // namespace placewright::testing
