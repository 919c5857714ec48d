#include "cli/output_options.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/terminal.h"
#include "formats/json_text.h"
#include "formats/printable.h"

namespace placewright::cli {
namespace {

constexpr const char* kGroup = "Output";

}  // namespace

void OutputOptions::add_to(CLI::App& verb) {
  verb.add_flag("--json", json, "Print one JSON object instead of text")->group(kGroup);
  CLI::Option* silent =
      verb.add_flag("-q,--quiet", quiet, "Print no table, summary, progress or warnings")
          ->group(kGroup);
  verb.add_flag("-v,--verbose", verbose, "Print more detail")->group(kGroup)->excludes(silent);
}

CLI::Option* add_written(CLI::App& verb, const std::string& option, std::string& path,
                         const std::string& help, const std::string& type) {
  return verb.add_option(option, path, help)->type_name(type)->group(kGroup);
}

void OutputOptions::warn(const std::vector<std::string>& warnings) const {
  if (quiet) return;
  for (const std::string& warning : warnings) {
    tell(fmt::format("placewright: warning: {}\n", printable(warning)));
  }
}

void print_json(const nlohmann::ordered_json& document) {
  fmt::print("{}\n", json_text(document, 2));
}

nlohmann::ordered_json finite_or_null(double number) {
  return std::isfinite(number) ? nlohmann::ordered_json(number) : nlohmann::ordered_json(nullptr);
}

}  // namespace placewright::cli
