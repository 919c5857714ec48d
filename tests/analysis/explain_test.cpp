// Explanations against fresh evaluations: by the verifier, and by plans and oracles made anew.

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/carried_plan.h"
#include "analysis/conflict.h"
#include "analysis/cuts.h"
#include "analysis/limits.h"
#include "analysis/more_of.h"
#include "analysis/op_moves.h"
#include "evaluate/calls.h"
#include "evaluate/pipeline.h"
#include "evaluate/placement_plan.h"
#include "evaluate/schedule.h"
#include "planning/portfolio.h"
#include "support/published.h"
#include "support/random_plan.h"
#include "support/random_problem.h"
#include "support/records.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

RandomProblemOptions options_for(std::uint64_t seed) {
  constexpr Objective kObjectives[] = {Objective::latency, Objective::total_completion,
                                       Objective::throughput, Objective::call_latency};
  RandomProblemOptions options;
  options.objective = kObjectives[seed % 4];
  options.interconnect = options.objective == Objective::call_latency || seed % 3 == 0
                             ? InterconnectKind::host
                             : InterconnectKind::links;
  options.models = options.objective == Objective::total_completion ? 2 : 1;
  options.congestion = seed % 5 != 0;
  options.unsupported = seed % 7 == 0;
  options.pins = seed % 6 == 0;
  options.colocation = seed % 2 == 0;
  options.overheads = seed % 3 == 1;
  options.lanes = seed % 5 == 1;
  options.zero_times = seed % 4 == 1;
  options.missing_links = seed % 8 == 3;
  options.binding_memory = seed % 3 == 2;
  return options;
}

std::optional<Plan> random_valid_plan(const Problem& problem, RandomSource& random) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    auto plan = plan_of_placement(problem, random_placement(problem, random));
    if (plan && verify(problem, *plan).empty()) return plan;
  }
  return std::nullopt;
}

// The cost of a move is the value that the verifier computes for the moved placement.
TEST(OpMoves, CostWhatTheVerifierSaysOfTheMovedPlacement) {
  std::size_t checked = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 160; ++seed) {
    const Problem problem(random_draft(options_for(seed), seed));
    RandomSource random(seed);
    const auto plan = random_valid_plan(problem, random);
    if (!plan) continue;
    const OpId op{random.below(problem.op_count())};
    for (const OpMove& move : moves_of_op(problem, *plan, op)) {
      Placement expected = plan->placement;
      for (const OpId member : problem.group_ops(problem.group(op))) expected[member] = move.device;
      if (!move.plan) {
        const auto fresh = problem.group_allowed(problem.group(op), move.device)
                               ? plan_of_placement(problem, expected)
                               : std::nullopt;
        EXPECT_FALSE(fresh) << "seed " << seed;
        ++refused;
        continue;
      }
      EXPECT_EQ(move.plan->placement, expected) << "seed " << seed;
      EXPECT_NEAR(move.value(), verified_value(problem, *move.plan), 1e-9 * move.value())
          << "seed " << seed;
      const auto violations = verify(problem, *move.plan);
      EXPECT_EQ(violations.empty(), move.obstacle == Obstacle::none) << "seed " << seed;
      // Never worse than what the bare placement stands for.
      const auto fresh = plan_of_placement(problem, expected);
      if (fresh) {
        EXPECT_LE(move.value(), fresh->value * (1 + 1e-12)) << "seed " << seed;
      }
      ++checked;
    }
  }
  EXPECT_GT(checked, 100U);
  EXPECT_GT(refused, 10U);
}

