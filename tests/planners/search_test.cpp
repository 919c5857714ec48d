#include <string>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "evaluate/schedule.h"
#include "formats/problem_file.h"
#include "planners/baselines/baselines.h"
#include "planners/methods/sweep.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/locations.h"
#include "support/random_plan.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

Problem example(const std::string& name, bool congestion) {
  ProblemFile file = read_problem(testing::source_path("examples/moirai/") + name);
  ProblemDraft draft = std::move(file.draft);
  draft.rules.congestion = congestion;
  return Problem(std::move(draft));
}

// What a sweep says of a sequence is what its schedule is worth, whatever the problem.
TEST(Sweep, ValuesAreThoseOfValidSchedules) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomProblemOptions options;
    options.ops = 100;  // more than one window
    options.edge_probability = 0.05;
    options.interconnect = seed % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
    options.congestion = seed % 3 != 0;
    options.lanes = seed % 5 == 0;
    options.overheads = seed % 7 == 0;
    options.colocation = seed % 4 == 0;
    options.zero_times = seed % 3 == 0;
    options.objective = seed % 6 == 0 ? Objective::total_completion : Objective::latency;
    options.models = seed % 6 == 0 ? 3 : 1;
    const Problem problem(testing::random_draft(options, seed));
    testing::RandomSource random(seed);
    Placement placement = testing::random_placement(problem, random);
    Schedule schedule = dispatch(problem, placement, upward_ranks(problem));
    const Plan start = schedule_plan(problem, std::move(placement), std::move(schedule));
    Sweep sweep(problem, seed);
    sweep.start_from(start);
    const auto cooling = seed % 2 == 0 ? Sweep::Cooling::none : Sweep::Cooling::within_windows;
    const double temperature = seed % 4 < 2 ? 0 : sweep.mean_time();
    for (int i = 0; i < 3; ++i) {
      sweep.run(
          64, temperature, [](std::uint64_t) { return false; }, cooling);
    }
    const Sequence found = sweep.current();
    const Plan plan = sweep.plan_of(found);
    EXPECT_LE(plan.value, found.value * (1 + 1e-9));
    for (const Violation& violation : verify(problem, plan)) ADD_FAILURE() << violation.message;
  }
}

// Each of several sweeps has a section of the same sequence; joined they are one.
TEST(Sweep, SectionsAreJoinedToAValidSequence) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomProblemOptions options;
    options.ops = 200;
    options.edge_probability = 0.05;
    options.colocation = seed % 4 == 0;
    options.congestion = seed % 3 != 0;
    const Problem problem(testing::random_draft(options, seed));
    testing::RandomSource random(seed);
    Placement placement = testing::random_placement(problem, random);
    Schedule schedule = dispatch(problem, placement, upward_ranks(problem));
    const Plan start = schedule_plan(problem, std::move(placement), std::move(schedule));
    std::vector<Sweep> sweeps;
    for (std::uint64_t i = 0; i < 3; ++i) {
      sweeps.emplace_back(problem, seed + i);
      sweeps.back().start_from(start);
    }
    const auto sections = sweeps.front().sections(sweeps.size(), 0.3);
    ASSERT_EQ(sections.size(), sweeps.size());
    EXPECT_EQ(sections.back().end, problem.op_count());
    const Sequence before = sweeps.front().current();
    for (std::size_t i = 0; i < sweeps.size(); ++i) {
      sweeps[i].run_section(
          sections[i], 64, 0, [](std::uint64_t) { return false; }, Sweep::Cooling::within_windows);
      for (std::size_t place = 0; place < before.order.size(); ++place) {
        const bool inside = place >= sections[i].begin && place < sections[i].end;
        EXPECT_TRUE(inside || sweeps[i].current().order[place] == before.order[place]);
      }
    }
    const Plan plan = Sweep(problem, 0).plan_of(Sweep::joined(sections, sweeps));
    for (const Violation& violation : verify(problem, plan)) ADD_FAILURE() << violation.message;
  }
}

