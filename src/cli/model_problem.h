// Models where a verb takes a problem: `placewright plan model.onnx`.
//
// Without a cluster the models are measured on devices of this machine, as `placewright profile`
// does; the result is kept under the digest of all that it depends on, so that the next verb does
// not measure again. A measurement that other work disturbed is used, but not kept. With a cluster
// file the times are estimated for its devices (backends/import.h).

#pragma once

#include <string>
#include <vector>

#include "backends/model_files.h"
#include "cli/device_options.h"
#include "formats/problem_file.h"

namespace placewright::cli {

// Where measured profiles are kept: $XDG_CACHE_HOME/placewright or ~/.cache/placewright; empty if
// neither is known.
std::string cache_folder();

// Inputs with an open shape get a usual one (backends/usual_shapes.h), of which a sentence on
// stderr tells, unless `quiet`. Throws InputError for an input with any number of axes.
std::vector<ModelFile> with_fixed_shapes(std::vector<ModelFile> files, bool quiet);

// Measured, now or earlier: times that were kept are checked with a second of runs
// (profiling/recheck.h), and measured again where they no longer hold. Progress goes to stderr. A
// sentence there says where the times come from, unless `quiet`. Throws InputError, RuntimeError
// and UsageError.
ProblemFile measured_problem(const std::vector<ModelFile>& given, const DeviceOptions& devices,
                             const MeasuringOptions& measuring, bool quiet);

// Estimated for the devices of a cluster file. Throws InputError.
ProblemFile estimated_problem(const std::vector<ModelFile>& given, const std::string& cluster,
                              bool quiet);

}  // namespace placewright::cli
