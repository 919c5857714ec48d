// Every verb on its happy path, as a user calls it.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "problem/draft.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kGoogLeNet = example_path("moirai/GoogLeNet.json");
const std::string kExample1 = example_path("moirai/example-1.json");
const std::string kBert = example_path("msr/throughput/LayerGraphs/bert24_inference.json");

// As the program lists them: "  plan          Decide which op runs where and when".
std::vector<std::string> verbs() {
  std::istringstream help(run({"--help"}).out);
  std::vector<std::string> names;
  bool listing = false;
  for (std::string line; std::getline(help, line);) {
    if (line.empty()) listing = false;
    std::istringstream words(line);
    std::string name;
    if (listing && words >> name) names.push_back(name);
    if (line == "Verbs:") listing = true;
  }
  return names;
}

TEST(Program, ListsItsVerbsWhenCalledWithNothing) {
  const auto result = run({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(verbs(), ::testing::IsSupersetOf({"plan", "compare", "check", "run", "zoo"}));
  for (const std::string& verb : verbs()) EXPECT_THAT(result.err, HasSubstr("  " + verb + " "));
}

TEST(Program, HasAVersionAndHelpWithExamplesForEveryVerb) {
  EXPECT_THAT(run({"--version"}).out, ::testing::StartsWith("placewright "));
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  for (const std::string& verb : verbs()) {
    const auto result = run({verb, "--help"});
    EXPECT_EQ(result.exit_code, 0) << verb;
    EXPECT_THAT(result.out, HasSubstr("Examples:")) << verb;
  }
}

TEST(PlanVerb, PrintsASummaryAndNothingOnStderr) {
  const auto result = run({"plan", kGoogLeNet, "--planner", "heft"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("lower bound"));
  EXPECT_THAT(result.out, HasSubstr("heft"));
  EXPECT_THAT(result.out, HasSubstr("d3"));
  EXPECT_THAT(result.err, IsEmpty());
}

TEST(PlanVerb, PrintsTheContractsObjectAsJson) {
  const auto result = run({"plan", kExample1, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto json = result.json();
  for (const char* key : {"status", "objective", "planner", "value", "lower_bound", "gap", "unit",
                          "seconds", "placement"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["objective"], "latency");
  EXPECT_EQ(json["planner"], "auto");
  EXPECT_EQ(json["placement"].size(), 14U);
  EXPECT_GE(json["value"].get<double>(), 30);
  EXPECT_LE(json["lower_bound"].get<double>(), 30);
  EXPECT_NEAR(json["gap"].get<double>(),
              1 - json["lower_bound"].get<double>() / json["value"].get<double>(), 1e-9);
}

// Two branches on two equal cores; 10 ms on one of them.
std::string two_branches(const std::string& origin, double latency) {
  return fmt::format(R"({{
    "placewright": "problem", "version": 1, "name": "two branches", "unit": "ms",
    "origin": ["{}"], "kinds": [{{"name": "cpu-1"}}],
    "devices": [{{"name": "cpu:0", "kind": "cpu-1"}}, {{"name": "cpu:1", "kind": "cpu-1"}}],
    "interconnect": {{"kind": "links", "all": {{"latency": {}, "bandwidth": 1}}}},
    "rules": {{"max_replicas": 2}},
    "ops": [{{"name": "split", "time": [1]}}, {{"name": "left", "time": [4]}},
            {{"name": "right", "time": [4]}}, {{"name": "join", "time": [1]}}],
    "tensors": [{{"from": "split", "to": ["left", "right"], "bytes": 0}},
                {{"from": "left", "to": ["join"], "bytes": 0}},
                {{"from": "right", "to": ["join"], "bytes": 0}}]}})",
                     origin, latency);
}

TEST(PlanVerb, SaysWhatAPlanWithMeasuredCostsGains) {
  const auto planned = [](const std::string& problem, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"plan", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, problem);
  };
  const std::string cheap = two_branches("measured on two cores", 0.5);
  EXPECT_THAT(planned(cheap).out,
              HasSubstr("1.54 times as fast as the model uncut on cpu:0 (predicted)"));
  const auto uncut = planned(cheap, {"--json"}).json()["uncut"];
  EXPECT_EQ(uncut["devices"], nlohmann::json({"cpu:0"}));
  EXPECT_EQ(uncut["value"], 10);
  EXPECT_NEAR(uncut["speed_up"].get<double>(), 10 / 6.5, 1e-9);
  EXPECT_FALSE(uncut["plan_is_uncut"]);

  const std::string dear = two_branches("measured on two cores", 50);
  EXPECT_THAT(planned(dear).out,
              HasSubstr("the model uncut on cpu:0: no cut is predicted to gain"));
  EXPECT_TRUE(planned(dear, {"--json"}).json()["uncut"]["plan_is_uncut"]);
  EXPECT_THAT(planned(dear, {"--objective", "throughput"}).out,
              HasSubstr("the model uncut on cpu:0, cpu:1: no cut is predicted to gain"));

  const std::string stated = two_branches("made up", 0.5);
  EXPECT_THAT(planned(stated).out, Not(HasSubstr("uncut")));
  EXPECT_FALSE(planned(stated, {"--json"}).json().contains("uncut"));
}

TEST(PlanVerb, IsQuietWhenAsked) {
  const auto result = run({"plan", kExample1, "--quiet"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out + result.err, IsEmpty());
}

TEST(PlanVerb, ReadsStandardInputAndWritesStandardOutput) {
  const Folder folder;
  const auto imported = run({"import", kExample1, "-o", "-"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  const auto planned = run({"plan", "-", "--planner", "random", "-o", "-"}, imported.out);
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_EQ(planned.json()["placewright"], "plan");
  // A plan for a problem from standard input carries the problem with it.
  const auto checked = run({"check", "-"}, planned.out);
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
}

TEST(PlanVerb, PinsAndRulesReachTheCheckOfThePlanFile) {
  const Folder folder;
  const std::string plan = folder.file("plan.json");
  const auto result = run({"plan", kGoogLeNet, "--no-congestion", "--pin", "3=d2", "--pin", "5=d2",
                           "--json", "-o", plan});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["placement"]["3"], "d2");
  EXPECT_EQ(result.json()["placement"]["5"], "d2");
  EXPECT_EQ(run({"check", plan}).exit_code, 0);
}

TEST(PlanVerb, NeverMakesTheStartWorse) {
  const Folder folder;
  const std::string start = folder.file("start.json");
  const auto first = run({"plan", kGoogLeNet, "--planner", "heft", "--json", "-o", start});
  ASSERT_EQ(first.exit_code, 0);
  const auto second = run({"plan", kGoogLeNet, "--planner", "single", "--start", start, "--json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_LE(second.json()["value"], first.json()["value"]);
}

TEST(PlanVerb, GivesTheSamePlanForTheSameSeedAndSteps) {
  for (const char* planner : {"random", "search", "auto"}) {
    const std::vector<std::string> arguments = {"plan", kGoogLeNet, "--planner", planner, "--steps",
                                                "20",   "--seed",   "5",         "--json"};
    EXPECT_EQ(run(arguments).json()["placement"], run(arguments).json()["placement"]) << planner;
  }
}

TEST(PlanVerb, KeepsItsTimeLimit) {
  const auto result = run({"plan", kGoogLeNet, "--planner", "random", "--option",
                           "samples=1000000000", "--time-limit", "300ms", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["planner"], "random");
}

TEST(CompareVerb, OrdersPlannersByValue) {
  const auto result = run({"compare", kGoogLeNet, "--json", "--time-limit", "500ms"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = result.json();
  const auto& planners = json["planners"];
  ASSERT_GE(planners.size(), 5U);
  double last = 0;
  for (const auto& row : planners) {
    for (const char* key : {"planner", "status", "value", "gap", "seconds"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
    EXPECT_NE(row["planner"], "auto");
    // Who found nothing in that time comes last.
    const double value = row["value"].is_null() ? kInfinity : row["value"].get<double>();
    EXPECT_GE(value, last);
    EXPECT_GE(value, json["lower_bound"].get<double>());
    last = value;
  }
}

TEST(CompareVerb, TakesASubset) {
  const auto result = run({"compare", kGoogLeNet, "--planners", "single,auto"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("auto"));
  EXPECT_THAT(result.out, HasSubstr("2.336"));
  EXPECT_THAT(result.out, Not(HasSubstr("random ")));
  EXPECT_THAT(result.out, HasSubstr("best lower bound"));
}

TEST(CheckVerb, AcceptsWhatPlanWrites) {
  const Folder folder;
  for (const std::string& path :
       {kExample1, kBert, example_path("talos/six_ops.json"),
        example_path("msr/throughput/LayerGraphs/bert24_training.json")}) {
    const std::string plan = folder.file("plan.json");
    ASSERT_EQ(run({"plan", path, "-o", plan}).exit_code, 0) << path;
    const auto result = run({"check", plan, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(result.json()["valid"], true);
  }
}

TEST(CheckVerb, NamesEachViolation) {
  const Folder folder;
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run({"plan", kExample1, "-o", plan, "--embed"}).exit_code, 0);
  auto broken = nlohmann::json::parse(folder.read("plan.json"));
  broken["value"] = 1;
  const std::string path = folder.write("broken.json", broken.dump());
  const auto result = run({"check", path});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("not valid"));
  EXPECT_THAT(result.out, HasSubstr("value-wrong"));
  const auto json = run({"check", path, "--json"}).json();
  EXPECT_EQ(json["valid"], false);
  EXPECT_EQ(json["violations"][0]["code"], "value-wrong");
}

TEST(CheckVerb, ValuesExpertSplits) {
  const auto result = run({"check", example_path("msr/human-experts/bert24_inference_expert.json"),
                           "--problem", kBert, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_GE(result.json()["value"].get<double>(), 17.7899);
}

TEST(CheckVerb, RefusesAProblemThatHasChanged) {
  const Folder folder;
  const std::string problem =
      folder.write("problem.json", run({"import", kExample1, "-o", "-"}).out);
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run({"plan", problem, "-o", plan}).exit_code, 0);
  EXPECT_EQ(run({"check", plan}).exit_code, 0);
  folder.write("problem.json", folder.read("problem.json") + "\n");
  const auto result = run({"check", plan});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("has changed"));
  EXPECT_EQ(run({"check", plan, "--problem", problem}).exit_code, 0);
}

TEST(SimulateVerb, ListsWhatHappens) {
  const Folder folder;
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run({"plan", kExample1, "-o", plan}).exit_code, 0);
  const auto json = run({"simulate", plan, "--json"}).json();
  std::size_t ops = 0;
  double last = 0;
  for (const auto& event : json["events"]) {
    ops += event["kind"] == "op" ? 1 : 0;
    EXPECT_GE(event["start"].get<double>(), last);
    last = event["start"].get<double>();
  }
  EXPECT_EQ(ops, 14U);
  EXPECT_EQ(json["devices"].size(), 3U);
  EXPECT_THAT(run({"simulate", plan}).out, HasSubstr("transfer"));
}

TEST(SimulateVerb, DrawsAGanttOfTheWidthAskedFor) {
  const Folder folder;
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run({"plan", kExample1, "-o", plan}).exit_code, 0);
  const auto result = run({"simulate", plan, "--gantt", "--width", "80"});
  EXPECT_EQ(result.exit_code, 0);
  std::istringstream lines(result.out);
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find('|') == std::string::npos) continue;
    ++rows;
    EXPECT_EQ(line.size(), 80U) << line;
  }
  EXPECT_GE(rows, 3U);
}

TEST(SimulateVerb, TheGanttShowsWhoHoldsSharedCores) {
  const Folder folder;
  const std::string problem = folder.file("problem.json");
  std::ofstream(problem) << R"({"placewright": "problem", "version": 2, "name": "cores",
    "kinds": [{"name": "both"}], "resources": [{"name": "core 0"}, {"name": "core 1"}],
    "devices": [{"name": "d", "kind": "both", "uses": [{"resource": "core 1"}]},
                {"name": "e", "kind": "both", "uses": [{"resource": "core 0"}]}],
    "interconnect": {"kind": "links"}, "models": [{"name": "m"}],
    "ops": [{"name": "conv", "time": [1], "pin": "d"}], "tensors": []})";
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run({"plan", problem, "-o", plan}).exit_code, 0);
  const std::string out = run({"simulate", plan, "--gantt", "--width", "40"}).out;
  EXPECT_THAT(out, HasSubstr("core 0   |....."));
  EXPECT_THAT(out, HasSubstr("core 1   |[conv==="));
}

// Three ops in turn on two cores: one core, both, the other core.
std::string plan_on_two_cores(const Folder& folder, const std::string& objective) {
  const std::string problem = folder.file("problem.json");
  std::ofstream(problem) << R"({"placewright": "problem", "version": 2, "name": "cores",
    "kinds": [{"name": "one"}, {"name": "two"}],
    "resources": [{"name": "core 0"}, {"name": "core 1"}], "spaces": [{"name": "ram"}],
    "devices": [{"name": "a", "kind": "one", "uses": [{"resource": "core 0"}], "space": "ram"},
                {"name": "both", "kind": "two", "uses": [{"resource": "core 0"}, {"resource": "core 1"}],
                 "space": "ram"},
                {"name": "b", "kind": "one", "uses": [{"resource": "core 1"}], "space": "ram"}],
    "interconnect": {"kind": "links"}, "models": [{"name": "m"}],
    "ops": [{"name": "p", "time": [2, 2], "pin": "a"}, {"name": "q", "time": [1, 1], "pin": "both"},
            {"name": "r", "time": [1, 1], "pin": "b"}],
    "tensors": [{"from": "p", "to": ["q"]}, {"from": "q", "to": ["r"]}]})";
  const std::string plan = folder.file("plan.json");
  EXPECT_EQ(run({"plan", problem, "--objective", objective, "-o", plan}).exit_code, 0);
  return plan;
}

std::string pipeline_on_two_cores(const Folder& folder) {
  return plan_on_two_cores(folder, "throughput");
}

TEST(SimulateVerb, TheGanttShowsStagesThatTakeTurnsOnCores) {
  const Folder folder;
  const std::string out =
      run({"simulate", pipeline_on_two_cores(folder), "--gantt", "--width", "41"}).out;
  EXPECT_THAT(out, HasSubstr("a        |[stage 1===========]..........|"));
  EXPECT_THAT(out, HasSubstr("both     |....................[stage 2=]|"));
  EXPECT_THAT(out, HasSubstr("core 0   |[stage 1===========][stage 2=]|"));
  EXPECT_THAT(out, HasSubstr("core 1   |[stage 3=]..........[stage 2=]|"));
}

TEST(CheckVerb, ABarePlacementIsAPlan) {
  const Folder folder;
  const std::string problem =
      folder.write("problem.json", run({"generate", "chain", "--ops", "3"}).out);
  nlohmann::json plan = {{"placewright", "plan"}, {"version", 1}};
  const auto document = nlohmann::json::parse(std::ifstream(problem));
  for (const auto& op : document["ops"]) {
    plan["placement"][op["name"].get<std::string>()] = "d0";
  }
  const auto result = run({"check", folder.write("plan.json", plan.dump()), "--problem", problem});
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, HasSubstr("valid: latency"));
}

// Two accelerators on one bus.
std::string calls_on_one_bus(const Folder& folder) {
  return folder.write("problem.json", R"({
    "placewright": "problem", "version": 2, "name": "calls", "objective": "call-latency",
    "kinds": [{"name": "acc"}, {"name": "cpu", "host": true}], "resources": [{"name": "bus"}],
    "devices": [{"name": "acc0", "kind": "acc", "uses": [{"resource": "bus"}]},
                {"name": "acc1", "kind": "acc", "uses": [{"resource": "bus"}]},
                {"name": "cpu", "kind": "cpu"}],
    "interconnect": {"kind": "host"},
    "ops": [{"name": "p", "time": [1, 9]}, {"name": "q", "time": [2, 9]}]})");
}

TEST(SimulateVerb, SaysWhatCallsHold) {
  const Folder folder;
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run({"plan", calls_on_one_bus(folder), "--planner", "single", "-o", plan}).exit_code,
            0);
  EXPECT_THAT(run({"simulate", plan}).out, ContainsRegex("call +[12] ops from '[pq]' +bus\n"));
  const auto events = run({"simulate", plan, "--json"}).json()["events"];
  ASSERT_FALSE(events.empty());
  for (const auto& event : events) EXPECT_EQ(event["resources"], nlohmann::json({"bus"}));
}

