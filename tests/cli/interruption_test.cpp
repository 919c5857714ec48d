// Ctrl-C hands over the best plan so far; a second one ends the program.

#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright::testing {
namespace {

const std::vector<std::string> kLongSearch = {
    "plan",         example_path("moirai/inceptionv4.json"),
    "--planner",    "random",
    "--option",     "samples=1000000000",
    "--time-limit", "10m"};

// Long enough for the program to have installed its handler, also under a sanitizer.
void let_it_start() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
}

TEST(Interruption, GivesTheBestPlanSoFar) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Folder folder;
    const std::string plan = folder.file("plan.json");
    std::vector<std::string> arguments = kLongSearch;
    arguments.insert(arguments.end(), {"--json", "-o", plan});
    RunningProgram program(arguments);
    let_it_start();
    program.send(signal);
    const auto result = program.wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LT(result.json()["seconds"].get<double>(), 60);
    EXPECT_EQ(run({"check", plan}).exit_code, 0);
  }
}

}  // namespace
}  // namespace placewright::testing
