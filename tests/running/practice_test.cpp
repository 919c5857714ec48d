#include "running/practice.h"

#include <atomic>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opened_models.h"
#include "machine/target_cluster.h"
#include "problem/join.h"
#include "support/backend_case.h"
#include "support/folder.h"
#include "support/random_cuts.h"

namespace placewright {
namespace {

using placewright::testing::BackendCase;
using placewright::testing::Folder;
using placewright::testing::model_draft;
using placewright::testing::name_of_case;
using placewright::testing::one_case_per_backend;
using ::testing::Each;
using ::testing::UnorderedElementsAre;

// A model whose profile says 1 ms for each op.
class Practice : public ::testing::TestWithParam<BackendCase> {
 protected:
  std::optional<std::vector<PractisedTime>> practised(const Problem& problem,
                                                      const std::vector<ArrivingModel>& arrivals,
                                                      const std::atomic<bool>* stop = nullptr) {
    const auto models = models_of(problem);
    const auto places = places_of(problem, arrivals);
    ArrivalRunner runner(problem, models, arrivals, places, {.stop = stop});
    return practise(runner, problem, arrivals, places);
  }

  Problem problem_on(std::size_t devices) {
    ProblemDraft draft = model_draft(GetParam(), folder_.file("models"),
                                     placewright::testing::devices_for(GetParam().backend, devices),
                                     Objective::total_completion);
    for (Op& op : draft.ops) op.time = {1};
    return Problem(std::move(draft));
  }

  Folder folder_;
};

TEST_P(Practice, SaysWhatAModelTakesOnEachKindAndTheProblemFollows) {
  const Problem problem = problem_on(2);
  const auto times = practised(problem, {{0, 0.0}, {0, 5.0}, {0, 7.0, 9.0}});
  ASSERT_TRUE(times);
  ASSERT_EQ(times->size(), 1U) << "two devices of one kind";
  const PractisedTime& time = times->front();
  EXPECT_EQ(time.model, 0U);
  EXPECT_DOUBLE_EQ(time.stated, static_cast<double>(problem.op_count()));
  EXPECT_GT(time.measured, 0);
  const Problem after(as_practised(problem, *times));
  double sum = 0;
  for (const OpId op : after.ops()) sum += after.time(op, DeviceId{0});
  EXPECT_NEAR(sum, time.measured, 1e-9 * time.measured);
}

TEST_P(Practice, EndsWhenItIsInterrupted) {
  const Problem problem = problem_on(1);
  const std::atomic<bool> stop = true;
  EXPECT_FALSE(practised(problem, {{0, 0.0}}, &stop));
}

INSTANTIATE_TEST_SUITE_P(Backends, Practice, ::testing::ValuesIn(one_case_per_backend()),
                         name_of_case);

// Every set of cores is a kind of its own size.
TEST(PracticeOnCores, HasATimeForEachSizeOfASet) {
  if (allowed_cores().size() < 2) GTEST_SKIP() << "needs two cores";
  const Folder folder;
  const auto cores = allowed_cores();
  std::vector<Target> targets = {target_of_cores({cores[0]}), target_of_cores({cores[1]}),
                                 target_of_cores({cores[0], cores[1]})};
  ProblemDraft draft = model_draft({"openvino", "tiny-branches"}, folder.file("models"),
                                   {name_of(targets[0])}, Objective::total_completion);
  draft.cluster = cluster_of_targets(targets, devices_of(targets));
  for (Op& op : draft.ops) op.time = {2, 1};
  const Problem problem(std::move(draft));
  const std::vector<ArrivingModel> arrivals = {{0, 0.0}, {0, 0.0}};
  const auto models = models_of(problem);
  const auto places = places_of(problem, arrivals);
  ArrivalRunner runner(problem, models, arrivals, places, {});
  const auto times = practise(runner, problem, arrivals, places);
  ASSERT_TRUE(times);
  std::vector<std::size_t> kinds;
  for (const PractisedTime& time : *times) kinds.push_back(time.kind.index());
  EXPECT_THAT(kinds, UnorderedElementsAre(0, 1));
  EXPECT_TRUE(runner.check_outputs().equal());
}

// What has no stated time cannot be scaled.
TEST(PracticeOnCores, TimesOfNothingChangeNothing) {
  const Folder folder;
  ProblemDraft draft =
      model_draft({"toy", "branches"}, folder.file("models"),
                  placewright::testing::devices_for("toy", 1), Objective::total_completion);
  for (Op& op : draft.ops) op.time = {0};
  const Problem problem(std::move(draft));
  const ProblemDraft after = as_practised(problem, {{0, KindId{0}, 0, 3}});
  for (const Op& op : after.ops) EXPECT_THAT(op.time, Each(0));
}

}  // namespace
}  // namespace placewright
