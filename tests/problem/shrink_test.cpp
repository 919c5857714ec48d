// What makes failures of random tests small.

#include "support/shrink.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "formats/problem_file.h"
#include "support/random_problem.h"

namespace placewright::testing {
namespace {

TEST(Shrink, KeepsWhatIsWrongAndNothingElse) {
  RandomProblemOptions options;
  options.ops = 6;
  options.devices = 4;
  options.lanes = options.overheads = options.colocation = options.shared_weights = true;
  const auto has_long_way = [](const Problem& problem) {
    return std::ranges::any_of(problem.tensors(), [&](TensorId tensor) {
      return problem.tensor(tensor).bytes > 10 && problem.device_count() > 1;
    });
  };
  ProblemDraft draft = random_draft(options, 3);
  ASSERT_TRUE(has_long_way(Problem(ProblemDraft(draft))));
  draft = shrunk(std::move(draft), has_long_way);
  EXPECT_EQ(draft.ops.size(), 2U);
  EXPECT_EQ(draft.tensors.size(), 1U);
  EXPECT_EQ(draft.cluster.devices.size(), 2U);
  EXPECT_TRUE(draft.colocated.empty() && draft.shared_weights.empty());
  EXPECT_EQ(draft.rules, Rules{});
  EXPECT_TRUE(has_long_way(Problem(std::move(draft))));
}

TEST(Shrink, KeepsTheProblemAsAFile) {
  const ProblemDraft draft = random_draft({}, 3);
  const std::string path = keep_found(draft, "shrink-test");
  EXPECT_EQ(read_problem(path).draft.ops.size(), draft.ops.size());
}

}  // namespace
}  // namespace placewright::testing