TEST(OpMoves, SayWhatHoldsAnOp) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"fast"}, {"slow"}};
  draft.cluster.devices = {device_record("a", KindId{0}, 10), device_record("b", KindId{1}, 4),
                           device_record("c", KindId{0}, 10)};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}, 1}, {DeviceId{1}, DeviceId{0}, 1}};
  draft.models = {model_record("m")};
  draft.ops = {op_record("x", {1, 2}, 5), op_record("y", {1, kUnsupported}, 1),
               op_record("z", {1, 3}, 1)};
  draft.tensors = {tensor_record(OpId{0}, {OpId{2}}, 0, 8)};
  draft.ops[2].pinned_to = DeviceId{0};
  const Problem problem(draft);
  const auto plan = plan_of_placement(problem, Placement(3, DeviceId{0}));
  ASSERT_TRUE(plan);
  const auto x = moves_of_op(problem, *plan, OpId{0});
  EXPECT_EQ(x[0].obstacle, Obstacle::memory);
  EXPECT_EQ(x[1].obstacle, Obstacle::link);
  EXPECT_EQ(moves_of_op(problem, *plan, OpId{1})[0].obstacle, Obstacle::support);
  EXPECT_EQ(moves_of_op(problem, *plan, OpId{2})[0].obstacle, Obstacle::pin);
  EXPECT_EQ(holds_of_op(problem, *plan, OpId{2}, moves_of_op(problem, *plan, OpId{2})).front(),
            "pin: op 'z' is pinned to 'a'");
}

// The path has no holes: steps and idle times follow each other up to the value.
TEST(CriticalPath, FillsTheTimeUpToTheValue) {
  std::size_t checked = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomProblemOptions options = options_for(seed);
    if (options.objective == Objective::throughput) continue;
    const Problem problem(random_draft(options, seed));
    RandomSource random(seed + 1000);
    const auto plan = random_valid_plan(problem, random);
    if (!plan) continue;
    const CriticalPath path = critical_path(problem, *plan);
    ASSERT_FALSE(path.steps.empty());
    const double tolerance = 1e-6 * path.steps.back().end + 1e-12;
    double time = path.steps.front().waited_for == WaitedFor::arrival
                      ? path.steps.front().start - path.steps.front().idle
                      : 0;
    for (const PathStep& step : path.steps) {
      EXPECT_NEAR(step.start, time + step.idle, tolerance) << "seed " << seed;
      time = step.end;
    }
    if (problem.objective() != Objective::total_completion) {
      EXPECT_NEAR(time, plan->value, tolerance) << "seed " << seed;
    }
    ++checked;
  }
  EXPECT_GT(checked, 60U);
}

// Every activity as early as its order allows: the steps alone fill the time.
TEST(CriticalPath, OfAnEagerScheduleHasNoIdleTime) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const InterconnectKind kind = seed % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
    const Problem problem(
        random_draft({.interconnect = kind, .ops = 14, .overheads = seed % 3 == 0}, seed));
    RandomSource random(seed);
    Plan plan = *plan_of_placement(problem, random_placement(problem, random));
    plan = schedule_plan(problem, plan.placement, retime(problem, plan.placement, *plan.schedule));
    const CriticalPath path = critical_path(problem, plan);
    EXPECT_NEAR(path.idle, 0, 1e-7 * plan.value) << seed;
    EXPECT_NEAR(path.steps.front().start, 0, 1e-7 * plan.value) << seed;
    EXPECT_NEAR(path.steps.back().end, plan.value, 1e-9 * plan.value) << seed;
  }
}

TEST(FullestStage, HasTheLoadOfThePlan) {
  std::size_t checked = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomProblemOptions options = options_for(seed * 4 + 2);
    options.training = seed % 2 == 0;
    ProblemDraft draft = random_draft(options, seed);
    draft.rules.contiguity = Contiguity::none;
    if (seed % 4 == 0) draft.rules.training = TrainingMode::phased;
    const Problem problem(std::move(draft));
    RandomSource random(seed);
    const auto plan = random_valid_plan(problem, random);
    if (!plan) continue;
    double sum = 0;
    for (const FullestStage& stage : fullest_stages(problem, *plan)) sum += stage.load;
    EXPECT_NEAR(sum, plan->value, 1e-9 * plan->value) << "seed " << seed;
    ++checked;
  }
  EXPECT_GT(checked, 20U);
}

