// Options that may be given again, each time with one value.

#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace placewright::cli {

// `type`: what help calls the value.
CLI::Option* add_repeated(CLI::App& verb, const std::string& option,
                          std::vector<std::string>& values, const std::string& type,
                          const std::string& help);

}  // namespace placewright::cli
