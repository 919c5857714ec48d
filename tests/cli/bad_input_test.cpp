// Bad files: exit code 3 and one sentence that names the file and the place in it; and answers that
// are no: exit code 1.

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;

const std::string kExample1 = example_path("moirai/example-1.json");

// A small valid problem in our own format, as a place to put mistakes into.
nlohmann::json small_problem() {
  return nlohmann::json::parse(R"({
    "placewright": "problem", "version": 1, "name": "small", "unit": "ms", "objective": "latency",
    "kinds": [{"name": "big"}, {"name": "little"}],
    "devices": [{"name": "d0", "kind": "big", "memory": 10},
                {"name": "d1", "kind": "little", "memory": 10}],
    "interconnect": {"kind": "links",
                     "links": [{"from": "d0", "to": "d1", "latency": 1},
                               {"from": "d1", "to": "d0", "latency": 1}]},
    "models": [{"name": "m"}],
    "ops": [{"name": "a", "memory": 1, "time": [1, 2]},
            {"name": "b", "memory": 1, "time": [1, 2]},
            {"name": "c", "memory": 1, "time": [1, 2]}],
    "tensors": [{"from": "a", "to": ["b"], "bytes": 1}, {"from": "b", "to": ["c"], "bytes": 1}]
  })");
}

class BadInput : public ::testing::Test {
 protected:
  void expect_text_refused(const std::string& text, const std::string& message,
                           const std::string& place = "") {
    const std::string path = folder_.write("problem.json", text);
    const auto result = run({"plan", path, "-o", folder_.file("plan.json")});
    EXPECT_EQ(result.exit_code, 3) << message << "\n" << result.out << result.err;
    EXPECT_THAT(result.err, ::testing::StartsWith("placewright: error: " + path + ": " + place));
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(folder_.file_count(), 1U) << "something was left behind";
  }
  void expect_refused(const nlohmann::json& json, const std::string& message,
                      const std::string& place = "") {
    expect_text_refused(json.dump(), message, place);
  }

  Folder folder_;
};

TEST_F(BadInput, TheSmallProblemItselfIsGood) {
  const auto result = run({"plan", folder_.write("problem.json", small_problem().dump())});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(BadInput, ACycleIsNamed) {
  auto problem = small_problem();
  problem["tensors"].push_back({{"from", "c"}, {"to", {"a"}}, {"bytes", 1}});
  expect_refused(problem, "cycle");
}

TEST_F(BadInput, NamesMustBeThereOnce) {
  auto problem = small_problem();
  problem["ops"].push_back(problem["ops"][0]);
  expect_refused(problem, "'a'", "/ops/3");
  problem = small_problem();
  problem["ops"][1].erase("name");
  expect_refused(problem, "name", "/ops/1");
}

TEST_F(BadInput, WhatIsWrongInAClusterFileIsBlamedOnIt) {
  const Folder folder;
  const std::string problem = folder.write("problem.json", small_problem().dump());
  const auto refusal = [&](const char* key, const nlohmann::json& records) {
    nlohmann::json cluster = {{"placewright", "cluster"}, {"version", 2}, {key, records}};
    for (const char* part : {"kinds", "devices", "interconnect"}) {
      cluster[part] = small_problem()[part];
    }
    const auto result =
        run({"plan", problem, "--cluster", folder.write("cluster.json", cluster.dump())});
    EXPECT_EQ(result.exit_code, 3);
    return result.err;
  };
  const auto twins = nlohmann::json::parse(R"([{"name": "twin"}, {"name": "twin"}])");
  const auto nameless = nlohmann::json::parse(R"([{"name": ""}])");
  EXPECT_THAT(refusal("resources", twins), HasSubstr("cluster.json: /resources/1: "));
  EXPECT_THAT(refusal("spaces", twins), HasSubstr("cluster.json: /spaces/1: "));
  EXPECT_THAT(refusal("resources", nameless), HasSubstr("cluster.json: /resources/0: "));
}

TEST_F(BadInput, ATensorNeedsAProducerThatExists) {
  auto problem = small_problem();
  problem["tensors"][0]["from"] = "nobody";
  expect_refused(problem, "nobody", "/tensors/0");
  problem = small_problem();
  problem["tensors"][0].erase("from");
  expect_refused(problem, "from", "/tensors/0");
}

TEST_F(BadInput, NumbersMustMakeSense) {
  auto problem = small_problem();
  problem["ops"][2]["time"][0] = -1;
  expect_refused(problem, "-1", "/ops/2");
  problem = small_problem();
  problem["ops"][2]["memory"] = "much";
  expect_refused(problem, "expected", "/ops/2/memory");
  std::string text = small_problem().dump();
  const std::string number = "\"memory\":10";
  expect_text_refused(std::string(text).replace(text.find(number), number.size(), "\"memory\":NaN"),
                      "");
  expect_text_refused(
      std::string(text).replace(text.find(number), number.size(), "\"memory\":1e999"), "");
}

TEST_F(BadInput, AnOpNeedsADeviceThatSupportsIt) {
  auto problem = small_problem();
  problem["ops"][1]["time"] = {nullptr, nullptr};
  expect_refused(problem, "'b'", "/ops/1");
}

TEST_F(BadInput, WrongTypesAndTruncationAreTold) {
  expect_text_refused(R"([1, 2])", "");
  expect_text_refused(R"("text")", "");
  expect_text_refused("", "");
  expect_text_refused(small_problem().dump().substr(0, 200), "");
  auto problem = small_problem();
  problem["ops"] = 7;
  expect_refused(problem, "expected", "/ops");
  problem = small_problem();
  problem["version"] = 99;
  expect_refused(problem, "version", "/version");
}

TEST_F(BadInput, DeepNestingIsRefusedWithoutACrash) {
  expect_text_refused(std::string(2'000'000, '['), "");
  expect_text_refused("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", "");
}

TEST_F(BadInput, UnknownKeysOfOurFormatAreWarnings) {
  auto problem = small_problem();
  problem["colour"] = "blue";
  const std::string path = folder_.write("problem.json", problem.dump());
  const auto loud = run({"plan", path});
  EXPECT_EQ(loud.exit_code, 0) << loud.err;
  EXPECT_THAT(loud.err, HasSubstr("placewright: warning: "));
  EXPECT_THAT(loud.err, HasSubstr("colour"));
  EXPECT_EQ(run({"plan", path, "--quiet"}).err, "");
}

TEST_F(BadInput, DirectoriesAndMissingFilesAreTold) {
  const auto missing = run({"plan", folder_.file("nothing.json")});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, HasSubstr("nothing.json"));
  const auto directory = run({"plan", folder_.file("")});
  EXPECT_EQ(directory.exit_code, 3);
  EXPECT_THAT(directory.err, HasSubstr("directory"));
}