// Who has the bus first is not said.
TEST(CheckVerb, ABarePlacementIsNoPlanWhereCallsShareResources) {
  const Folder folder;
  const std::string problem = calls_on_one_bus(folder);
  const std::string plan = folder.write("plan.json", R"({"placewright": "plan", "version": 1,
    "placement": {"p": "acc0", "q": "acc1"}})");
  const auto result = run({"check", plan, "--problem", problem});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("call-missing: the plan states no calls"));
}

// As a plan that is written by hand may be.
std::string without_offsets(const Folder& folder, const std::string& path) {
  auto plan = nlohmann::json::parse(std::ifstream(path));
  for (auto& stage : plan["stages"]) stage.erase("offset");
  for (const char* key : {"value", "gap", "lower_bound"}) plan.erase(key);
  plan["status"] = "feasible";
  return folder.write("by-hand.json", plan.dump());
}

TEST(SimulateVerb, StagesThatStateNoOffsetsTakeTurnsAsCheckCountsThem) {
  const Folder folder;
  const std::string plan = without_offsets(folder, pipeline_on_two_cores(folder));
  EXPECT_THAT(run({"check", plan}).out, HasSubstr("valid: throughput 3"));
  const std::string drawn = run({"simulate", plan, "--gantt", "--width", "41"}).out;
  EXPECT_THAT(drawn, HasSubstr("both     |....................[stage 2=]|"));
  EXPECT_THAT(drawn, HasSubstr("core 0   |[stage 1===========][stage 2=]|"));
  const auto turns = run({"explain", plan, "--planner", "topo", "--json"}).json()["taking_turns"];
  EXPECT_EQ(turns["stages"][1]["offset"], 2);
}

