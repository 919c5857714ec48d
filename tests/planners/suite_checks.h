// What every planner promises and takes long to see: on some of the problems with few steps in the
// quick tests (suite_test.cpp), on all of them with many in the thorough ones (suite_full.cpp).

#pragma once

#include <atomic>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "planners/learned/learner.h"
#include "planning/service.h"
#include "support/planner_case.h"
#include "support/published.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright::testing {

inline const PlannerEntry& entry_of(const std::string& planner, const Problem& problem) {
  return *registry().find(planner, problem.objective());
}

inline bool fits(const std::string& planner, const Problem& problem) {
  const PlannerEntry& entry = entry_of(planner, problem);
  return entry.serves(problem.objective()) && entry.refusal(problem).empty();
}

// How much is asked of a planner: of how many of the problems, and with how much effort.
struct Extent {
  std::size_t every = 1;  // the first problem and each that comes so many after another
  std::uint64_t steps = 10000;

  // With one seed and thread, and steps that end the search before the time does.
  [[nodiscard]] Budget budget() const {
    return {.seconds = 60, .steps = steps, .threads = 1, .seed = 11};
  }
  [[nodiscard]] PlanRequest request(const std::string& planner) const {
    PlanRequest request;
    request.planner = planner;
    request.budget = budget();
    return request;
  }
  template <class Each>
  [[nodiscard]] std::vector<Each> some_of(std::vector<Each> all) const {
    std::vector<Each> some;
    for (std::size_t i = 0; i < all.size(); i += every) some.push_back(std::move(all[i]));
    return some;
  }
};

// The planner itself: the service would verify its plan and hide a wrong one.
inline Answer answer_of(const std::string& planner, const Problem& problem, const Budget& budget,
                        const std::atomic<bool>* interrupted = nullptr) {
  const PlannerEntry& entry = entry_of(planner, problem);
  Control control(planner, budget, interrupted);
  return entry.plan(problem, Settings{entry.options}, control);
}

inline RandomProblemOptions plain(Objective objective, InterconnectKind interconnect) {
  RandomProblemOptions options;
  options.objective = objective;
  options.interconnect = interconnect;
  options.ops = 9;
  options.models = objective == Objective::total_completion ? 3 : 1;
  return options;
}

inline std::vector<InterconnectKind> interconnects(Objective objective) {
  if (objective == Objective::call_latency) return {InterconnectKind::host};
  return {InterconnectKind::host, InterconnectKind::links};
}

// The ops on two machines of two devices each, all of one kind, with faster links inside.
inline ProblemDraft in_two_nodes(ProblemDraft draft) {
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

inline constexpr std::size_t kShared =
    6;  // ops where resources are shared: proofs of more take long

// Problems on which a plan surely exists and is easy to find.
inline std::vector<ProblemDraft> easy_drafts(Objective objective) {
  std::vector<ProblemDraft> drafts;
  for (const InterconnectKind interconnect : interconnects(objective)) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      RandomProblemOptions options = plain(objective, interconnect);
      options.congestion = seed % 2 == 0;
      options.lanes = seed == 3 && is_schedule(objective);
      options.overheads = seed == 4 || seed == 6;
      options.cuts = seed > 4;
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
  // Some planners leave devices out.
  if (is_schedule(objective)) {
    RandomProblemOptions options = plain(objective, InterconnectKind::links);
    options.devices = 5;
    drafts.push_back(random_draft(options, 8));
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

// Bytes of all ops.
inline double weights(const ProblemDraft& draft) {
  return std::accumulate(draft.ops.begin(), draft.ops.end(), 0.0,
                         [](double sum, const Op& op) { return sum + op.memory; });
}

// Problems with everything that can stand in the way; not all of them have a plan.
inline std::vector<ProblemDraft> hard_drafts(Objective objective) {
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
      options.cuts = seed % 4 > 1;
      options.training = seed % 5 == 2 && objective == Objective::throughput;
      drafts.push_back(random_draft(options, 100 + seed));
    }
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      RandomProblemOptions options = plain(objective, interconnect);
      options.ops = kShared;
      options.resources = seed % 3 != 0;
      options.spaces = seed % 3 != 1;
      options.binding_memory = seed % 2 == 0;
      options.unsupported = seed % 4 == 1;
      options.pins = seed % 4 == 2;
      options.colocation = seed % 4 == 3;
      options.cuts = seed > 4;
      drafts.push_back(random_draft(options, 120 + seed));
    }
  }
  if (is_schedule(objective)) {
    RandomProblemOptions options = plain(objective, InterconnectKind::links);
    options.devices = 5;
    options.binding_memory = options.unsupported = options.colocation = true;
    drafts.push_back(random_draft(options, 140));
  }
  if (objective == Objective::throughput) {
    for (std::uint64_t seed = 141; seed <= 144; ++seed) {
      RandomProblemOptions options = plain(objective, InterconnectKind::links);
      options.binding_memory = options.colocation = true;
      options.unsupported = seed % 2 == 0;
      drafts.push_back(random_draft(options, seed));
      drafts.back().rules.contiguity = seed % 2 == 0 ? Contiguity::none : Contiguity::per_device;
    }
    drafts.push_back(in_two_nodes(random_draft(plain(objective, InterconnectKind::links), 145)));
    for (Device& device : drafts.back().cluster.devices) device.memory = weights(drafts.back()) / 3;
    for (std::uint64_t seed = 146; seed <= 149; ++seed) {
      RandomProblemOptions options = plain(objective, InterconnectKind::links);
      options.ops = kShared;
      options.colocation = seed % 2 == 0;
      drafts.push_back(core_set_draft(options, seed));
      if (seed % 2 == 1) drafts.back().ops[0].pinned_to = DeviceId{0};
      for (Space& space : drafts.back().cluster.spaces) space.memory = weights(drafts.back());
    }
  }
  return drafts;
}

