// What every planner promises, asked of all that are registered and of none by name.

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "planners/learned/learner.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/planner_case.h"
#include "support/published.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::core_set_draft;
using testing::random_draft;
using testing::RandomProblemOptions;

const Registry& registry() {
  static const Registry all = planning_registry();
  return all;
}

const PlannerEntry& entry_of(const std::string& planner, const Problem& problem) {
  return *registry().find(planner, problem.objective());
}

bool fits(const std::string& planner, const Problem& problem) {
  const PlannerEntry& entry = entry_of(planner, problem);
  return entry.serves(problem.objective()) && entry.refusal(problem).empty();
}

constexpr Budget kRepeatable{.seconds = 60, .steps = 10000, .threads = 1, .seed = 11};

PlanRequest repeatable_request(const std::string& planner) {
  PlanRequest request;
  request.planner = planner;
  request.budget = kRepeatable;
  return request;
}

// The planner itself: the service would verify its plan and hide a wrong one.
Answer answer_of(const std::string& planner, const Problem& problem,
                 const Budget& budget = kRepeatable,
                 const std::atomic<bool>* interrupted = nullptr) {
  const PlannerEntry& entry = entry_of(planner, problem);
  Control control(planner, budget, interrupted);
  return entry.plan(problem, Settings{entry.options}, control);
}

RandomProblemOptions plain(Objective objective, InterconnectKind interconnect) {
  RandomProblemOptions options;
  options.objective = objective;
  options.interconnect = interconnect;
  options.ops = 9;
  options.models = objective == Objective::total_completion ? 3 : 1;
  return options;
}

std::vector<InterconnectKind> interconnects(Objective objective) {
  if (objective == Objective::call_latency) return {InterconnectKind::host};
  return {InterconnectKind::host, InterconnectKind::links};
}

// The ops on two machines of two devices each, all of one kind, with faster links inside.
ProblemDraft in_two_nodes(ProblemDraft draft) {
  draft.cluster.devices.clear();
  draft.cluster.links.clear();
  for (const char* name : {"a0", "a1", "b0", "b1"}) {
    Device device{name, KindId{0}};
    device.node = std::string(name, 1);
    draft.cluster.devices.push_back(std::move(device));
  }
  for (const DeviceId from : ids<DeviceId>(4)) {
    for (const DeviceId to : ids<DeviceId>(4)) {
      const bool inside = from.index() / 2 == to.index() / 2;
      if (from != to) draft.cluster.links.push_back({from, to, inside ? 0.1 : 0.5});
    }
  }
  for (Tensor& tensor : draft.tensors) tensor.link_times.clear();
  return draft;
}

// Problems on which a plan surely exists and is easy to find.
std::vector<ProblemDraft> easy_drafts(Objective objective) {
  constexpr std::size_t kShared = 6;  // ops where resources are shared: proofs of more take long
  std::vector<ProblemDraft> drafts;
  for (const InterconnectKind interconnect : interconnects(objective)) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      RandomProblemOptions options = plain(objective, interconnect);
      options.congestion = seed % 2 == 0;
      options.lanes = seed == 3 && is_schedule(objective);
      options.overheads = seed == 4;
      options.zero_times = seed == 1;
      options.training = seed == 2 && objective == Objective::throughput;
      drafts.push_back(random_draft(options, seed));
    }
    for (std::uint64_t seed = 11; seed <= 16; ++seed) {
      RandomProblemOptions options = plain(objective, interconnect);
      options.ops = kShared;
      options.resources = seed % 3 != 0;
      options.spaces = seed % 3 != 1;
      options.cuts = seed % 2 == 0;
      options.overheads = seed % 2 == 1;
      drafts.push_back(random_draft(options, seed));
    }
    // Small enough for planners that look at everything.
    RandomProblemOptions options = plain(objective, interconnect);
    options.ops = 4;
    drafts.push_back(random_draft(options, 5));
  }
  if (objective != Objective::call_latency) {
    for (std::uint64_t seed = 21; seed <= 23; ++seed) {
      RandomProblemOptions options = plain(objective, InterconnectKind::links);
      options.ops = is_schedule(objective) ? 4 : kShared;
      drafts.push_back(core_set_draft(options, seed));
      drafts.back().rules.max_replicas = static_cast<int>(seed - 20);
    }
  }
  if (objective == Objective::throughput) {
    for (const Contiguity contiguity : {Contiguity::none, Contiguity::per_device}) {
      drafts.push_back(random_draft(plain(objective, InterconnectKind::links), 6));
      drafts.back().rules.contiguity = contiguity;
    }
    drafts.push_back(in_two_nodes(random_draft(plain(objective, InterconnectKind::links), 7)));
  }
  return drafts;
}