TEST(FullestStage, OfReplicasInOneMemoryExchangesNothing) {
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.rules.max_replicas = 2;
  draft.rules.replica_bandwidth = 1;
  draft.cluster.kinds = {{"core"}};
  draft.cluster.spaces = {{"ram"}};
  for (const char* name : {"a", "b"}) {
    Device device = device_record(name, KindId{0});
    device.space = SpaceId{0};
    draft.cluster.devices.push_back(std::move(device));
  }
  draft.models = {model_record("m")};
  draft.ops = {op_record("forward", {2}, 10), op_record("backward", {4}, 0, true)};
  draft.colocated = {{OpId{0}, OpId{1}}};
  const Problem problem(std::move(draft));
  const Plan plan =
      pipeline_plan(problem, {{.devices = {DeviceId{0}, DeviceId{1}}, .ops = {OpId{0}, OpId{1}}}});
  ASSERT_TRUE(verify(problem, plan).empty());
  EXPECT_NEAR(fullest_stages(problem, plan).front().load, plan.value, 1e-9);
}

TEST(Cuts, OfAScheduleAreItsTransfers) {
  for (std::uint64_t seed = 4; seed <= 80; seed += 4) {
    RandomProblemOptions options = options_for(seed);
    options.overheads = false;
    const Problem problem(random_draft(options, seed));
    RandomSource random(seed);
    const auto plan = random_valid_plan(problem, random);
    if (!plan || !plan->schedule) continue;
    double sum = 0;
    for (const Transfer& transfer : plan->schedule->transfers) sum += transfer.end - transfer.start;
    EXPECT_NEAR(time_of_cuts(problem, *plan), sum, 1e-9 * (1 + sum)) << "seed " << seed;
  }
}

// An op lasts longer than its time by what it hands out and takes in, so a schedule's ops and
// transfers together say what its cuts cost.
TEST(Cuts, OfAScheduleCostItsTransfersAndWhatOpsSpendOnThem) {
  std::size_t within_a_space = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    RandomProblemOptions options;
    options.interconnect = seed % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
    options.devices = 5;
    options.overheads = seed % 3 != 0;
    options.cuts = seed % 3 != 1;
    options.spaces = true;
    options.resources = seed % 4 == 0;
    const Problem problem(random_draft(options, seed));
    RandomSource random(seed);
    const auto plan = random_valid_plan(problem, random);
    if (!plan) continue;
    double moved = 0;
    for (const Transfer& transfer : plan->schedule->transfers) {
      moved += transfer.end - transfer.start;
    }
    double spent = 0;
    for (const OpId op : problem.ops()) {
      spent += plan->schedule->end[op] - plan->schedule->start[op] -
               problem.time(op, plan->placement[op]);
    }
    EXPECT_NEAR(time_of_cuts(problem, *plan), moved + spent, 1e-9 * (1 + plan->value))
        << "seed " << seed;
    if (spent > 0 && moved == 0) ++within_a_space;
  }
  EXPECT_GT(within_a_space, 0U);
}

// A cut between calls is paid for once out of the first call and once into each that reads it.
TEST(Cuts, OfCallsAreWhatCallsLastLongerThanTheirOps) {
  std::size_t checked = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    RandomProblemOptions options;
    options.objective = Objective::call_latency;
    options.interconnect = InterconnectKind::host;
    options.overheads = true;
    options.cuts = seed % 2 == 0;
    options.spaces = seed % 3 == 0;
    const Problem problem(random_draft(options, seed));
    RandomSource random(seed);
    const auto plan = random_valid_plan(problem, random);
    if (!plan) continue;
    double spent = 0;
    for (const Call& call : plan->calls) {
      spent += call.end - call.start;
      for (const OpId op : call.ops) spent -= problem.time(op, call.device);
    }
    EXPECT_NEAR(time_of_cuts(problem, *plan), spent, 1e-9 * (1 + plan->value)) << "seed " << seed;
    ++checked;
  }
  EXPECT_GT(checked, 20U);
}

