// Options that take one of a few names. Help shows the names as the option's value
// ("none|joint|per-device"), completion offers them, and the error of a wrong value lists them. For
// an enumeration they come from its own table (problem/spelling.h).

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "problem/spelling.h"

namespace placewright::cli {

// Calls `choose` with one of the names. Any other value is a UsageError.
CLI::Option* add_choice(CLI::App& verb, const std::string& option, std::vector<std::string> names,
                        std::function<void(const std::string&)> choose, const std::string& help);

// Stays empty where the option is not given.
template <Spelled Enum>
CLI::Option* add_choice(CLI::App& verb, const std::string& option, std::optional<Enum>& chosen,
                        const std::string& help) {
  return add_choice(
      verb, option, names_of<Enum>(),
      [&chosen](const std::string& name) { chosen = value_named<Enum>(name); }, help);
}

template <Spelled Enum>
CLI::Option* add_choice(CLI::App& verb, const std::string& option, Enum& chosen,
                        const std::string& help) {
  return add_choice(
             verb, option, names_of<Enum>(),
             [&chosen](const std::string& name) { chosen = *value_named<Enum>(name); }, help)
      ->default_str(std::string{name_of(chosen)});
}

// The names that the option takes; empty if it takes anything else.
std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace placewright::cli