TEST(SimulateVerb, SaysWhenStagesHoldWhichCores) {
  const Folder folder;
  const std::string plan = pipeline_on_two_cores(folder);
  EXPECT_THAT(run({"simulate", plan}).out, HasSubstr("cores 0-1"));
  const auto stages = run({"simulate", plan, "--json"}).json()["stages"];
  EXPECT_EQ(stages[1]["offset"], 2);
  EXPECT_EQ(stages[1]["resources"], nlohmann::json({"core 0", "core 1"}));
}

TEST(SimulateVerb, SaysWhichCoresOpsHold) {
  const Folder folder;
  const std::string plan = plan_on_two_cores(folder, "latency");
  const std::string text = run({"simulate", plan}).out;
  EXPECT_THAT(text, ContainsRegex("what +holds\n"));
  EXPECT_THAT(text, ContainsRegex("0 +2 +a +op +p +core 0\n"));
  EXPECT_THAT(text, ContainsRegex("2 +3 +both +op +q +cores 0-1\n"));
  const auto events = run({"simulate", plan, "--json"}).json()["events"];
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1]["resources"], nlohmann::json({"core 0", "core 1"}));
  EXPECT_EQ(events[1]["amounts"], nlohmann::json({1, 1}));
  EXPECT_EQ(events[2]["resources"], nlohmann::json({"core 1"}));
}

