// What cpsat takes on, by the size of its model.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "planners/latency/latency.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Problem problem_of(std::size_t ops, std::size_t cores, std::size_t devices = 4) {
  GenerateOptions options;
  options.family = GraphFamily::inception;
  options.ops = ops;
  options.shared_cores = cores;
  options.devices = devices;
  return Problem(generate(options));
}

TEST(CpsatSize, CountsPairsOfDevicesOnlyWhereTensorsTravel) {
  const PlannerEntry cpsat = cpsat_schedule();
  const Problem shared = problem_of(1000, 16);
  ASSERT_EQ(shared.device_count(), 31U);
  EXPECT_THAT(cpsat.refuses(shared), IsEmpty());
  const Problem apart = problem_of(1000, 0, 31);
  ASSERT_EQ(apart.device_count(), 31U);
  EXPECT_THAT(cpsat.refuses(apart), HasSubstr("pairs of devices for edges, above 400000"));
}

TEST(CpsatSize, RefusesWhatIsTooLargeInOneMemoryToo) {
  EXPECT_THAT(cpsat_schedule().refuses(problem_of(8000, 16)),
              HasSubstr("devices for ops and edges, above 400000"));
}

}  // namespace
}  // namespace placewright
