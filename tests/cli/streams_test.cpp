// Streams that take nothing: stderr or stdout closed, or on a full disk. Messages are lost, work is
// not, and no verb ends in a signal.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;

const std::string kProblem = example_path("moirai/example-1.json");

// As `placewright --help` lists them, and those that it hides.
std::vector<std::string> verbs() {
  std::istringstream help(run({"--help"}).out);
  std::vector<std::string> names = {"man", "completion", "schemas"};
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (listed && !line.starts_with("  ")) break;
    if (listed && line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed = listed || line.starts_with("Verbs");
  }
  return names;
}

TEST(Streams, EveryVerbSurvivesThatItsMessageIsLost) {
  ASSERT_GT(verbs().size(), 20U);
  for (const std::string& verb : verbs()) {
    for (const std::vector<std::string>& rest :
         {std::vector<std::string>{}, {"no-such-file"}, {"--no-such-option"}}) {
      std::vector<std::string> words = {verb};
      words.insert(words.end(), rest.begin(), rest.end());
      const int code = run(words).exit_code;
      EXPECT_LE(code, 4) << verb;
      for (const char* stream : {"2>&-", "2>/dev/full"}) {
        EXPECT_EQ(run_redirected(stream, words).exit_code, code) << verb << ' ' << stream;
      }
    }
  }
}

class LostMessages : public ::testing::TestWithParam<const char*> {
 protected:
  Folder folder_;
  std::string plan_ = folder_.file("plan.json");
};

// Each of these commands has something to say on stderr: a warning of an unknown key.
TEST_P(LostMessages, WorkIsKept) {
  auto document = nlohmann::json::parse(std::ifstream(kProblem));
  document = run({"import", kProblem, "-o", "-"}).json();
  document["nonsense"] = 1;
  const std::string odd = folder_.write("odd.json", document.dump());
  ASSERT_THAT(run({"info", odd}).err, HasSubstr("warning"));
  const auto expect_written = [&](std::vector<std::string> words, const std::string& name) {
    const std::string path = folder_.file(name);
    words.insert(words.end(), {"-o", path});
    const auto result = run_redirected(GetParam(), words);
    EXPECT_EQ(result.exit_code, 0) << words[0];
    EXPECT_GT(folder_.read(name).size(), 100U) << words[0];
    EXPECT_THAT(folder_.read(name), ::testing::Not(HasSubstr("placewright: warning"))) << words[0];
  };
  expect_written({"plan", odd, "--planner", "heft"}, "plan.json");
  expect_written({"import", odd}, "imported.json");
  expect_written({"report", plan_}, "page.html");
  expect_written({"export", plan_, "--to", "csv"}, "plan.csv");
  for (const char* verb : {"check", "simulate", "explain"}) {
    const auto result = run_redirected(GetParam(), {verb, plan_});
    EXPECT_EQ(result.exit_code, 0) << verb;
    EXPECT_NE(result.out, "") << verb;
  }
  for (const char* verb : {"compare", "info", "affinity"}) {
    EXPECT_NE(run_redirected(GetParam(), {verb, odd, "--json"}).json().size(), 0U) << verb;
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, LostMessages, ::testing::Values("2>&-", "2>/dev/full"),
                         [](const auto& each) { return each.index == 0 ? "closed" : "full"; });

TEST(Streams, AnAnswerThatCannotBePrintedIsAnErrorAndFilesAreKept) {
  for (const char* stream : {">&-", ">/dev/full"}) {
    const Folder folder;
    const std::string plan = folder.file("plan.json");
    const auto planned =
        run_redirected(stream, {"plan", kProblem, "--planner", "heft", "-o", plan});
    EXPECT_EQ(planned.exit_code, 3) << stream;
    EXPECT_THAT(planned.err, HasSubstr("standard output: cannot be written"));
    EXPECT_EQ(run({"check", plan}).exit_code, 0) << "the plan was lost";
    for (const std::vector<std::string>& words : {std::vector<std::string>{"check", plan},
                                                  {"--help"},
                                                  {"plan", "--help"},
                                                  {"--version"},
                                                  {"simulate", plan, "--json"},
                                                  {"export", plan, "--to", "csv"}}) {
      const auto result = run_redirected(stream, words);
      EXPECT_EQ(result.exit_code, 3) << stream << ' ' << words[0];
      EXPECT_THAT(result.err, HasSubstr("standard output: cannot be written")) << words[0];
    }
  }
}

TEST(Streams, AClosedStandardInputIsUnreadable) {
  const auto result = run_redirected("<&-", {"info", "-"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("standard input: cannot be read"));
}

}  // namespace
}  // namespace placewright::testing
