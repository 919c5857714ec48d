// The service with planners that misbehave, each in its own way.

#include "planning/service.h"

#include <algorithm>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/placement_plan.h"
#include "planning/portfolio.h"
#include "problem/draft.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;

// A chain of three ops; the second device is twice as slow.
ProblemDraft chain_draft() {
  ProblemDraft draft;
  draft.name = "chain";
  draft.cluster.kinds = {{.name = "fast"}, {.name = "slow"}};
  draft.cluster.devices = {{.name = "d0", .kind = KindId{0}, .memory = 10},
                           {.name = "d1", .kind = KindId{1}, .memory = 10}};
  draft.cluster.links = {{.from = DeviceId{0}, .to = DeviceId{1}, .latency = 1},
                         {.from = DeviceId{1}, .to = DeviceId{0}, .latency = 1}};
  draft.models = {{.name = "m"}};
  for (const char* name : {"a", "b", "c"}) {
    draft.ops.push_back({.name = name, .memory = 1, .time = {1, 2}});
  }
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}}, .bytes = 1},
                   {.producer = OpId{1}, .consumers = {OpId{2}}, .bytes = 1}};
  return draft;
}

Plan all_on(const Problem& problem, DeviceId device) {
  return *plan_of_placement(problem, Placement(problem.op_count(), device));
}

PlannerEntry planner(std::string name, std::function<Answer(const Problem&, Control&)> plan) {
  PlannerEntry entry;
  entry.name = std::move(name);
  entry.summary = "for tests";
  entry.objectives = {Objective::latency};
  entry.plan = [plan = std::move(plan)](const Problem& problem, const Settings&, Control& control) {
    return plan(problem, control);
  };
  return entry;
}

Answer answer_with(Plan plan) {
  Answer answer;
  answer.plan = std::move(plan);
  return answer;
}

PlannerEntry good(std::string name, DeviceId device) {
  return planner(std::move(name), [device](const Problem& problem, Control&) {
    return answer_with(all_on(problem, device));
  });
}

PlannerEntry wrong() {
  return planner("wrong", [](const Problem& problem, Control&) {
    Plan plan = all_on(problem, DeviceId{0});
    plan.schedule->start[OpId{2}] = 0;
    return answer_with(std::move(plan));
  });
}

PlanOutcome outcome_of(PlannerEntry entry, const Problem& problem) {
  Registry registry;
  PlanRequest request;
  request.planner = entry.name;
  registry.add(std::move(entry));
  return make_plan(problem, registry, request);
}

TEST(Service, HandsOutAVerifiedPlanWithABound) {
  const Problem problem(chain_draft());
  const auto outcome = outcome_of(good("good", DeviceId{0}), problem);
  ASSERT_TRUE(outcome.answer.plan);
  EXPECT_EQ(outcome.value(), 3);
  EXPECT_EQ(outcome.answer.status(), Status::optimal);
  EXPECT_NEAR(outcome.answer.certificate.lower_bound, 3, 1e-6);
}

TEST(Service, NeverHandsOutAWrongPlan) {
  const auto outcome = outcome_of(wrong(), Problem(chain_draft()));
  EXPECT_FALSE(outcome.answer.plan);
  EXPECT_THAT(outcome.fault, HasSubstr("wrong plan"));
  EXPECT_THAT(outcome.answer.reason, HasSubstr("internal error: "));
  EXPECT_EQ(outcome.answer.status(), Status::unknown);
}

TEST(Service, ABoundAboveThePlanIsAFault) {
  const auto outcome = outcome_of(planner("liar",
                                          [](const Problem& problem, Control&) {
                                            Answer answer =
                                                answer_with(all_on(problem, DeviceId{0}));
                                            answer.certificate = {100, "wishful thinking"};
                                            return answer;
                                          }),
                                  Problem(chain_draft()));
  EXPECT_FALSE(outcome.answer.plan);
  EXPECT_THAT(outcome.fault, HasSubstr("wishful thinking"));
}