TEST(SimulateVerb, WhereNothingIsSharedNothingIsHeld) {
  const Folder folder;
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run({"plan", kExample1, "--planner", "topo", "-o", plan}).exit_code, 0);
  EXPECT_THAT(run({"simulate", plan}).out, Not(HasSubstr("holds")));
  EXPECT_FALSE(run({"simulate", plan, "--json"}).json()["events"][0].contains("resources"));
}

// Half of what a device takes of 132, which is 66; what takes no time and what travels hold
// nothing.
TEST(SimulateVerb, SaysHowMuchOfAResourceOpsHold) {
  const Folder folder;
  const std::string problem = folder.write("problem.json", R"({
    "placewright": "problem", "version": 2, "name": "streams",
    "kinds": [{"name": "stream"}, {"name": "core"}],
    "resources": [{"name": "multiprocessors", "capacity": 132}], "spaces": [{"name": "hbm"}],
    "devices": [{"name": "s", "kind": "stream", "space": "hbm",
                 "uses": [{"resource": "multiprocessors", "amount": 132}]},
                {"name": "cpu", "kind": "core"}],
    "interconnect": {"kind": "links", "all": {"latency": 1, "bandwidth": 1}},
    "ops": [{"name": "p", "time": [2, null], "share": [0.5, 1]}, {"name": "q", "time": [0, null]},
            {"name": "r", "time": [1, null]}, {"name": "t", "time": [null, 1]}],
    "tensors": [{"from": "p", "to": ["q"]}, {"from": "q", "to": ["r"]}, {"from": "r", "to": ["t"]}]})");
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run({"plan", problem, "-o", plan}).exit_code, 0);
  const std::string text = run({"simulate", plan}).out;
  EXPECT_THAT(text, ContainsRegex("op +p +multiprocessors \\(66 of 132\\)\n"));
  EXPECT_THAT(text, ContainsRegex("op +r +multiprocessors\n"));
  const auto simulated = run({"simulate", plan, "--json"}).json();
  for (const auto& event : simulated["events"]) {
    const bool holds = event["what"] == "p" || event["what"] == "r";
    EXPECT_EQ(event["resources"].empty(), !holds || event["kind"] == "transfer") << event;
    if (event["what"] == "p") {
      EXPECT_EQ(event["amounts"], nlohmann::json({66}));
    }
  }
}

