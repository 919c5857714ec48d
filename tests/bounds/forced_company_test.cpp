#include "bounds/forced_company.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "bounds/bounds.h"
#include "bounds/critical_path.h"
#include "bounds/earliest_starts.h"
#include "support/brute_force.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using testing::RandomProblemOptions;

// Transfers cost some times as much as in the draft.
ProblemDraft with_transfers(ProblemDraft draft, double factor) {
  for (Link& link : draft.cluster.links) {
    link.latency *= factor;
    link.bandwidth /= factor;
  }
  for (Tensor& tensor : draft.tensors) {
    tensor.host_time *= factor;
    for (double& time : tensor.link_times) time *= factor;
  }
  return draft;
}

// Devices that differ in name only.
ProblemDraft with_equal_devices(ProblemDraft draft) {
  for (Device& device : draft.cluster.devices) device.kind = KindId{0};
  for (Link& link : draft.cluster.links) {
    link.latency = draft.cluster.links.front().latency;
    link.bandwidth = draft.cluster.links.front().bandwidth;
  }
  for (Tensor& tensor : draft.tensors) tensor.link_times.clear();
  for (Op& op : draft.ops) op.pinned_to = DeviceId{};
  return draft;
}

class ForcedCompany : public ::testing::TestWithParam<RandomProblemOptions> {};

// The least value is found by looking at everything. Asked from below, with and without the other
// bounds, it never says more.
TEST_P(ForcedCompany, IsBelowBruteForce) {
  int raised = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    for (const double factor : {0.3, 2.0, 10.0}) {
      ProblemDraft draft = testing::random_draft(GetParam(), seed);
      if (seed % 2 == 1 && !GetParam().unsupported) draft = with_equal_devices(std::move(draft));
      const Problem problem(with_transfers(std::move(draft), factor));
      if (!refuses_forced_company(problem).empty()) continue;
      const auto least = testing::brute_force_value(problem);
      if (!least) continue;
      const double paths = critical_paths(problem)[ModelId{0}];
      const double bound = forced_company_bound(problem, paths);
      EXPECT_GE(bound, paths * (1 - 1e-8));
      EXPECT_LE(bound, *least * (1 + 1e-9)) << "seed " << seed << ", factor " << factor;
      EXPECT_LE(forced_company_bound(problem, *least / 4), *least * (1 + 1e-9)) << seed;
      // What is concluded of all schedules that are as good as the best leaves the best.
      EXPECT_TRUE(company_facts(problem, *least, [] { return false; })) << seed;
      raised += bound > paths * (1 + 1e-3) ? 1 : 0;
    }
  }
  EXPECT_GT(raised, 20);
}

std::vector<RandomProblemOptions> variants() {
  std::vector<RandomProblemOptions> all;
  for (const auto interconnect : {InterconnectKind::links, InterconnectKind::host}) {
    RandomProblemOptions options;
    options.interconnect = interconnect;
    options.ops = 5;
    options.devices = 3;
    options.edge_probability = 0.5;
    options.congestion = false;
    all.push_back(options);
    options.zero_times = options.integer_times = true;
    all.push_back(options);
    options.colocation = options.pins = options.unsupported = options.overheads = true;
    options.congestion = true;
    options.missing_links = interconnect == InterconnectKind::links;
    all.push_back(options);
  }
  RandomProblemOptions two;
  two.ops = 6;
  two.devices = 2;
  two.edge_probability = 0.6;
  two.congestion = false;
  all.push_back(two);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rules, ForcedCompany, ::testing::ValuesIn(variants()));

// A source, some ops and a sink; a transfer costs more than all ops together.
TEST(ForcedCompany, ProvesThatEverythingSharesADevice) {
  ProblemDraft draft;
  draft.name = "fork and join";
  draft.cluster.kinds = {{.name = "all"}};
  for (int i = 0; i < 4; ++i) {
    draft.cluster.devices.push_back({.name = "d" + std::to_string(i), .kind = KindId{0}});
  }
  for (std::size_t a = 0; a < 4; ++a) {
    for (std::size_t b = 0; b < 4; ++b) {
      if (a == b) continue;
      draft.cluster.links.push_back({.from = DeviceId{a}, .to = DeviceId{b}, .latency = 100});
    }
  }
  draft.models = {{.name = "m"}};
  for (int i = 0; i < 10; ++i) draft.ops.push_back({.name = "o" + std::to_string(i), .time = {3}});
  for (std::size_t i = 1; i < 9; ++i) {
    draft.tensors.push_back({.producer = OpId{0}, .consumers = {OpId{i}}, .bytes = 1});
    draft.tensors.push_back({.producer = OpId{i}, .consumers = {OpId{9}}, .bytes = 1});
  }
  const Problem problem(std::move(draft));
  const double bound = forced_company_bound(problem, best_lower_bound(problem).lower_bound);
  EXPECT_NEAR(bound, 30, 30 * 1e-3);
  EXPECT_LE(bound, 30);
}

TEST(LeastLateness, IsThatOfThePreemptiveSchedule) {
  std::vector<MachineJob> jobs{{0, 4, 10}, {1, 2, 3}, {5, 1, 6}};
  EXPECT_DOUBLE_EQ(least_lateness(jobs), 0);
  jobs = {{0, 4, 4}, {1, 2, 4}};
  EXPECT_DOUBLE_EQ(least_lateness(jobs), 2);
  jobs = {{3, 1, 10}};
  EXPECT_DOUBLE_EQ(least_lateness(jobs), -6);
}

}  // namespace
}  // namespace placewright
