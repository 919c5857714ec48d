// The formats that problems are read from, one record each.
//
// Adding one takes a new file with a function `ProblemFormat name_format()`, its declaration here
// and its line in problem_formats(). The record feeds recognition, `--format` with its help and
// completion, the library's ReadOptions, and the fuzz target of all readers.

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "formats/problem_file.h"

namespace placewright {

struct ProblemFormat {
  std::string_view name;
  std::string_view recognised_by;  // the keys, as a message lists them: "'devices' and 'nodes'"
  bool (*recognises)(JsonValue root);
  // From a parsed document to a draft. Fills in the draft, the warnings, `op_ids` and `place_of`.
  // The problem is called `name` where the file does not say. `cluster_follows`: a cluster file
  // will give the devices, so this one need not.
  ProblemFile (*read)(JsonValue root, const std::string& name, bool cluster_follows);
};

// In the order in which they are tried.
std::span<const ProblemFormat> problem_formats();
std::vector<std::string> problem_format_names();
// Returns nullptr if no format has this name.
const ProblemFormat* find_problem_format(std::string_view name);

ProblemFormat native_format();
ProblemFormat msr_format();
ProblemFormat moirai_format();
ProblemFormat talos_format();

}  // namespace placewright
