// Numbers on the command line: every option that takes one refuses what is outside its range, with
// one sentence that names the option, before any file is opened.

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct ValueOption {
  std::string verb;
  std::string name;  // "--threads"
  std::string type;  // "NUMBER"
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> all_verbs() {
  std::vector<std::string> verbs;
  bool listed = false;
  const std::regex verb("  ([a-z]+)  .*");
  for (const std::string& line : lines_of(run({"--help"}).out)) {
    if (line.starts_with("Verbs")) listed = true;
    std::smatch match;
    if (listed && std::regex_match(line, match, verb)) verbs.push_back(match[1]);
  }
  return verbs;
}

// Every option that takes a value, as the program's own help lists it.
std::vector<ValueOption> all_value_options() {
  std::vector<ValueOption> options;
  const std::regex option("  (?:-[a-z],)?(--[a-z-]+) ([^ =]+).*");
  for (const std::string& verb : all_verbs()) {
    for (const std::string& line : lines_of(run({verb, "--help"}).out)) {
      std::smatch match;
      if (std::regex_match(line, match, option)) options.push_back({verb, match[1], match[2]});
    }
  }
  return options;
}

std::vector<ValueOption> options_of_type(const std::string& type) {
  std::vector<ValueOption> chosen;
  for (const ValueOption& option : all_value_options()) {
    if (option.type == type) chosen.push_back(option);
  }
  return chosen;
}

void expect_refused(const ValueOption& option, const std::string& value) {
  const std::string argument = option.verb == "generate" ? "chain" : "file";
  const auto result = run({option.verb, option.name, value, argument});
  EXPECT_EQ(result.exit_code, 2) << option.verb << ' ' << option.name << " '" << value << "'";
  EXPECT_THAT(result.err, StartsWith("placewright: error: " + option.name + ": ")) << option.verb;
  EXPECT_EQ(result.out, "");
}

const std::vector<std::string> kHostile = {"nan",  "inf", "-1", "1e308", "", "99999999999999999999",
                                           "0x10", "7 ",  " 7", "7x"};

TEST(NumberOptions, TakeOnlyWhatIsInTheirRange) {
  const auto options = options_of_type("NUMBER");
  EXPECT_GT(options.size(), 50U) << "the help was not understood";
  for (const ValueOption& option : options) {
    for (const std::string& value : kHostile) expect_refused(option, value);
  }
}

TEST(NumberOptions, OfDurationsToo) {
  const auto options = options_of_type("DURATION");
  EXPECT_GE(options.size(), 6U);
  for (const ValueOption& option : options) {
    for (const std::string& value : kHostile) expect_refused(option, value);
    for (const char* value : {"0s", "-1s", "3x", "1e9h", "s"}) expect_refused(option, value);
  }
}

TEST(NumberOptions, OfGridsToo) {
  const auto options = options_of_type("VALUES");
  EXPECT_EQ(options.size(), 5U);
  for (const ValueOption& option : options) {
    for (const char* value : {"nan", "inf", "-1", "0", "1e308", "1,,2", "1-99999999999", "1,x"}) {
      expect_refused(option, value);
    }
  }
}

// CLI11's names for options that it converts itself, which knows no range.
TEST(NumberOptions, AreAllAddedInTheOnePlaceThatChecksThem) {
  for (const ValueOption& option : all_value_options()) {
    EXPECT_THAT(option.type, ::testing::Not(::testing::AnyOf(
                                 StartsWith("INT"), StartsWith("UINT"), StartsWith("FLOAT"),
                                 StartsWith("COUNT"), StartsWith("TIME"), StartsWith("PERCENT"))))
        << option.verb << ' ' << option.name;
  }
}

TEST(NumberOptions, OfPlannersHaveBoundsAsWell) {
  const std::string problem = example_path("moirai/example-1.json");
  const auto planners = run({"planners", "--json"}).json();
  std::size_t seen = 0;
  for (const auto& planner : planners) {
    for (const auto& option : planner["options"]) {
      if (!option["default"].is_number()) continue;
      ++seen;
      const std::string name = option["name"];
      for (const char* value : {"nan", "inf", "1e308", "", "99999999999999999999"}) {
        const auto result = run({"plan", problem, "--planner", planner["name"], "--option",
                                 name + "=" + value, "--time-limit", "1ms"});
        EXPECT_EQ(result.exit_code, 2) << planner["name"] << ' ' << name << '=' << value << '\n'
                                       << result.err;
      }
    }
  }
  EXPECT_GT(seen, 10U);
}

TEST(NumberOptions, SayWhatIsExpected) {
  EXPECT_THAT(run({"plan", "file", "--threads", "0"}).err,
              HasSubstr("--threads: expected a whole number from 1 to 1024, found '0'"));
  EXPECT_THAT(run({"plan", "file", "--seed", "-1"}).err,
              HasSubstr("--seed: expected a whole number of at least 0, found '-1'"));
  EXPECT_THAT(run({"explain", "file", "--step", "nan"}).err,
              HasSubstr("--step: expected a number from 0.001 to 1000000, found 'nan'"));
}

TEST(NumberOptions, SeedsUseAllTheirBits) {
  const auto result = run({"plan", example_path("moirai/example-1.json"), "--planner", "random",
                           "--seed", "18446744073709551615", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(NumberOptions, WhatGenerateMakesCanBeRead) {
  // As many devices joined by links: number_option_full.cpp.
  const auto made = run(
      {"generate", "chain", "--ops", "2", "--accelerators", "1024", "--cores", "1024", "-o", "-"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(run({"info", "-"}, made.out).exit_code, 0);
  EXPECT_EQ(run({"generate", "chain", "--devices", "2049", "-o", "-"}).exit_code, 2);
  const auto together =
      run({"generate", "chain", "--accelerators", "2000", "--cores", "49", "-o", "-"});
  EXPECT_EQ(together.exit_code, 2);
  EXPECT_THAT(together.err, HasSubstr("2048"));
}

TEST(NumberOptions, MoreArrivalsThanAMillionAreRefused) {
  const auto result =
      run({"online", example_path("talos/two_chains.json"), "--poisson", "1000001", "--gap", "1"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("--poisson"));
}

}  // namespace
}  // namespace placewright::testing
