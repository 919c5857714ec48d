// The public interface: placewright/placewright.h.

#include <atomic>
#include <fstream>

#include <gtest/gtest.h>

#include "placewright/placewright.h"
#include "support/folder.h"
#include "support/locations.h"

namespace placewright {
namespace {

const std::string kExamples = testing::source_path("examples/");

TEST(Library, PlansChecksKeepsAndReadsBack) {
  const Problem problem = open_problem(kExamples + "moirai/example-1.json");
  std::vector<Progress> steps;
  PlanRequest request;
  request.planner = "random";
  request.budget.steps = 50;
  request.budget.seed = 7;
  const PlanOutcome outcome = solve(problem, request, nullptr,
                                    [&](const Progress& progress) { steps.push_back(progress); });
  ASSERT_TRUE(outcome.answer.plan.has_value()) << outcome.answer.reason;
  EXPECT_TRUE(verify(problem, *outcome.answer.plan).empty());
  EXPECT_GE(outcome.answer.gap(), 0);
  EXPECT_FALSE(steps.empty());

  const testing::Folder folder;
  const std::string path = folder.file("plan.json");
  save_plan(path, problem, outcome);
  const OpenedPlan opened = open_plan(path);
  EXPECT_EQ(opened.plan(), *outcome.answer.plan);
  EXPECT_EQ(opened.problem.draft(), problem.draft());
  EXPECT_EQ(opened.file.planner, "random");
  EXPECT_EQ(opened.file.seed, 7U);
  EXPECT_EQ(opened.file.status, outcome.answer.status());
  EXPECT_EQ(open_plan_of(problem, path).plan, opened.plan());

  save_problem(folder.file("problem.json"), problem);
  EXPECT_EQ(open_problem(folder.file("problem.json")).draft(), problem.draft());
}

TEST(Library, TheVerifierFindsWhatIsWrong) {
  const Problem problem = open_problem(kExamples + "moirai/example-1.json");
  std::optional<Plan> plan = plan_for(problem, Placement(problem.op_count(), DeviceId{0}));
  ASSERT_TRUE(plan.has_value());
  const auto violations = verify(problem, *plan);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations.front().code, ViolationCode::memory_exceeded);
  EXPECT_FALSE(violations.front().devices.empty());
  EXPECT_THROW(plan_for(problem, Placement(1, DeviceId{0})), std::invalid_argument);
  EXPECT_THROW(plan_for(problem, Placement(problem.op_count(), DeviceId{9})),
               std::invalid_argument);
}

TEST(Library, ErrorsAreOfTheTwoKindsItPromises) {
  EXPECT_THROW(open_problem("no-such-file.json"), std::runtime_error);
  EXPECT_THROW(read_problem_text("{", "here"), std::runtime_error);
  EXPECT_THROW(Problem(ProblemDraft{}), std::runtime_error);
  EXPECT_THROW(open_problem(kExamples + "moirai/example-1.json", {.format = "csv"}),
               std::invalid_argument);
  const Problem problem = open_problem(kExamples + "talos/six_ops.json");
  EXPECT_THROW(solve(problem, {.planner = "nobody"}), std::invalid_argument);
  EXPECT_THROW(solve(problem, {.planner = "random", .options = {{"no", "1"}}}),
               std::invalid_argument);
  EXPECT_THROW(save_plan("unused", problem, PlanOutcome{}), std::invalid_argument);
}

TEST(Library, NothingFitsAndStopAreResults) {
  ProblemDraft draft = open_problem(kExamples + "moirai/example-1.json").draft();
  for (Device& device : draft.cluster.devices) device.memory = 1;
  const Answer infeasible = solve(Problem(std::move(draft))).answer;
  EXPECT_EQ(infeasible.status(), Status::infeasible);
  EXPECT_FALSE(infeasible.reason.empty());
  EXPECT_EQ(infeasible.gap(), kInfinity);

  const std::atomic<bool> stop = true;
  const Problem problem = open_problem(kExamples + "msr/latency/LayerGraphs/bert24_inference.json",
                                       {.objective = Objective::call_latency});
  // It ends long before the test's own limit.
  const PlanOutcome stopped =
      solve(problem, {.planner = "calls-search", .budget = {.seconds = 1e6}}, &stop);
  EXPECT_TRUE(stopped.answer.plan || !stopped.answer.reason.empty());
}

TEST(Library, NothingIsLostBetweenTheRequestAndTheFile) {
  const testing::Folder folder;
  const Problem problem = open_problem(kExamples + "moirai/example-1.json");
  const PlanOutcome coarse = solve(problem, {.planner = "random",
                                             .options = {{"samples", "3"}},
                                             .coarsening = {.method = CoarsenMethod::chains}});
  ASSERT_TRUE(coarse.coarsening.has_value());
  save_plan(folder.file("plan.json"), problem, coarse);
  const PlanFile file = open_plan(folder.file("plan.json")).file;
  EXPECT_EQ(file.settings.at("samples"), "3");
  EXPECT_EQ(file.settings.at("coarsen"), "chains");
}

// A plan that names its problem's file is refused when the file has changed, unless it is given
// apart.
TEST(Library, AProblemThatHasChangedIsRefused) {
  const testing::Folder folder;
  const std::string problem_path = folder.file("problem.json");
  const std::string plan_path = folder.file("plan.json");
  const Problem problem = open_problem(kExamples + "talos/six_ops.json");
  save_problem(problem_path, problem);
  const PlanOutcome outcome = solve(problem, {.planner = "heft"});
  save_plan(plan_path, problem, outcome, {.problem = {.path = problem_path, .digest = "another"}});
  EXPECT_THROW(open_plan(plan_path), std::runtime_error);
  EXPECT_EQ(open_plan(plan_path, {.problem = problem_path}).plan(), *outcome.answer.plan);
}

TEST(Library, ListsThePlanners) {
  const auto planners = available_planners();
  const bool has_auto = std::any_of(planners.begin(), planners.end(),
                                    [](const auto& planner) { return planner.name == "auto"; });
  EXPECT_TRUE(has_auto);
  for (const PlannerEntry& planner : planners) {
    for (const Option& option : planner.options) {
      Settings settings(planner.options);
      settings.set(option.name, text_of(option.standard));  // a default can be given as an option
      EXPECT_EQ(settings.value(option.name), option.standard) << planner.name;
    }
  }
  EXPECT_FALSE(library_version().empty());
}

}  // namespace
}  // namespace placewright
