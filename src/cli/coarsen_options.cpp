#include "cli/coarsen_options.h"

#include <vector>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/number_option.h"
#include "planning/suggestion.h"

namespace placewright::cli {

void CoarseningOptions::add_to(CLI::App& verb) {
  const std::string group = "Coarsening";
  std::vector<std::string> names;
  for (const CoarsenMethod known : coarsen_methods()) names.emplace_back(name_of(known));
  verb.add_option("--coarsen", method,
                  fmt::format("Contract ops before planning: {}", fmt::join(names, ", ")))
      ->group(group)
      ->type_name("NAME")
      ->capture_default_str();
  add_number(verb, "--pack-speedup", speedup_ratio, {1, kLargestReal},
             "chains: pack while the speed-up is within this factor of the first op's")
      ->group(group);
  add_duration(verb, "--pack-below", longest, "chains: pack ops that take less than this")
      ->group(group);
}

CoarsenOptions CoarseningOptions::options() const {
  CoarsenOptions options;
  const auto known = coarsen_method_named(method);
  if (!known) {
    std::vector<std::string> names;
    for (const CoarsenMethod each : coarsen_methods()) names.emplace_back(name_of(each));
    const std::string hint = did_you_mean(method, names);
    throw UsageError(
        fmt::format("--coarsen: unknown value '{}'{}", method,
                    hint.empty() ? fmt::format(" (known: {})", fmt::join(names, ", ")) : hint));
  }
  options.method = *known;
  options.speedup_ratio = speedup_ratio;
  options.longest_packed = 1e3 * parse_duration("--pack-below", longest);
  return options;
}

}  // namespace placewright::cli
