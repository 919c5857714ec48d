// Ctrl-C on large problems: every verb that plans ends soon.
//
// "Soon" is generous, since other work may have the machine: a verb that does not ask whether to stop
// runs for the whole of its limit, which is far longer.

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/program.h"

namespace placewright::testing {
namespace {

constexpr std::chrono::seconds kSoon{60};

void expect_end_soon(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--time-limit", "10m", "--quiet"});
  RunningProgram program(arguments);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const auto interrupted = std::chrono::steady_clock::now();
  program.send(SIGINT);
  program.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - interrupted, kSoon) << arguments.front();
}

void expect_all_end_soon(const std::vector<std::string>& sizes) {
  const Folder folder;
  const std::string problem = folder.file("problem.json");
  const std::string plan = folder.file("plan.json");
  std::vector<std::string> generate = {"generate", "layered", "--objective",
                                       "latency",  "-o",      problem};
  generate.insert(generate.end(), sizes.begin(), sizes.end());
  ASSERT_EQ(run(generate).exit_code, 0);
  ASSERT_EQ(run({"plan", problem, "--planner", "topo", "-o", plan}).exit_code, 0);
  for (const char* verb : {"plan", "compare"}) expect_end_soon({verb, problem});
  expect_end_soon({"whatif", problem, "--bandwidth", "0.5,1,2"});
  expect_end_soon({"explain", plan});
}

TEST(LargeInterruption, OfTwentyThousandOps) {
  expect_all_end_soon({"--ops", "20000", "--devices", "16"});
}

TEST(LargeInterruption, OfAThousandDevices) {
  expect_all_end_soon({"--ops", "200", "--devices", "1024", "--kinds", "1024"});
}

}  // namespace
}  // namespace placewright::testing
