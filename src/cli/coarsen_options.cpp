#include "cli/coarsen_options.h"

#include <fmt/format.h>

#include "cli/choice_option.h"
#include "cli/exit_code.h"
#include "cli/number_option.h"

namespace placewright::cli {

void CoarseningOptions::add_to(CLI::App& verb) {
  const std::string group = "Coarsening";
  add_choice(verb, "--coarsen", method, "Merge ops before planning")->group(group);
  add_number(verb, "--pack-speedup", speedup_ratio, {1, kLargestReal},
             "chains: pack ops while their speed-up is within this factor of the first op's")
      ->group(group);
  add_duration(verb, "--pack-below", longest, "chains: pack only ops that take less than this")
      ->group(group);
}

CoarsenOptions CoarseningOptions::options() const {
  CoarsenOptions options;
  options.method = method;
  options.speedup_ratio = speedup_ratio;
  options.longest_packed = 1e3 * parse_duration("--pack-below", longest);
  return options;
}

}  // namespace placewright::cli