TEST(Service, FailuresOfPlannersAreOutcomes) {
  const Problem problem(chain_draft());
  const auto thrown = outcome_of(
      planner("thrower",
              [](const Problem&, Control&) -> Answer { throw std::runtime_error("oops"); }),
      problem);
  EXPECT_THAT(thrown.fault, HasSubstr("oops"));
  const auto hungry = outcome_of(
      planner("hungry", [](const Problem&, Control&) -> Answer { throw std::bad_alloc(); }),
      problem);
  EXPECT_EQ(hungry.fault, "");
  EXPECT_THAT(hungry.answer.reason, HasSubstr("out of memory"));
  const auto silent =
      outcome_of(planner("silent", [](const Problem&, Control&) { return Answer{}; }), problem);
  EXPECT_EQ(silent.answer.status(), Status::unknown);
  EXPECT_THAT(silent.answer.reason, HasSubstr("found no plan"));
}

TEST(Service, RefusesRequestsThatMakeNoSense) {
  const Problem problem(chain_draft());
  const Registry registry = planning_registry();
  const auto message = [&](PlanRequest request) -> std::string {
    try {
      make_plan(problem, registry, request);
    } catch (const RequestError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(message({.planner = "aut"}), HasSubstr("did you mean 'auto'?"));
  EXPECT_THAT(message({.planner = "auto", .options = {{"x", "1"}}}),
              HasSubstr("unknown option 'x'"));
  Plan broken = all_on(problem, DeviceId{0});
  broken.value = 1;
  EXPECT_THAT(message({.start = &broken}), HasSubstr("start plan is not valid"));
}

TEST(Service, KeepsTheStartWhereThePlannerIsWorse) {
  const Problem problem(chain_draft());
  const Plan start = all_on(problem, DeviceId{0});
  Registry registry;
  registry.add(good("slow", DeviceId{1}));
  const auto outcome = make_plan(problem, registry, {.planner = "slow", .start = &start});
  EXPECT_EQ(outcome.answer.plan, start);
}

TEST(Service, ChecksIncumbentsInDebugBuildsOnly) {
  const auto outcome = outcome_of(planner("boaster",
                                          [](const Problem& problem, Control& control) {
                                            Plan plan = all_on(problem, DeviceId{0});
                                            plan.value = 0.5;
                                            control.report(plan, 0);
                                            return answer_with(all_on(problem, DeviceId{0}));
                                          }),
                                  Problem(chain_draft()));
  EXPECT_EQ(outcome.answer.plan.has_value(), !PLACEWRIGHT_DEBUG_CHECKS);
}

TEST(Compare, OrdersByValueAndSharesTheBestBound) {
  Registry registry;
  registry.add(good("slow", DeviceId{1}));
  registry.add(planner("silent", [](const Problem&, Control&) { return Answer{}; }));
  registry.add(wrong());
  registry.add(good("fast", DeviceId{0}));
  registry.add(portfolio(registry));
  const Problem problem(chain_draft());
  const Comparison comparison = compare(problem, registry, {}, {});
  ASSERT_EQ(comparison.outcomes.size(), 4U);
  EXPECT_EQ(comparison.outcomes[0].planner, "fast");
  EXPECT_EQ(comparison.outcomes[1].planner, "slow");
  EXPECT_EQ(comparison.outcomes[1].answer.certificate.lower_bound, comparison.bound.lower_bound);
  EXPECT_FALSE(comparison.outcomes[2].answer.plan);
  EXPECT_EQ(compare(problem, registry, {"auto"}, {}).outcomes.size(), 1U);
  EXPECT_THROW(compare(problem, registry, {"nobody"}, {}), RequestError);
}

TEST(Compare, DoesNotRankWhoHadNoTime) {
  Registry registry;
  registry.add(planner("greedy", [](const Problem& problem, Control& control) {
    while (!control.should_stop()) {
    }
    return answer_with(all_on(problem, DeviceId{1}));
  }));
  registry.add(good("late", DeviceId{0}));
  const Problem problem(chain_draft());
  const Comparison none = compare(problem, registry, {}, {.budget = {.seconds = 0}});
  for (const PlanOutcome& outcome : none.outcomes) {
    EXPECT_FALSE(outcome.answer.plan) << outcome.planner;
    EXPECT_EQ(outcome.answer.reason, "no time was left for it");
    EXPECT_EQ(none.seconds_given.at(outcome.planner), 0);
  }
  const Comparison some = compare(problem, registry, {}, {.budget = {.seconds = 0.01}});
  EXPECT_GT(some.seconds_given.at("greedy"), 0);
}

TEST(Portfolio, KeepsTheBestAndSaysWhoseItIs) {
  Registry registry;
  registry.add(good("slow", DeviceId{1}));
  registry.add(good("fast", DeviceId{0}));
  registry.add(portfolio(registry));
  const auto outcome = make_plan(Problem(chain_draft()), registry, {});
  EXPECT_EQ(outcome.planner, "auto");
  EXPECT_EQ(outcome.answer.found_by, "fast");
  EXPECT_EQ(outcome.answer.status(), Status::optimal);
}

TEST(Portfolio, StopsWhenThePlanMeetsTheBound) {
  bool ran = false;
  Registry registry;
  registry.add(good("fast", DeviceId{0}));
  registry.add(planner("late", [&ran](const Problem&, Control&) {
    ran = true;
    return Answer{};
  }));
  registry.add(portfolio(registry));
  make_plan(Problem(chain_draft()), registry, {});
  EXPECT_FALSE(ran);
}

TEST(Portfolio, LongPlannersComeLastAndStartFromTheBest) {
  double start_value = 0;
  Registry registry;
  PlannerEntry search = planner("search", [&](const Problem& problem, Control& control) {
    start_value = control.start == nullptr ? kInfinity : control.start->value;
    return answer_with(all_on(problem, DeviceId{0}));
  });
  search.effort = Effort::anytime;
  registry.add(std::move(search));
  registry.add(good("slow", DeviceId{1}));
  registry.add(portfolio(registry));
  const auto outcome = make_plan(Problem(chain_draft()), registry, {});
  EXPECT_EQ(start_value, 6);
  EXPECT_EQ(outcome.answer.found_by, "search");
}

TEST(Portfolio, MembersShareTheIncumbent) {
  std::vector<const Plan*> starts;
  const auto looks_at_start = [&](const Problem&, Control& control) {
    starts.push_back(control.start);
    return Answer{};
  };
  Registry registry;
  registry.add(good("slow", DeviceId{1}));
  registry.add(planner("second", looks_at_start));
  registry.add(planner("third", looks_at_start));
  registry.add(portfolio(registry));
  make_plan(Problem(chain_draft()), registry, {});
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_NE(starts[0], nullptr);
  EXPECT_EQ(starts[0], starts[1]);
}

TEST(Portfolio, LeavesOutPublishedPlannersThatTakeAllTheTime) {
  std::vector<std::string> ran;
  Registry registry;
  for (const Effort effort : {Effort::quick, Effort::anytime}) {
    for (const Role role : {Role::own, Role::published}) {
      const std::string name = fmt::format("{} {}", static_cast<int>(effort), name_of(role));
      PlannerEntry entry = planner(name, [&ran, name](const Problem&, Control&) {
        ran.push_back(name);
        return Answer{};
      });
      entry.effort = effort;
      entry.role = role;
      registry.add(std::move(entry));
    }
  }
  registry.add(portfolio(registry));
  make_plan(Problem(chain_draft()), registry, {});
  EXPECT_EQ(ran, std::vector<std::string>({"1 own", "1 published", "2 own"}));
}

TEST(Portfolio, RunsInstantPlannersThenQuickOnesOfOurOwnThenTheRest) {
  std::vector<std::string> ran;
  Registry registry;
  const auto add = [&](const std::string& name, Effort effort, Role role, Strength strength) {
    PlannerEntry entry = planner(name, [&ran, name](const Problem&, Control&) {
      ran.push_back(name);
      return Answer{};
    });
    entry.effort = effort;
    entry.role = role;
    entry.strength = strength;
    registry.add(std::move(entry));
  };
  add("improving", Effort::anytime, Role::own, Strength::heuristic);
  add("proof", Effort::anytime, Role::own, Strength::exact);
  add("baseline", Effort::quick, Role::yardstick, Strength::heuristic);
  add("quick", Effort::quick, Role::own, Strength::heuristic);
  add("fill", Effort::instant, Role::imitation, Strength::heuristic);
  registry.add(portfolio(registry));
  make_plan(Problem(chain_draft()), registry, {});
  EXPECT_EQ(ran, std::vector<std::string>({"fill", "quick", "baseline", "proof", "improving"}));
}

TEST(Portfolio, PlansLayersOnceBeforePipelinesOfAllOps) {
  ProblemDraft draft = chain_draft();
  draft.objective = Objective::throughput;
  const Problem problem(draft);
  const Registry registry = planning_registry();
  const auto members = in_order_of_effort(registry.fitting(problem));
  const auto place = [&](const std::string& name) {
    return std::ranges::find(members, name, &PlannerEntry::name);
  };
  ASSERT_NE(place("kinds"), members.end());
  EXPECT_LT(place("repeats"), place("kinds"));
  EXPECT_LT(place("topo"), place("repeats"));
}

// Of all the time there is: an instant planner, or a quick one of our own, may take all of it.
TEST(Portfolio, GivesQuickPlannersOfOurOwnTheTimeTheyWouldHaveAlone) {
  double given = 0;
  double given_to_first_other = 0;  // the last one gets what is left
  Registry registry;
  registry.add(planner("quick", [&](const Problem&, Control& control) {
    given = control.budget().seconds;
    return Answer{};
  }));
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    PlannerEntry other = planner(name, [&](const Problem&, Control& control) {
      if (given_to_first_other == 0) given_to_first_other = control.budget().seconds;
      return Answer{};
    });
    other.role = Role::published;
    registry.add(std::move(other));
  }
  registry.add(portfolio(registry));
  make_plan(Problem(chain_draft()), registry, {.budget = {.seconds = 1000}});
  EXPECT_GT(given, 900);
  EXPECT_GT(given_to_first_other, 0);
  EXPECT_LT(given_to_first_other, 500);
}

// A quick planner that turns out slow does not take the time of those that improve the plan.
TEST(Portfolio, GivesLessToQuickPlannersOnceThereIsAPlan) {
  std::map<std::string, double> given;
  Registry registry;
  registry.add(good("first", DeviceId{1}));
  const auto add = [&](const std::string& name, Role role, Effort effort) {
    PlannerEntry entry = planner(name, [&given, name](const Problem&, Control& control) {
      given[name] = control.budget().seconds;
      return Answer{};
    });
    entry.role = role;
    entry.effort = effort;
    registry.add(std::move(entry));
  };
  add("own", Role::own, Effort::quick);
  add("published", Role::published, Effort::quick);
  add("yardstick", Role::yardstick, Effort::quick);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}) {
    add(name, Role::own, Effort::anytime);
  }
  registry.add(portfolio(registry));
  make_plan(Problem(chain_draft()), registry, {.budget = {.seconds = 1000}});
  EXPECT_LT(given.at("own"), 500);
  EXPECT_LT(given.at("published"), given.at("own"));
  EXPECT_LT(given.at("yardstick"), given.at("published"));
}

