#include "support/exact_cases.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "planners/registry.h"
#include "problem/part.h"
#include "support/brute_force.h"
#include "support/cut_problem.h"
#include "verify/verifier.h"

namespace placewright::testing {

RandomProblemOptions exact_case(std::uint64_t number) {
  RandomProblemOptions options;
  const auto one_in_four = [&](std::uint64_t period, std::uint64_t phase) {
    return (number / period) % 4 == phase;
  };
  options.interconnect = number % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
  options.congestion = number / 2 % 2 == 0;
  options.objective = number % 5 == 4 ? Objective::total_completion : Objective::latency;
  options.models = options.objective == Objective::total_completion ? 2 : 1;
  options.ops = 4 + number % 3 + (number % 16 == 0 ? 1 : 0);
  options.devices = 2 + number / 3 % 2;
  options.edge_probability = 0.25 + 0.15 * static_cast<double>(number % 4);
  options.binding_memory = one_in_four(1, 3);
  options.unsupported = one_in_four(3, 2);
  options.pins = one_in_four(5, 1);
  options.colocation = one_in_four(7, 3);
  options.shared_weights = one_in_four(11, 2);
  options.lanes = one_in_four(13, 0);
  const bool cuts_cost = one_in_four(17, 1);  // by device, by tensor, or both
  options.overheads = cuts_cost && number / 29 % 3 != 0;
  options.cuts = cuts_cost && number / 29 % 3 != 1;
  options.missing_links = options.interconnect == InterconnectKind::links && one_in_four(19, 2);
  options.integer_times = number % 3 == 0;
  options.zero_times = one_in_four(23, 1);
  return options;
}

ProblemDraft exact_draft(std::uint64_t number) {
  return random_draft(exact_case(number), number);
}

namespace {

// CP-SAT can take minutes over a handful of ops whose times have many digits.
void round_times(ProblemDraft& draft) {
  const auto round = [](double& time) { time = std::round(time * 20) / 20; };
  for (Op& op : draft.ops) std::ranges::for_each(op.time, round);
  for (Tensor& tensor : draft.tensors) {
    for (CutOverhead& cut : tensor.cuts) {
      round(cut.send);
      round(cut.receive);
    }
  }
}

}  // namespace

ProblemDraft sharing_draft(std::uint64_t number) {
  RandomProblemOptions options;
  options.objective = number % 2 == 0 ? Objective::latency : Objective::total_completion;
  options.models = options.objective == Objective::total_completion ? 2 : 1;
  options.edge_probability = 0.2 + 0.2 * static_cast<double>(number / 2 % 4);
  options.integer_times = true;
  options.zero_times = number % 7 == 0;
  options.colocation = number % 11 == 0;
  options.congestion = number / 2 % 3 != 0;
  if (number % 8 < 2) {
    options.ops = 4;
    ProblemDraft draft = core_set_draft(options, number);
    round_times(draft);
    return draft;
  }
  options.ops = 4 + number / 8 % 2;
  options.devices = 3;
  options.interconnect = number % 8 < 4 ? InterconnectKind::host : InterconnectKind::links;
  options.resources = true;
  options.cuts = number % 5 < 3;
  options.overheads = number % 5 == 2 || number % 5 == 3;
  options.one_space = number % 8 >= 6;
  options.pins = number % 13 == 0;
  options.shared_weights = options.binding_memory = number % 9 == 0;
  return random_draft(options, number);
}

ProblemDraft sharing_completion_draft(std::uint64_t number) {
  return sharing_draft(2 * number + 1);
}

namespace {

RandomProblemOptions mixed_spaces_case(std::uint64_t number) {
  RandomProblemOptions options;
  options.spaces = true;
  options.objective = number % 3 == 2 ? Objective::total_completion : Objective::latency;
  options.models = options.objective == Objective::total_completion ? 2 : 1;
  options.interconnect = number % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
  options.congestion = number / 2 % 3 != 0;
  options.devices = 3 + number / 6 % 4;
  options.ops = options.devices == 6 ? 3 : options.devices == 3 ? 5 : 4;
  options.edge_probability = 0.3 + 0.2 * static_cast<double>(number / 5 % 4);
  options.integer_times = true;
  options.zero_times = number % 7 == 0;
  options.resources = number / 4 % 3 != 0;
  options.lanes = !options.resources && number % 5 == 0;
  options.cuts = number / 3 % 5 < 3;
  options.overheads = number / 3 % 5 == 2 || number / 3 % 5 == 3;
  options.missing_links = options.interconnect == InterconnectKind::links && number / 2 % 5 == 0;
  options.unsupported = number % 11 == 0;
  options.pins = number % 13 == 0;
  options.colocation = number % 17 == 0;
  options.shared_weights = options.binding_memory = number % 9 == 0;
  return options;
}

bool has_mixed_spaces(const ProblemDraft& draft) {
  const Problem problem(draft);
  const auto in_another = [&](DeviceId device) { return !problem.same_space(device, DeviceId{0}); };
  return problem.has_shared_spaces() && std::ranges::any_of(problem.devices(), in_another);
}

// Two host devices in one memory beside an accelerator, which most ops cannot run on.
ProblemDraft host_pair_draft(RandomProblemOptions options, std::uint64_t number) {
  options.devices = 6;  // a third are host devices, the last ones
  options.ops = 6;
  options.pins = options.spaces = options.binding_memory = options.colocation =
      options.unsupported = false;
  ProblemDraft draft = random_draft(options, number);
  keep_devices(draft, std::vector{DeviceId{0}, DeviceId{4}, DeviceId{5}});
  draft.cluster.spaces.push_back({.name = "host"});
  for (const std::size_t host : {1, 2}) draft.cluster.devices[host].space = SpaceId{0};
  for (std::size_t i = 1; i < draft.ops.size(); ++i) draft.ops[i].time[0] = kUnsupported;
  return draft;
}

}  // namespace

ProblemDraft mixed_spaces_draft(std::uint64_t number) {
  const RandomProblemOptions options = mixed_spaces_case(number);
  if (options.interconnect == InterconnectKind::host && options.devices == 6) {
    return host_pair_draft(options, number);
  }
  constexpr std::uint64_t kTries = 100;
  for (std::uint64_t seed = kTries * number;; ++seed) {
    ProblemDraft draft = random_draft(options, seed);
    if (has_mixed_spaces(draft)) return draft;
  }
}

ProblemDraft mixed_spaces_completion_draft(std::uint64_t number) {
  return mixed_spaces_draft(3 * number + 2);
}

ProblemDraft sharing_modules_draft(std::uint64_t number) {
  RandomProblemOptions options;
  options.edge_probability = 0.15 + 0.15 * static_cast<double>(number / 3 % 4);
  options.integer_times = true;
  options.zero_times = number % 5 == 0;
  options.colocation = number % 7 == 0;
  const double trap_probability = number % 6 == 0 ? 0.1 : 0;
  if (number % 3 != 0) {
    options.ops = number % 3 == 1 ? 4 : 6;
    ProblemDraft draft = with_cut_node(core_set_draft(options, number), number, trap_probability);
    if (number % 3 == 2) keep_devices(draft, std::vector{DeviceId{0}, DeviceId{1}, DeviceId{4}});
    round_times(draft);
    return draft;
  }
  options.ops = 5 + number / 3 % 2;
  options.devices = 3;
  options.resources = true;
  options.one_space = true;
  options.cuts = number / 3 % 4 < 3;
  options.overheads = number / 3 % 4 > 1;
  options.unsupported = number % 11 == 0;
  options.pins = number % 13 == 0;
  options.lanes = number % 17 == 0;
  options.shared_weights = options.binding_memory = number % 19 == 0;
  return with_cut_node(options, number, trap_probability);
}

void agrees_with_brute_force(const std::string& planner, DraftOfCase draft_of,
                             const RandomCases& cases) {
  const Registry registry = standard_registry();
  std::uint64_t refused = 0;
  for (const std::uint64_t number : cases) {
    SCOPED_TRACE(::testing::Message() << "case " << number);
    const Problem problem(draft_of(number));
    const PlannerEntry* entry = registry.find(planner, problem.objective());
    ASSERT_NE(entry, nullptr);
    if (!entry->refusal(problem).empty()) {
      ++refused;
      continue;
    }
    Control control(planner, Budget{.seconds = 60});
    const Answer answer = entry->plan(problem, Settings{entry->options}, control);
    const std::optional<double> least = brute_force_value(problem);
    ASSERT_EQ(answer.plan.has_value(), least.has_value()) << answer.reason;
    if (!least) {
      EXPECT_TRUE(answer.proved_infeasible);
      continue;
    }
    EXPECT_TRUE(verify(problem, *answer.plan).empty());
    EXPECT_NEAR(answer.value(), *least, 1e-6 * *least);
    EXPECT_LE(answer.certificate.lower_bound, *least * (1 + 1e-9));
    EXPECT_EQ(answer.status(), Status::optimal) << answer.certificate.lower_bound;
  }
  EXPECT_LT(refused, (cases.last - cases.first) / 2);
}

}  // namespace placewright::testing
