#include "cli/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/terminal.h"

namespace placewright::cli {

std::string value_text(double value, TimeUnit unit) {
  if (std::isinf(value)) return "-";
  if (unit == TimeUnit::none) return fmt::format("{:.6g}", value);
  return fmt::format("{} {}", number_text(value), name_of(unit));
}

std::string number_text(double number) {
  return std::abs(number) >= 9999.5 ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
}

std::string percent_text(double fraction) {
  if (std::isinf(fraction)) return "-";
  const double percent = 100 * fraction;
  return fmt::format("{:.{}f} %", percent, percent != 0 && std::abs(percent) < 0.1 ? 4 : 1);
}

std::string duration_text(double seconds) {
  if (seconds < 0.0995) return fmt::format("{:.2g} ms", 1000 * seconds);
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", 1000 * seconds);
  if (seconds < 60) return fmt::format("{:.3g} s", seconds);
  const int whole = static_cast<int>(seconds);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string rate_text(std::uint64_t steps, double seconds) {
  if (steps == 0 || seconds <= 0) return "";
  const double rate = static_cast<double>(steps) / seconds;
  if (rate >= 1e6) return fmt::format("{:.3g}M steps/s", rate / 1e6);
  if (rate >= 1e3) return fmt::format("{:.3g}k steps/s", rate / 1e3);
  return fmt::format("{:.3g} steps/s", rate);
}

std::size_t display_width(std::string_view text) {
  // Continuation bytes of UTF-8 have the form 10xxxxxx.
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string status_text(Status status) {
  switch (status) {
    case Status::optimal:
      return coloured(name_of(status), Colour::green);
    case Status::feasible:
      return coloured(name_of(status), Colour::yellow);
    case Status::infeasible:
    case Status::unknown:
      return coloured(name_of(status), Colour::red);
  }
  return {};
}

}  // namespace placewright::cli
