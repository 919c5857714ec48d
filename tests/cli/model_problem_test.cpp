// Models where verbs take problems, and help on verbs.

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"
#include "zoo/zoo.h"

namespace placewright::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class ModelAsProblem : public ::testing::Test {
 protected:
  ModelAsProblem() { ::setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1); }
  ~ModelAsProblem() override { ::unsetenv("XDG_CACHE_HOME"); }

  Folder folder_;
  std::string model_ = make_zoo_model("tiny-branches", folder_.file("")).xml;
};

TEST_F(ModelAsProblem, IsEstimatedForTheDevicesOfACluster) {
  const std::string plan = folder_.file("plan.json");
  const auto result =
      run({"plan", model_, "--cluster", example_path("clusters/two-a100-t4-cpu.json"), "--planner",
           "heft", "-o", plan});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("times estimated for the devices of"));
  EXPECT_THAT(result.out, HasSubstr("the costs are estimated, not measured"));
  const auto compared = run({"compare", model_, "--cluster",
                             example_path("clusters/two-a100-t4-cpu.json"), "--planners", "heft"});
  EXPECT_THAT(compared.out, HasSubstr("caution: the costs are estimated, not measured"));
  EXPECT_EQ(run({"check", plan}).exit_code, 0);
  const auto unknown =
      run({"plan", model_, "--cluster", folder_.write("cluster.json", R"({"placewright": "cluster",
      "version": 1, "devices": [{"name": "a", "kind": "abacus"}],
      "interconnect": {"kind": "host"}})")});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("the kind 'abacus' cannot be estimated"));
}

TEST_F(ModelAsProblem, IsMeasuredHere) {
  const std::string plan = folder_.file("plan.json");
  const auto result = run({"plan", model_, "--device", "cpu:0", "--planner", "single", "-o", plan});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("times measured now on cpu:0"));
  EXPECT_EQ(run({"check", plan}).exit_code, 0);
  const auto ran = run({"run", plan, "--repeat", "3"});
  EXPECT_THAT(ran.out, AnyOf(HasSubstr(", the best without a plan"), HasSubstr("disturbed")));
  EXPECT_THAT(ran.out, HasSubstr("\nlatency: "));
  // A busy machine disturbs a measurement, which is then not kept.
  const auto again = run({"plan", model_, "--device", "cpu:0", "--planner", "single"});
  const bool kept = result.err.find("kept in") != std::string::npos;
  EXPECT_THAT(again.err, HasSubstr(kept ? "times measured earlier" : "times measured now"));
}

TEST_F(ModelAsProblem, FlagsOfModelsAreRefusedForProblems) {
  const auto result = run({"plan", example_path("moirai/example-1.json"), "--device", "cpu:0"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("are for models"));
}

TEST(Help, IsAVerbToo) {
  EXPECT_EQ(run({"help", "plan"}).out, run({"plan", "--help"}).out);
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
}

TEST(Pins, TakePatterns) {
  const std::string problem = example_path("talos/six_ops.json");
  const auto all = run({"plan", problem, "--planner", "heft", "--pin", "*=CPU", "--json"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  for (const auto& [op, device] : all.json()["placement"].items()) EXPECT_EQ(device, "CPU") << op;
  const auto none = run({"plan", problem, "--pin", "x*=CPU"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no op matches 'x*'"));
}

TEST(Forbid, KeepsOpsOffADeviceInThePlanFileToo) {
  const Folder folder;
  const std::string problem = example_path("talos/six_ops.json");
  const std::string plan = folder.file("plan.json");
  const auto result =
      run({"plan", problem, "--planner", "heft", "--forbid", "*=GPU", "--json", "-o", plan});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const auto& [op, device] : result.json()["placement"].items()) EXPECT_EQ(device, "CPU");
  EXPECT_EQ(run({"check", plan}).exit_code, 0);
  EXPECT_EQ(run({"plan", problem, "--forbid", "*=GPU", "--forbid", "*=CPU"}).exit_code, 3);
  const auto wrong = run({"plan", problem, "--forbid", "*=TPU"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--forbid: no device is called 'TPU'"));
}

TEST(WhatIfVerb, PlansForSetsOfDevices) {
  const std::string problem = example_path("talos/six_ops.json");
  const auto without = run({"whatif", problem, "--without", "GPU", "--planner", "heft"});
  ASSERT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("without GPU"));
  const auto sets = run({"whatif", problem, "--device-sets", "--planner", "heft", "--json"});
  ASSERT_EQ(sets.exit_code, 0) << sets.err;
  ASSERT_EQ(sets.json()["points"].size(), 3U);
  EXPECT_EQ(sets.json()["points"][0]["set"], "1 x cpu, 1 x gpu");
  EXPECT_EQ(run({"whatif", problem, "--without", "GPU", "--devices", "1"}).exit_code, 2);
  EXPECT_EQ(run({"whatif", problem, "--without", "TPU"}).exit_code, 2);
}

}  // namespace
}  // namespace placewright::testing
