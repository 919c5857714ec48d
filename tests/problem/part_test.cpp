#include "problem/part.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/random_problem.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;

testing::RandomProblemOptions plain() {
  testing::RandomProblemOptions options;
  options.ops = 8;
  options.devices = 4;
  options.edge_probability = 0.5;
  return options;
}

TEST(Part, OfAllOpsIsTheProblem) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    testing::RandomProblemOptions options = plain();
    options.colocation = options.shared_weights = true;
    const Problem problem(testing::random_draft(options, seed));
    const std::vector<OpId> all(problem.ops().begin(), problem.ops().end());
    const Problem part(part_of(problem, all));
    EXPECT_EQ(part.op_count(), problem.op_count());
    EXPECT_EQ(part.edge_count(), problem.edge_count());
    EXPECT_EQ(part.group_count(), problem.group_count());
    EXPECT_EQ(part.shared_weight_count(), problem.shared_weight_count());
  }
}

TEST(Part, KeepsTheEdgesBetweenItsOps) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Problem problem(testing::random_draft(plain(), seed));
    const std::vector<OpId> ops{OpId{5}, OpId{2}, OpId{7}};
    const Problem part(part_of(problem, ops));
    ASSERT_EQ(part.op_count(), ops.size());
    for (const OpId from : part.ops()) {
      EXPECT_EQ(part.op(from).name, problem.op(ops[from.index()]).name);
      for (const OpId to : part.ops()) {
        const auto leads = [&](const Problem& where, OpId a, OpId b) {
          return std::ranges::count(where.successors(a), b);
        };
        EXPECT_EQ(leads(part, from, to), leads(problem, ops[from.index()], ops[to.index()]));
      }
    }
  }
}

TEST(KeptDevices, HaveTheirTimesAndLinks) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Problem whole(testing::random_draft(plain(), seed));
    const std::vector<DeviceId> kept{DeviceId{3}, DeviceId{1}};
    ProblemDraft draft = whole.draft();
    keep_devices(draft, kept);
    const Problem few(std::move(draft));
    ASSERT_EQ(few.device_count(), kept.size());
    for (const DeviceId device : few.devices()) {
      const DeviceId before = kept[device.index()];
      EXPECT_EQ(few.device(device).name, whole.device(before).name);
      for (const OpId op : few.ops()) EXPECT_EQ(few.time(op, device), whole.time(op, before));
      for (const TensorId tensor : few.tensors()) {
        for (const DeviceId to : few.devices()) {
          EXPECT_EQ(few.link_time(tensor, device, to),
                    whole.link_time(tensor, before, kept[to.index()]));
        }
      }
    }
  }
}

TEST(KeptDevices, RefuseAPinToAnother) {
  ProblemDraft draft = testing::random_draft(plain(), 1);
  draft.ops[2].pinned_to = DeviceId{0};
  const std::vector<DeviceId> kept{DeviceId{1}, DeviceId{2}};
  try {
    keep_devices(draft, kept);
    FAIL() << "nothing was said";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr(draft.ops[2].name));
  }
}

}  // namespace
}  // namespace placewright
