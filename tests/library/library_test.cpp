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
  std::vector<Milestone> milestones;
  Task task;
  task.planner = "random";
  task.steps = 50;
  task.on_milestone = [&](const Milestone& milestone) { milestones.push_back(milestone); };
  const Result result = solve(problem, task);
  ASSERT_TRUE(result.plan.has_value()) << result.reason;
  EXPECT_TRUE(check_plan(problem, *result.plan).empty());
  EXPECT_GE(result.gap(), 0);
  EXPECT_FALSE(milestones.empty());

  const testing::Folder folder;
  const std::string path = folder.file("plan.json");
  save_result(path, problem, result);
  const OpenedPlan opened = open_plan(path);
  EXPECT_EQ(opened.plan, *result.plan);
  EXPECT_EQ(opened.problem.draft(), problem.draft());

  save_problem(folder.file("problem.json"), problem);
  EXPECT_EQ(open_problem(folder.file("problem.json")).draft(), problem.draft());
}

TEST(Library, TheVerifierFindsWhatIsWrong) {
  const Problem problem = open_problem(kExamples + "moirai/example-1.json");
  std::optional<Plan> plan = plan_for(problem, Placement(problem.op_count(), DeviceId{0}));
  ASSERT_TRUE(plan.has_value());
  const auto findings = check_plan(problem, *plan);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings.front().code, "memory-exceeded");
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
  EXPECT_THROW(save_result("unused", problem, Result{}), std::invalid_argument);
}

TEST(Library, NothingFitsAndStopAreResults) {
  ProblemDraft draft = open_problem(kExamples + "moirai/example-1.json").draft();
  for (Device& device : draft.cluster.devices) device.memory = 1;
  const Result infeasible = solve(Problem(std::move(draft)));
  EXPECT_EQ(infeasible.status, Status::infeasible);
  EXPECT_FALSE(infeasible.reason.empty());
  EXPECT_EQ(infeasible.gap(), kInfinity);

  const std::atomic<bool> stop = true;
  const Problem problem = open_problem(kExamples + "msr/latency/LayerGraphs/bert24_inference.json",
                                       {.objective = Objective::call_latency});
  const Result stopped = solve(problem, {.planner = "random", .seconds = 1000, .stop = &stop});
  EXPECT_LT(stopped.seconds, 100);
}

TEST(Library, ListsThePlanners) {
  const auto planners = available_planners();
  const bool has_auto = std::any_of(planners.begin(), planners.end(),
                                    [](const auto& planner) { return planner.name == "auto"; });
  EXPECT_TRUE(has_auto);
  EXPECT_FALSE(library_version().empty());
}

}  // namespace
}  // namespace placewright
