// Wrong command lines: exit code 2, one sentence, a suggestion where there is one.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;

struct WrongUsage {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(Usage, IsExplainedInOneSentence) {
  const std::string problem = example_path("moirai/example-1.json");
  const std::vector<WrongUsage> cases = {
      {{"plna"}, "unknown verb 'plna': did you mean 'plan'?"},
      {{"plan"}, "problem is required"},
      {{"plan", problem, "--plannr", "heft"},
       "unknown option '--plannr': did you mean '--planner'?"},
      {{"check", problem, "more"}, "unexpected argument 'more'"},
      {{"plan", problem, "--planner", "hefd"}, "unknown planner 'hefd': did you mean 'heft'?"},
      {{"plan", problem, "--planner", "random", "--option", "samples"}, "NAME=VALUE"},
      {{"plan", problem, "--planner", "random", "--option", "sample=3"}, "unknown option 'sample'"},
      {{"plan", problem, "--planner", "random", "--option", "samples=x"}, "expected a number"},
      {{"plan", problem, "--planner", "random", "--option", "samples=0"}, "expected 1 to"},
      {{"plan", problem, "--objective", "latncy"}, "did you mean 'latency'?"},
      {{"plan", problem, "--format", "moira"}, "did you mean 'moirai'?"},
      {{"plan", problem, "--contiguity", "full"}, "known: none, joint, per-device"},
      {{"plan", problem, "--transfers", "overlaped"}, "did you mean 'overlapped'?"},
      {{"plan", problem, "--training", "phase"}, "did you mean 'phased'?"},
      {{"plan", problem, "--memory", "peek"}, "did you mean 'peak'?"},
      {{"plan", problem, "--schedule", "gpip"}, "did you mean 'gpipe'?"},
      {{"plan", problem, "--micro-batches", "0"}, "--micro-batches"},
      {{"plan", problem, "--time-limit", "3x"}, "not a duration"},
      {{"plan", problem, "--time-limit", "-1s"}, "not a duration"},
      {{"plan", problem, "--threads", "0"}, "--threads"},
      {{"plan", problem, "--seed", "x"}, "--seed"},
      {{"plan", problem, "--calls", "0"}, "--calls"},
      {{"plan", problem, "--replicas", "0"}, "--replicas"},
      {{"plan", problem, "--pin", "1"}, "OP=DEVICE"},
      {{"plan", problem, "--pin", "1=device9"}, "no device is called 'device9'"},
      {{"plan", problem, "--pin", "nothing=d0"}, "no op is called 'nothing'"},
      {{"plan", problem, "--quiet", "--verbose"}, "excludes"},
      {{"compare", problem, "--planners", "heft,nobody"}, "unknown planner 'nobody'"},
      {{"report", problem}, "required"},
      {{"help", "nothing"}, "unknown verb 'nothing'"},
      {{"help", "pln"}, "unknown verb 'pln': did you mean 'plan'?"},
      {{"nothing", "--help"}, "unknown verb 'nothing'"},
      {{"--help", "chek"}, "unknown verb 'chek': did you mean 'check'?"},
      {{"chek", "-h"}, "did you mean 'check'?"},
      {{"repor", "--version"}, "did you mean 'report'?"},
  };
  for (const WrongUsage& wrong : cases) {
    const auto result = run(wrong.arguments);
    EXPECT_EQ(result.exit_code, 2) << wrong.message;
    EXPECT_THAT(result.err, HasSubstr(wrong.message));
    EXPECT_THAT(result.err, ::testing::StartsWith("placewright: error: "));
    EXPECT_EQ(result.out, "");
  }
}

TEST(Usage, HelpOfAVerbIsThatOfItsFlag) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  const auto help = run({"help", "plan"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.out, run({"plan", "--help"}).out);
  EXPECT_THAT(help.out, HasSubstr("--planner"));
}

TEST(Usage, APlannerThatDoesNotServeTheObjectiveIsRefused) {
  const auto result = run({"plan", example_path("msr/throughput/LayerGraphs/bert24_inference.json"),
                           "--planner", "heft"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("does not serve the objective 'throughput'"));
}

}  // namespace
}  // namespace placewright::testing
