#include "support/exact_cases.h"

#include <gtest/gtest.h>

#include "planners/registry.h"
#include "support/brute_force.h"
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
  options.overheads = one_in_four(17, 1);
  options.missing_links = options.interconnect == InterconnectKind::links && one_in_four(19, 2);
  options.integer_times = number % 3 == 0;
  options.zero_times = one_in_four(23, 1);
  return options;
}

void agrees_with_brute_force(const std::string& planner, std::uint64_t first, std::uint64_t last) {
  const Registry registry = standard_registry();
  std::uint64_t refused = 0;
  for (std::uint64_t number = first; number < last; ++number) {
    SCOPED_TRACE(::testing::Message() << "case " << number);
    const Problem problem(random_draft(exact_case(number), number));
    const PlannerEntry* entry = registry.find(planner, problem.objective());
    ASSERT_NE(entry, nullptr);
    if (entry->refuses && !entry->refuses(problem).empty()) {
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
  EXPECT_LT(refused, (last - first) / 2);
}

}  // namespace placewright::testing