// Brute force over all placements: small problems, so that packing and oracle are not asked.
bool some_placement_is_valid(const Problem& problem) {
  std::vector<std::size_t> choice(problem.group_count(), 0);
  for (;;) {
    Placement placement(problem.op_count());
    for (const OpId op : problem.ops()) placement[op] = DeviceId{choice[problem.group(op).index()]};
    const auto plan = plan_of_placement(problem, placement);
    if (plan && verify(problem, *plan).empty()) return true;
    std::size_t digit = 0;
    while (digit < choice.size() && ++choice[digit] == problem.device_count()) choice[digit++] = 0;
    if (digit == choice.size()) return false;
  }
}

TEST(Conflict, IsInfeasibleAndMinimal) {
  const Registry registry = planning_registry();
  std::size_t conflicts = 0;
  std::size_t not_minimal = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomProblemOptions options;
    options.ops = 5;
    options.objective = seed % 2 == 0 ? Objective::latency : Objective::throughput;
    options.binding_memory = true;
    options.pins = true;
    options.colocation = seed % 3 == 0;
    options.unsupported = seed % 2 == 1;
    options.missing_links = seed % 4 == 0;
    ProblemDraft draft = random_draft(options, seed);
    for (Device& device : draft.cluster.devices)
      device.memory *= 0.5 + 0.1 * static_cast<double>(seed % 5);
    const Problem problem(std::move(draft));
    FeasibilityOracle oracle(registry, Budget{.seconds = 20});
    const Conflict conflict = find_conflict(problem, oracle);
    if (conflict.verdict == Verdict::unknown) {
      EXPECT_EQ(problem.objective(), Objective::throughput) << "seed " << seed;
      continue;
    }
    EXPECT_EQ(conflict.verdict == Verdict::feasible, some_placement_is_valid(problem))
        << "seed " << seed;
    if (conflict.verdict == Verdict::feasible) continue;
    ++conflicts;
    // Not every planner of pipelines over links can prove that none is contiguous.
    if (!conflict.minimal) {
      EXPECT_EQ(problem.objective(), Objective::throughput) << "seed " << seed;
      ++not_minimal;
      continue;
    }
    EXPECT_FALSE(some_placement_is_valid(Problem(with_only(problem, conflict.members))))
        << "seed " << seed;
    for (std::size_t i = 0; i < conflict.members.size(); ++i) {
      std::vector<Constraint> fewer = conflict.members;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_TRUE(some_placement_is_valid(Problem(with_only(problem, fewer))))
          << "seed " << seed << ": without '" << text_of(problem, conflict.members[i]) << "'";
    }
  }
  EXPECT_GT(conflicts, 15U);
  EXPECT_LT(not_minimal, conflicts / 4);
}

TEST(LeastMemory, IsEnoughAndNearlyTheLeast) {
  ProblemFile file = published_file("moirai/example-1.json", Objective::latency);
  for (Device& device : file.draft.cluster.devices) device.memory *= 0.5;
  const Problem problem(std::move(file.draft));
  const Registry registry = planning_registry();
  FeasibilityOracle oracle(registry, Budget{.seconds = 20});
  const auto least = least_memory(problem, oracle);
  ASSERT_TRUE(least);
  EXPECT_GT(least->factor, 1);
  EXPECT_LT(least->not_enough, least->factor);
  EXPECT_GT(least->not_enough, least->factor * 0.99);
  ProblemDraft enough = problem.draft();
  for (Device& device : enough.cluster.devices) device.memory *= least->factor;
  EXPECT_EQ(oracle.ask(enough), Verdict::feasible);
}

