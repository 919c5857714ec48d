// Small inputs that once broke the program, as a user meets them: tests/data/cases.

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/locations.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;

std::string case_path(const std::string& name) {
  return source_path("tests/data/cases/" + name);
}

nlohmann::json planned(const std::string& name, std::vector<std::string> options = {}) {
  std::vector<std::string> arguments = {"plan", case_path(name), "--json"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const auto result = run(arguments);
  EXPECT_EQ(result.exit_code, 0) << name << ": " << result.err;
  return result.exit_code == 0 ? result.json() : nlohmann::json{};
}

// The codes of the violations that `check` lists; empty for a valid plan.
std::vector<std::string> codes_of_check(const std::vector<std::string>& arguments,
                                        const std::string& input = "") {
  std::vector<std::string> all = {"check", "--json"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const auto result = run(all, input);
  EXPECT_LE(result.exit_code, 1) << result.err;
  std::vector<std::string> codes;
  const auto document = result.json();
  for (const auto& violation : document["violations"]) codes.push_back(violation["code"]);
  EXPECT_EQ(result.exit_code == 0, codes.empty());
  return codes;
}

nlohmann::json document_of(const std::string& name) {
  return nlohmann::json::parse(read_whole(case_path(name)));
}

// check-lb-above-value.json with the problem inside and its statements changed.
std::string changed_statement(const std::string& key, const nlohmann::json& value) {
  auto plan = document_of("check-lb-above-value.json");
  plan["problem"] = {{"embedded", document_of("check-lb-problem.json")}};
  plan.update({{"lower_bound", 6}, {"gap", 1 - 6.0 / 7}, {"status", "feasible"}});
  plan[key] = value;
  return plan.dump();
}

TEST(CheckOfStatements, RefusesABoundAboveTheValueInEveryVerbThatReadsPlans) {
  const std::string plan = case_path("check-lb-above-value.json");
  EXPECT_THAT(codes_of_check({plan}), ::testing::Contains("bound-above-value"));
  const Folder folder;
  const auto reported = run({"report", plan, "-o", folder.file("page.html")});
  EXPECT_EQ(reported.exit_code, 1);
  EXPECT_THAT(reported.err, HasSubstr("lower bound 700"));
  for (const char* verb : {"simulate", "explain"}) EXPECT_EQ(run({verb, plan}).exit_code, 1);
}

TEST(CheckOfStatements, GapStatusValueAndLoadFitTheValue) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  EXPECT_THAT(codes_of_check({"-"}, changed_statement("lower_bound", 6)), IsEmpty());
  EXPECT_THAT(codes_of_check({"-"}, changed_statement("gap", 0.1)), ElementsAre("gap-wrong"));
  EXPECT_THAT(codes_of_check({"-"}, changed_statement("gap", 1 - 6.0 / 7 + 1e-7)),
              ElementsAre("gap-wrong"));
  EXPECT_THAT(codes_of_check({"-"}, changed_statement("lower_bound", nullptr)),
              ElementsAre("bound-above-value"));
  for (const char* status : {"optimal", "unknown", "infeasible"}) {
    EXPECT_THAT(codes_of_check({"-"}, changed_statement("status", status)),
                ElementsAre("status-wrong"))
        << status;
  }
  EXPECT_THAT(codes_of_check({"-"}, changed_statement("value", 7 * (1 + 1e-7))),
              ::testing::Contains("value-wrong"));
  EXPECT_THAT(codes_of_check({"-"}, changed_statement("value", 7 * (1 + 1e-10))), IsEmpty());
}

TEST(CheckOfStatements, APlanMayLeaveOutBoundGapAndLoads) {
  auto plan = nlohmann::json::parse(changed_statement("lower_bound", 6));
  plan.erase("gap");
  EXPECT_TRUE(codes_of_check({"-"}, plan.dump()).empty());
  plan.erase("lower_bound");
  EXPECT_TRUE(codes_of_check({"-"}, plan.dump()).empty());
  plan["status"] = "optimal";  // says who?
  EXPECT_THAT(codes_of_check({"-"}, plan.dump()), ::testing::ElementsAre("status-wrong"));
  EXPECT_TRUE(codes_of_check({case_path("stage-no-load.json")}).empty());
}

TEST(CheckOfRules, ABarePlanKeepsTheRulesOfItsProblem) {
  const std::string plan = case_path("rules-peak-bare-plan.json");
  EXPECT_THAT(codes_of_check({plan}), ::testing::ElementsAre("peak-memory-exceeded"));
  EXPECT_THAT(codes_of_check({plan, "--problem", case_path("rules-peak.json")}),
              ::testing::ElementsAre("peak-memory-exceeded"));
  EXPECT_TRUE(codes_of_check({plan, "--memory", "resident"}).empty());
}

TEST(CheckOfRules, APlanMadeUnderOtherRulesThanItsProblemsSaysSo) {
  const Folder folder;
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(
      run({"plan", case_path("rules-peak.json"), "--memory", "resident", "-o", plan}).exit_code, 0);
  EXPECT_TRUE(codes_of_check({plan}).empty());
}

// The plans charge a receive to an op that is not the first by topological rank, as
// docs/semantics.md defines it: o4 is listed before o3, which also waits for o2.
TEST(CheckOfRules, ReceivesCountForTheConsumerOfSmallestTopologicalRank) {
  for (const char* name : {"topological-rank-latency.json", "topological-rank-total.json"}) {
    EXPECT_THAT(codes_of_check({case_path(name)}), ::testing::Each("op-duration-wrong")) << name;
  }
  auto plan = document_of("topological-rank-latency.json");
  auto& ops = plan["schedule"]["ops"];
  ops[3]["end"] = 1.2e-05;  // one of the two receives, that of the tensor of o1, is o4's
  ops[4]["start"] = 1.2e-05;
  EXPECT_TRUE(codes_of_check({"-"}, plan.dump()).empty());
}

// Latency is the latest end of an op, so that a model without ops has no part in a bound.
TEST(Bounds, LeaveOutModelsWithoutOps) {
  const auto plan = planned("false-optimal-empty-model.json", {"--planner", "priority"});
  EXPECT_EQ(plan["value"], 5);
  EXPECT_EQ(plan["lower_bound"], 2);
  EXPECT_EQ(plan["status"], "feasible");
  EXPECT_EQ(planned("false-optimal-empty-model.json")["value"], 2);
  EXPECT_EQ(planned("empty-model-arrival.json")["value"], 1);
}

TEST(Numbers, TooLargeOnesAreRefusedWithTheirPlace) {
  const auto result = run({"plan", case_path("1e308.json")});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("/ops/0"));
  EXPECT_THAT(result.err, HasSubstr("expected a number from 0 to 1e+100"));
}

