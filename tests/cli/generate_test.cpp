#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright {
namespace {

using testing::example_path;
using testing::Folder;
using testing::run;

TEST(GenerateVerb, WritesTheSameBytesForTheSameSeedAndAPlannerTakesThem) {
  const Folder folder;
  const std::string path = folder.file("x.json");
  const auto made = run({"generate", "layered", "--ops", "100", "--devices", "4", "--seed", "7",
                         "--memory-pressure", "0.5", "-o", path});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto printed = run({"generate", "layered", "--ops", "100", "--devices", "4", "--seed", "7",
                            "--memory-pressure", "0.5"});
  EXPECT_EQ(printed.out, folder.read("x.json"));
  const auto plan = run({"plan", path, "--planner", "heft", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(plan.json()["placement"].size(), 100U);
}

TEST(GenerateVerb, ContradictionsAreWrongUsage) {
  EXPECT_EQ(run({"generate", "layred", "-o", "-"}).exit_code, 2);
  EXPECT_EQ(run({"generate", "chain", "--edges", "500", "-o", "-"}).exit_code, 2);
  EXPECT_EQ(run({"generate", "chain", "--objective", "call-latency", "-o", "-"}).exit_code, 2);
  const auto shared =
      run({"generate", "chain", "--objective", "call-latency", "--shared-cores", "4"});
  EXPECT_EQ(shared.exit_code, 2);
  EXPECT_NE(shared.err.find("sets of cores are not"), std::string::npos) << shared.err;
  EXPECT_EQ(run({"generate", "chain", "--ops", "0", "-o", "-"}).exit_code, 2);
}

TEST(GenerateVerb, NumbersThatWouldBeIgnoredAreWrongUsage) {
  for (const std::string cluster : {"--accelerators", "--cores", "--shared-cores"}) {
    for (const std::string ignored : {"--devices", "--kinds"}) {
      const auto result = run({"generate", "chain", cluster, "4", ignored, "2"});
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_NE(result.err.find(ignored + " excludes " + cluster), std::string::npos) << result.err;
    }
  }
}

// With streams and nested sets there are more devices than the flags' numbers, and files of more
// are not read.
TEST(GenerateVerb, MoreDevicesThanAreReadAreWrongUsage) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--accelerators", "1024", "--streams", "3"},
        {"--devices", "700", "--streams", "3"},
        {"--shared-cores", "1025"}}) {
    std::vector<std::string> arguments = {"generate", "chain", "--ops", "4"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const auto result = run(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("the most is 2048"), std::string::npos) << result.err;
  }
}

TEST(GenerateVerb, PlansOfSocketsAndStreamsPassTheCheck) {
  const Folder folder;
  const std::string problem = folder.file("problem.json");
  const std::string plan = folder.file("plan.json");
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--shared-cores", "8", "--sockets", "2"},
        {"--devices", "2", "--streams", "3"},
        {"--accelerators", "1", "--streams", "4", "--shared-cores", "4"},
        {"--accelerators", "2", "--streams", "2", "--objective", "call-latency"}}) {
    std::vector<std::string> arguments = {"generate", "layered", "--ops", "20", "-o", problem};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    ASSERT_EQ(run(arguments).exit_code, 0);
    ASSERT_EQ(run({"plan", problem, "--planner", "random", "-o", plan}).exit_code, 0);
    const auto checked = run({"check", plan});
    EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  }
}

TEST(CoarsenFlag, IsReportedAndKeptInThePlanFile) {
  const Folder folder;
  const std::string path = folder.file("plan.json");
  const auto plan = run({"plan", example_path("moirai/GoogLeNet.json"), "--planner", "heft",
                         "--coarsen", "chains", "--json", "-o", path});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const auto document = plan.json();
  EXPECT_EQ(document["coarsening"]["method"], "chains");
  EXPECT_LT(document["coarsening"]["ops_after"], document["coarsening"]["ops_before"]);
  EXPECT_EQ(run({"check", path}).exit_code, 0);
  EXPECT_NE(folder.read("plan.json").find("\"coarsen\": \"chains\""), std::string::npos);
  EXPECT_EQ(run({"plan", example_path("moirai/GoogLeNet.json"), "--coarsen", "chain"}).exit_code,
            2);
  EXPECT_EQ(run({"plan", example_path("moirai/GoogLeNet.json"), "--pack-below", "soon"}).exit_code,
            2);
}

TEST(SimulateVerb, TellsPeakMemory) {
  const Folder folder;
  const std::string path = folder.file("plan.json");
  ASSERT_EQ(
      run({"plan", example_path("moirai/GoogLeNet.json"), "--planner", "heft", "-o", path, "-q"})
          .exit_code,
      0);
  const auto document = run({"simulate", path, "--json"}).json();
  ASSERT_EQ(document["use"].size(), document["devices"].size());
  for (const auto& device : document["use"]) {
    EXPECT_GE(device["peak_memory"].get<double>(), device["resident"].get<double>());
  }
}

}  // namespace
}  // namespace placewright