// Problems with everything that can stand in the way; not all of them have a plan.
std::vector<ProblemDraft> hard_drafts(Objective objective) {
  std::vector<ProblemDraft> drafts;
  for (const InterconnectKind interconnect : interconnects(objective)) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      RandomProblemOptions options = plain(objective, interconnect);
      options.binding_memory = seed % 2 == 0;
      options.unsupported = seed % 3 == 0;
      options.pins = seed % 3 == 1;
      options.colocation = seed % 4 != 0;
      options.shared_weights = seed % 5 == 0;
      options.missing_links = seed % 6 == 5 && interconnect == InterconnectKind::links;
      options.congestion = seed % 4 < 2;
      options.training = seed % 5 == 2 && objective == Objective::throughput;
      drafts.push_back(random_draft(options, 100 + seed));
    }
  }
  return drafts;
}

std::vector<std::string> published(Objective objective) {
  switch (objective) {
    case Objective::throughput:
      return {"msr/throughput/LayerGraphs/bert24_inference.json",
              "msr/throughput/LayerGraphs/bert24_training.json"};
    case Objective::call_latency:
      return {"msr/latency/LayerGraphs/bert24_inference.json"};
    case Objective::latency:
      return {"moirai/example-1.json", "moirai/GoogLeNet.json"};
    case Objective::total_completion:
      return {"talos/six_ops.json"};
  }
  return {};
}

void expect_sound(const Problem& problem, const Answer& answer) {
  if (!answer.plan) {
    EXPECT_NE(answer.reason, "");
    return;
  }
  for (const Violation& violation : verify(problem, *answer.plan)) {
    ADD_FAILURE() << name_of(violation.code) << ": " << violation.message;
  }
  // Bounds come from sums in another order than the value's.
  EXPECT_LE(answer.certificate.lower_bound, answer.value() * (1 + 1e-9));
  EXPECT_NE(answer.certificate.method, "");
}

class Planners : public ::testing::TestWithParam<testing::PlannerCase> {};

TEST_P(Planners, FindSoundPlansWhereNothingStandsInTheWay) {
  int served = 0;
  const std::string no_plugin = learned::why_no_plugin();
  for (ProblemDraft& draft : easy_drafts(GetParam().objective)) {
    const Problem problem(std::move(draft));
    SCOPED_TRACE(problem.name());
    const std::string refusal = entry_of(GetParam().planner, problem).refusal(problem);
    if (!refusal.empty() && refusal == no_plugin) GTEST_SKIP() << refusal;
    if (!fits(GetParam().planner, problem)) continue;
    ++served;
    const Answer answer = answer_of(GetParam().planner, problem);
    expect_sound(problem, answer);
    EXPECT_TRUE(answer.plan) << answer.reason;
  }
  EXPECT_GT(served, 0) << "the planner refuses every problem of this suite, which says nothing";
}

TEST_P(Planners, AreSoundUnderEveryRule) {
  for (ProblemDraft& draft : hard_drafts(GetParam().objective)) {
    const Problem problem(std::move(draft));
    SCOPED_TRACE(problem.name());
    if (!fits(GetParam().planner, problem)) continue;
    expect_sound(problem, answer_of(GetParam().planner, problem));
  }
}

TEST_P(Planners, PlanPublishedInputs) {
  for (const std::string& path : published(GetParam().objective)) {
    SCOPED_TRACE(path);
    const Problem problem = testing::published_problem(path, GetParam().objective);
    if (!fits(GetParam().planner, problem)) continue;
    expect_sound(problem, answer_of(GetParam().planner, problem));
  }
}

TEST_P(Planners, GiveTheSamePlanForTheSameSeed) {
  for (ProblemDraft& draft : easy_drafts(GetParam().objective)) {
    const Problem problem(std::move(draft));
    if (!fits(GetParam().planner, problem)) continue;
    EXPECT_EQ(answer_of(GetParam().planner, problem).plan,
              answer_of(GetParam().planner, problem).plan)
        << problem.name();
  }
}

// Three ops of six bytes on two devices of ten: the sums fit, the ops do not.
TEST_P(Planners, HandOutNothingWhereNothingFits) {
  for (const InterconnectKind interconnect : interconnects(GetParam().objective)) {
    RandomProblemOptions options = plain(GetParam().objective, interconnect);
    options.ops = 3;
    options.models = 1;
    ProblemDraft draft = random_draft(options, 5);
    for (Op& op : draft.ops) op.memory = 6;
    for (Device& device : draft.cluster.devices) device.memory = 0;
    draft.cluster.devices[0].memory = draft.cluster.devices[1].memory = 10;
    const Problem problem(std::move(draft));
    if (!fits(GetParam().planner, problem)) continue;
    const Answer answer = answer_of(GetParam().planner, problem);
    EXPECT_FALSE(answer.plan);
    EXPECT_NE(answer.reason, "");
  }
}

TEST_P(Planners, ProveThatTooLittleMemoryIsInfeasible) {
  ProblemDraft draft = easy_drafts(GetParam().objective).front();
  for (Op& op : draft.ops) op.memory = 6;
  for (Device& device : draft.cluster.devices) device.memory = 10;
  const Problem problem(std::move(draft));
  if (!fits(GetParam().planner, problem)) return;
  const auto outcome = make_plan(problem, registry(), repeatable_request(GetParam().planner));
  EXPECT_EQ(outcome.answer.status(), Status::infeasible) << outcome.answer.reason;
  const std::string needed = std::to_string(6 * problem.op_count()) + " bytes";
  EXPECT_NE(outcome.answer.reason.find(needed), std::string::npos) << outcome.answer.reason;
}