// b has one op; its core is also that of the set of both.
TEST(SimulateVerb, SaysHowLongEachCoreIsHeld) {
  const Folder folder;
  const std::string plan = pipeline_on_two_cores(folder);
  EXPECT_THAT(run({"simulate", plan}).out, ContainsRegex("core 1 +2 +66.7 %"));
  const auto resources = run({"simulate", plan, "--json"}).json()["resources"];
  ASSERT_EQ(resources.size(), 2U);
  EXPECT_EQ(resources[0]["load"], 3);
  EXPECT_EQ(resources[0]["utilisation"], 1);
  EXPECT_EQ(resources[1]["load"], 2);
  const std::string alone = folder.file("alone.json");
  ASSERT_EQ(run({"plan", kExample1, "--planner", "topo", "-o", alone}).exit_code, 0);
  EXPECT_FALSE(run({"simulate", alone, "--json"}).json().contains("resources"));
}

TEST(InfoVerb, ListsWhatDevicesShare) {
  const Folder folder;
  pipeline_on_two_cores(folder);
  const std::string problem = folder.file("problem.json");
  EXPECT_THAT(run({"info", problem}).out, ContainsRegex("core 1 +1 +2 devices"));
  const auto resources = run({"info", problem, "--json"}).json()["resources"];
  EXPECT_EQ(resources[1]["devices"], nlohmann::json({"both", "b"}));
}