TEST(Portfolio, RunsAnInstantPlannerEvenWithoutTime) {
  Registry registry;
  PlannerEntry instant = good("instant", DeviceId{0});
  instant.effort = Effort::instant;
  registry.add(std::move(instant));
  registry.add(good("quick", DeviceId{0}));
  registry.add(portfolio(registry));
  const auto outcome = make_plan(Problem(chain_draft()), registry, {.budget = {.seconds = 0}});
  EXPECT_EQ(outcome.answer.found_by, "instant");
  EXPECT_NEAR(outcome.answer.certificate.lower_bound, 3, 1e-6);
}

TEST(Portfolio, AMemberThatFailsIsANote) {
  Registry registry;
  registry.add(
      planner("hungry", [](const Problem&, Control&) -> Answer { throw std::bad_alloc(); }));
  registry.add(good("good", DeviceId{1}));
  registry.add(portfolio(registry));
  const auto outcome = make_plan(Problem(chain_draft()), registry, {});
  EXPECT_EQ(outcome.answer.found_by, "good");
  ASSERT_EQ(outcome.notes.size(), 1U);
  EXPECT_EQ(outcome.notes.front(), "planner 'hungry' ran out of memory");
}

TEST(Portfolio, AMemberThatThrowsDoesNotHideThatNothingWasFound) {
  if (PLACEWRIGHT_DEBUG_CHECKS) GTEST_SKIP() << "debug builds throw";
  Registry registry;
  registry.add(planner(
      "broken", [](const Problem&, Control&) -> Answer { throw std::logic_error("broken"); }));
  registry.add(planner("honest", [](const Problem&, Control&) {
    Answer answer;
    answer.reason = "nothing fits";
    return answer;
  }));
  registry.add(portfolio(registry));
  const auto outcome = make_plan(Problem(chain_draft()), registry, {});
  EXPECT_FALSE(outcome.answer.plan);
  EXPECT_EQ(outcome.fault, "");
  EXPECT_EQ(outcome.answer.reason, "honest: nothing fits");
}

