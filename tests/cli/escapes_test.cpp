// Names from files may hold characters on which a terminal acts: escape sequences, a bell, marks
// that turn the direction of text. None of them is printed, by any verb, in any message.

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/printable.h"
#include "support/folder.h"
#include "support/locations.h"
#include "support/program.h"

namespace placewright::testing {
namespace {

const std::string kProblem = source_path("tests/data/cases/escape-names.json");
const std::string kEvil =
    "\x1b]0;title\x07 \xc2\x9b"  // ESC, BEL, CSI in one character
    "31m \xe2\x80\xae gnp";      // right-to-left override

// What `printable` leaves alone is harmless; line feeds and tabs are layout of our own.
std::string without_layout(std::string text) {
  for (char& character : text) {
    if (character == '\n' || character == '\t') character = ' ';
  }
  return text;
}

void expect_harmless(const std::string& text, const std::string& what) {
  const std::string flat = without_layout(text);
  const std::string safe = printable(flat);
  if (flat == safe) return;
  const auto at = static_cast<std::size_t>(
      std::mismatch(flat.begin(), flat.end(), safe.begin(), safe.end()).first - flat.begin());
  ADD_FAILURE() << what << " prints byte " << static_cast<int>(flat[at] & 0xFF) << " after: "
                << printable(flat.substr(at > 40 ? at - 40 : 0, std::min<std::size_t>(at, 40)));
}

ProgramResult run_harmlessly(const std::vector<std::string>& arguments,
                             const std::string& input = "") {
  const auto result = run(arguments, input);
  std::string command;
  for (const std::string& word : arguments) command += printable(word) + ' ';
  expect_harmless(result.out, command + "(stdout)");
  expect_harmless(result.err, command + "(stderr)");
  EXPECT_NE(result.exit_code, 4) << command << result.err;
  return result;
}

class Escapes : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto planned =
        run_harmlessly({"plan", kProblem, "--planner", "heft", "--verbose", "-o", plan_});
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
  }

  Folder folder_;
  std::string plan_ = folder_.file("plan.json");
};

TEST_F(Escapes, OfVerbsThatTakeAProblem) {
  const std::vector<std::string> budget = {"--time-limit", "200ms"};
  for (std::vector<std::string> command :
       {std::vector<std::string>{"plan", kProblem},
        {"plan", kProblem, "--json"},
        {"plan", kProblem, "--objective", "total-completion", "--verbose"},
        {"compare", kProblem, "--planners", "heft,etf,single"},
        {"compare", kProblem, "--planners", "heft", "--json"},
        {"explain", kProblem},
        {"explain", kProblem, "--json"},
        {"whatif", kProblem, "--devices", "1-2", "--csv", "-"},
        {"whatif", kProblem, "--devices", "1-2", "--chart", "-", "--json"}}) {
    command.insert(command.end(), budget.begin(), budget.end());
    EXPECT_EQ(run_harmlessly(command).exit_code, 0) << command[0];
  }
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"info", kProblem},
        {"info", kProblem, "--json"},
        {"affinity", kProblem},
        {"affinity", kProblem, "--json"},
        {"import", kProblem, "-o", "-"},
        {"plan", kProblem, "--planner", "heft", "-o", "-"},
        {"online", kProblem, "--poisson", "3", "--verbose"},
        {"online", kProblem, "--poisson", "3", "--json"}}) {
    EXPECT_EQ(run_harmlessly(command).exit_code, 0) << command[0];
  }
}

TEST_F(Escapes, OfVerbsThatTakeAPlan) {
  const std::string op = "\x1b[31mRED\x1b]0;title\x07";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"check", plan_},
        {"check", plan_, "--json"},
        {"simulate", plan_},
        {"simulate", plan_, "--gantt"},
        {"simulate", plan_, "--json"},
        {"explain", plan_, "--time-limit", "200ms", "--verbose"},
        {"explain", plan_, "--time-limit", "200ms", "--json"},
        {"explain", plan_, "--op", op},
        {"explain", plan_, "--op", op, "--json"},
        {"export", plan_, "--to", "trace"},
        {"export", plan_, "--to", "dot"},
        {"export", plan_, "--to", "model-explorer"},
        {"export", plan_, "--to", "csv"},
        {"export", plan_, "--to", "table"},
        {"report", plan_, "-o", "-"}}) {
    EXPECT_EQ(run_harmlessly(command).exit_code, 0) << command[0];
  }
}

