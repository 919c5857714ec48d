#include "cli/number_option.h"

#include <charconv>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

#include "cli/exit_code.h"

namespace placewright::cli {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kLongestDuration = 365 * 24 * kSecondsPerHour;

// "1 to 1024"; "at least 1" if only the type bounds it.
template <class Number>
std::string text_of(NumberRange<Number> range) {
  if (range.most == std::numeric_limits<Number>::max()) {
    return fmt::format("at least {}", range.least);
  }
  return fmt::format("{} to {}", range.least, range.most);
}

template <class Number>
std::string expectation(NumberRange<Number> range) {
  const std::string_view what = std::is_integral_v<Number> ? "a whole number" : "a number";
  const bool bounded = range.most != std::numeric_limits<Number>::max();
  return fmt::format("{} {}{}", what, bounded ? "from " : "of ", text_of(range));
}

double seconds_per(std::string_view unit) {
  if (unit.empty() || unit == "s") return 1;
  if (unit == "ms") return 1e-3;
  if (unit == "m") return 60;
  if (unit == "h") return kSecondsPerHour;
  return std::numeric_limits<double>::quiet_NaN();
}

// What follows the dashes is the same in every message, also for an option with a short name.
std::string long_name(const std::string& names) {
  return names.substr(names.find("--"));
}

// `assign` receives the text of the value and throws UsageError.
template <class Assign>
CLI::Option* add_checked(CLI::App& verb, const std::string& names, const std::string& help,
                         const char* type, Assign assign) {
  return verb
      .add_option(names,
                  CLI::callback_t([option = long_name(names), assign](const CLI::results_t& words) {
                    assign(option, words.front());
                    return true;
                  }),
                  help)
      ->type_name(type);
}

template <class Number, class Variable>
CLI::Option* add_ranged(CLI::App& verb, const std::string& names, Variable& value,
                        NumberRange<Number> range, const std::string& help) {
  return add_checked(verb, names, fmt::format("{}; {}", help, text_of(range)), "NUMBER",
                     [&value, range](const std::string& option, const std::string& text) {
                       value = parse_number(option, text, range);
                     });
}

}  // namespace

template <OptionNumber Number>
Number parse_number(std::string_view option, std::string_view text, NumberRange<Number> range) {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  // The comparisons are false for NaN.
  const bool inside = number >= range.least && number <= range.most;
  if (error != std::errc{} || rest != end || !inside) {
    throw UsageError(fmt::format("{}: expected {}, found '{}'", option, expectation(range), text));
  }
  return number;
}

template <OptionNumber Number>
CLI::Option* add_number(CLI::App& verb, const std::string& names, Number& value,
                        NumberRange<Number> range, const std::string& help) {
  return add_ranged(verb, names, value, range, help)->default_str(fmt::format("{}", value));
}

template <OptionNumber Number>
CLI::Option* add_number(CLI::App& verb, const std::string& names, std::optional<Number>& value,
                        NumberRange<Number> range, const std::string& help) {
  return add_ranged(verb, names, value, range, help);
}

#define PLACEWRIGHT_NUMBER_OPTIONS(Number)                                                      \
  template Number parse_number(std::string_view, std::string_view, NumberRange<Number>);        \
  template CLI::Option* add_number(CLI::App&, const std::string&, Number&, NumberRange<Number>, \
                                   const std::string&);                                         \
  template CLI::Option* add_number(CLI::App&, const std::string&, std::optional<Number>&,       \
                                   NumberRange<Number>, const std::string&);
PLACEWRIGHT_NUMBER_OPTIONS(int)
PLACEWRIGHT_NUMBER_OPTIONS(std::uint64_t)
PLACEWRIGHT_NUMBER_OPTIONS(double)
#undef PLACEWRIGHT_NUMBER_OPTIONS

double parse_duration(std::string_view option, std::string_view text) {
  double amount = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, amount);
  const double seconds =
      amount * seconds_per(std::string_view{rest, static_cast<std::size_t>(end - rest)});
  if (error != std::errc{} || !(seconds > 0) || !(seconds <= kLongestDuration)) {
    throw UsageError(fmt::format(
        "{}: '{}' is not a duration: expected a number above 0 and a unit, such as 500ms, 10s, 2m "
        "or 1h, at most {:.0f}h",
        option, text, kLongestDuration / kSecondsPerHour));
  }
  return seconds;
}

CLI::Option* add_duration(CLI::App& verb, const std::string& names, std::string& value,
                          const std::string& help) {
  return add_checked(verb, names, help, "DURATION",
                     [&value](const std::string& option, const std::string& text) {
                       static_cast<void>(parse_duration(option, text));
                       value = text;
                     })
      ->default_str(value);
}

}  // namespace placewright::cli
