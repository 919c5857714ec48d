#include "report/report_page.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "analysis/generate.h"
#include "evaluate/placement_plan.h"
#include "support/random_plan.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

ReportedPlan some_plan(const Problem& problem, std::uint64_t seed = 1) {
  testing::RandomSource random(seed);
  ReportedPlan reported{"plan " + std::to_string(seed), {}, &problem};
  reported.file.plan = *plan_of_placement(problem, testing::random_placement(problem, random));
  reported.file.planner = "some";
  reported.file.certificate = {reported.file.plan.value / 2, "half of it"};
  return reported;
}

// What a browser's parser of HTML takes for the content of the script element with the data.
std::string data_in(const std::string& page) {
  const std::string opening = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(opening) + opening.size();
  return page.substr(begin, page.find('<', begin) - begin);
}

TEST(ReportPage, HoldsTheDataWhateverTheNamesAre) {
  ProblemDraft draft = testing::random_draft({.ops = 8}, 1);
  const std::vector<std::string> names = {"</script><script>alert(1)</script>",
                                          "<!-- <script>",
                                          "\"quoted\" 'twice' \\ back",
                                          "two\nlines\r\tand a tab",
                                          "Слой 机器学习 طبقة 🚀",
                                          std::string(10000, 'x'),
                                          "& &lt; &#60;",
                                          std::string("\x01\x7f null", 7)};
  for (std::size_t i = 0; i < names.size(); ++i) draft.ops[i].name = names[i];
  draft.name = "<b>problem</b>";
  draft.cluster.devices[0].name = "<img src=x onerror=alert(1)>";
  const Problem problem(std::move(draft));
  const std::vector<ReportedPlan> plans{some_plan(problem)};
  const auto data = nlohmann::json::parse(data_in(report_page(plans)));
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(data["ops"]["name"][i], names[i]);
  EXPECT_EQ(data["devices"][0]["name"], problem.device(DeviceId{0}).name);
}

TEST(ReportPage, NamesThatAreNotUtf8DoNotStopIt) {
  ProblemDraft draft = testing::random_draft({.ops = 3}, 1);
  draft.ops[0].name = "\xff\xfe";
  const Problem problem(std::move(draft));
  EXPECT_NO_THROW(report_page(std::vector{some_plan(problem)}));
}

// Of two models the one with the larger share of the value decides, not the one that ends last: the
// page marks the path that `explain` prints.
TEST(ReportPage, ItsCriticalPathIsThatOfTheDecidingModel) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  draft.cluster.kinds = {{.name = "k"}};
  draft.cluster.devices = {{.name = "d0", .kind = KindId{0}}, {.name = "d1", .kind = KindId{0}}};
  draft.models = {{.name = "heavy", .weight = 10}, {.name = "long", .weight = 1}};
  draft.ops = {{.name = "heavy op", .model = ModelId{0}, .time = {2}},
               {.name = "long op", .model = ModelId{1}, .time = {5}}};
  const Problem problem(std::move(draft));
  Placement placement(2, DeviceId{0});
  placement[OpId{1}] = DeviceId{1};
  ReportedPlan reported{"plan", {}, &problem};
  reported.file.plan = *plan_of_placement(problem, placement);
  const auto data = nlohmann::json::parse(report_data(std::vector{reported}));
  EXPECT_EQ(data["plans"][0]["critical"], nlohmann::json::parse(R"([["op", 0, "first"]])"));
}

TEST(ReportPage, FetchesNothing) {
  const std::string page(page_template());
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  for (const char* address : {"src=\"http", "href=\"http", "url(http", "@import", "src=\"/"}) {
    EXPECT_EQ(page.find(address), std::string::npos) << address;
  }
}

TEST(ReportPage, OfAThousandOpsIsBelowThreeMegabytes) {
  for (const GraphFamily family : values_of<GraphFamily>()) {
    GenerateOptions options;
    options.family = family;
    options.ops = 1000;
    const Problem problem(generate(options));
    EXPECT_LT(report_page(std::vector{some_plan(problem)}).size(), 3'000'000U) << name_of(family);
  }
}

TEST(ReportPage, ShowsEveryObjective) {
  for (const Objective objective : {Objective::latency, Objective::total_completion,
                                    Objective::throughput, Objective::call_latency}) {
    const Problem problem(testing::random_draft(
        {.objective = objective, .interconnect = InterconnectKind::host, .ops = 9, .devices = 3},
        7));
    ReportedPlan reported{"one device", {}, &problem};
    reported.file.plan = *plan_of_placement(problem, Placement(problem.op_count(), DeviceId{0}));
    const auto data = nlohmann::json::parse(report_data(std::vector{reported}));
    EXPECT_EQ(data["plans"][0]["objective"], name_of(objective));
    EXPECT_EQ(data["plans"][0]["value"], reported.file.plan.value);
    EXPECT_EQ(data["plans"][0]["devices"].size(), problem.device_count());
    EXPECT_EQ(data["plans"][0].contains("start"), objective != Objective::throughput);
  }
}

}  // namespace
}  // namespace placewright