TEST_F(Escapes, OfThroughputPlansToo) {
  const std::string plan = folder_.file("pipeline.json");
  ASSERT_EQ(run_harmlessly({"plan", kProblem, "--objective", "throughput", "--time-limit", "500ms",
                            "-o", plan})
                .exit_code,
            0);
  for (const std::vector<std::string>& command : {std::vector<std::string>{"simulate", plan},
                                                  {"simulate", plan, "--gantt"},
                                                  {"explain", plan, "--time-limit", "200ms"},
                                                  {"export", plan, "--to", "dot"}}) {
    EXPECT_EQ(run_harmlessly(command).exit_code, 0) << command[0];
  }
}

TEST_F(Escapes, OfMessages) {
  const auto problem = run({"import", kProblem, "-o", "-"}).json();
  const auto refused = [&](const nlohmann::json& document) {
    EXPECT_EQ(run_harmlessly({"plan", folder_.write("bad.json", document.dump())}).exit_code, 3);
  };
  auto changed = problem;
  changed["ops"][0]["name"] = kEvil;
  changed["ops"][1]["name"] = kEvil;
  refused(changed);
  changed = problem;
  changed["unit"] = kEvil;
  refused(changed);
  changed = problem;
  changed[kEvil] = 1;  // a warning
  EXPECT_EQ(run_harmlessly({"info", folder_.write("odd.json", changed.dump())}).exit_code, 0);
  run_harmlessly({"plan", kProblem, "--planner", kEvil});
  run_harmlessly({"plan", kProblem, "--pin", kEvil + "=" + kEvil});
  run_harmlessly({"plan", kProblem, "--" + kEvil});
  run_harmlessly({"plan", kProblem, kEvil});
  run_harmlessly({kEvil});
  run_harmlessly({"explain", plan_, "--op", kEvil});
  run_harmlessly({"export", plan_, "--to", kEvil});
  changed = problem;
  for (auto& op : changed["ops"]) op["memory"] = 100;
  for (auto& device : changed["devices"]) device["memory"] = 1;
  const std::string full = folder_.write("full.json", changed.dump());
  EXPECT_EQ(run_harmlessly({"plan", full}).exit_code, 1);
  EXPECT_EQ(run_harmlessly({"compare", full, "--planners", "heft"}).exit_code, 1);
  EXPECT_EQ(run_harmlessly({"explain", full, "--time-limit", "500ms"}).exit_code, 1);
  EXPECT_EQ(run_harmlessly({"info", full}).exit_code, 0);
}

TEST_F(Escapes, OfAPlanThatIsNotValid) {
  auto plan = nlohmann::json::parse(folder_.read("plan.json"));
  plan["value"] = 1e-3;
  const std::string wrong = folder_.write("wrong.json", plan.dump());
  for (const std::vector<std::string>& command : {std::vector<std::string>{"check", wrong},
                                                  {"simulate", wrong},
                                                  {"explain", wrong},
                                                  {"export", wrong, "--to", "dot"},
                                                  {"report", wrong, "-o", "-"}}) {
    EXPECT_EQ(run_harmlessly(command).exit_code, 1) << command[0];
  }
}

TEST_F(Escapes, KeepWhatTheyStandForInJson) {
  std::ifstream stream(kProblem);
  const auto original = nlohmann::json::parse(stream);
  const auto written = run({"import", kProblem, "-o", "-"}).json();
  for (std::size_t i = 0; i < original["ops"].size(); ++i) {
    EXPECT_EQ(written["ops"][i]["name"], original["ops"][i]["name"]);
  }
}

}  // namespace
}  // namespace placewright::testing