TEST(Portfolio, AMemberThatThrowsOrProvesWhatIsFalseIsANote) {
  if (PLACEWRIGHT_DEBUG_CHECKS) GTEST_SKIP() << "debug builds stop at the first fault";
  Registry registry;
  registry.add(planner(
      "thrower", [](const Problem&, Control&) -> Answer { throw std::runtime_error("oops"); }));
  registry.add(good("good", DeviceId{1}));
  PlannerEntry liar = planner("liar", [](const Problem&, Control&) {
    Answer answer;
    answer.proved_infeasible = true;
    answer.reason = "wishful thinking";
    return answer;
  });
  liar.strength = Strength::exact;
  registry.add(std::move(liar));
  registry.add(portfolio(registry));
  const auto outcome = make_plan(Problem(chain_draft()), registry, {});
  EXPECT_EQ(outcome.fault, "");
  EXPECT_EQ(outcome.answer.found_by, "good");
  ASSERT_EQ(outcome.notes.size(), 2U);
  EXPECT_THAT(outcome.notes[0], HasSubstr("oops"));
  EXPECT_THAT(outcome.notes[1], HasSubstr("says that no plan exists"));
}

TEST(Service, TheObserverIsCalledInTheCallersThread) {
  PlannerEntry threaded = planner("threaded", [](const Problem& problem, Control& control) {
    std::jthread([&] { control.report(7, 0); }).join();
    return answer_with(all_on(problem, DeviceId{0}));
  });
  Registry registry;
  registry.add(std::move(threaded));
  std::vector<double> values;
  const auto caller = std::this_thread::get_id();
  const auto observer = [&](const Progress& progress) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    values.push_back(progress.value);
  };
  make_plan(Problem(chain_draft()), registry, {.planner = "threaded"}, nullptr, observer);
  EXPECT_EQ(values, std::vector<double>({7}));
}

TEST(Portfolio, AWrongMemberDoesNotHideTheOthers) {
  Registry registry;
  registry.add(wrong());
  registry.add(good("slow", DeviceId{1}));
  registry.add(portfolio(registry));
  const auto outcome = make_plan(Problem(chain_draft()), registry, {});
  if (PLACEWRIGHT_DEBUG_CHECKS) {
    EXPECT_THAT(outcome.fault, HasSubstr("wrong"));
  } else {
    EXPECT_EQ(outcome.answer.found_by, "slow");
  }
}

TEST(Portfolio, OnlyWrongPlansAreAFault) {
  Registry registry;
  registry.add(wrong());
  registry.add(portfolio(registry));
  EXPECT_THAT(make_plan(Problem(chain_draft()), registry, {}).fault, HasSubstr("wrong plan"));
}

}  // namespace
}  // namespace placewright