inline std::vector<std::string> published(Objective objective) {
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

// The problems that the planner serves. If it serves none, these problems say nothing about it, and
// that fails, but for planners whose plugin is not there.
inline std::vector<Problem> served(const PlannerCase& each, std::vector<ProblemDraft> drafts) {
  std::vector<Problem> problems;
  bool without_plugin = false;
  for (ProblemDraft& draft : drafts) {
    Problem problem(std::move(draft));
    const std::string refusal = entry_of(each.planner, problem).refusal(problem);
    without_plugin = without_plugin || (!refusal.empty() && refusal == learned::why_no_plugin());
    if (fits(each.planner, problem)) problems.push_back(std::move(problem));
  }
  EXPECT_TRUE(without_plugin || !problems.empty()) << "the planner refuses every problem";
  return problems;
}

// A published problem where the planner serves one, else a small one.
inline std::optional<Problem> largest_served(const PlannerCase& each) {
  const std::vector<std::string> paths = published(each.objective);
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) {
    Problem problem = published_problem(*path, each.objective);
    if (fits(each.planner, problem)) return problem;
  }
  std::vector<Problem> problems = served(each, easy_drafts(each.objective));
  if (problems.empty()) return std::nullopt;
  return std::move(problems.front());
}

inline void expect_sound(const Problem& problem, const Answer& answer) {
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

// On all problems, since some planners are for few, and with the steps that they need: with those
// of the extent, or with more where these find no plan.
inline void expect_sound_plans_where_nothing_stands_in_the_way(const PlannerCase& each,
                                                               const Extent& extent) {
  int served = 0;
  const std::string no_plugin = learned::why_no_plugin();
  for (ProblemDraft& draft : easy_drafts(each.objective)) {
    const Problem problem(std::move(draft));
    SCOPED_TRACE(problem.name());
    const std::string refusal = entry_of(each.planner, problem).refusal(problem);
    if (!refusal.empty() && refusal == no_plugin) GTEST_SKIP() << refusal;
    if (!fits(each.planner, problem)) continue;
    ++served;
    Answer answer = answer_of(each.planner, problem, extent.budget());
    if (!answer.plan) answer = answer_of(each.planner, problem, Extent{}.budget());
    expect_sound(problem, answer);
    EXPECT_TRUE(answer.plan) << answer.reason;
  }
  EXPECT_GT(served, 0) << "the planner refuses every problem of this suite, which says nothing";
}

inline void expect_soundness_under_every_rule(const PlannerCase& each, const Extent& extent) {
  for (const Problem& problem : extent.some_of(served(each, hard_drafts(each.objective)))) {
    SCOPED_TRACE(problem.name());
    expect_sound(problem, answer_of(each.planner, problem, extent.budget()));
  }
}

inline void expect_the_same_plan_for_the_same_seed(const PlannerCase& each, const Extent& extent) {
  for (const Problem& problem : extent.some_of(served(each, easy_drafts(each.objective)))) {
    EXPECT_EQ(answer_of(each.planner, problem, extent.budget()).plan,
              answer_of(each.planner, problem, extent.budget()).plan)
        << problem.name();
  }
}

inline void expect_pins_and_colocation(const PlannerCase& each, const Extent& extent) {
  for (ProblemDraft& draft : extent.some_of(easy_drafts(each.objective))) {
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
    if (!problem || !fits(each.planner, *problem)) continue;
    SCOPED_TRACE(problem->name());
    const Answer answer = answer_of(each.planner, *problem, extent.budget());
    expect_sound(*problem, answer);
    if (!answer.plan) continue;
    const Placement& placement = answer.plan->placement;
    EXPECT_EQ(placement[OpId{0}], DeviceId{problem->device_count() - 1});
    EXPECT_EQ(placement[OpId{0}], placement[OpId{1}]);
  }
}

inline void expect_no_worse_than_the_start_plan(const PlannerCase& each, const Extent& extent) {
  const std::vector<Problem> problems = extent.some_of(served(each, easy_drafts(each.objective)));
  for (std::size_t i = 0; i < problems.size(); i += 3) {  // `auto` takes long for all of them
    const Problem& problem = problems[i];
    const auto start = make_plan(problem, registry(), extent.request("auto"));
    if (!start.answer.plan) continue;
    PlanRequest request = extent.request(each.planner);
    request.start = &*start.answer.plan;
    const auto outcome = make_plan(problem, registry(), request);
    expect_sound(problem, outcome.answer);
    EXPECT_LE(outcome.value(), start.value());
  }
}

inline void expect_published_inputs_to_be_planned(const PlannerCase& each, const Extent& extent) {
  for (const std::string& path : published(each.objective)) {
    SCOPED_TRACE(path);
    const Problem problem = published_problem(path, each.objective);
    if (!fits(each.planner, problem)) continue;
    expect_sound(problem, answer_of(each.planner, problem, extent.budget()));
  }
}

}  // namespace placewright::testing
