#include "tuning/tuner.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/backend_case.h"
#include "support/folder.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using placewright::testing::Folder;
using placewright::testing::model_file;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The toy backend on two devices with memories of their own.
TuneRequest request_in(const Folder& folder) {
  TuneRequest request;
  request.profile.files = {{model_file({"toy", "branches"}, folder.file("")), {}}};
  request.profile.targets = {target_named("toy:0"), target_named("toy:1")};
  request.profile.measure.repeat = 3;
  request.plan = {.planner = "heft", .budget = {.seconds = 1}};
  request.rounds = 2;
  return request;
}

TEST(Tuning, EveryRoundIsAPlanThatRanAndItsCostsAreTheCorrectedOnesOfTheRoundBefore) {
  const Folder folder;
  const auto tuning = tune(request_in(folder));
  ASSERT_TRUE(tuning);
  ASSERT_FALSE(tuning->rounds.empty());
  EXPECT_LE(tuning->rounds.size(), 2U);
  EXPECT_THAT(tuning->ending, AnyOf(HasSubstr("agree within 5 %"), "all rounds are done"));
  EXPECT_FALSE(tuning->interrupted);
  ProblemDraft costs = tuning->profile.draft;
  for (const TuningRound& round : tuning->rounds) {
    EXPECT_EQ(round.problem.draft(), Problem(std::move(costs)).draft());
    ASSERT_TRUE(round.outcome.answer.plan);
    EXPECT_THAT(verify(round.problem, *round.outcome.answer.plan), IsEmpty());
    EXPECT_TRUE(round.result.outputs.equal());
    EXPECT_EQ(round.result.value.kept + round.result.value.rejected, 3U);
    costs = round.corrected_draft();
  }
}

TEST(Tuning, TheBestRoundIsTheFastestThatWasMeasuredWell) {
  const Folder folder;
  const auto tuning = tune(request_in(folder));
  ASSERT_TRUE(tuning);
  const TuningRound* best = tuning->best();
  for (const TuningRound& round : tuning->rounds) {
    if (!round.valid()) continue;
    ASSERT_NE(best, nullptr);
    EXPECT_LE(best->measured(), round.measured());
  }
}

TEST(Tuning, TheObjectiveMayBeAnother) {
  const Folder folder;
  TuneRequest request = request_in(folder);
  request.objective = Objective::throughput;
  request.plan.planner = "random";
  request.rounds = 1;
  const auto tuning = tune(std::move(request));
  ASSERT_TRUE(tuning);
  ASSERT_EQ(tuning->rounds.size(), 1U);
  EXPECT_EQ(tuning->rounds.front().problem.objective(), Objective::throughput);
}

TEST(Tuning, StopsWhereItIsToldTo) {
  const Folder folder;
  TuneRequest request = request_in(folder);
  std::atomic<bool> stop{true};
  request.stop = &stop;
  EXPECT_FALSE(tune(request));  // nothing was measured
  stop = false;
  std::vector<std::string> told;
  request.progress = [&](const std::string& what) {
    told.push_back(what);
    if (what.find("round 1: running") == 0) stop = true;
  };
  const auto tuning = tune(request);
  ASSERT_TRUE(tuning);
  EXPECT_TRUE(tuning->interrupted);
  EXPECT_EQ(tuning->ending, "interrupted");
  EXPECT_THAT(told, Contains("round 1: planning"));
  EXPECT_THAT(told, Not(Contains("round 2: planning")));
}

}  // namespace
}  // namespace placewright
