// Planners for several models: published figures, brute force, and what may be odd about a set.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "planners/flow/completion_checks.h"
#include "planners/flow/completion_labels.h"
#include "support/published.h"

namespace placewright {
namespace {

using testing::completion_outcome;
using testing::published_problem;

Problem six_ops() {
  return published_problem("talos/six_ops.json", Objective::total_completion);
}
Problem two_chains() {
  return published_problem("talos/two_chains.json", Objective::total_completion);
}
ProblemFile case_file(const std::string& name) {
  return read_problem(testing::source_path("tests/data/cases/" + name));
}

TEST(SeveralModels, SixOpsAsPublished) {
  const Problem problem = six_ops();
  EXPECT_DOUBLE_EQ(completion_outcome(problem, "aswm").value(), 12.5);
  EXPECT_DOUBLE_EQ(completion_outcome(problem, "tsam").value(), 11.5);
  EXPECT_DOUBLE_EQ(completion_outcome(problem, "talos", true).value(), 9.0);
  EXPECT_DOUBLE_EQ(completion_outcome(problem, "talos").value(), 9.0);
  const PlanOutcome exact = completion_outcome(problem, "toct-exact");
  EXPECT_DOUBLE_EQ(exact.value(), 9.0);
  EXPECT_EQ(exact.answer.status(), Status::optimal);
}

TEST(SeveralModels, TwoChains) {
  const Problem problem = two_chains();
  const double bound = 274494.75;  // each op at its fastest
  EXPECT_GE(best_lower_bound(problem).lower_bound, bound);
  const double aswm = completion_outcome(problem, "aswm").value();
  const double tsam = completion_outcome(problem, "tsam").value();
  const double published = completion_outcome(problem, "talos", true).value();
  const double refined = completion_outcome(problem, "talos").value();
  const PlanOutcome exact = completion_outcome(problem, "toct-exact");
  EXPECT_EQ(exact.answer.status(), Status::optimal);
  EXPECT_NEAR(tsam, 442568.727, 0.001);
  EXPECT_LT(published, std::min(aswm, tsam));
  EXPECT_LE(refined, 1.01 * exact.value());
  for (const double value : {aswm, tsam, published, refined, exact.value()}) {
    EXPECT_GE(value, exact.value() * (1 - 1e-6));
    EXPECT_GE(value, bound);
  }
}

TEST(SeveralModels, ExactAsBruteForce) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) testing::expect_exact_and_bounded(seed);
}

// Chains of ops with (cpu, gpu) times, free transfers.
ProblemDraft chains(const std::vector<std::vector<std::pair<double, double>>>& models) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  draft.cluster.kinds = {{"cpu"}, {"gpu"}};
  draft.cluster.devices = {{.name = "CPU", .kind = KindId{0}}, {.name = "GPU", .kind = KindId{1}}};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}}, {DeviceId{1}, DeviceId{0}}};
  for (std::size_t i = 0; i < models.size(); ++i) {
    draft.models.push_back({.name = "m" + std::to_string(i)});
    for (std::size_t j = 0; j < models[i].size(); ++j) {
      const OpId op{draft.ops.size()};
      draft.ops.push_back({.name = std::to_string(i) + "/" + std::to_string(j),
                           .model = ModelId{i},
                           .time = {models[i][j].first, models[i][j].second}});
      if (j > 0) draft.tensors.push_back({.producer = OpId{op.index() - 1}, .consumers = {op}});
    }
  }
  return draft;
}

const std::vector<std::string>& planners() {
  static const std::vector<std::string> names = {"aswm", "tsam", "talos", "toct-exact", "auto"};
  return names;
}

void expect_all(ProblemDraft draft, double best) {
  const Problem problem(std::move(draft));
  for (const std::string& planner : planners()) {
    const PlanOutcome outcome = completion_outcome(problem, planner);
    ASSERT_TRUE(outcome.answer.plan) << planner << ": " << outcome.answer.reason;
    EXPECT_GE(outcome.value(), best - 1e-9) << planner;
    const bool must_be_best = planner == "toct-exact" || planner == "auto";
    if (must_be_best) {
      EXPECT_NEAR(outcome.value(), best, 1e-6) << planner;
    }
  }
}

