#include "tuning/tuner.h"

#include <algorithm>
#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/target_cluster.h"
#include "profiling/profile.h"
#include "support/backend_case.h"
#include "support/folder.h"
#include "support/random_cuts.h"
#include "tuning/correction.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using placewright::testing::core_devices;
using placewright::testing::Folder;
using placewright::testing::model_draft;
using placewright::testing::model_file;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
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

// Finalists that are made to order: how fast, and whether the model was whole.
TuningRound finalist_of(const ProblemDraft& costs, double milliseconds, bool uncut,
                        std::size_t rejected = 0) {
  TuningRound round{Problem(costs), {}, {}, uncut};
  round.result.value = measured({milliseconds}, rejected);
  return round;
}

TEST(Tuning, EveryRoundIsAPlanThatRanAndItsCostsAreTheCorrectedOnesOfTheRoundBefore) {
  const Folder folder;
  ProblemDraft costs = measured_costs(folder);
  const Tuning tuning = tune(costs, heft_twice());
  ASSERT_FALSE(tuning.rounds.empty());
  EXPECT_LE(tuning.rounds.size(), 2U);
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

// A model that is cut in two for devices with memories of their own, between which copies are slow;
// the costs say that they are free.
Tuning tuned_where_cuts_are_slow(Objective objective) {
  const Folder folder;
  ProblemDraft costs = measured_costs(folder, objective);
  costs.rules.max_replicas = 2;
  costs.cluster.devices[1].kind = costs.cluster.devices[0].kind;  // replicas are of one kind
  for (Link& link : costs.cluster.links) link = {.from = link.from, .to = link.to};
  TuneRequest request = heft_twice();
  request.plan.planner = "proportional";  // cuts
  request.rounds = 1;
  return tune(std::move(costs), std::move(request));
}

// Slow copies decide it on an idle machine. On a busy one a few samples may say anything, so what
// is asked is that the measurements were followed.
TEST(Tuning, ACutPlanIsKeptOnlyIfItWasMeasuredFasterThanTheModelUncut) {
  for (const Objective objective : {Objective::latency, Objective::throughput}) {
    const Tuning tuning = tuned_where_cuts_are_slow(objective);
    ASSERT_EQ(tuning.rounds.size(), 1U);
    EXPECT_FALSE(tuning.rounds.front().uncut);
    ASSERT_EQ(tuning.finalists.size(), 2U);
    EXPECT_FALSE(tuning.finalists.back().uncut);
    const TuningRound* uncut = tuning.uncut();
    ASSERT_EQ(uncut, &tuning.finalists.front());
    const TuningRound& cut = tuning.finalists.back();
    EXPECT_EQ(tuning.best() == uncut,
              cut.out || cut.measured() >= (1 - kLeastGain) * uncut->measured());
    ASSERT_EQ(uncut->result.segments.size(), 1U);
    EXPECT_EQ(uncut->result.segments.front().devices.size(),
              objective == Objective::throughput ? 2U : 1U);
    EXPECT_EQ(uncut->problem.objective(), objective);
    EXPECT_TRUE(uncut->result.outputs.compared);
    EXPECT_TRUE(uncut->result.outputs.equal());
  }
}

TEST(Tuning, TheModelUncutIsPredictedToTakeWhatItTook) {
  const Tuning tuning = tuned_where_cuts_are_slow(Objective::latency);
  ASSERT_NE(tuning.uncut(), nullptr);
  const double before = tuning.uncut()->predicted();
  const TuningRound kept = tuning.uncut()->with_corrected_costs();
  EXPECT_THAT(verify(kept.problem, *kept.outcome.answer.plan), IsEmpty());
  const double took = kept.result.segment_times.front().median;
  const double otherwise = std::clamp(took, before / kLargestFactor, before * kLargestFactor);
  EXPECT_NEAR(kept.predicted(), kept.valid() ? kept.measured() : otherwise, 1e-9);
}

// No model is cut, and yet it is a plan that nobody has without planning.
TEST(Tuning, ModelsSideBySideTakePartInTheFinal) {
  const Folder folder;
  ProfileRequest request;
  const std::string model = model_file({"toy", "branches"}, folder.file(""));
  request.files = {{model, {}}, {model_file({"toy", "chain"}, folder.file("")), {}}};
  request.targets = {target_named("toy:0"), target_named("toy:1")};
  request.measure.repeat = 3;
  TuneRequest tuned = heft_twice();
  tuned.plan.planner = "aswm";  // each model whole, on a device of its own
  tuned.rounds = 1;
  const Tuning tuning = tune(profile_models(request)->draft, tuned);
  ASSERT_EQ(tuning.rounds.size(), 1U);
  ASSERT_EQ(tuning.rounds.front().result.segments.size(), 2U);
  EXPECT_FALSE(tuning.rounds.front().uncut);
  ASSERT_GE(tuning.finalists.size(), 2U);
  EXPECT_FALSE(tuning.finalists.back().uncut);
  EXPECT_TRUE(tuning.finalists.front().uncut);
}

// A model on each core of the process and on all of them, which are as fast for the objective.
ProblemDraft costs_on_cores(const Folder& folder, Objective objective) {
  ProblemDraft costs = model_draft({"openvino", "tiny-branches"}, folder.file("models"),
                                   core_devices(allowed_cores().size()), objective);
  std::vector<Target> targets;
  for (const int core : allowed_cores()) targets.push_back(target_of_cores({core}));
  targets.push_back(target_of_cores(allowed_cores()));
  costs.cluster = cluster_of_targets(targets, devices_of(targets));
  costs.rules.max_replicas = static_cast<int>(allowed_cores().size());
  const double replicas = objective == Objective::throughput ? costs.rules.max_replicas : 1;
  for (Op& op : costs.ops) op.time.push_back(op.time.front() / replicas);
  return costs;
}

// The first device of each.
std::vector<std::string> devices_of_finalists(const std::vector<TuningRound>& finalists) {
  std::vector<std::string> names;
  for (const TuningRound& round : finalists) {
    names.push_back(round.problem.device(round.outcome.answer.plan->placement[OpId{0}]).name);
  }
  return names;
}

TEST(Tuning, TheFinalHasAllCoresWithThreadsThatTheBackendBindsAndWithoutThem) {
  if (allowed_cores().size() < 2) GTEST_SKIP() << "needs two cores";
  const Folder folder;
  const std::string core = core_devices(1).front();
  const std::string all = name_of(target_of_cores(allowed_cores()));
  const std::string pinned(kPinnedEnding);
  ProblemDraft latency = costs_on_cores(folder, Objective::latency);
  EXPECT_THAT(devices_of_finalists(uncut_finalists(latency)), ElementsAre(core, all, all + pinned));
  EXPECT_THAT(devices_of_finalists(uncut_finalists(costs_on_cores(folder, Objective::throughput))),
              ElementsAre(core, core + pinned, all, all + pinned));
  latency.cluster.devices.back().name = all + pinned;
  EXPECT_THAT(devices_of_finalists(uncut_finalists(latency)), ElementsAre(core, all + pinned, all));
}

// The plan that is kept says how its threads are bound.
TEST(Tuning, TheFastestIsKeptWithTheNamesThatItsDevicesHadInTheFinal) {
  if (allowed_cores().size() < 2) GTEST_SKIP() << "needs two cores";
  const Folder folder;
  for (const Objective objective : {Objective::latency, Objective::throughput}) {
    TuneRequest request = heft_twice();
    request.plan.planner = "single";
    const Tuning tuning = tune(costs_on_cores(folder, objective), request);
    ASSERT_NE(tuning.best(), nullptr);
    for (const TuningRound& finalist : tuning.finalists) {
      EXPECT_TRUE(finalist.result.outputs.equal());
      EXPECT_TRUE(finalist.out || finalist.measured() >= tuning.best()->measured());
    }
    const TuningRound kept = tuning.best()->with_corrected_costs();
    EXPECT_EQ(kept.problem.draft().cluster.devices.front().name,
              tuning.best()->problem.draft().cluster.devices.front().name);
    EXPECT_EQ(kept.problem.draft().cluster.devices.back().name,
              tuning.best()->problem.draft().cluster.devices.back().name);
  }
}

TEST(Tuning, ACutPlanMustBeFasterByMoreThanTheNoise) {
  const Folder folder;
  const ProblemDraft costs = measured_costs(folder);
  Tuning tuning;
  EXPECT_EQ(tuning.best(), nullptr);
  tuning.finalists.push_back(finalist_of(costs, 12, true));
  tuning.finalists.push_back(finalist_of(costs, 10, true));
  EXPECT_EQ(tuning.best(), &tuning.finalists[1]) << "the faster of the uncut ones";
  tuning.finalists.push_back(finalist_of(costs, 8, true, 5));
  EXPECT_EQ(tuning.best(), &tuning.finalists[2]) << "disturbed, and the fastest even so";
  tuning.finalists.pop_back();
  tuning.finalists.push_back(finalist_of(costs, 9.95, false));
  EXPECT_EQ(tuning.best(), &tuning.finalists[1]);
  tuning.finalists.pop_back();
  tuning.finalists.push_back(finalist_of(costs, 9.8, false));
  EXPECT_EQ(tuning.best(), &tuning.finalists[2]);
  tuning.finalists[2].out = true;
  EXPECT_EQ(tuning.best(), &tuning.finalists[1]) << "not measured as often as the others";
}

TEST(Tuning, TheModelStaysUncutWhereOthersDisturbedTheFinal) {
  const Folder folder;
  const ProblemDraft costs = measured_costs(folder);
  for (const bool cut_is_disturbed : {false, true}) {
    Tuning tuning;
    tuning.finalists.push_back(finalist_of(costs, 10, true, cut_is_disturbed ? 0 : 5));
    tuning.finalists.push_back(finalist_of(costs, 5, false, cut_is_disturbed ? 5 : 0));
    EXPECT_EQ(tuning.best(), &tuning.finalists.front());
  }
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
