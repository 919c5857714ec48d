// Nodes and schedules in files: version 3, and back again unchanged.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/cluster_file.h"
#include "formats/input_error.h"
#include "formats/problem_file.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two nodes of two devices; `rest` follows the devices.
std::string cluster_text(int version, const std::string& interconnect) {
  return R"({"placewright": "cluster", "version": )" + std::to_string(version) +
         R"(, "kinds": [{"name": "gpu"}], "devices": [
      {"name": "a0", "kind": "gpu", "node": "a", "price": 1.5}, {"name": "a1", "kind": "gpu", "node": "a"},
      {"name": "b0", "kind": "gpu", "node": "b"}, {"name": "b1", "kind": "gpu", "node": "b"}],
    "interconnect": )" +
         interconnect + "}";
}

constexpr const char* kTwoLevels =
    R"({"kind": "links", "inside": {"latency": 1, "bandwidth": 100}, "all": {"latency": 5, "bandwidth": 10}})";

TEST(Nodes, LinksInsideAndBetween) {
  const Cluster cluster = parse_cluster(cluster_text(3, kTwoLevels), "cluster.json").cluster;
  ASSERT_EQ(cluster.links.size(), 12U);
  for (const Link& link : cluster.links) {
    const bool inside = link.from.index() / 2 == link.to.index() / 2;
    EXPECT_EQ(link.latency, inside ? 1 : 5);
    EXPECT_EQ(link.bandwidth, inside ? 100 : 10);
  }
  EXPECT_EQ(cluster.devices[2].node, "b");
  EXPECT_EQ(cluster.devices[0].price, 1.5);
  EXPECT_EQ(cluster.devices[1].price, 0);
}

TEST(Nodes, AreWrittenAsTheyWereRead) {
  const Cluster cluster = parse_cluster(cluster_text(3, kTwoLevels), "cluster.json").cluster;
  const std::string text = write_cluster(cluster);
  EXPECT_THAT(text, HasSubstr("\"version\": 3"));
  EXPECT_THAT(text, HasSubstr("\"inside\": {\"latency\": 1, \"bandwidth\": 100}"));
  EXPECT_THAT(text, Not(HasSubstr("\"links\": [")));
  EXPECT_EQ(parse_cluster(text, "written").cluster, cluster);
}

TEST(Nodes, WithoutInsideAllPairsAreAlike) {
  const Cluster cluster =
      parse_cluster(cluster_text(3, R"({"kind": "links", "all": {"latency": 5}})"), "x").cluster;
  for (const Link& link : cluster.links) EXPECT_EQ(link.latency, 5);
  EXPECT_THAT(write_cluster(cluster), Not(HasSubstr("inside")));
  EXPECT_EQ(parse_cluster(write_cluster(cluster), "written").cluster, cluster);
}

TEST(Nodes, OnlyInsideLeavesNodesApart) {
  const Cluster cluster =
      parse_cluster(cluster_text(3, R"({"kind": "links", "inside": {"latency": 1}})"), "x").cluster;
  ASSERT_EQ(cluster.links.size(), 4U);
  for (const Link& link : cluster.links) EXPECT_EQ(link.from.index() / 2, link.to.index() / 2);
  EXPECT_EQ(parse_cluster(write_cluster(cluster), "written").cluster, cluster);
}

TEST(Nodes, LinksThatDifferAreListed) {
  Cluster cluster = parse_cluster(cluster_text(3, kTwoLevels), "cluster.json").cluster;
  cluster.links[4].latency = 2;
  EXPECT_THAT(write_cluster(cluster), Not(HasSubstr("\"all\"")));
  EXPECT_EQ(parse_cluster(write_cluster(cluster), "written").cluster, cluster);
}

TEST(Nodes, NeedVersion3) {
  EXPECT_THROW(parse_cluster(cluster_text(2, kTwoLevels), "cluster.json"), InputError);
  EXPECT_THROW(parse_cluster(cluster_text(4, kTwoLevels), "cluster.json"), InputError);
}

TEST(Schedules, NeedVersion3AndReadBack) {
  ProblemDraft draft = testing::random_draft({.objective = Objective::throughput}, 3);
  draft.rules.schedule = PipelineSchedule::interleaved;
  draft.rules.micro_batches = 8;
  std::string text = write_problem(draft);
  EXPECT_THAT(text, HasSubstr("\"version\": 3"));
  EXPECT_EQ(parse_problem(text, "written").draft, draft);
  text.replace(text.find("\"version\": 3"), 12, "\"version\": 2");
  EXPECT_THROW(parse_problem(text, "older"), InputError);
}

TEST(Schedules, GPipeHoldsAStepSoItsLengthMustBeStated) {
  ProblemDraft draft = testing::random_draft({.objective = Objective::throughput}, 3);
  draft.rules.schedule = PipelineSchedule::gpipe;
  EXPECT_THROW(Problem{draft}, InvalidProblem);
  draft.rules.micro_batches = 8;
  EXPECT_NO_THROW(Problem{draft});
  draft.rules.micro_batches = -1;
  EXPECT_THROW(Problem{draft}, InvalidProblem);
}

}  // namespace
}  // namespace placewright
