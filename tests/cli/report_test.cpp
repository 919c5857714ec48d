#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

class ReportVerb : public ::testing::Test {
 protected:
  std::string plan(const std::string& name, const std::string& planner,
                   const std::string& problem = "moirai/example-1.json") {
    const std::string path = folder_.file(name);
    EXPECT_EQ(
        run({"plan", example_path(problem), "--planner", planner, "-q", "-o", path}).exit_code, 0);
    return path;
  }

  Folder folder_;
};

TEST_F(ReportVerb, WritesOnePageAboutSeveralPlans) {
  const std::string heft = plan("heft.json", "heft");
  const std::string etf = plan("etf.json", "etf");
  const auto result = run({"report", heft, etf, "-o", folder_.file("page.html")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("2 plans of 14 ops"), std::string::npos) << result.out;
  const std::string page = folder_.read("page.html");
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_NE(page.find("\"label\":\"heft\""), std::string::npos);
  EXPECT_NE(page.find("\"label\":\"etf\""), std::string::npos);
}

TEST_F(ReportVerb, PlansOfOnePlannerAreToldApartByTheirFiles) {
  const std::string one = plan("one.json", "heft");
  const std::string two = plan("two.json", "heft");
  const auto result = run({"report", one, two, "-o", "-"});
  EXPECT_NE(result.out.find("\"label\":\"heft (one.json)\""), std::string::npos);
  EXPECT_NE(result.out.find("\"label\":\"heft (two.json)\""), std::string::npos);
}

TEST_F(ReportVerb, ShowsOneProblemOnly) {
  const std::string one = plan("one.json", "heft");
  const std::string other = plan("other.json", "heft", "moirai/GoogLeNet.json");
  const auto result = run({"report", one, other, "-o", folder_.file("page.html")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("different problems"), std::string::npos) << result.err;
}

TEST_F(ReportVerb, RefusesAPlanThatIsNotValid) {
  const std::string path = plan("plan.json", "heft");
  std::string text = folder_.read("plan.json");
  const std::size_t at = text.find("\"end\":");
  ASSERT_NE(at, std::string::npos);
  text.insert(text.find_first_of("0123456789", at), "9");
  folder_.write("plan.json", text);
  const auto result = run({"report", path, "-o", folder_.file("page.html")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("not valid"), std::string::npos) << result.err;
  EXPECT_EQ(folder_.file_count(), 1U) << "no page is left behind";
}

// A run of a plan of six_ops with this value.
std::string run_of(double predicted, const std::string& objective, const std::string& device) {
  const std::string time =
      R"({"valid": true, "median": 10, "low": 9, "high": 12, "kept": 5, "rejected": 0})";
  return fmt::format(
      R"({{"placewright": "run", "version": 1, "objective": "{}", "unit": "ms", "predicted": {},
          "measured": {}, "interrupted": false, "models": [],
          "devices": [{{"name": "CPU", "busy": 4}}, {{"name": "{}", "busy": 4}}],
          "segments": [{{"device": "CPU, GPU", "ops": 2, "first_op": "op1", "last_op": "op2",
                         "predicted": 4, "measured": {}}}],
          "timeline": [{{"device": "CPU", "segment": 1, "sample": 0, "start": 0, "end": 5}}],
          "baselines": []}})",
      objective, predicted, time, device, time);
}

TEST_F(ReportVerb, ShowsARunOfOneOfThePlans) {
  const std::string path = plan("plan.json", "single", "talos/six_ops.json");
  const std::string best = plan("best.json", "auto", "talos/six_ops.json");
  const double value = nlohmann::json::parse(folder_.read("best.json"))["value"];
  folder_.write("run.json", run_of(value, "total-completion", "GPU"));
  const auto result = run({"report", "--run", folder_.file("run.json"), path, best, "-o", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::size_t second = result.out.find("\"label\":\"auto\"");
  const std::size_t at = result.out.find("\"run\":{\"measured\":{\"valid\":true,\"median\":10");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(at, second) << "it belongs to the plan with the value that was predicted";
}

TEST_F(ReportVerb, ShowsARunOfEachPlan) {
  const std::string one = plan("one.json", "single", "talos/six_ops.json");
  const std::string best = plan("best.json", "auto", "talos/six_ops.json");
  for (const char* name : {"one", "best"}) {
    const double value = nlohmann::json::parse(folder_.read(fmt::format("{}.json", name)))["value"];
    folder_.write(fmt::format("{}-run.json", name), run_of(value, "total-completion", "GPU"));
  }
  const auto result = run({"report", one, best, "--run", folder_.file("one-run.json"), "--run",
                           folder_.file("best-run.json"), "-o", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find("\"run\":null"), std::string::npos);
}

TEST_F(ReportVerb, PlansForDifferentObjectivesShareAPage) {
  const std::string latency = plan("latency.json", "heft");
  const std::string throughput = folder_.file("throughput.json");
  ASSERT_EQ(run({"plan", example_path("moirai/example-1.json"), "--objective", "throughput", "-q",
                 "--steps", "100", "-o", throughput})
                .exit_code,
            0);
  const auto result = run({"report", latency, throughput, "-o", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("\"objective\":\"latency\""), std::string::npos);
  EXPECT_NE(result.out.find("\"objective\":\"throughput\""), std::string::npos);
}

TEST_F(ReportVerb, RefusesARunOfAnotherPlan) {
  const std::string path = plan("plan.json", "auto", "talos/six_ops.json");
  const double value = nlohmann::json::parse(folder_.read("plan.json"))["value"];
  const auto refused = [&](const std::string& text) {
    folder_.write("run.json", text);
    const auto result =
        run({"report", path, "--run", folder_.file("run.json"), "-o", folder_.file("page.html")});
    EXPECT_EQ(result.exit_code, 3);
    return result.err;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(refused(run_of(value, "latency", "GPU")), HasSubstr("the run was for latency"));
  EXPECT_THAT(refused(run_of(value, "total-completion", "NPU")),
              HasSubstr("the run used the device 'NPU', which the problem does not have"));
  EXPECT_THAT(refused(run_of(value + 1, "total-completion", "GPU")), HasSubstr("the run was of"));
  EXPECT_THAT(refused(folder_.read("plan.json")), HasSubstr("expected a run file"));
  EXPECT_EQ(folder_.file_count(), 2U) << "no page is left behind";
}

}  // namespace
}  // namespace placewright::testing
