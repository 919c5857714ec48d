#include "cli/output_options.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/json_text.h"
#include "formats/printable.h"

namespace placewright::cli {

void OutputOptions::add_to(CLI::App& verb) {
  const std::string group = "Output";
  verb.add_flag("--json", json, "Print one JSON object instead of text")->group(group);
  CLI::Option* silent =
      verb.add_flag("-q,--quiet", quiet, "Print no summary, progress or warning")->group(group);
  verb.add_flag("-v,--verbose", verbose, "Print more detail")->group(group)->excludes(silent);
}

void OutputOptions::warn(const std::vector<std::string>& warnings) const {
  if (quiet) return;
  for (const std::string& warning : warnings) {
    fmt::print(stderr, "placewright: warning: {}\n", printable(warning));
  }
}

void print_json(const nlohmann::ordered_json& document) {
  fmt::print("{}\n", json_text(document, 2));
}

nlohmann::ordered_json finite_or_null(double number) {
  return std::isfinite(number) ? nlohmann::ordered_json(number) : nlohmann::ordered_json(nullptr);
}

}  // namespace placewright::cli