TEST(ExportVerb, TheTableSaysWhenStagesHoldTheirCores) {
  const Folder folder;
  const std::string csv = run({"export", pipeline_on_two_cores(folder), "--to", "csv"}).out;
  EXPECT_THAT(csv, HasSubstr("stage,2,,both,,2,3,1,,1"));
}

// Slices of a core's track do not overlap: stages that take turns need one track.
TEST(ExportVerb, TheTraceHasATrackForEachCore) {
  const Folder folder;
  const auto trace = run({"export", pipeline_on_two_cores(folder), "--to", "trace"}).json();
  std::vector<std::string> tracks;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") tracks.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(tracks, ::testing::IsSupersetOf({"a", "both", "b", "core 0", "core 1"}));
  EXPECT_EQ(tracks.size(), 5U) << "a second track of a core";
}

TEST(ExplainVerb, SaysWhichStagesTakeTurns) {
  const Folder folder;
  const std::string plan = pipeline_on_two_cores(folder);
  EXPECT_THAT(run({"explain", plan, "--planner", "topo"}).out,
              HasSubstr("2 stages that take turns on core 0, 3 of a period of 3"));
  const auto turns = run({"explain", plan, "--planner", "topo", "--json"}).json()["taking_turns"];
  EXPECT_EQ(turns["resources"], nlohmann::json({"core 0"}));
  EXPECT_EQ(turns["stages"].size(), 2U);
  EXPECT_EQ(turns["stages"][1]["offset"], 2);
}

