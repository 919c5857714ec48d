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
                            "--memory-pressure", "0.5", "-o", "-"});
  EXPECT_EQ(printed.out, folder.read("x.json"));
  const auto plan = run({"plan", path, "--planner", "heft", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(plan.json()["placement"].size(), 100U);
}

TEST(GenerateVerb, ContradictionsAreWrongUsage) {
  EXPECT_EQ(run({"generate", "layred", "-o", "-"}).exit_code, 2);
  EXPECT_EQ(run({"generate", "chain", "--edges", "500", "-o", "-"}).exit_code, 2);
  EXPECT_EQ(run({"generate", "chain", "--objective", "call-latency", "-o", "-"}).exit_code, 2);
  EXPECT_EQ(run({"generate", "chain", "--ops", "0", "-o", "-"}).exit_code, 2);
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
