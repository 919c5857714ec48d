#include "tuning/tuner.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/profile.h"
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

// A toy model measured on two devices with memories of their own.
ProblemDraft measured_costs(const Folder& folder, Objective objective = Objective::latency) {
  ProfileRequest request;
  request.files = {{model_file({"toy", "branches"}, folder.file("")), {}}};
  request.targets = {target_named("toy:0"), target_named("toy:1")};
  request.measure.repeat = 3;
  return with_objective(profile_models(request)->draft, objective);
}

TuneRequest heft_twice() {
  TuneRequest request;
  request.plan = {.planner = "heft", .budget = {.seconds = 1}};
  request.rounds = 2;
  request.repeat = 3;
  return request;
}

// Rounds that are made to order: how fast, and whether the model was whole.
TuningRound round_of(const ProblemDraft& costs, double milliseconds, bool uncut) {
  TuningRound round{Problem(costs), {}, {}, uncut};
  round.result.value = measured({milliseconds}, std::size_t{0});
  return round;
}

TEST(Tuning, EveryRoundIsAPlanThatRanAndItsCostsAreTheCorrectedOnesOfTheRoundBefore) {
  const Folder folder;
  ProblemDraft costs = measured_costs(folder);
  const Tuning tuning = tune(costs, heft_twice());
  ASSERT_FALSE(tuning.rounds.empty());
  EXPECT_LE(tuning.rounds.size(), 3U);
  EXPECT_THAT(tuning.ending, AnyOf(HasSubstr("agree within 5 %"), "all rounds are done"));
  EXPECT_FALSE(tuning.interrupted);
  for (const TuningRound& round : tuning.rounds) {
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
  const Tuning tuning = tune(measured_costs(folder), heft_twice());
  const TuningRound* best = tuning.best();
  for (const TuningRound& round : tuning.rounds) {
    if (!round.valid()) continue;
    ASSERT_NE(best, nullptr);
    EXPECT_LE(best->measured() * (1 - kLeastGain), round.measured());
  }
}

TEST(Tuning, TheModelIsRunUncutAsWell) {
  const Folder folder;
  for (const Objective objective : {Objective::latency, Objective::throughput}) {
    ProblemDraft costs = measured_costs(folder, objective);
    costs.rules.max_replicas = 2;
    costs.cluster.devices[1].kind = costs.cluster.devices[0].kind;  // replicas are of one kind
    TuneRequest request = heft_twice();
    request.plan.planner = "proportional";  // cuts
    request.rounds = 1;
    const Tuning tuning = tune(std::move(costs), std::move(request));
    ASSERT_EQ(tuning.rounds.size(), 2U);
    EXPECT_FALSE(tuning.rounds.front().uncut);
    const TuningRound& last = tuning.rounds.back();
    EXPECT_TRUE(last.uncut);
    ASSERT_EQ(last.result.segments.size(), 1U);
    EXPECT_EQ(last.result.segments.front().devices.size(),
              objective == Objective::throughput ? 2U : 1U);
    EXPECT_EQ(last.problem.objective(), objective);
    EXPECT_TRUE(last.result.outputs.equal());
  }
}

TEST(Tuning, ACutPlanMustBeFasterByMoreThanTheNoise) {
  const Folder folder;
  const ProblemDraft costs = measured_costs(folder);
  Tuning tuning;
  tuning.rounds.push_back(round_of(costs, 9.95, false));
  tuning.rounds.push_back(round_of(costs, 10, true));
  EXPECT_EQ(tuning.best(), tuning.uncut());
  tuning.rounds.push_back(round_of(costs, 9.8, false));
  EXPECT_EQ(tuning.best(), &tuning.rounds.back());
}

TEST(Tuning, StopsWhereItIsToldTo) {
  const Folder folder;
  const ProblemDraft costs = measured_costs(folder);
  TuneRequest request = heft_twice();
  std::atomic<bool> stop{true};
  request.stop = &stop;
  EXPECT_TRUE(tune(costs, request).rounds.empty());
  stop = false;
  std::vector<std::string> told;
  request.progress = [&](const std::string& what) {
    told.push_back(what);
    if (what.find("round 1: running") == 0) stop = true;
  };
  const Tuning tuning = tune(costs, request);
  EXPECT_TRUE(tuning.interrupted);
  EXPECT_EQ(tuning.ending, "interrupted");
  EXPECT_THAT(told, Contains("round 1: planning"));
  EXPECT_THAT(told, Not(Contains("round 2: planning")));
}

}  // namespace
}  // namespace placewright
