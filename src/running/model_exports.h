// Plans as models that other runtimes execute, with what they need beside them: several files,
// of bytes rather than text.

#pragma once

#include <string>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct ExportedFile {
  std::string path;
  std::string bytes;
};

// The files in the order in which they are to be written: who sees the last one finds all of them.
// `path` is where the model goes, or of parts the folder. The plan must be valid. All throw
// InputError and RuntimeError, and std::invalid_argument where the path or the problem does not
// suit the target.

// OpenVINO's two files, and the affinity of each op beside them.
std::vector<ExportedFile> openvino_files(const Problem& problem, const Plan& plan,
                                         const std::string& path);

// A model for each part of the plan, and manifest.json, which says which part runs where.
std::vector<ExportedFile> part_files(const Problem& problem, const Plan& plan,
                                     const std::string& folder);

// The model with the device of each node as its metadata `layer_ann`, and the settings of a session
// that puts the nodes there.
std::vector<ExportedFile> onnxruntime_files(const Problem& problem, const Plan& plan,
                                            const std::string& path);

}  // namespace placewright
