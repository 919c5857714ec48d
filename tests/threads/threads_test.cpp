// Everything of ours that has threads, with several of them: what ThreadSanitizer looks at (preset
// `tsan`). The results are checked too, so that the same tests are worth something without it.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "analysis/what_if.h"
#include "backends/target_devices.h"
#include "machine/fan_out.h"
#include "machine/targets.h"
#include "machine/workers.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "profiling/crowding.h"
#include "running/arrival_run.h"
#include "running/execution.h"
#include "support/backend_case.h"
#include "support/folder.h"
#include "support/random_cuts.h"
#include "support/random_problem.h"
#include "support/test_name.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

constexpr int kThreads = 3;

struct Case {
  const char* planner;
  Objective objective;
};

void PrintTo(const Case& test_case, std::ostream* out) {
  *out << test_case.planner << " for " << name_of(test_case.objective);
}

class PlannersOnThreads : public ::testing::TestWithParam<Case> {};

TEST_P(PlannersOnThreads, GiveSoundPlansAndTellOfProgress) {
  const auto [planner, objective] = GetParam();
  RandomProblemOptions options;
  options.objective = objective;
  options.interconnect =
      objective == Objective::call_latency ? InterconnectKind::host : InterconnectKind::links;
  options.ops = 16;
  options.models = objective == Objective::total_completion ? 3 : 1;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const Problem problem(random_draft(options, seed));
    const PlanRequest request{.planner = planner,
                              .budget = {.seconds = 1, .steps = 20000, .threads = kThreads}};
    std::atomic<bool> interrupted{false};
    double told = kInfinity;
    const PlanOutcome outcome =
        make_plan(problem, planning_registry(), request, &interrupted,
                  [&](const Progress& progress) { told = std::min(told, progress.value); });
    ASSERT_EQ(outcome.fault, "");
    ASSERT_TRUE(outcome.answer.plan) << outcome.answer.reason;
    EXPECT_TRUE(verify(problem, *outcome.answer.plan).empty());
    EXPECT_GE(outcome.value(), outcome.answer.certificate.lower_bound * (1 - 1e-9));
    EXPECT_LE(outcome.value(), told);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, PlannersOnThreads,
                         ::testing::Values(Case{"search", Objective::latency},
                                           Case{"search", Objective::total_completion},
                                           Case{"decompose", Objective::latency},
                                           Case{"calls-search", Objective::call_latency}),
                         [](const auto& entry) {
                           return test_name(std::string{entry.param.planner} + "_" +
                                            std::string{name_of(entry.param.objective)});
                         });

// Members of `auto` side by side. Steps would have them run in turn.
TEST(AutoOnThreads, MembersShareWhatTheyFind) {
  for (const Objective objective : {Objective::latency, Objective::total_completion,
                                    Objective::throughput, Objective::call_latency}) {
    RandomProblemOptions options;
    options.objective = objective;
    options.interconnect =
        objective == Objective::call_latency ? InterconnectKind::host : InterconnectKind::links;
    options.ops = 24;
    options.models = objective == Objective::total_completion ? 3 : 1;
    const Problem problem(random_draft(options, 3));
    const PlanRequest request{.planner = "auto", .budget = {.seconds = 2, .threads = kThreads}};
    double told = kInfinity;
    const PlanOutcome outcome =
        make_plan(problem, planning_registry(), request, nullptr,
                  [&](const Progress& progress) { told = std::min(told, progress.value); });
    ASSERT_EQ(outcome.fault, "");
    ASSERT_TRUE(outcome.answer.plan) << outcome.answer.reason;
    EXPECT_TRUE(verify(problem, *outcome.answer.plan).empty());
    EXPECT_GE(outcome.value(), outcome.answer.certificate.lower_bound * (1 - 1e-9));
    EXPECT_LE(outcome.value(), told);
  }
}

