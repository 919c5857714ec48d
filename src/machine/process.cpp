#include "machine/process.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace placewright {
namespace {

using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// Without a name, gone when it is closed.
Stream scratch() {
  Stream stream(std::tmpfile(), std::fclose);
  if (!stream) throw std::system_error(errno, std::generic_category(), "a temporary file");
  return stream;
}

std::string content_of(std::FILE* stream) {
  std::string text;
  std::rewind(stream);
  std::array<char, 4096> piece{};
  for (std::size_t read = 0; (read = std::fread(piece.data(), 1, piece.size(), stream)) > 0;) {
    text.append(piece.data(), read);
  }
  return text;
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& words) {
  const Stream out = scratch();
  const Stream errors = scratch();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(out.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(errors.get()), STDERR_FILENO);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, words.front().c_str(), &actions, nullptr,
                                  pointers_to(words).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::system_error(failed, std::generic_category(), words.front());
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  ProcessResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = content_of(out.get());
  result.errors = content_of(errors.get());
  return result;
}

void become_process(const std::vector<std::string>& words) {
  execvp(words.front().c_str(), pointers_to(words).data());
  throw std::system_error(errno, std::generic_category(), words.front());
}

}  // namespace placewright
