// `auto` on several threads, with planners that wait for each other, fail, or never end.

#include "planning/side_by_side.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/placement_plan.h"
#include "planners/exchange.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr double kLong = 60;  // seconds that no test takes: everything ends by itself

// Two ops of which each has a device of its own; the other device is slow.
Problem two_ops() {
  ProblemDraft draft;
  draft.name = "two";
  draft.cluster.kinds = {{.name = "left"}, {.name = "right"}};
  draft.cluster.devices = {{.name = "d0", .kind = KindId{0}, .memory = 10},
                           {.name = "d1", .kind = KindId{1}, .memory = 10}};
  draft.models = {{.name = "m"}};
  draft.ops = {{.name = "a", .time = {1, 4}}, {.name = "b", .time = {4, 1}}};
  return Problem(std::move(draft));
}

Plan all_on(const Problem& problem, DeviceId device) {
  return *plan_of_placement(problem, Placement(problem.op_count(), device));
}
Plan best_plan(const Problem& problem) {
  Placement placement(2);
  placement[OpId{0}] = DeviceId{0};
  placement[OpId{1}] = DeviceId{1};
  return *plan_of_placement(problem, placement);
}
Answer answer_with(Plan plan) {
  Answer answer;
  answer.plan = std::move(plan);
  return answer;
}

using Work = std::function<Answer(const Problem&, Control&)>;

PlannerEntry member(std::string name, Strength strength, Work work) {
  PlannerEntry entry;
  entry.name = std::move(name);
  entry.summary = "for tests";
  entry.objectives = {Objective::latency};
  entry.strength = strength;
  entry.effort = Effort::anytime;
  entry.plan = [work = std::move(work)](const Problem& problem, const Settings&, Control& control) {
    return work(problem, control);
  };
  return entry;
}

PlanOutcome plan_of(const Problem& problem, std::vector<PlannerEntry> entries,
                    const std::atomic<bool>* interrupted = nullptr, double seconds = kLong) {
  Registry registry;
  for (PlannerEntry& entry : entries) registry.add(std::move(entry));
  registry.add(portfolio(registry));
  return make_plan(problem, registry,
                   {.planner = "auto", .budget = {.seconds = seconds, .threads = 2}}, interrupted);
}

