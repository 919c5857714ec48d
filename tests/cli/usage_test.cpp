// Wrong command lines: exit code 2, one sentence, a suggestion where there is one.

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

TEST(Usage, WhatTrainingFilesDoNotKnowIsRefused) {
  const Folder folder;
  const std::string problem = folder.file("cluster.json");
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run({"import", example_path("sailor"), "--format", "sailor", "--model", "OPT-350",
                 "--batch", "512", "--node", "GH-96=2", "-o", problem, "-q"})
                .exit_code,
            0);
  ASSERT_EQ(run({"plan", problem, "--time-limit", "1s", "--embed", "-o", plan, "-q"}).exit_code, 0);
  const std::string some_problem = example_path("moirai/example-1.json");
  const std::string of_plan = " means nothing for a training plan";
  const std::string of_problem = " means nothing for a training problem";
  const std::vector<WrongUsage> cases = {
      {{"plan", problem, "--planner", "heft"}, "--planner" + of_problem},
      {{"plan", problem, "--objective", "latency"}, "--objective" + of_problem},
      {{"plan", problem, "--cluster", some_problem}, "--cluster" + of_problem},
      {{"plan", problem, "--no-congestion"}, "--no-congestion" + of_problem},
      {{"plan", problem, "--coarsen", "fusion"}, "--coarsen" + of_problem},
      {{"plan", problem, "--start", plan}, "--start" + of_problem},
      {{"plan", problem, "--seed", "1"},
       "--seed means nothing for a training problem; 'plan' takes --time-limit, --output, --embed"},
      {{"plan", problem, some_problem}, "cannot be read beside a training problem"},
      {{"whatif", problem, "--devices", "1-2"}, "--devices" + of_problem},
      {{"whatif", problem, "--steps", "2"}, "--steps" + of_problem},
      {{"check", plan, "--problem", some_problem}, "--problem" + of_plan},
      {{"simulate", plan, "--gantt"}, "--gantt" + of_plan},
      {{"simulate", plan, "--width", "80"}, "--width" + of_plan},
      {{"export", plan, "--to", "vllm", "--memory", "peak"}, "--memory" + of_plan},
  };
  for (const WrongUsage& wrong : cases) {
    const auto result = run(wrong.arguments);
    EXPECT_EQ(result.exit_code, 2) << wrong.message;
    EXPECT_THAT(result.err, HasSubstr(wrong.message));
    EXPECT_EQ(result.out, "");
  }
  for (const char* verb : {"check", "simulate"}) {
    EXPECT_EQ(run({verb, plan, "-v"}).exit_code, 0) << verb;
  }
}

TEST(Usage, HelpOfAVerbIsThatOfItsFlag) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  const auto help = run({"help", "plan"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.out, run({"plan", "--help"}).out);
  EXPECT_THAT(help.out, HasSubstr("--planner"));
}

TEST(Usage, QuietPrintsOnlyWhatWasAskedFor) {
  const std::string problem = example_path("moirai/example-1.json");
  const std::vector<std::vector<std::string>> verbs = {{"planners"},
                                                       {"zoo", "list"},
                                                       {"info", problem},
                                                       {"affinity", problem, problem},
                                                       {"devices"},
                                                       {"plan", problem, "--planner", "heft"},
                                                       {"devices", "--catalogue"}};
  for (std::vector<std::string> words : verbs) {
    words.emplace_back("-q");
    const auto quiet = run(words);
    EXPECT_EQ(quiet.exit_code, 0) << words[0];
    EXPECT_EQ(quiet.out + quiet.err, "") << words[0];
    words.emplace_back("--json");
    EXPECT_FALSE(run(words).json().empty()) << words[0];
  }
}

TEST(Usage, APlannerThatDoesNotServeTheObjectiveIsRefused) {
  const auto result = run({"plan", example_path("msr/throughput/LayerGraphs/bert24_inference.json"),
                           "--planner", "heft"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("does not support the objective 'throughput'"));
}

}  // namespace
}  // namespace placewright::testing
