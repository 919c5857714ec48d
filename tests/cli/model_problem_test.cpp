// Models where verbs take problems, and help on verbs.

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/registry.h"
#include "backends/target_devices.h"
#include "support/cache_folder.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"
#include "zoo/zoo.h"

namespace placewright::testing {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class ModelAsProblem : public ::testing::Test {
 protected:
  // The model, planned for the first core that this process may use.
  [[nodiscard]] ProgramResult planned_here(const std::string& plan = "") const {
    std::vector<std::string> arguments = {"plan", model_, "--device", core_, "--planner", "single"};
    if (!plan.empty()) arguments.insert(arguments.end(), {"-o", plan});
    return run(arguments);
  }

  CacheFolder cache_;
  Folder folder_;
  std::string core_ = name_of(all_targets(backend_named(kDefaultBackend)).front());
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
  EXPECT_THAT(result.out, ContainsRegex("against no plan +.*the model uncut on gpu0"));
  const auto compared = run({"compare", model_, "--cluster",
                             example_path("clusters/two-a100-t4-cpu.json"), "--planners", "heft"});
  EXPECT_THAT(compared.out, HasSubstr("caution: the costs are estimated, not measured"));
  EXPECT_EQ(run({"check", plan}).exit_code, 0);
  const auto unknown =
      run({"plan", model_, "--cluster", folder_.write("cluster.json", R"({"placewright": "cluster",
      "version": 1, "devices": [{"name": "a", "kind": "abacus"}],
      "interconnect": {"kind": "host"}})")});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("cannot estimate times for the kind 'abacus'"));
  const auto twins =
      run({"plan", model_, "--cluster", folder_.write("cluster.json", R"({"placewright": "cluster",
      "version": 2, "devices": [{"name": "a", "kind": "T4"}], "interconnect": {"kind": "links"},
      "resources": [{"name": "twin"}, {"name": "twin"}]})")});
  EXPECT_EQ(twins.exit_code, 3);
  EXPECT_THAT(twins.err, HasSubstr("cluster.json: /resources/1: "));
}

TEST_F(ModelAsProblem, ABatchOfEstimatesPaysLaunchesAndWeightsOnce) {
  const auto values = [&](const std::string& cluster) {
    const auto result = run({"whatif", model_, "--cluster", cluster, "--batch", "1,8", "--planner",
                             "single", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto points = result.json()["points"];
    return std::pair(points[0]["value"].get<double>(), points[1]["value"].get<double>());
  };
  const auto [one, eight] = values(example_path("clusters/two-a100-t4-cpu.json"));
  EXPECT_GT(eight, one);
  EXPECT_LT(eight, 4 * one) << "so small a model is mostly launches";
}

TEST_F(ModelAsProblem, LeftWholeItHasNoCostOfACut) {
  const auto result = run({"profile", model_, "--whole", "--device", core_, "--repeat", "1"});
  EXPECT_THAT(result.out, ContainsRegex("scale +beside others +a cut +valid"));
  EXPECT_THAT(result.out, ContainsRegex("[0-9] +- +- +(yes|NO|cannot tell)"));
}

TEST_F(ModelAsProblem, IsMeasuredHere) {
  const std::string plan = folder_.file("plan.json");
  const auto result = planned_here(plan);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("times measured now on " + core_));
  EXPECT_EQ(run({"check", plan}).exit_code, 0);
  const auto ran = run({"run", plan, "--repeat", "3"});
  // What there is without a plan is this plan. A busy machine disturbs it.
  EXPECT_THAT(ran.out, HasSubstr(ran.exit_code == 0
                                     ? "; the plan is the same as " + core_ +
                                           " alone, the fastest setting without a plan\n"
                                     : "; not compared with " + core_ +
                                           " alone: one of the two measurements is not valid\n"));
  EXPECT_THAT(ran.out, HasSubstr("\nlatency: "));
  // A busy machine disturbs a measurement, which is then not kept.
  const auto again = planned_here();
  const std::size_t kept = result.err.find(", kept in ");
  if (kept == std::string::npos) {
    EXPECT_THAT(again.err, HasSubstr("times measured now"));
    return;
  }
  EXPECT_THAT(again.err, HasSubstr("times measured earlier"));
  const std::size_t begin = kept + std::string_view(", kept in ").size();
  const std::string path = result.err.substr(begin, result.err.find('\n', begin) - begin);
  auto of_another_model = nlohmann::json::parse(std::ifstream(path));
  of_another_model["models"][0]["source"]["digest"] = std::string(64, '0');
  for (const std::string& text :
       {std::string("{"), std::string(R"({"placewright": "cluster"})"), of_another_model.dump()}) {
    std::ofstream(path) << text;
    const auto anew = planned_here();
    EXPECT_EQ(anew.exit_code, 0) << anew.err;
    EXPECT_THAT(anew.err, HasSubstr("times measured now"));
  }
}

TEST_F(ModelAsProblem, IsPlannedAlsoIfItsTimesCannotBeKept) {
  CacheFolder::use(folder_.write("file", "no folder"));
  const auto result = planned_here();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, AnyOf(HasSubstr(", not kept: "), HasSubstr("so the times are not kept")));
}

TEST_F(ModelAsProblem, IsMeasuredOrEstimatedNotBoth) {
  const auto result = run({"plan", model_, "--device", core_, "--cluster",
                           example_path("clusters/two-a100-t4-cpu.json")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("give --device or --cluster, not both"));
}

TEST_F(ModelAsProblem, SeveralAreImportedTogether) {
  const std::string other = make_zoo_model("tiny-pair", folder_.file("")).xml;
  const std::string problem = folder_.file("both.json");
  const auto result = run({"import", model_, other, "--device", core_, "-o", problem});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto described = run({"info", problem, "--json"});
  EXPECT_THAT(folder_.read("both.json"), HasSubstr("tiny-branches"));
  EXPECT_THAT(folder_.read("both.json"), HasSubstr("tiny-pair"));
  EXPECT_EQ(run({"plan", problem, "--planner", "heft"}).exit_code, 0);
}

TEST_F(ModelAsProblem, IsExplainedAndIsNoPlan) {
  const auto explained =
      run({"explain", model_, "--cluster", example_path("clusters/two-a100-t4-cpu.json")});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  for (const char* verb : {"check", "simulate", "run"}) {
    const auto result = run({verb, model_});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("is a model, not a plan; 'placewright plan "));
  }
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
  const auto document = all.json();
  for (const auto& [op, device] : document["placement"].items()) EXPECT_EQ(device, "CPU") << op;
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
  const auto document = result.json();
  for (const auto& [op, device] : document["placement"].items()) EXPECT_EQ(device, "CPU");
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