TEST_P(Planners, RespectPinsAndColocation) {
  for (ProblemDraft& draft : easy_drafts(GetParam().objective)) {
    draft.ops[0].pinned_to = DeviceId{draft.cluster.devices.size() - 1};
    // Neighbours in the order of numbers, so that contiguous sets remain possible.
    draft.colocated.push_back({OpId{0}, OpId{1}});
    draft.ops[1].model = draft.ops[0].model;
    const auto problem = [&]() -> std::optional<Problem> {
      try {
        return Problem(std::move(draft));
      } catch (const InvalidProblem&) {
        return std::nullopt;
      }
    }();
    if (!problem || !fits(GetParam().planner, *problem)) continue;
    SCOPED_TRACE(problem->name());
    const Answer answer = answer_of(GetParam().planner, *problem);
    expect_sound(*problem, answer);
    if (!answer.plan) continue;
    const Placement& placement = answer.plan->placement;
    EXPECT_EQ(placement[OpId{0}], DeviceId{problem->device_count() - 1});
    EXPECT_EQ(placement[OpId{0}], placement[OpId{1}]);
  }
}

// A planner that forgets its limit runs into that of the test.
TEST_P(Planners, KeepTheTimeLimit) {
  const Problem problem =
      testing::published_problem(published(GetParam().objective).back(), GetParam().objective);
  if (!fits(GetParam().planner, problem)) return;
  expect_sound(problem, answer_of(GetParam().planner, problem, Budget{.seconds = 0.2}));
}

TEST_P(Planners, StopWhenInterrupted) {
  const std::atomic<bool> interrupted{true};
  const Problem problem =
      testing::published_problem(published(GetParam().objective).back(), GetParam().objective);
  if (!fits(GetParam().planner, problem)) return;
  expect_sound(problem,
               answer_of(GetParam().planner, problem, Budget{.seconds = 1e6}, &interrupted));
}

TEST_P(Planners, NeverMakeTheStartPlanWorse) {
  std::vector<ProblemDraft> drafts = easy_drafts(GetParam().objective);
  for (std::size_t i = 0; i < drafts.size(); i += 3) {  // `auto` takes long for all of them
    const Problem problem(std::move(drafts[i]));
    if (!fits(GetParam().planner, problem)) continue;
    const auto start = make_plan(problem, registry(), repeatable_request("auto"));
    if (!start.answer.plan) continue;
    PlanRequest request = repeatable_request(GetParam().planner);
    request.start = &*start.answer.plan;
    const auto outcome = make_plan(problem, registry(), request);
    expect_sound(problem, outcome.answer);
    EXPECT_LE(outcome.value(), start.value());
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Planners, ::testing::ValuesIn(testing::all_planner_cases()),
                         [](const auto& test) { return name_of(test.param); });

TEST(RegistryOfPlanners, RecordsAreComplete) {
  std::set<std::pair<std::string, Objective>> names;
  for (const PlannerEntry& entry : registry().entries()) {
    SCOPED_TRACE(entry.name);
    for (const Objective objective : entry.objectives) {
      EXPECT_TRUE(names.emplace(entry.name, objective).second) << name_of(objective);
    }
    EXPECT_NE(entry.name, "");
    EXPECT_NE(entry.summary, "");
    EXPECT_EQ(entry.summary.find('\n'), std::string::npos);
    EXPECT_LE(entry.summary.size(), 100U);
    EXPECT_FALSE(entry.objectives.empty());
    EXPECT_TRUE(entry.plan);
  }
}

TEST(RegistryOfPlanners, NamesAreUniqueForEachObjective) {
  Registry registry;
  const auto entry = [](std::vector<Objective> objectives) {
    PlannerEntry made;
    made.name = "twin";
    made.objectives = std::move(objectives);
    return made;
  };
  registry.add(entry({Objective::throughput}));
  registry.add(entry({Objective::latency, Objective::total_completion}));
  EXPECT_THROW(registry.add(entry({Objective::latency})), std::logic_error);
  EXPECT_TRUE(registry.find("twin", Objective::throughput)->serves(Objective::throughput));
  EXPECT_TRUE(registry.find("twin", Objective::latency)->serves(Objective::latency));
  EXPECT_NE(registry.find("twin", Objective::call_latency), nullptr);
  EXPECT_EQ(registry.find("other", Objective::latency), nullptr);
}

TEST(RegistryOfPlanners, DefaultsOfOptionsAreWithinTheirBounds) {
  for (const PlannerEntry& entry : registry().entries()) {
    for (const Option& option : entry.options) {
      SCOPED_TRACE(entry.name + ": " + option.name);
      EXPECT_NE(option.text, "");
      Settings settings(entry.options);
      const std::string standard =
          std::visit([](const auto& value) { return fmt::format("{}", value); }, option.standard);
      EXPECT_NO_THROW(settings.set(option.name, standard));
      EXPECT_EQ(settings.value(option.name), option.standard);
    }
  }
}

}  // namespace
}  // namespace placewright