// Where cut nodes part the sections, each gains by itself.
TEST(Sweep, SectionsOfALongGraphGainTogether) {
  const Problem problem(generate({.family = GraphFamily::transformer, .ops = 400, .devices = 4}));
  Control control("heft", {});
  const Answer start = heft().plan(problem, Settings{}, control);
  std::vector<Sweep> sweeps;
  for (std::uint64_t i = 0; i < 2; ++i) {
    sweeps.emplace_back(problem, i);
    sweeps.back().start_from(*start.plan);
  }
  const auto sections = sweeps.front().sections(sweeps.size(), 0);
  double alone = kInfinity;
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    sweeps[i].run_section(
        sections[i], 256, 0, [](std::uint64_t) { return false; }, Sweep::Cooling::within_windows);
    alone = std::min(alone, sweeps[i].current().value);
  }
  EXPECT_LT(alone, start.value());
  EXPECT_LT(Sweep(problem, 0).start_from(Sweep::joined(sections, sweeps)), alone);
}

// With memory that binds: what a window gives back when it returns to its best must fit again.
TEST(Sweep, WindowsThatReturnToTheirBestStayWithinMemory) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomProblemOptions options;
    options.ops = 100;
    options.edge_probability = 0.05;
    options.binding_memory = true;
    options.colocation = seed % 2 == 0;
    options.shared_weights = seed % 3 == 0;
    const Problem problem(testing::random_draft(options, seed));
    Control control("test", Budget{.seconds = 600});
    const Answer start = heft().plan(problem, Settings{}, control);
    if (!start.plan) continue;
    Sweep sweep(problem, seed);
    sweep.start_from(*start.plan);
    for (int i = 0; i < 3; ++i) {
      sweep.run(
          256, 3 * sweep.mean_time(), [](std::uint64_t) { return false; },
          Sweep::Cooling::within_windows);
    }
    const Plan plan = sweep.plan_of(Sequence(sweep.current()));
    for (const Violation& violation : verify(problem, plan)) ADD_FAILURE() << violation.message;
  }
}

// Sending to two devices costs twice, also where their numbers are 64 apart.
TEST(Sweep, CountsEveryDeviceThatATensorIsSentTo) {
  constexpr std::size_t kDevices = 130;
  ProblemDraft draft;
  draft.cluster.kinds = {{.name = "k"}};
  for (std::size_t i = 0; i < kDevices; ++i) {
    draft.cluster.devices.push_back(
        {.name = "d" + std::to_string(i), .kind = KindId{0}, .send_overhead = 10});
  }
  draft.models = {{.name = "m"}};
  for (const char* name : {"source", "near", "far", "farther"}) {
    draft.ops.push_back({.name = name, .time = {1}});
  }
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}, OpId{2}, OpId{3}}}};
  for (const std::size_t to : {1, 65, 129}) {
    draft.cluster.links.push_back({.from = DeviceId{0}, .to = DeviceId{to}});
  }
  const Problem problem(std::move(draft));
  Placement placement(problem.op_count(), DeviceId{0});
  placement[OpId{1}] = DeviceId{1};
  placement[OpId{2}] = DeviceId{65};
  placement[OpId{3}] = DeviceId{129};
  Schedule schedule = dispatch(problem, placement, upward_ranks(problem));
  const Plan plan = schedule_plan(problem, placement, std::move(schedule));
  EXPECT_EQ(plan.value, 1 + 3 * 10 + 1);
  EXPECT_EQ(Sweep(problem, 1).start_from(plan), plan.value);
}

TEST(Search, BeatsHeftOnPublishedInputs) {
  const Registry registry = planning_registry();
  for (const bool congestion : {false, true}) {
    const Problem problem = example("GoogLeNet.json", congestion);
    PlanRequest request;
    request.budget = Budget{.seconds = 60, .steps = 30000};
    request.planner = "heft";
    const double heft = make_plan(problem, registry, request).value();
    request.planner = "search";
    EXPECT_LT(make_plan(problem, registry, request).value(), 0.95 * heft);
  }
}

}  // namespace
}  // namespace placewright