// Threads have sections of a large graph, and their work is joined.
TEST(SearchOnThreads, SharesTheWindowsOfALargeGraph) {
  const Problem problem(generate({.family = GraphFamily::transformer, .ops = 4'100, .devices = 4}));
  const PlanRequest request{.planner = "search",
                            .budget = {.seconds = 60, .steps = 60'000, .threads = kThreads}};
  const PlanOutcome outcome = make_plan(problem, planning_registry(), request);
  ASSERT_TRUE(outcome.answer.plan);
  for (const Violation& violation : verify(problem, *outcome.answer.plan)) {
    ADD_FAILURE() << violation.message;
  }
}

TEST(WhatIfOnThreads, AnswersEveryPoint) {
  RandomProblemOptions options;
  options.ops = 10;
  const ProblemDraft draft = random_draft(options, 1);
  const WhatIfGrid grid{.devices = {1, 2, 3}, .bandwidth = {0.5, 1, 2}};
  const PlanRequest request{.planner = "etf", .budget = {.seconds = 2, .threads = kThreads}};
  std::size_t told = 0;
  const auto answers = what_if(draft, grid, planning_registry(), request, nullptr,
                               [&](std::size_t, std::size_t) { ++told; });
  ASSERT_EQ(answers.size(), 9U);
  EXPECT_EQ(told, 9U);
  for (const WhatIfAnswer& answer : answers)
    EXPECT_TRUE(answer.plan) << answer.outcome.answer.reason;
}

TEST(FanOutOnThreads, WorkThatFailsStopsTheRest) {
  std::atomic<bool> stop{false};
  const auto work = [&](std::size_t number) {
    if (number == 0) throw std::runtime_error("the first");
    while (!stop) std::this_thread::yield();
  };
  EXPECT_THROW(
      (FanOut{.threads = kThreads, .on_failure = [&] { stop = true; }}.run(kThreads, work)),
      std::runtime_error);
}

// Not bound to a core: two would have to share the only one that some machines have.
std::vector<Target> two_workers() {
  return std::vector<Target>(2);
}

// What one worker writes before a meeting the other reads after it, without a lock.
TEST(WorkersOnThreads, AMeetingHandsOverWhatWasWritten) {
  constexpr std::uint64_t kMeetings = 50;
  Workers workers(two_workers());
  std::array<std::uint64_t, 2> written{};
  std::array<std::uint64_t, 2> read{};
  workers.run([&](std::size_t number) {
    for (std::uint64_t meeting = 1; meeting <= kMeetings; meeting += 2) {
      written[number] += number + 1;
      ASSERT_TRUE(workers.meet(number, meeting));
      read[number] = written[1 - number];
      ASSERT_TRUE(workers.meet(number, meeting + 1));
    }
  });
  EXPECT_EQ(read[0], kMeetings / 2 * 2);
  EXPECT_EQ(read[1], kMeetings / 2);
}

TEST(WorkersOnThreads, OneThatFailsEndsTheWaitOfTheOther) {
  Workers workers(two_workers());
  const std::atomic<std::uint64_t> never{0};
  EXPECT_THROW(workers.run([&](std::size_t number) {
    if (number == 0) throw std::runtime_error("the device went away");
    EXPECT_FALSE(workers.wait(number, never, 1));
  }),
               std::runtime_error);
}

// A plan for real, on a backend that is built with the tests: a worker for each device, with copies
// between their memories.
TEST(ExecutionOnThreads, GivesTheOutputsOfTheWholeModel) {
  const BackendCase model{"toy", "branches"};
  const Folder folder;
  for (const Objective objective : {Objective::latency, Objective::throughput}) {
    const Problem problem(
        model_draft(model, folder.file("models"), devices_for("toy", kThreads), objective));
    const auto models = models_of(problem);
    RandomSource random(1);
    for (int i = 0; i < 3; ++i) {
      const Plan plan = random_cut_plan(problem, kThreads, random);
      const RunResult result =
          run_plan(problem, plan, models, {.warm_up = 2, .repeat = 10, .slots = kThreads});
      ASSERT_TRUE(result.outputs.compared);
      EXPECT_TRUE(result.outputs.equal()) << result.outputs.worst_output;
    }
  }
}

// An instance of the model on each device, all asked at once, and then again.
TEST(ArrivalsOnThreads, EveryModelRuns) {
  const BackendCase model{"toy", "branches"};
  const Folder folder;
  const Problem problem(model_draft(model, folder.file("models"), devices_for("toy", kThreads),
                                    Objective::total_completion));
  const auto models = models_of(problem);
  const std::vector<ArrivingModel> arrivals(8);
  const ArrivalRule everywhere = [](double, std::span<const ArrivalState> states) {
    std::vector<ArrivalStart> starts;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].stage == ArrivalStage::waiting) starts.push_back({i, DeviceId{i % kThreads}});
    }
    return starts;
  };
  std::vector<ArrivalPlace> places = places_of(problem, arrivals);
  for (ArrivalPlace& place : places) place.copies = 2;
  ArrivalRunner runner(problem, models, arrivals, places, {});
  const ArrivalRuns runs = run_arrivals(
      runner, 1, [&](std::size_t) { return everywhere; }, 3);
  EXPECT_TRUE(runs.outputs.equal()) << runs.outputs.largest_difference;
  for (const ArrivalRound& round : runs.rounds.at(0)) {
    for (const ArrivalState& state : round.states) EXPECT_EQ(state.stage, ArrivalStage::complete);
  }
}

// One device is timed while the others work.
TEST(CrowdingOnThreads, IsMeasuredOnTheFirstDevice) {
  const BackendCase model{"toy", "branches"};
  const Folder folder;
  std::vector<Target> targets;
  for (const std::string& name : devices_for("toy", kThreads))
    targets.push_back(target_named(name));
  const auto read = runtime_named("toy").read(model_file(model, folder.file("models")));
  const std::vector<const NeuralModel*> models{read.get(), read.get()};
  const MeasureOptions options{.warm_up = 1, .repeat = 5};
  BusyDevices busy(models, {targets.begin() + 1, targets.end()}, options);
  const std::vector<TurnTimes> turns = measure_turns(models, targets.front(), busy, options);
  ASSERT_EQ(turns.size(), 2U);
  for (const TurnTimes& times : turns) {
    EXPECT_GE(times.first.kept + times.first.rejected, kFewestRuns);
    EXPECT_GE(times.again.kept + times.again.rejected, kFewestRuns);
  }
}

}  // namespace
}  // namespace placewright::testing
