#include "machine/core_check.h"

#include <algorithm>
#include <cctype>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace placewright {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CoresOfThisProcess, AreProbedAllAtOnce) {
  const std::vector<int> cores = allowed_cores();
  const std::vector<CoreShare> shares = probe_cores(cores);
  ASSERT_EQ(shares.size(), cores.size());
  for (const CoreShare& share : shares) {
    EXPECT_GE(share.elapsed, kProbe);
    EXPECT_GT(share.processor, 0);
    EXPECT_GT(share.work, 0);
  }
}

TEST(CoresOfThisProcess, AreNoneOfADeviceThatIsNoSetOfCores) {
  const Target device{"toy", "toy:0", {}};
  EXPECT_THAT(doubt_of(CoreCheck(std::span(&device, 1)).evidence()), IsEmpty());
}

// What two cores give a series of 2 seconds, by what else runs on them. `second`: core 1, before
// and after the series; core 0 is free throughout.
struct SeriesCase {
  std::string name;
  CoreShare second_before;
  CoreShare second_after;
  double waited;      // milliseconds, all threads of the process
  std::string doubt;  // empty: none
};

constexpr double kWork = 1900;  // of a free core, steps in a millisecond
constexpr CoreShare kFree{.core = 1, .elapsed = 16.001, .processor = 15.994, .work = kWork};

CoreEvidence evidence_of(const SeriesCase& seen) {
  const CoreShare first{.core = 0, .elapsed = 16.002, .processor = 15.997, .work = 1890};
  return {.before = {first, seen.second_before},
          .after = {first, seen.second_after},
          .most_work = kWork,
          .waited = seen.waited,
          .elapsed = 2000};
}

class SeriesBesideOthers : public ::testing::TestWithParam<SeriesCase> {};

TEST_P(SeriesBesideOthers, IsDoubtedWhereOthersHadACore) {
  const std::string doubt = doubt_of(evidence_of(GetParam()));
  if (GetParam().doubt.empty()) {
    EXPECT_THAT(doubt, IsEmpty());
  } else {
    EXPECT_THAT(doubt, HasSubstr(GetParam().doubt));
  }
}

INSTANTIATE_TEST_SUITE_P(
    TwoCores, SeriesBesideOthers,
    ::testing::Values(
        SeriesCase{"nothing", kFree, kFree, 3.1, ""},
        SeriesCase{"a daemon for a moment", kFree, {1, 16.004, 14.2, 1690}, 41, ""},
        SeriesCase{"a slower clock", {1, 16.001, 15.99, 1330}, {1, 16.001, 15.99, 1310}, 2.8, ""},
        SeriesCase{"a process of the same priority",
                   {1, 16.003, 8.01, 951},
                   {1, 20.006, 10.02, 949},
                   1980,
                   "core 1 was free for 50 % of the time"},
        SeriesCase{"a real-time process",
                   {1, 951.2, 16.1, 32},
                   {1, 949.8, 15.9, 31},
                   0.9,
                   "core 1 was free for 2 % of the time"},
        SeriesCase{
            "a process that began later", kFree, {1, 16.003, 8.02, 952}, 12, "core 1 was free"},
        SeriesCase{"a process that ended earlier", {1, 16.003, 8.02, 952}, kFree, 12, "core 1 was"},
        SeriesCase{"another machine on the processor",
                   {1, 16.001, 15.993, 930},
                   {1, 16.002, 15.994, 940},
                   2.2,
                   "core 1 did 49 % of the work"},
        SeriesCase{"a process between both looks", kFree, kFree, 903,
                   "threads waited for a core for 23 % of the time"}),
    [](const auto& tested) {
      std::string name = tested.param.name;
      std::ranges::replace_if(
          name, [](char letter) { return !std::isalnum(letter); }, '_');
      return name;
    });

TEST(CoresOfThisProcess, WithoutALookAtTheCoresIsNotDoubted) {
  EXPECT_THAT(doubt_of(CoreEvidence{.before = {}, .after = {}, .waited = 5000, .elapsed = 2000}),
              IsEmpty());
}

}  // namespace
}  // namespace placewright