TEST(Numbers, TheLargestOnesArePlanned) {
  const Folder folder;
  auto problem = document_of("1e308.json");
  for (auto& op : problem["ops"]) op["time"] = {1e100, 1e100};
  const std::string path = folder.write("large.json", problem.dump());
  for (const char* planner : {"auto", "search", "etf", "decompose", "getf"}) {
    const auto result =
        run({"plan", path, "--planner", planner, "--time-limit", "500ms", "--json"});
    ASSERT_EQ(result.exit_code, 0) << planner << ": " << result.err;
    EXPECT_DOUBLE_EQ(result.json()["value"].get<double>(), 2e100) << planner;
  }
}

TEST(Numbers, LanesBeyondTheNumberOfOpsTakeNoMemory) {
  for (const char* planner : {"auto", "heft", "etf", "search", "decompose", "cpsat", "getf"}) {
    EXPECT_EQ(planned("lanesbig.json", {"--planner", planner, "--time-limit", "500ms"})["value"], 3)
        << planner;
  }
}

TEST(Numbers, TimesThatDifferByNineDecadesEnd) {
  EXPECT_DOUBLE_EQ(
      planned("decompose-hang.json", {"--planner", "decompose", "--time-limit", "200ms"})["value"]
          .get<double>(),
      123456789.3 + 0.1);
  EXPECT_EQ(planned("decompose-hang-full.json", {"--time-limit", "1s"})["status"], "optimal");
}

