// The generator that property tests rely on: always valid, repeatable, and as varied as it says.

#include "support/random_problem.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "problem/problem.h"

namespace placewright::testing {
namespace {

TEST(RandomProblem, EveryDraftIsAProblem) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    RandomSource random(seed);
    RandomProblemOptions options;
    options.objective = static_cast<Objective>(random.below(4));
    options.interconnect = options.objective == Objective::call_latency || random.chance(0.5)
                               ? InterconnectKind::host
                               : InterconnectKind::links;
    options.ops = random.between(1, 16);
    options.devices = random.between(1, 5);
    options.models = random.between(1, 3);
    options.edge_probability = random.unit();
    for (bool* flag :
         {&options.congestion, &options.binding_memory, &options.unsupported, &options.pins,
          &options.colocation, &options.shared_weights, &options.lanes, &options.overheads,
          &options.training, &options.missing_links, &options.integer_times, &options.zero_times,
          &options.resources, &options.spaces, &options.cuts}) {
      *flag = random.chance(0.5);
    }
    const ProblemDraft draft = random_draft(options, seed);
    ASSERT_EQ(draft, random_draft(options, seed));
    try {
      const Problem problem(draft);
      ASSERT_EQ(problem.op_count(), options.ops);
      for (const GroupId group : problem.groups()) {
        const auto all = problem.devices();
        ASSERT_TRUE(
            std::any_of(all.begin(), all.end(),
                        [&](DeviceId device) { return problem.group_allowed(group, device); }))
            << "seed " << seed;
      }
    } catch (const InvalidProblem& error) {
      FAIL() << "seed " << seed << ": " << error.what();
    }
  }
}

// Pins the draft of one seed, so that a change of the generator does not go unseen.
TEST(RandomProblem, IsTheSameEverywhere) {
  RandomSource random(42);
  EXPECT_EQ(random.below(1000), 13930160852258120406ULL % 1000);
  EXPECT_EQ(random.between(5, 5), 5U);

  const ProblemDraft draft = random_draft({.colocation = true, .zero_times = true}, 7);
  double times = 0;
  for (const Op& op : draft.ops) {
    for (const double time : op.time) times += time;
  }
  std::size_t consumers = 0;
  for (const Tensor& tensor : draft.tensors) consumers += tensor.consumers.size();
  EXPECT_EQ(consumers, 16U);
  EXPECT_DOUBLE_EQ(times, 30.993783885005907);
}

TEST(RandomProblem, HasWhatIsAskedFor) {
  std::size_t shared_tensors = 0;
  std::size_t several_outputs = 0;
  std::size_t orphans = 0;
  std::size_t missing = 0;
  std::size_t pinned = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const ProblemDraft draft = random_draft(
        {.ops = 12, .pins = true, .training = true, .missing_links = true, .integer_times = true},
        seed);
    const Problem problem(draft);
    missing += 6 - draft.cluster.links.size();
    for (const OpId op : problem.ops()) {
      several_outputs += problem.outputs(op).size() > 1 ? 1 : 0;
      pinned += problem.op(op).pinned_to.valid() ? 1 : 0;
      orphans += problem.op(op).backward && problem.group_ops(problem.group(op)).size() == 1;
    }
    for (const TensorId tensor : problem.tensors()) {
      shared_tensors += problem.consumers(tensor).size() > 1 ? 1 : 0;
      for (const DeviceId from : problem.devices()) {
        for (const DeviceId to : problem.devices()) {
          const double time = problem.link_time(tensor, from, to);
          ASSERT_TRUE(time == kInfinity || time == std::floor(time)) << time;
        }
      }
    }
  }
  EXPECT_GT(shared_tensors, 50U);
  EXPECT_GT(several_outputs, 50U);
  EXPECT_GT(orphans, 20U);
  EXPECT_GT(missing, 20U);
  EXPECT_GT(pinned, 20U);
}

}  // namespace
}  // namespace placewright::testing
