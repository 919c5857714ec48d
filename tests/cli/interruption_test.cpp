// Ctrl-C hands over the best plan so far; a second one ends the program.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/folder.h"
#include "support/locations.h"
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
    EXPECT_EQ(run({"check", plan}).exit_code, 0);
  }
}

// Whether the signal is in one of the sets that Linux shows of a process: those it catches
// ("SigCgt"), ignores ("SigIgn"), or has been sent and not yet seen ("ShdPnd").
bool in_signal_set(pid_t process, const std::string& set, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string name; status >> name;) {
    if (name != set + ":") continue;
    std::uint64_t bits = 0;
    status >> std::hex >> bits;
    return (bits >> (signal - 1) & 1U) != 0;
  }
  return false;
}

void wait_while_in_set(bool present, pid_t process, const std::string& set, int signal) {
  while (in_signal_set(process, set, signal) == present) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

TEST(Interruption, TheSecondSignalEndsTheProgramAtOnce) {
  for (const auto& [first, second] :
       {std::pair{SIGINT, SIGINT}, {SIGINT, SIGTERM}, {SIGTERM, SIGTERM}}) {
    RunningProgram program(kLongSearch);
    wait_while_in_set(false, program.process(), "SigCgt", first);
    program.send(first);
    wait_while_in_set(true, program.process(), "ShdPnd", first);
    program.send(second);
    EXPECT_EQ(program.wait().exit_code, 128 + second);
  }
}

// A program that writes its plan into a pipe too small for it, so that it lives on after planning
// until someone reads.
class BlockedWriter {
 public:
  BlockedWriter() {
    if (pipe(ends_) != 0) throw std::runtime_error("no pipe can be made");
    fcntl(ends_[1], F_SETPIPE_SZ, 4096);
    process_ = fork();
    if (process_ != 0) return;
    std::signal(SIGINT, SIG_IGN);
    dup2(ends_[1], STDOUT_FILENO);
    const std::string program = program_path();
    const std::string problem = example_path("moirai/inceptionv4.json");
    execl(program.c_str(), "placewright", "plan", problem.c_str(), "--planner", "topo", "-o", "-",
          nullptr);
    _exit(127);
  }
  ~BlockedWriter() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    for (const int end : ends_) close(end);
  }
  BlockedWriter(const BlockedWriter&) = delete;
  BlockedWriter& operator=(const BlockedWriter&) = delete;

  void wait_for_output() const {
    char first = 0;
    if (read(ends_[0], &first, 1) != 1) throw std::runtime_error("nothing was written");
  }
  [[nodiscard]] pid_t process() const { return process_; }

 private:
  int ends_[2] = {-1, -1};
  pid_t process_ = -1;
};

// As for a job that a shell has started in the background: it is not to hear of Ctrl-C.
TEST(Interruption, AfterPlanningSignalsAreHandledAsBefore) {
  const BlockedWriter program;
  program.wait_for_output();
  EXPECT_TRUE(in_signal_set(program.process(), "SigIgn", SIGINT));
  EXPECT_FALSE(in_signal_set(program.process(), "SigCgt", SIGINT));
  EXPECT_FALSE(in_signal_set(program.process(), "SigCgt", SIGTERM));
}

}  // namespace
}  // namespace placewright::testing
