// How much a verb prints, and in which form.

#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <nlohmann/json_fwd.hpp>

namespace placewright::cli {

struct OutputOptions {
  bool json = false;
  bool quiet = false;
  bool verbose = false;

  void add_to(CLI::App& verb);
  // "placewright: warning: …" on stderr, unless quiet.
  void warn(const std::vector<std::string>& warnings) const;
};

// An option for a file, or with another `type` a folder, that the verb writes.
CLI::Option* add_written(CLI::App& verb, const std::string& option, std::string& path,
                         const std::string& help, const std::string& type = "FILE");

void print_json(const nlohmann::ordered_json& document);

// JSON has no infinity: what is missing or without limit is null.
nlohmann::ordered_json finite_or_null(double number);

}  // namespace placewright::cli