TEST(SeveralModels, AModelWithoutOpsIsCompleteWhenItArrives) {
  ProblemDraft draft = chains({{{4, 1}}, {}, {{2, 3}}});
  draft.models[1].arrival = 7;
  expect_all(draft, 1 + 0 + 2);
}

TEST(SeveralModels, IdenticalModels) {
  // One op each: two on the GPU in turn (1 + 2), the CPU would take 4.
  expect_all(chains({{{4, 1}}, {{4, 1}}}), 3);
}

TEST(SeveralModels, NoCommonOps) {
  expect_all(chains({{{1, 9}, {1, 9}}, {{9, 1}, {9, 1}}}), 4);
}

TEST(SeveralModels, OneDevice) {
  ProblemDraft draft = chains({{{3, 1}}, {{1, 1}}, {{2, 1}}});
  draft.cluster.devices.resize(1);
  draft.cluster.links.clear();
  expect_all(draft, 1 + 3 + 6);
}

TEST(SeveralModels, AllOpsUnsupportedOnOneDevice) {
  ProblemDraft draft = chains({{{3, 1}}, {{1, 1}}});
  for (Op& op : draft.ops) op.time[1] = kUnsupported;
  expect_all(draft, 1 + 4);
  draft = chains({{{3, 1}}, {{1, 2}}});
  for (Op& op : draft.ops) op.time[0] = kUnsupported;  // the reference kind itself
  expect_all(draft, 1 + 3);
}

TEST(SeveralModels, AnArrivalAtTheMomentAnotherEnds) {
  ProblemDraft draft = chains({{{9, 2}, {9, 2}}, {{9, 3}}});
  draft.models[1].arrival = 4;
  expect_all(draft, 4 + 3);
}

TEST(SeveralModels, WeightsDecideWhoGoesFirst) {
  ProblemDraft draft = chains({{{kUnsupported, 2}}, {{kUnsupported, 3}}});
  draft.models[1].weight = 10;
  expect_all(draft, 30 + 5);
}

TEST(SeveralModels, TalosAndAutoAreNeverWorseThanTheBaselines) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    GenerateOptions options;
    options.family = seed % 2 == 0 ? GraphFamily::layered : GraphFamily::inception;
    options.objective = Objective::total_completion;
    options.seed = seed;
    options.ops = 40;
    options.models = 2 + seed % 3;
    options.devices = 3;
    const Problem problem(generate(options));
    const double baseline = std::min(completion_outcome(problem, "aswm").value(),
                                     completion_outcome(problem, "tsam").value());
    EXPECT_LE(completion_outcome(problem, "talos").value(), baseline) << seed;
    PlanRequest request;
    request.budget.seconds = 0.3;
    EXPECT_LE(make_plan(problem, testing::all_planners(), request).value(), baseline) << seed;
  }
}

// Chains that are packed into one op may not fit where single ops do.
TEST(SeveralModels, TalosProvesNothingByWhatItPacked) {
  const PlannerEntry* talos = testing::all_planners().find("talos", Objective::total_completion);
  ASSERT_NE(talos, nullptr);
  for (const char* name : {"talos-packed-group.json", "talos-packed-weight.json"}) {
    const Problem problem = build_problem(case_file(name));
    for (std::uint64_t steps = 1; steps <= 100; ++steps) {
      Control control("talos", Budget{.seconds = 10, .steps = steps});
      const Answer answer = talos->plan(problem, Settings{talos->options}, control);
      EXPECT_FALSE(answer.proved_infeasible) << name << ", steps " << steps;
      EXPECT_NE(answer.plan.has_value(), !answer.reason.empty()) << name << ", steps " << steps;
    }
  }
}

