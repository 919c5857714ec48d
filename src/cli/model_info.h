// What a model file takes and gives, for `placewright info MODEL`.

#pragma once

#include "backends/model_files.h"
#include "cli/exit_code.h"
#include "cli/output_options.h"

namespace placewright::cli {

// Prints the inputs and outputs of each file with their types and shapes; open shapes may stay so.
ExitCode model_info(const std::vector<ModelFile>& files, const OutputOptions& output);

}  // namespace placewright::cli
