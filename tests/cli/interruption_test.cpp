// Ctrl-C hands over what there is; a second one ends the program.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cache_folder.h"
#include "support/folder.h"
#include "support/locations.h"
#include "support/program.h"
#include "support/published.h"
#include "zoo/zoo.h"

namespace placewright::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const std::vector<std::string> kLongSearch = {
    "plan",         example_path("moirai/inceptionv4.json"),
    "--planner",    "random",
    "--option",     "samples=1000000000",
    "--time-limit", "10m"};

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

bool has_ended(pid_t process) {
  siginfo_t info = {};
  waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_pid == process;
}

// A process that has ended is in none. Throws if that was to be waited for.
void wait_while_in_set(bool present, pid_t process, const std::string& set, int signal) {
  while (in_signal_set(process, set, signal) == present) {
    if (!present && has_ended(process)) throw std::runtime_error("the program has ended");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// Until the program has installed its handler, and then so long that it is amid its search.
void let_it_search(pid_t process, int signal) {
  wait_while_in_set(false, process, "SigCgt", signal);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}

TEST(Interruption, GivesTheBestPlanSoFar) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Folder folder;
    const std::string plan = folder.file("plan.json");
    std::vector<std::string> arguments = kLongSearch;
    arguments.insert(arguments.end(), {"--json", "-o", plan});
    RunningProgram program(arguments);
    let_it_search(program.process(), signal);
    program.send(signal);
    const auto result = program.wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(run({"check", plan}).exit_code, 0);
  }
}

// The exit code after two signals. Some milliseconds after the first one the program ends by
// itself, with 0: then the second one came too late, and it is tried again.
int exit_code_after(int first, int second) {
  constexpr int kAttempts = 50;
  int code = 0;
  for (int attempt = 0; attempt < kAttempts && code == 0; ++attempt) {
    RunningProgram program(kLongSearch);
    wait_while_in_set(false, program.process(), "SigCgt", first);
    program.send(first);
    wait_while_in_set(true, program.process(), "ShdPnd", first);
    program.send(second);
    code = program.wait().exit_code;
  }
  return code;
}

// Which of two different ones is handled first is up to the system.
TEST(Interruption, TheSecondSignalEndsTheProgramAtOnce) {
  EXPECT_EQ(exit_code_after(SIGINT, SIGINT), 128 + SIGINT);
  EXPECT_EQ(exit_code_after(SIGTERM, SIGTERM), 128 + SIGTERM);
  EXPECT_THAT(exit_code_after(SIGINT, SIGTERM), AnyOf(128 + SIGINT, 128 + SIGTERM));
}

TEST(Interruption, WhileAModelIsMeasuredTheAnswerIsNo) {
  const Folder folder;
  const CacheFolder cache;
  const std::string model = make_zoo_model("tiny-branches", folder.file("")).xml;
  for (const std::string verb : {"plan", "tune"}) {
    const std::string plan = folder.file("plan.json");
    RunningProgram program({verb, model, "-o", plan});
    wait_while_in_set(false, program.process(), "SigCgt", SIGINT);
    program.send(SIGINT);
    const auto result = program.wait();
    EXPECT_EQ(result.exit_code, 1) << verb << ": " << result.err;
    EXPECT_EQ(result.err, "placewright: interrupted while the model was measured\n");
    EXPECT_FALSE(std::filesystem::exists(plan));
  }
}

// What `run --trace` printed of endless runs. Before every method had run once it prints nothing:
// then it is tried again, for longer.
std::string runs_until_interrupted(const std::string& trace, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", "--trace", trace, "--repeat", "1000000"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  for (std::chrono::milliseconds time{250}; time < std::chrono::minutes(1); time *= 2) {
    RunningProgram program(arguments);
    wait_while_in_set(false, program.process(), "SigCgt", SIGINT);
    std::this_thread::sleep_for(time);
    program.send(SIGINT);
    const auto result = program.wait();
    if (!result.out.empty()) return result.out;
    EXPECT_EQ(result.err, "placewright: interrupted before every method had run once\n");
  }
  return {};
}

TEST(Interruption, OfArrivalsSaysThatOutputsWereNotCompared) {
  const Folder folder;
  const std::string model = make_zoo_model("tiny-pair", folder.file("")).xml;
  ASSERT_EQ(run({"import", model, "-o", folder.file("pair.json"), "-q"}).exit_code, 0);
  const std::string trace =
      folder.write("trace.json", R"({"placewright": "trace", "version": 1, "models": ["pair.json"],
                                     "arrivals": [{"model": "tiny-pair", "time": 0}]})");
  EXPECT_THAT(runs_until_interrupted(trace, {}), HasSubstr("\noutputs: not compared\n"));
  const auto document = nlohmann::json::parse(runs_until_interrupted(trace, {"--json"}));
  EXPECT_TRUE(document.contains("methods"));
  EXPECT_FALSE(document.contains("outputs"));
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
