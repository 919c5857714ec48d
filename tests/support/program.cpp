#include "support/program.h"

#include <csignal>
#include <stdexcept>

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/locations.h"

namespace placewright::testing {
namespace {

std::string contents(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char buffer[1 << 14];
  for (std::size_t count; (count = std::fread(buffer, 1, sizeof buffer, file)) > 0;) {
    text.append(buffer, count);
  }
  return text;
}

std::FILE* temporary_file() {
  std::FILE* file = std::tmpfile();
  if (file == nullptr) throw std::runtime_error("no temporary file can be made");
  return file;
}

}  // namespace

RunningProgram::RunningProgram(const std::vector<std::string>& arguments, const std::string& input)
    : RunningProgram(program_path(), arguments, input) {}

RunningProgram::RunningProgram(std::string program, const std::vector<std::string>& arguments,
                               const std::string& input)
    : in_(temporary_file()), out_(temporary_file()), err_(temporary_file()) {
  std::fwrite(input.data(), 1, input.size(), in_);
  std::fflush(in_);
  std::rewind(in_);
  std::vector<std::string> words = arguments;
  std::vector<char*> argv = {program.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // Not fork, which copies the page tables of the test.
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_adddup2(&streams, fileno(in_), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&streams, fileno(out_), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&streams, fileno(err_), STDERR_FILENO);
  const int refused =
      posix_spawn(&process_, program.c_str(), &streams, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&streams);
  if (refused != 0) {
    process_ = -1;
    throw std::runtime_error("the program cannot be started");
  }
}

RunningProgram::~RunningProgram() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  for (std::FILE* file : {in_, out_, err_}) std::fclose(file);
}

void RunningProgram::send(int signal) const {
  kill(process_, signal);
}

bool RunningProgram::runs() const {
  siginfo_t ended{};
  return waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0;
}

ProgramResult RunningProgram::wait() {
  int status = 0;
  rusage usage{};
  wait4(process_, &status, 0, &usage);
  process_ = -1;
  ProgramResult result;
  result.peak_kibibytes = usage.ru_maxrss;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = contents(out_);
  result.err = contents(err_);
  return result;
}

ProgramResult run(const std::vector<std::string>& arguments, const std::string& input) {
  return RunningProgram(arguments, input).wait();
}

ProgramResult run_redirected(const std::string& redirection,
                             const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"-c", "exec \"$0\" \"$@\" " + redirection, program_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunningProgram("/bin/sh", words, "").wait();
}

}  // namespace placewright::testing