TEST(SimulateVerb, ShowsLoadsOfPipelinesAndCalls) {
  const Folder folder;
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run({"plan", kBert, "-o", plan}).exit_code, 0);
  EXPECT_THAT(run({"simulate", plan}).out, HasSubstr("load"));
  EXPECT_THAT(run({"simulate", plan, "--gantt"}).out, HasSubstr("acc0"));
  EXPECT_TRUE(run({"simulate", plan, "--json"}).json().contains("stages"));
  ASSERT_EQ(run({"plan", example_path("msr/latency/LayerGraphs/bert24_inference.json"),
                 "--objective", "call-latency", "-o", plan})
                .exit_code,
            0);
  EXPECT_THAT(run({"simulate", plan}).out, HasSubstr("call "));
  EXPECT_EQ(run({"simulate", plan, "--json"}).json()["events"][0]["kind"], "call");
}

TEST(ImportVerb, ChangesARuleOnlyWhenAsked) {
  const auto rules = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"import", kExample1, "-o", "-"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return run(arguments).json().value("rules", nlohmann::json::object());
  };
  EXPECT_TRUE(rules({}).value("congestion", true));
  EXPECT_TRUE(rules({"--congestion"}).value("congestion", true));
  EXPECT_FALSE(rules({"--no-congestion"}).value("congestion", true));
  EXPECT_EQ(rules({"--memory", "peak"})["memory"], "peak");
  EXPECT_EQ(rules({"--schedule", "interleaved"})["schedule"], "interleaved");
  EXPECT_EQ(rules({"--schedule", "gpipe", "--micro-batches", "8"})["micro_batches"], 8);
  EXPECT_EQ(rules({"--contiguity", "per-device"})["contiguity"], "per-device");
  EXPECT_EQ(rules({"--calls", "3", "--transfers", "duplex"})["transfers"], "duplex");
}

TEST(ImportVerb, ConvertsToOurFormat) {
  const Folder folder;
  const std::string path = folder.file("problem.json");
  ASSERT_EQ(run({"import", kGoogLeNet, "-o", path}).exit_code, 0);
  const auto before = run({"info", kGoogLeNet, "--json"}).json();
  const auto after = run({"info", path, "--json"}).json();
  EXPECT_EQ(before["format"], "moirai");
  EXPECT_EQ(after["format"], "placewright");
  for (const char* key : {"ops", "edges", "depth", "memory_needed", "bounds", "devices"}) {
    EXPECT_EQ(before[key], after[key]) << key;
  }
}

TEST(InfoVerb, TellsSizesAndBounds) {
  const auto result = run({"info", kExample1});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("level width"));
  EXPECT_THAT(result.out, HasSubstr("44 bytes"));
  const auto json = run({"info", kExample1, "--json"}).json();
  EXPECT_EQ(json["ops"], 14);
  EXPECT_EQ(json["devices"].size(), 3U);
  EXPECT_GE(json["bounds"].size(), 2U);
  EXPECT_EQ(json["digest"].get<std::string>().size(), 64U);
}

TEST(PlannersVerb, ListsTheRegistry) {
  const auto result = run({"planners"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("auto"));
  bool has_options = false;
  for (const auto& planner : run({"planners", "--json"}).json()) {
    for (const char* key : {"name", "summary", "objectives", "role", "strength", "options"}) {
      EXPECT_TRUE(planner.contains(key)) << key;
    }
    has_options |= !planner["options"].empty();
  }
  EXPECT_TRUE(has_options);
}

TEST(PlannersVerb, ListsOursFirstAndEachRoleTogether) {
  std::vector<std::string> roles;
  for (const auto& planner : run({"planners", "--json"}).json()) {
    if (roles.empty() || roles.back() != planner["role"]) roles.push_back(planner["role"]);
  }
  EXPECT_EQ(roles, std::vector<std::string>({"own", "yardstick", "published", "imitation"}));
}

}  // namespace
}  // namespace placewright::testing
