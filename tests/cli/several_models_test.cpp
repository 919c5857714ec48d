// affinity, online and several files for plan, as a user calls them.

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;

const std::string kSixOps = example_path("talos/six_ops.json");
const std::string kTwoChains = example_path("talos/two_chains.json");

TEST(SeveralFiles, AreOneProblemThatThePlanHolds) {
  const Folder folder;
  const std::string path = folder.file("plan.json");
  const auto result = run({"plan", kSixOps, kSixOps, "--planner", "tsam", "-o", path});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("model2 2"));
  EXPECT_THAT(result.out, HasSubstr("slow-down"));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("NOD")));
  const auto verbose = run({"plan", kSixOps, kSixOps, "--planner", "tsam", "--verbose"});
  EXPECT_THAT(verbose.out, HasSubstr("Packing chains leaves 12 of 12 ops"));
  EXPECT_EQ(run({"check", path}).exit_code, 0);
}

TEST(SeveralFiles, OfOtherDevicesAreBadInput) {
  const auto result = run({"plan", kSixOps, kTwoChains});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("cannot join"));
}

TEST(AffinityVerb, PrintsAMatrix) {
  const auto result = run({"affinity", kTwoChains});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("best with"));
  EXPECT_EQ(run({"affinity", example_path("talos/none.csv")}).exit_code, 3);
  EXPECT_EQ(run({"affinity"}).exit_code, 2);
}

TEST(OnlineVerb, RunsATrace) {
  const auto json = run({"online", example_path("traces/arrivals.json"), "--json"}).json();
  EXPECT_EQ(json["arrivals"], 7);
  EXPECT_EQ(json["methods"].size(), 5U);
  EXPECT_TRUE(json["methods"][0]["models"][3]["completion"].is_null());
  for (const auto& method : json["methods"]) {
    EXPECT_GE(method["total_completion"], method["lower_bound"]);
    EXPECT_GE(method["p99_seconds"], method["median_seconds"]);
  }
}

TEST(OnlineVerb, WantsATraceOrArrivals) {
  EXPECT_EQ(run({"online", kTwoChains}).exit_code, 2);
  EXPECT_EQ(run({"online", kTwoChains, "--poisson", "0"}).exit_code, 2);
  EXPECT_EQ(run({"online", kTwoChains, "--poisson", "3", "--gap", "-1"}).exit_code, 2);
  EXPECT_EQ(run({"online", kTwoChains, "--poisson", "3", "--seed", "9"}).exit_code, 0);
  const Folder folder;
  const std::string path = folder.file("trace.json");
  std::ofstream(path) << R"({"placewright": "trace", "version": 1, "models": [")" << kTwoChains
                      << R"("], "arrivals": [{"model": "third", "time": 0}]})";
  const auto result = run({"online", path});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("no model is called 'third'"));
}

}  // namespace
}  // namespace placewright::testing