// Two memories of two devices each, and four ops of 10 bytes.
ProblemDraft two_memories(double left, double right) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"core"}};
  draft.cluster.spaces = {{"left", left}, {"right", right}};
  for (const char* name : {"a", "b", "c", "d"}) {
    Device device = device_record(name, KindId{0});
    device.space = SpaceId{draft.cluster.devices.size() / 2};
    draft.cluster.devices.push_back(std::move(device));
  }
  for (const DeviceId from : ids<DeviceId>(4)) {
    for (const DeviceId to : ids<DeviceId>(4)) {
      if (from.index() / 2 != to.index() / 2) draft.cluster.links.push_back({from, to, 1, 10});
    }
  }
  draft.models = {model_record("m")};
  for (const char* name : {"p", "q", "r", "s"}) draft.ops.push_back(op_record(name, {1}, 10));
  draft.tensors = {tensor_record(OpId{0}, {OpId{1}, OpId{2}}, 0, 20)};
  return draft;
}

TEST(Conflict, NamesTheMemoryThatDevicesShare) {
  const Problem problem(two_memories(16, 12));
  const Registry registry = planning_registry();
  FeasibilityOracle oracle(registry, Budget{.seconds = 20});
  const Conflict conflict = find_conflict(problem, oracle);
  ASSERT_EQ(conflict.verdict, Verdict::infeasible);
  EXPECT_TRUE(conflict.minimal);
  std::vector<std::string> texts;
  for (const Constraint& member : conflict.members) texts.push_back(text_of(problem, member));
  EXPECT_THAT(texts,
              ::testing::UnorderedElementsAre("memory space 'left' has 16 bytes of memory",
                                              "memory space 'right' has 12 bytes of memory"));
  const auto least = least_memory(problem, oracle);
  ASSERT_TRUE(least);
  // 20 bytes on each side: 16 x 1.67 and 12 x 1.67.
  EXPECT_NEAR(least->factor, 20.0 / 12, 1e-9);
  ASSERT_EQ(least->spaces.size(), 2U);
  EXPECT_EQ(least->spaces[1].name, "right");
  EXPECT_NEAR(least->spaces[1].needed, 20, 1e-9);
}

TEST(MoreOf, MemoryIsThatOfTheSpace) {
  const Problem problem(two_memories(30, 10));
  Placement placement(4, DeviceId{0});
  placement[OpId{3}] = DeviceId{2};
  const auto plan = plan_of_placement(problem, placement);
  ASSERT_TRUE(plan);
  std::vector<std::string> texts;
  for (const Asset& asset : scarce_assets(problem, *plan, 9)) {
    texts.push_back(text_of(problem, asset));
  }
  // The right one is too full for the ops of the left one, and the other way round.
  EXPECT_THAT(texts, ::testing::IsSupersetOf({"memory of left", "memory of right"}));
}

// Two ops of 3 on the one core that there is: another core halves the time.
TEST(MoreOf, OneMoreCoreWhereDevicesAreSetsOfCores) {
  ProblemDraft draft;
  draft.cluster = core_cluster(1);
  draft.models = {model_record("m")};
  draft.ops = {op_record("p", {3}), op_record("q", {3})};
  const Problem problem(std::move(draft));
  const Plan plan = *plan_of_placement(problem, Placement(2, DeviceId{0}));
  const auto assets = scarce_assets(problem, plan, 7);
  ASSERT_TRUE(std::ranges::count(assets, AssetKind::device, &Asset::kind) == 1);
  const Sensitivity sensitivity =
      what_more_brings(problem, plan, planning_registry(), {.planner = "etf"}, assets, 0.1);
  ASSERT_FALSE(sensitivity.more.empty());
  EXPECT_EQ(text_of(problem, sensitivity.more.front().asset), "one more core");
  EXPECT_NEAR(sensitivity.more.front().gain, 3, 1e-9);
}

// Two replicas of an op of 6 take 3 for each sample, three take 2.
TEST(MoreOf, OneMoreCoreMayHoldOneMoreReplica) {
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.rules.max_replicas = 2;
  draft.cluster = core_cluster(2);
  draft.models = {model_record("m")};
  draft.ops = {op_record("p", {6})};
  const Problem problem(std::move(draft));
  const Plan plan =
      pipeline_plan(problem, {{.devices = {DeviceId{0}, DeviceId{1}}, .ops = {OpId{0}}}});
  ASSERT_EQ(plan.value, 3);
  const Sensitivity sensitivity =
      what_more_brings(problem, plan, planning_registry(), {.planner = "exhaustive"},
                       {{.kind = AssetKind::device}}, 0.1);
  ASSERT_EQ(sensitivity.more.size(), 1U);
  EXPECT_NEAR(sensitivity.more.front().gain, 1, 1e-9);
}