// The work of a planner must not grow with the square of the devices for each of them: this would
// take minutes, far beyond the limit of the test.
TEST(Numbers, ManyDevicesAreNoReasonToForgetTheLimit) {
  const Folder folder;
  nlohmann::json problem = document_of("lanesbig.json");
  problem["devices"] = nlohmann::json::array();
  for (int i = 0; i < 2048; ++i) {
    problem["devices"].push_back({{"name", fmt::format("d{}", i)}, {"kind", "a"}});
  }
  const std::string path = folder.write("devices.json", problem.dump());
  const auto result = run({"plan", path, "--time-limit", "1s", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["value"], 3);
}

TEST(Auto, SolvesTinyProblemsUnderRulesThatFewPlannersKnow) {
  const auto peak = planned("peak-unlimited-3ops.json");
  EXPECT_EQ(peak["value"], 6);
  EXPECT_EQ(peak["status"], "optimal");
  const auto replicas = planned("replicas-noncontiguous.json");
  EXPECT_DOUBLE_EQ(replicas["value"].get<double>(), (890655988848.831 + 1037069545.1365275) / 2);
  EXPECT_EQ(replicas["status"], "optimal");
  const auto calls = planned("calls2-colocate.json");
  EXPECT_NEAR(calls["value"].get<double>(), 6.16e-6, 1e-8);
  EXPECT_EQ(calls["status"], "optimal");
}

// The limit is over before the first member has begun; quick and exact ones run all the same.
TEST(Auto, SolvesTinyProblemsWhateverTheClockSays) {
  for (const char* name : {"auto-gap-lat.json", "auto-gap-thr.json"}) {
    const auto optimum = planned(name, {"--time-limit", "20s"});
    EXPECT_EQ(optimum["status"], "optimal") << name;
    const auto plan = planned(name, {"--time-limit", "1ms"});
    EXPECT_DOUBLE_EQ(plan["value"].get<double>(), optimum["value"].get<double>()) << name;
  }
}

// A presolve rule of HiGHS made a start look optimal that was 47 and 8 % above the optimum.
TEST(Programs, PresolveKeepsTheBestPlacement) {
  const auto free = planned("presolve-free.json", {"--planner", "ip"});
  EXPECT_EQ(free["status"], "optimal");
  EXPECT_NEAR(free["value"].get<double>(), 19.691091332442568, 1e-9);
  const auto contiguous = planned("presolve-contiguous.json", {"--planner", "ip-contiguous"});
  EXPECT_EQ(contiguous["status"], "optimal");
  EXPECT_NEAR(contiguous["value"].get<double>(), 8.485692078524078, 1e-9);
}

// HiGHS, told of the best contiguous plan, proved that it is the best of all: 0.9 % too much.
TEST(Programs, NoPlanInHandHidesABetterOne) {
  const auto plan = planned("presolve-start.json", {"--planner", "ip"});
  EXPECT_EQ(plan["status"], "optimal");
  EXPECT_NEAR(plan["value"].get<double>(), 11.924403385995996, 1e-9);
}

// Orders with the same prefixes, whose sums are rounded differently: a stage had no op.
TEST(Ideals, NoStageIsEmpty) {
  const auto plan = planned("shared-prefixes.json", {"--planner", "ideals"});
  EXPECT_EQ(plan["status"], "optimal");
  EXPECT_NEAR(plan["value"].get<double>(), 25.4353101754555, 1e-9);
}

// A model of weight 0 that cannot be completed: 0 times infinity is no number.
TEST(Weights, AModelThatDoesNotCountNeedsItsLinksAllTheSame) {
  const auto plans_or_says_why = [](const std::string& name, const std::string& planner) {
    const auto result =
        run({"plan", case_path(name), "--planner", planner, "--time-limit", "1s", "--json"});
    EXPECT_LE(result.exit_code, 1) << name << ", " << planner << ": " << result.err;
    return result.exit_code <= 1 ? result.json() : nlohmann::json{};
  };
  for (const char* name :
       {"topo-wrong-plan-min.json", "topo-wrong-plan.json", "w0-topo.json", "w0-proportional.json",
        "w0-memory-first.json", "w0-priority.json", "w0-search.json"}) {
    for (const char* planner :
         {"topo", "proportional", "memory-first", "priority", "search", "heft", "etf", "auto"}) {
      plans_or_says_why(name, planner);
    }
  }
  EXPECT_EQ(plans_or_says_why("topo-wrong-plan-min.json", "auto")["status"], "optimal");
}

TEST(Weights, WhereLinksAreMissingMemoryIsNotToBlame) {
  const auto result =
      run({"plan", case_path("w0-search.json"), "--planner", "search", "--time-limit", "2s"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("has all the links that it needs"));
  EXPECT_THAT(result.err, ::testing::Not(HasSubstr("memory")));
}

TEST(Json, NothingMayFollowTheDocument) {
  const auto result = run({"info", case_path("nul-then-garbage.json")});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("is not JSON: it holds a NUL byte"));
}

nlohmann::json idle_trace(std::size_t arrivals) {
  nlohmann::json trace = {{"placewright", "trace"}, {"version", 1}};
  trace["models"] = {example_path("talos/two_chains.json")};
  for (std::size_t i = 0; i < arrivals; ++i) {
    trace["arrivals"].push_back(
        {{"model", i % 2 == 0 ? "first" : "second"}, {"time", 1000000 * i}});
  }
  return trace;
}

// As online-2000-idle.json: it took the square of the arrivals, 40 s and 1.2 GB.
TEST(Online, DoesNotGrowWithAllArrivalsEver) {
  const Folder folder;
  const auto result =
      run({"online", folder.write("trace.json", idle_trace(2000).dump()), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
#ifndef __SANITIZE_ADDRESS__  // which keeps what is freed
  EXPECT_LT(result.peak_kibibytes, 100L << 10U);
#endif
  const auto document = result.json();
  for (const auto& method : document["methods"]) {
    ASSERT_EQ(method["models"].size(), 2000U);
    if (method["method"] == "aswm") continue;  // takes whatever device has been free for longest
    for (std::size_t i = 2; i < 2000; ++i) {   // each has the machine to itself
      EXPECT_NEAR(
          method["models"][i]["completion"].get<double>() - 1e6 * static_cast<double>(i),
          method["models"][i % 2]["completion"].get<double>() - 1e6 * static_cast<double>(i % 2),
          1e-3);
    }
  }
}

TEST(Online, AnswersWhenEveryArrivalIsCancelledBeforeItRuns) {
  const Folder folder;
  auto trace = document_of("online-all-cancelled.json");
  trace["models"] = {example_path("talos/two_chains.json")};
  const auto result = run({"online", folder.write("trace.json", trace.dump()), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace placewright::testing
