#include <gtest/gtest.h>

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

}  // namespace
}  // namespace placewright::testing