// All links between two memories are one: more bandwidth for a single pair of devices would make a
// problem that breaks the rules.
TEST(MoreOf, BandwidthIsThatOfAllLinksBetweenTwoMemories) {
  const Problem problem(two_memories(kInfinity, kInfinity));
  Placement placement(4, DeviceId{1});
  placement[OpId{1}] = DeviceId{2};
  placement[OpId{2}] = DeviceId{3};
  const auto plan = plan_of_placement(problem, placement);
  ASSERT_TRUE(plan);
  const auto gains = gains_of_same_plan(problem, *plan, scarce_assets(problem, *plan, 9), 1);
  const auto link = std::ranges::find(gains, AssetKind::bandwidth,
                                      [](const SamePlanGain& gain) { return gain.asset.kind; });
  ASSERT_NE(link, gains.end());
  EXPECT_EQ(text_of(problem, link->asset), "bandwidth from left to right");
  EXPECT_NEAR(link->gain, 1, 1e-9);  // 20 bytes at 10, then at 20
}

TEST(Conflict, NamesTheMemoriesThatNoLinkJoins) {
  ProblemDraft draft = two_memories(kInfinity, kInfinity);
  std::erase_if(draft.cluster.links, [](const Link& link) { return link.from.index() < 2; });
  draft.ops[0].pinned_to = DeviceId{1};
  draft.ops[2].pinned_to = DeviceId{2};
  const Problem problem(std::move(draft));
  const Registry registry = planning_registry();
  FeasibilityOracle oracle(registry, Budget{.seconds = 20});
  const Conflict conflict = find_conflict(problem, oracle);
  ASSERT_EQ(conflict.verdict, Verdict::infeasible);
  std::vector<std::string> texts;
  for (const Constraint& member : conflict.members) texts.push_back(text_of(problem, member));
  EXPECT_THAT(texts, ::testing::UnorderedElementsAre(
                         "there is no link from memory space 'left' to 'right'",
                         "op 'p' is pinned to device 'b'", "op 'r' is pinned to device 'c'"));
}

TEST(MoreOf, IsTheDifferenceOfTwoVerifiedPlans) {
  const Problem problem = published_problem("moirai/example-1.json", Objective::latency);
  const Registry registry = planning_registry();
  PlanRequest request{.planner = "heft", .budget = {.seconds = 20}};
  const PlanOutcome made = make_plan(problem, registry, request);
  ASSERT_TRUE(made.answer.plan);
  const auto resources = scarce_assets(problem, *made.answer.plan, 7);
  ASSERT_FALSE(resources.empty());
  const Sensitivity sensitivity =
      what_more_brings(problem, *made.answer.plan, registry, request, resources, 0.5);
  ASSERT_TRUE(sensitivity.as_it_is.answer.plan);
  EXPECT_TRUE(verify(problem, *sensitivity.as_it_is.answer.plan).empty());
  EXPECT_EQ(sensitivity.more.size(), resources.size());
  EXPECT_NEAR(sensitivity.budget.seconds, 20.0 / static_cast<double>(resources.size() + 1), 1e-12);
  for (const MoreOf& more : sensitivity.more) {
    EXPECT_EQ(more.outcome.planner, "heft");
    EXPECT_NEAR(more.gain, sensitivity.as_it_is.value() - more.value, 1e-9);
    EXPECT_NEAR(more.value, more.outcome.value(), 1e-9);
    // More memory never hurts: the plan as it is stays valid.
    if (more.asset.kind == AssetKind::memory) {
      EXPECT_GE(more.gain, -1e-9);
    }
  }
}

}  // namespace
}  // namespace placewright::testing