template <class Condition>
bool wait_until(Control& control, const Condition& condition) {
  while (!condition()) {
    if (control.should_stop()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(SideBySide, OneTakesThePlanOfTheOtherWhileBothRun) {
  const Problem problem = two_ops();
  std::atomic<bool> taken{false};
  const auto outcome = plan_of(
      problem, {member("first", Strength::heuristic,
                       [&](const Problem& same, Control& control) {
                         control.report(all_on(same, DeviceId{0}), 0);
                         EXPECT_TRUE(wait_until(control, [&] { return taken.load(); }));
                         return answer_with(best_plan(same));
                       }),
                member("second", Strength::exact, [&](const Problem& same, Control& control) {
                  std::shared_ptr<const Plan> other;
                  EXPECT_TRUE(wait_until(control, [&] {
                    other = better_elsewhere(control.exchange, kInfinity);
                    return other != nullptr;
                  }));
                  taken = true;
                  return answer_with(all_on(same, DeviceId{1}));
                })});
  EXPECT_TRUE(taken);
  EXPECT_DOUBLE_EQ(outcome.value(), 1);
  EXPECT_EQ(outcome.answer.status(), Status::optimal);
}

TEST(SideBySide, AProofOfOneEndsTheOther) {
  const Problem problem = two_ops();
  std::atomic<bool> ended{false};
  const auto outcome =
      plan_of(problem, {member("endless", Strength::heuristic,
                               [&](const Problem& same, Control& control) {
                                 wait_until(control, [] { return false; });
                                 ended = true;
                                 return answer_with(all_on(same, DeviceId{0}));
                               }),
                        member("prover", Strength::exact, [](const Problem& same, Control&) {
                          Answer answer = answer_with(best_plan(same));
                          answer.certificate = {1, "for tests"};
                          return answer;
                        })});
  EXPECT_TRUE(ended);
  EXPECT_EQ(outcome.answer.status(), Status::optimal);
  EXPECT_LT(outcome.seconds, kLong / 2);
}

TEST(SideBySide, AnInterruptionEndsAll) {
  const Problem problem = two_ops();
  std::atomic<bool> interrupted{false};
  std::atomic<int> running{0};
  const Work endless = [&](const Problem& same, Control& control) {
    if (++running == 2) interrupted = true;
    EXPECT_FALSE(wait_until(control, [] { return false; }));
    return answer_with(all_on(same, DeviceId{0}));
  };
  const auto outcome = plan_of(
      problem, {member("a", Strength::heuristic, endless), member("b", Strength::exact, endless)},
      &interrupted);
  EXPECT_DOUBLE_EQ(outcome.value(), 5);
  EXPECT_LT(outcome.seconds, kLong / 2);
}

TEST(SideBySide, AFailureIsANoteAndTheRestGoesOn) {
  const Problem problem = two_ops();
  std::atomic<bool> failed{false};
  const Work fails = [&](const Problem&, Control&) -> Answer {
    failed = true;
    throw std::runtime_error("oh");
  };
  const Work full = [&](const Problem&, Control&) -> Answer {
    failed = true;
    throw std::bad_alloc();
  };
  // Its plan is optimal, so that nobody begins after it.
  const Work works = [&](const Problem& same, Control& control) {
    EXPECT_TRUE(wait_until(control, [&] { return failed.load(); }));
    return answer_with(best_plan(same));
  };
  const auto outcome = plan_of(problem, {member("full", Strength::exact, full),
                                         member("works", Strength::heuristic, works)});
  EXPECT_THAT(outcome.notes, Contains(HasSubstr("planner 'full' ran out of memory")));
  EXPECT_DOUBLE_EQ(outcome.value(), 1);
  if (PLACEWRIGHT_DEBUG_CHECKS) return;  // there a member that fails ends the plan
  failed = false;
  const auto other = plan_of(problem, {member("fails", Strength::exact, fails),
                                       member("works", Strength::heuristic, works)});
  EXPECT_THAT(other.notes, Contains(HasSubstr("planner 'fails' failed: oh")));
  EXPECT_DOUBLE_EQ(other.value(), 1);
}

TEST(SideBySide, AWrongPlanIsNotShared) {
  if (PLACEWRIGHT_DEBUG_CHECKS) return;  // there it ends the plan
  const Problem problem = two_ops();
  const auto outcome =
      plan_of(problem, {member("wrong", Strength::heuristic,
                               [](const Problem& same, Control& control) {
                                 Plan plan = best_plan(same);
                                 plan.value = 0.5;
                                 control.report(plan, 0);
                                 EXPECT_EQ(better_elsewhere(control.exchange, 0.9), nullptr);
                                 return answer_with(all_on(same, DeviceId{0}));
                               }),
                        member("right", Strength::exact, [](const Problem& same, Control&) {
                          return answer_with(all_on(same, DeviceId{1}));
                        })});
  EXPECT_DOUBLE_EQ(outcome.value(), 5);
  EXPECT_THAT(outcome.notes, Contains(HasSubstr("planner 'wrong' made a wrong plan")));
}

TEST(SideBySide, MembersShareTheMemoryLimit) {
  const Problem problem = two_ops();
  Registry registry;
  std::atomic<double> given{0};
  registry.add(member("one", Strength::exact, [&](const Problem& same, Control& control) {
    given = control.budget().memory;
    return answer_with(best_plan(same));
  }));
  registry.add(portfolio(registry));
  make_plan(problem, registry,
            {.planner = "auto", .budget = {.seconds = kLong, .threads = 2, .memory = 100}});
  EXPECT_DOUBLE_EQ(given, 50);
}

// A limit of steps gives the same plan for any number of threads.
TEST(SideBySide, StepsGiveTheSamePlanOnAnyNumberOfThreads) {
  testing::RandomProblemOptions options;
  options.ops = 14;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Problem problem(testing::random_draft(options, seed));
    const auto planned = [&](int threads) {
      return make_plan(
          problem, planning_registry(),
          {.planner = "auto", .budget = {.seconds = 600, .steps = 200, .threads = threads}});
    };
    const PlanOutcome one = planned(1);
    const PlanOutcome several = planned(3);
    ASSERT_TRUE(one.answer.plan);
    ASSERT_TRUE(several.answer.plan);
    EXPECT_EQ(one.value(), several.value());
    EXPECT_EQ(one.answer.plan->placement, several.answer.plan->placement);
    EXPECT_EQ(one.answer.certificate.lower_bound, several.answer.certificate.lower_bound);
  }
}

TEST(SideBySide, EndsWithinItsTime) {
  testing::RandomProblemOptions options;
  options.ops = 60;
  const Problem problem(testing::random_draft(options, 1));
  const PlanOutcome outcome = make_plan(
      problem, planning_registry(), {.planner = "auto", .budget = {.seconds = 1, .threads = 3}});
  ASSERT_TRUE(outcome.answer.plan) << outcome.answer.reason;
  EXPECT_TRUE(verify(problem, *outcome.answer.plan).empty());
  EXPECT_LT(outcome.seconds, 20);  // on a loaded machine
}

}  // namespace
}  // namespace placewright
