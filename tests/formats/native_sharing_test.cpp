// What devices share, in files: version 2, and back again unchanged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/cluster_file.h"
#include "formats/problem_file.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;

TEST(Sharing, ProblemsAndClustersReadBackAsTheyWereWritten) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomProblemOptions options;
    options.resources = seed % 3 != 0;
    options.spaces = seed % 3 != 1;
    options.cuts = seed % 2 == 0;
    const ProblemDraft draft = testing::random_draft(options, seed);
    const Problem problem(draft);
    // What no device uses plays no part, and is written all the same.
    const Cluster& cluster = draft.cluster;
    const bool listed = !cluster.resources.empty() || !cluster.spaces.empty();
    const bool second = listed || problem.has_sharing() || problem.has_tensor_cuts();
    const std::string text = write_problem(draft);
    EXPECT_THAT(text, HasSubstr(second ? "\"version\": 2" : "\"version\": 1"));
    EXPECT_EQ(parse_problem(text, "written").draft, draft);
    EXPECT_EQ(parse_cluster(write_cluster(draft.cluster), "written").cluster, draft.cluster);
  }
}

TEST(Sharing, AnotherClusterKeepsSharesAndCutsByKindName) {
  testing::RandomProblemOptions options;
  options.resources = options.cuts = true;
  const ProblemDraft draft = testing::random_draft(options, 7);
  Cluster turned = draft.cluster;
  std::reverse(turned.kinds.begin(), turned.kinds.end());
  const std::size_t kinds = turned.kinds.size();
  for (Device& device : turned.devices) device.kind = KindId{kinds - 1 - device.kind.index()};
  const ProblemDraft moved =
      with_cluster(draft, parse_cluster(write_cluster(turned), "cluster.json"), "problem.json");
  const Problem before(draft);
  const Problem after(moved);
  for (const DeviceId device : before.devices()) {
    for (const OpId op : before.ops()) {
      EXPECT_EQ(before.share(op, device), after.share(op, device));
      EXPECT_EQ(before.time(op, device), after.time(op, device));
    }
    for (const TensorId tensor : before.tensors()) {
      EXPECT_EQ(before.send_overhead(tensor, device), after.send_overhead(tensor, device));
      EXPECT_EQ(before.receive_overhead(tensor, device), after.receive_overhead(tensor, device));
    }
  }
}

}  // namespace
}  // namespace placewright
