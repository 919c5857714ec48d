// Numbers on the command line. Every option that takes a number or a duration is added here, with
// the least and the most that it may be, so that a value outside is refused in one place, with one
// sentence, before any file is opened:
//
//   --threads: expected a whole number from 1 to 1024, found '0'
//
// A value is refused as well if anything follows the digits, if it is empty, and if it is not
// finite. The help shows the range after the option's text.

#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/App.hpp>

namespace placewright::cli {

template <class Number>
concept OptionNumber = std::same_as<Number, int> || std::same_as<Number, std::uint64_t> ||
    std::same_as<Number, double>;

// Both ends belong to it.
template <OptionNumber Number>
struct NumberRange {
  Number least;
  Number most;
};

// Times, sizes and factors: large enough for every use, and small enough that sums and products of
// a few of them stay finite.
inline constexpr double kLargestReal = 1e15;

inline constexpr NumberRange<std::uint64_t> kAnySeed{0, std::numeric_limits<std::uint64_t>::max()};

// The number that `text` is. Throws UsageError, in which `option` names who takes it.
template <OptionNumber Number>
Number parse_number(std::string_view option, std::string_view text, NumberRange<Number> range);

// Adds an option; its default is the variable's value, which the help shows.
template <OptionNumber Number>
CLI::Option* add_number(CLI::App& verb, const std::string& names, Number& value,
                        NumberRange<Number> range, const std::string& help);

// Adds an option without a default: the variable stays empty if the option is not given.
template <OptionNumber Number>
CLI::Option* add_number(CLI::App& verb, const std::string& names, std::optional<Number>& value,
                        NumberRange<Number> range, const std::string& help);

// "10s", "500ms", "2m", "1h", or a number of seconds: more than 0, at most a year. Throws
// UsageError.
double parse_duration(std::string_view option, std::string_view text);

// Adds an option that takes a duration. The variable holds the text, which has been checked.
CLI::Option* add_duration(CLI::App& verb, const std::string& names, std::string& value,
                          const std::string& help);

}  // namespace placewright::cli
