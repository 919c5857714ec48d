// The published profiles and plans of Sailor (eth-easl/sailor; SOSP 2025) as ours.
//
// A folder holds `profiles/MODEL/GPU.json` (micro-batch size -> degree -> layer -> [forward,
// backward, update] in seconds), `llm_info.json` (model -> degree -> layer -> sizes),
// `cluster.json` (GPUs of a node, memory) and `network/multizone_bandwidths_het.json`. Plans are
// files of their own; docs/formats/sailor.md tells what their keys mean.
//
// What a profile lacks is estimated and noted: a micro-batch size between two measured ones on the
// line through them, beyond them in proportion to the samples; a degree on the power law through
// the two nearest ones.

#pragma once

#include <string>
#include <vector>

#include "formats/training_file.h"
#include "problem/training.h"

namespace placewright {

// Nodes that a problem is made for: "GH-96=8" or "GH-96@us-central1-a=8".
struct SailorNodes {
  std::string kind;
  std::string zone;
  int count = 1;
};

struct SailorRequest {
  std::string model;               // empty: the only one with the plan's number of layers
  std::vector<SailorNodes> nodes;  // without a plan
  int batch = 0;                   // without a plan
};

// The folders' problem; throws InputError.
TrainingFile read_sailor_problem(const std::string& folder, const SailorRequest& request);

// A plan and the problem it was made for: its nodes, its batch. The plan has what was measured.
TrainingFile read_sailor_plan(const std::string& folder, const std::string& plan_path,
                              const SailorRequest& request = {});

}  // namespace placewright