TEST_F(BadInput, UnreadableFilesAreTold) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const std::string path = folder_.write("problem.json", small_problem().dump());
  chmod(path.c_str(), 0);
  EXPECT_EQ(run({"plan", path}).exit_code, 3);
}

TEST_F(BadInput, AnOutputThatCannotBeWrittenLeavesNothing) {
  const auto nowhere = run({"plan", kExample1, "-o", folder_.file("no/such/plan.json")});
  EXPECT_EQ(nowhere.exit_code, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("no/such/plan.json"));
  EXPECT_EQ(run({"plan", kExample1, "-o", folder_.file("")}).exit_code, 3);
  EXPECT_EQ(folder_.file_count(), 0U);
  EXPECT_EQ(run({"import", kExample1, "-o", "/dev/full"}).exit_code, 3);
}

TEST_F(BadInput, AFailedPlanLeavesTheOldFileAlone) {
  const std::string plan = folder_.write("plan.json", "old");
  auto problem = small_problem();
  problem["ops"][0]["memory"] = 100;
  const std::string path = folder_.write("problem.json", problem.dump());
  EXPECT_EQ(run({"plan", path, "-o", plan}).exit_code, 1);
  EXPECT_EQ(folder_.read("plan.json"), "old");
}

TEST_F(BadInput, MemoryThatCannotFitIsInfeasibleWithTheNumbers) {
  auto problem = small_problem();
  for (auto& op : problem["ops"]) op["memory"] = 9;
  const auto result = run({"plan", folder_.write("problem.json", problem.dump())});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("infeasible: "));
  EXPECT_THAT(result.err, HasSubstr("27 bytes"));
  EXPECT_THAT(result.err, HasSubstr("20 bytes"));
  const auto json = run({"plan", folder_.file("problem.json"), "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(json.json()["status"], "infeasible");
  EXPECT_TRUE(json.json()["value"].is_null());
  EXPECT_EQ(run({"compare", folder_.file("problem.json")}).exit_code, 1);
}

TEST_F(BadInput, APackingThatCannotBeIsInfeasible) {
  auto problem = small_problem();
  for (auto& op : problem["ops"]) op["memory"] = 6;
  const auto result = run({"plan", folder_.write("problem.json", problem.dump()), "--json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.json()["status"], "infeasible") << result.out;
}

TEST_F(BadInput, APlanForAnotherProblemIsRefused) {
  const std::string plan = folder_.file("plan.json");
  ASSERT_EQ(run({"plan", kExample1, "-o", plan}).exit_code, 0);
  const auto result = run({"check", plan, "--problem", example_path("moirai/GoogLeNet.json")});
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_THAT(result.err, HasSubstr(plan));
  EXPECT_EQ(run({"check", kExample1}).exit_code, 3);
}

}  // namespace
}  // namespace placewright::testing
