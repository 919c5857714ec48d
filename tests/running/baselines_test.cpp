#include "running/baselines.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opened_models.h"
#include "backends/target_devices.h"
#include "evaluate/pipeline.h"
#include "evaluate/placement_plan.h"
#include "machine/target_cluster.h"
#include "problem/join.h"
#include "support/backend_case.h"
#include "support/folder.h"
#include "support/random_cuts.h"

namespace placewright {
namespace {

using placewright::testing::core_devices;
using placewright::testing::Folder;
using placewright::testing::model_draft;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

class Baselines : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cores() < 2) GTEST_SKIP() << "needs two cores";
  }

  [[nodiscard]] static std::size_t cores() { return allowed_cores().size(); }

  // All cores of the process, each alone and all together. `pinned`: bound by the backend.
  [[nodiscard]] Problem problem(Objective objective, bool pinned) const {
    ProblemDraft draft = model_draft({"openvino", "tiny-branches"}, folder_.file("models"),
                                     core_devices(cores()), objective);
    std::vector<Target> targets;
    for (const int core : allowed_cores()) targets.push_back(target_of_cores({core}));
    targets.push_back(target_of_cores(allowed_cores()));
    for (Target& target : targets) target.pinned = pinned;
    draft.cluster = cluster_of_targets(targets, devices_of(targets));
    draft.rules.max_replicas = static_cast<int>(cores());
    for (Op& op : draft.ops) op.time.resize(2, op.time.front());
    return Problem(std::move(draft));
  }

  // tiny-branches twice, on the same devices; `arrival`: of the second.
  [[nodiscard]] Problem two_models(Objective objective, double arrival = 0) const {
    ProblemDraft second = problem(objective, false).draft();
    for (Op& op : second.ops) op.name = "second/" + op.name;
    second.models.front().name = "second";
    second.models.front().arrival = arrival;
    std::vector<ProblemDraft> drafts;
    drafts.push_back(problem(objective, false).draft());
    drafts.push_back(std::move(second));
    return Problem(joined(std::move(drafts)));
  }

  // Each model on a core of its own.
  static Placement one_core_each(const Problem& problem) {
    Placement placement(problem.op_count());
    for (const OpId op : problem.ops()) placement[op] = DeviceId{problem.op(op).model.index()};
    return placement;
  }

  static std::vector<Baseline> baselines_of(const Problem& problem, const Plan& plan) {
    return run_beside_baselines(problem, plan, models_of(problem), {.warm_up = 1, .repeat = 5})
        .baselines;
  }

 private:
  Folder folder_;
};

std::vector<std::string> names_of(const std::vector<Baseline>& baselines) {
  std::vector<std::string> names;
  for (const Baseline& baseline : baselines) names.push_back(baseline.name);
  return names;
}

// Of those that the plan is.
std::vector<std::string> same_as_plan(const std::vector<Baseline>& baselines) {
  std::vector<std::string> names;
  for (const Baseline& baseline : baselines) {
    EXPECT_GT(baseline.latency.kept + baseline.latency.rejected, 0U) << baseline.name;
    if (baseline.is_plan) names.push_back(baseline.name);
  }
  return names;
}

TEST_F(Baselines, AModelOnAllCoresIsThatBaseline) {
  const std::string alone = name_of(target_of_cores(allowed_cores())) + " alone";
  const std::string threads = fmt::format("{} threads, pinned", cores());
  for (const bool pinned : {false, true}) {
    const Problem latency = problem(Objective::latency, pinned);
    const auto plan = plan_of_placement(latency, Placement(latency.op_count(), DeviceId{cores()}));
    const auto baselines = baselines_of(latency, plan.value());
    EXPECT_THAT(names_of(baselines),
                ElementsAre("latency hint", "throughput hint", core_devices(1).front() + " alone",
                            alone, fmt::format("{} streams", cores()), threads));
    EXPECT_THAT(same_as_plan(baselines), ElementsAre(pinned ? threads : alone));
  }
}

TEST_F(Baselines, AReplicaOnEachCoreIsTheBaselineOfStreams) {
  const std::string streams = fmt::format("{} streams", cores());
  const std::string bound = streams + ", pinned";
  for (const bool pinned : {false, true}) {
    const Problem throughput = problem(Objective::throughput, pinned);
    const auto& ops = throughput.topological_order();
    Stage stage{.devices = {}, .ops = {ops.begin(), ops.end()}};
    for (std::size_t core = 0; core < cores(); ++core) stage.devices.emplace_back(core);
    const auto baselines = baselines_of(throughput, pipeline_plan(throughput, {stage}));
    EXPECT_THAT(names_of(baselines),
                IsSupersetOf({streams, bound, fmt::format("{} threads, pinned", cores())}));
    EXPECT_THAT(same_as_plan(baselines), ElementsAre(pinned ? bound : streams));
  }
}

TEST_F(Baselines, ACutPlanIsNoneOfThem) {
  const Problem latency = problem(Objective::latency, false);
  Placement placement(latency.op_count(), DeviceId{0});
  placement[latency.topological_order().back()] = DeviceId{1};
  const auto plan = plan_of_placement(latency, placement);
  EXPECT_THAT(same_as_plan(baselines_of(latency, plan.value())), IsEmpty());
}

TEST_F(Baselines, OfSeveralModelsAreInTurnAndAtOnce) {
  const std::string all = name_of(target_of_cores(allowed_cores()));
  for (const Objective objective : {Objective::total_completion, Objective::latency}) {
    const Problem models = two_models(objective);
    const auto cut = plan_of_placement(models, one_core_each(models));
    const auto baselines = baselines_of(models, cut.value());
    EXPECT_THAT(names_of(baselines),
                ElementsAre("in turn on " + all + ", shortest first", "all at once on " + all));
    EXPECT_THAT(same_as_plan(baselines), IsEmpty());
    for (const Baseline& baseline : baselines) {
      EXPECT_EQ(baseline.total_completion.has_value(), objective == Objective::total_completion);
      if (baseline.total_completion) {
        EXPECT_GT(baseline.total_completion->median, baseline.latency.median);
      }
    }
  }
}

TEST_F(Baselines, ModelsOneAfterTheOtherOnAllCoresAreThatBaseline) {
  constexpr double kAfterTheFirst = 5;  // milliseconds, predicted
  const Problem models = two_models(Objective::latency, kAfterTheFirst);
  const auto plan = plan_of_placement(models, Placement(models.op_count(), DeviceId{cores()}));
  ASSERT_GE(plan->value, kAfterTheFirst);
  EXPECT_EQ(same_as_plan(baselines_of(models, plan.value())).size(), 1U);
}

TEST_F(Baselines, APlanThatIdlesForALaterModelIsNot) {
  constexpr double kAfterTheFirst = 5;
  const Problem models = two_models(Objective::latency, kAfterTheFirst);
  const Placement all_cores(models.op_count(), DeviceId{cores()});
  Plan plan = plan_of_placement(models, all_cores).value();
  ASSERT_EQ(same_as_plan(baselines_of(models, plan)).size(), 1U);
  // The first model, which waits from the beginning, follows the second.
  const double later = plan.value;
  for (const OpId op : models.ops()) {
    if (models.op(op).model != ModelId{0}) continue;
    plan.schedule->start[op] += later;
    plan.schedule->end[op] += later;
    plan.value = std::max(plan.value, plan.schedule->end[op]);
  }
  EXPECT_THAT(same_as_plan(baselines_of(models, plan)), IsEmpty());
}

}  // namespace
}  // namespace placewright
