// A plan names the cluster file it was made for, by path and digest, and is refused for another.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/text_file.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;

const std::string kProblem = example_path("talos/six_ops.json");

std::string cluster_with(const std::string& bandwidth) {
  return R"({"placewright": "cluster", "version": 1, "kinds": [{"name": "cpu"}, {"name": "gpu"}],
    "devices": [{"name": "c", "kind": "cpu"}, {"name": "g", "kind": "gpu"}],
    "interconnect": {"kind": "links", "all": {"bandwidth": )" +
         bandwidth + "}}}";
}

class ClusterDigest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto planned =
        run({"plan", kProblem, "--cluster", cluster_, "--planner", "tsam", "-o", plan_});
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
  }

  Folder folder_;
  std::string cluster_ = folder_.write("cluster.json", cluster_with("1e6"));
  std::string plan_ = folder_.file("plan.json");
};

TEST_F(ClusterDigest, APlanForTheSameClusterIsRead) {
  EXPECT_EQ(run({"check", plan_}).exit_code, 0);
}

TEST_F(ClusterDigest, AClusterThatHasChangedIsRefused) {
  folder_.write("cluster.json", cluster_with("1e5"));
  for (const char* verb : {"check", "simulate", "explain"}) {
    const auto result = run({verb, plan_});
    EXPECT_EQ(result.exit_code, 3) << verb << result.out;
    EXPECT_THAT(result.err, HasSubstr(plan_ + ": /problem/cluster/digest: "));
    EXPECT_THAT(result.err, HasSubstr("has changed since the plan was made"));
  }
  // The problem given apart does not make the cluster another.
  EXPECT_EQ(run({"check", plan_, "--problem", kProblem}).exit_code, 3);
}

TEST_F(ClusterDigest, AClusterThatIsGivenIsTaken) {
  folder_.write("cluster.json", cluster_with("1e7"));
  EXPECT_NE(run({"check", plan_, "--cluster", cluster_}).exit_code, 3);
}

TEST_F(ClusterDigest, OfStandardInputIsOfWhatWasRead) {
  const std::string text = cluster_with("1e6");
  const std::string plan = folder_.file("from-pipe.json");
  ASSERT_EQ(
      run({"plan", kProblem, "--cluster", "-", "--planner", "tsam", "-o", plan}, text).exit_code,
      0);
  const auto document = nlohmann::json::parse(folder_.read("from-pipe.json"));
  EXPECT_EQ(document["problem"]["cluster"]["digest"], digest_of(text));
  EXPECT_EQ(run({"check", plan}).exit_code, 0);
}

TEST_F(ClusterDigest, StandardInputIsReadOnce) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"plan", "-", "--cluster", "-"},
        {"plan", kProblem, kProblem, "--cluster", "-"},
        {"plan", "-", "-"}}) {
    const auto result = run(command, cluster_with("1e6"));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("only one file can be standard input"));
  }
}

}  // namespace
}  // namespace placewright::testing