// What is left of an arrival after rounding, in doubles or on CP-SAT's grid, is no bound.
TEST(SeveralModels, CpsatMakesNoBoundOfRoundedArrivals) {
  for (const double arrival : {3.1757421534499413, 999999.9999999, 1000000.0000001}) {
    ProblemFile file = case_file("cpsat-arrival.json");
    file.draft.models[1].arrival = arrival;
    const PlanOutcome outcome = completion_outcome(build_problem(std::move(file)), "cpsat");
    EXPECT_EQ(outcome.fault, "") << arrival;
    EXPECT_EQ(outcome.value(), 0) << arrival;
    EXPECT_EQ(outcome.answer.status(), Status::optimal) << arrival;
    EXPECT_EQ(outcome.answer.certificate.lower_bound, 0) << arrival;
  }
}

TEST(CompletionLabels, SayWhatTheyCannotDo) {
  EXPECT_EQ(CompletionLabels::obstacle(two_chains()), "");
  ProblemDraft draft = chains({{{1, 1}, {1, 1}}, {{1, 1}, {1, 1}}});
  draft.colocated.push_back({OpId{0}, OpId{1}});
  EXPECT_EQ(CompletionLabels::obstacle(Problem(draft)), "ops are colocated");
  draft.colocated.clear();
  draft.cluster.links[0].latency = 1;
  EXPECT_EQ(CompletionLabels::obstacle(Problem(draft)), "transfers wait for each other");
  draft.rules.congestion = false;
  EXPECT_EQ(CompletionLabels::obstacle(Problem(draft)), "");
}

// With one tensor alone, congestion makes no difference unless it leaves for several devices.
TEST(CompletionLabels, FitCongestionWhereNoTransfersMeet) {
  int fitting = 0;
  constexpr std::uint64_t kCases = 60;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    testing::RandomProblemOptions options = testing::several_models(seed);
    options.ops = 4;
    options.devices = 2 + seed % 2;
    options.interconnect = seed / 2 % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
    options.congestion = true;
    options.edge_probability = 0.7;
    ProblemDraft draft = testing::random_draft(options, seed);
    if (draft.tensors.size() > 1) draft.tensors.resize(1);
    const Problem problem(std::move(draft));
    if (!CompletionLabels::obstacle(problem).empty()) continue;
    ++fitting;
    const auto result =
        CompletionLabels(problem).search(kInfinity, 1000000, [](std::uint64_t) { return false; });
    const std::optional<double> best = testing::brute_force_value(problem);
    ASSERT_TRUE(best && result.complete) << seed;
    EXPECT_NEAR(result.lower_bound, *best, 1e-9 * *best) << seed;
  }
  EXPECT_GT(fitting, kCases / 2);
  EXPECT_LT(fitting, kCases);
}

// An op that takes no time is done when its model arrives, even where all lanes are busy then.
TEST(CompletionLabels, NoWorkWaitsForNoLane) {
  for (const std::size_t instant : {0, 1}) {
    ProblemDraft draft = chains({{{9, 9}}, {{9, 9}}});
    draft.cluster.devices.resize(1);
    draft.cluster.links.clear();
    draft.models[instant].arrival = 7;
    draft.ops[instant].time = {0, 0};
    const Problem problem(draft);
    const auto result =
        CompletionLabels(problem).search(kInfinity, 1000, [](std::uint64_t) { return false; });
    EXPECT_TRUE(result.complete);
    EXPECT_NEAR(result.lower_bound, 9, 1e-9) << instant;
  }
}

TEST(CompletionLabels, GiveABoundWhenTheyAreTooMany) {
  const Problem problem = two_chains();
  CompletionLabels labels(problem);
  const auto result = labels.search(360000, 500, [](std::uint64_t) { return false; });
  EXPECT_FALSE(result.complete);
  EXPECT_GE(result.lower_bound, 274494.75);
  EXPECT_LE(result.lower_bound, 359251.375);
}

}  // namespace
}  // namespace placewright
