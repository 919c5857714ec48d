// Ctrl-C on large problems: every verb that plans ends soon.
//
// "Soon" is generous, and counts the program's own time, of which other work on the machine takes
// nothing. A verb that does not ask whether to stop runs for its whole limit, which is far longer.

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "support/folder.h"
#include "support/program.h"

namespace placewright::testing {
namespace {

constexpr double kSoon = 60;  // seconds of the processor, with the two before the interruption

// Of all programs that this process has waited for.
double processor_seconds() {
  rusage use{};
  getrusage(RUSAGE_CHILDREN, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

void expect_end_soon(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--time-limit", "10m", "--quiet"});
  const double before = processor_seconds();
  RunningProgram program(arguments);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  program.send(SIGINT);
  program.wait();
  EXPECT_LT(processor_seconds() - before, kSoon) << arguments.front();
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
