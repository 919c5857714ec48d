#include "cli/terminal.h"

#include <cstdlib>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace placewright::cli {
namespace {

bool stdout_has_colours() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return is_terminal(stdout) && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view{terminal} != "dumb");
}

int escape_code(Colour colour) {
  switch (colour) {
    case Colour::green:
      return 32;
    case Colour::yellow:
      return 33;
    case Colour::red:
      return 31;
    case Colour::bold:
      return 1;
  }
  return 0;
}

}  // namespace

void tell(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1;
}

int terminal_width(std::FILE* stream, int otherwise) {
  winsize size{};
  if (!is_terminal(stream) || ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return otherwise;
  }
  return size.ws_col;
}

std::string coloured(std::string_view text, Colour colour) {
  if (!stdout_has_colours()) return std::string{text};
  return fmt::format("\033[{}m{}\033[0m", escape_code(colour), text);
}

}  // namespace placewright::cli
