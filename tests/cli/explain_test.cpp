// explain, whatif and export as a user calls them.

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/problem_file.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kExample1 = example_path("moirai/example-1.json");
const std::string kBert = example_path("msr/throughput/LayerGraphs/bert24_inference.json");

std::string planned(const Folder& folder, const std::string& problem) {
  const std::string path = folder.file("plan.json");
  EXPECT_EQ(run({"plan", problem, "--planner", "topo", "-o", path, "-q"}).exit_code, 0);
  return path;
}

TEST(ExplainVerb, SaysWhatLimitsAPlanAndWhoPlannedAgain) {
  const Folder folder;
  const auto result = run({"explain", planned(folder, kExample1), "--planner", "etf"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("the critical path"));
  EXPECT_THAT(result.out, HasSubstr("planned again by 'etf'"));
  const auto json = run({"explain", planned(folder, kBert), "--planner", "topo", "--json"}).json();
  EXPECT_EQ(json["fullest_stages"].size(), 1U);
  EXPECT_DOUBLE_EQ(json["fullest_stages"][0]["load"], json["value"]);
  EXPECT_LE(json["cuts"].size(), 5U);
  EXPECT_EQ(json["sensitivity"]["as_it_is"]["planner"], "topo");
}

TEST(ExplainVerb, SaysWhatMovingAnOpCosts) {
  const Folder folder;
  const std::string plan = planned(folder, kExample1);
  const auto json = run({"explain", plan, "--op", "7", "--json"}).json();
  EXPECT_EQ(json["moves"].size(), 2U);
  const auto wrong = run({"explain", plan, "--op", "nobody"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("no op is called 'nobody'"));
}

TEST(ExplainVerb, SaysWhoHeldTheCoresThatAnOpWaitsFor) {
  ProblemDraft draft;
  draft.objective = Objective::latency;
  draft.cluster.interconnect = InterconnectKind::links;
  draft.cluster.kinds = {{"pair"}, {"three"}};
  draft.cluster.resources = {{"core 0", 1}, {"core 1", 1}, {"core 2", 1}};
  draft.cluster.spaces = {{"ram", kInfinity}};
  draft.cluster.devices = {{"cpu:0-1", KindId{0}}, {"cpu:0-2", KindId{1}}};
  for (Device& device : draft.cluster.devices) {
    device.space = SpaceId{0};
    device.uses = {{ResourceId{0}, 1}, {ResourceId{1}, 1}};
  }
  draft.cluster.devices[1].uses.push_back({ResourceId{2}, 1});
  draft.models = {{"model", 0, 1, {}}};
  // They need each other's cores, and neither the other's result: whoever is second waits 3.
  draft.ops = {Op{.name = "narrow", .time = {3, kInfinity}},
               Op{.name = "wide", .time = {kInfinity, 3}}};
  const Folder folder;
  const std::string plan = planned(folder, folder.write("cores.json", write_problem(draft)));
  const auto result = run({"explain", plan, "--planner", "etf"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, ContainsRegex("waits 3 .*for cores 0-1, held by (narrow|wide)"));
  EXPECT_THAT(result.out, HasSubstr("only waits for a busy device, cores or port"));
  EXPECT_THAT(result.out, Not(HasSubstr("one more core"))) << "no set goes with just one more";
  const auto steps =
      run({"explain", plan, "--planner", "etf", "--json"}).json()["critical_path"]["steps"];
  EXPECT_EQ(steps[1]["waited_for"], "resource");
  EXPECT_EQ(steps[1]["waited"], 3);
  EXPECT_EQ(steps[1]["resources"], nlohmann::json({"core 0", "core 1"}));
  EXPECT_EQ(steps[1]["held_by"], steps[0]["op"]);
}

TEST(ExplainVerb, SaysThatTheMemoryOfTheCoresIsTooSmall) {
  const Folder folder;
  const std::string path = folder.file("cores.json");
  ASSERT_EQ(run({"generate", "layered", "--ops", "6", "--shared-cores", "2", "-o", path}).exit_code,
            0);
  auto problem = nlohmann::json::parse(folder.read("cores.json"));
  problem["spaces"][0]["memory"] = 1000;
  folder.write("cores.json", problem.dump());
  EXPECT_EQ(run({"info", path, "--json"}).json()["memory_available"], 1000);
  const auto result = run({"explain", path});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("memory space 'memory' has 1000 bytes of memory"));
  EXPECT_THAT(result.out, ContainsRegex("memory  +1000 bytes  +[0-9.]+ .iB"));
  const auto more = run({"whatif", path, "--memory-factor", "1,1e6", "--planner", "etf", "--json"})
                        .json()["points"];
  EXPECT_EQ(more[0]["status"], "infeasible");
  EXPECT_NE(more[1]["status"], "infeasible");
}

TEST(WhatIfVerb, OfSetsOfCoresItCountsCores) {
  const Folder folder;
  const std::string path = folder.write(
      "cores.json", run({"generate", "layered", "--ops", "6", "--shared-cores", "2"}).out);
  const auto result = run({"whatif", path, "--devices", "1,2", "--planner", "etf"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\ncores  "));
}

TEST(ExplainVerb, SaysWhyNothingFits) {
  const Folder folder;
  auto problem = nlohmann::json::parse(std::ifstream(kExample1));
  for (auto& device : problem["devices"]) device["memory"] = 12;
  const std::string path = folder.write("small.json", problem.dump());
  const auto result = run({"explain", path, "--json"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto json = result.json();
  EXPECT_EQ(json["status"], "infeasible");
  EXPECT_TRUE(json["minimal"]);
  EXPECT_EQ(json["conflict"].size(), 3U);  // the memory of each of the three devices
  EXPECT_GT(json["least_memory"]["factor"], 1.0);
  EXPECT_EQ(run({"explain", kExample1}).exit_code, 0);
}

TEST(WhatIfVerb, WritesATableACsvAndAChart) {
  const Folder folder;
  const auto result =
      run({"whatif", kExample1, "--devices", "2-3", "--bandwidth", "0.1,1,10", "--planner", "etf",
           "--csv", folder.file("out.csv"), "--chart", folder.file("out.svg")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("bandwidth"));
  const std::string csv = folder.read("out.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
  EXPECT_THAT(folder.read("out.svg"), HasSubstr("3 devices</text>"));
}

TEST(WhatIfVerb, TheCsvHasTheFieldsOfTheJsonInTheirOrder) {
  const Folder folder;
  const auto result = run({"whatif", kExample1, "--devices", "2-3", "--planner", "etf", "--json",
                           "--csv", folder.file("out.csv")});
  const auto point = nlohmann::ordered_json::parse(result.out)["points"][1];
  std::string titles;
  for (const auto& field : point.items()) titles += (titles.empty() ? "" : ",") + field.key();
  EXPECT_THAT(folder.read("out.csv"), ::testing::StartsWith(titles + "\n2,all,nothing,1,1,1,1,"));
}

// Ten equal ops on two devices of 1 and 3 an hour: 5 ms and 4 an hour for a sample, and with a
// third of price 1 (4 ops at most) 4 ms and 5.
TEST(WhatIfVerb, SaysWhatASampleCostsWithWhatIsBought) {
  const Folder folder;
  std::string ops;
  for (int i = 0; i < 10; ++i) {
    ops += (i > 0 ? "," : "") + std::string(R"({"time": [1], "name": "op)") + std::to_string(i) +
           "\"}";
  }
  folder.write("problem.json", R"({"placewright": "problem", "version": 1, "unit": "ms",
      "objective": "throughput", "rules": {"contiguity": "none"}, "kinds": [{"name": "gpu"}],
      "devices": [{"name": "a", "kind": "gpu", "price": 1}, {"name": "b", "kind": "gpu", "price": 3}],
      "interconnect": {"kind": "links", "all": "PCIe-4.0-x16"}, "ops": [)" +
                                   ops + "]}");
  const auto result = run({"whatif", folder.file("problem.json"), "--add", "gpu", "--link",
                           "NVLink-3=0.5", "--planner", "refine", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto points = result.json()["points"];
  ASSERT_EQ(points.size(), 3U);
  const auto expect = [&](std::size_t at, const char* bought, double value, double price) {
    EXPECT_EQ(points[at]["bought"], bought);
    EXPECT_DOUBLE_EQ(points[at]["value"], value);
    EXPECT_DOUBLE_EQ(points[at]["price"], price);
    EXPECT_DOUBLE_EQ(points[at]["cost_per_sample"], price * value / 3.6e6);
  };
  expect(0, "nothing", 5, 4);
  expect(1, "one more gpu", 4, 5);
  expect(2, "NVLink-3", 5, 4.5);
  const auto text =
      run({"whatif", folder.file("problem.json"), "--add", "b", "--planner", "refine"});
  EXPECT_THAT(text.out, HasSubstr("cost/sample"));
  EXPECT_THAT(text.out, HasSubstr("one more b"));
}

TEST(WhatIfVerb, RefusesGridsThatMakeNoSense) {
  for (const char* values : {"0", "a", "1,,2", "3-1", "-1", "1,"}) {
    EXPECT_EQ(run({"whatif", kExample1, "--bandwidth", values}).exit_code, 2) << values;
  }
  EXPECT_EQ(run({"whatif", kExample1}).exit_code, 2);
  EXPECT_EQ(run({"whatif", kExample1, "--devices", "1.5"}).exit_code, 2);
  EXPECT_EQ(run({"whatif", kExample1, "--add", "nobody"}).exit_code, 2);
  EXPECT_EQ(run({"whatif", kExample1, "--link", "string"}).exit_code, 2);
  EXPECT_EQ(run({"whatif", kExample1, "--add", "d0", "--device-sets"}).exit_code, 2);
}

TEST(ExportVerb, WritesEveryTarget) {
  const Folder folder;
  const std::string plan = planned(folder, kExample1);
  for (const char* target : {"trace", "dot", "csv", "table"}) {
    const auto result = run({"export", plan, "--to", target});
    EXPECT_EQ(result.exit_code, 0) << target << result.err;
    EXPECT_GT(result.out.size(), 200U) << target;
  }
  EXPECT_EQ(run({"export", plan, "--to", "model-explorer", "-o", folder.file("g.json")}).exit_code,
            0);
  EXPECT_FALSE(nlohmann::json::parse(folder.read("g.node-data.json")).empty());
  const auto wrong = run({"export", plan, "--to", "trac"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'trace'"));
}

}  // namespace
}  // namespace placewright::testing
