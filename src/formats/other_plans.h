// Plans in the formats of others: a placement of ops, read for a problem that is given apart.
//
//   expert split   MSR's {fpgas: [{nodes}], cpus: [{nodes}]} (expert_split.h)
//   device map     accelerate's {"model.layers.0": 0, "lm_head": "cpu"}: modules and their devices,
//                  the longest name counts; a number N is the device "cuda:N", else the N-th device
//   split points   {"split_spec": {"layers.4": "beginning"}, "stages": [["gpu0"], ["gpu1"]]}: an op
//                  is in the stage that the last split point before it begins, in topological order
//
// A new format is one line of other_plan_formats().

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/json.h"
#include "formats/plan_file.h"

namespace placewright {

struct OtherPlanFormat {
  std::string_view name;
  std::string_view recognised_by;
  bool (*recognises)(JsonValue root);
  // Throws InputError.
  PlanFile (*read)(JsonValue root, const Problem& problem, std::span<const std::string> op_ids);
};

std::span<const OtherPlanFormat> other_plan_formats();

// nullptr if it is none of them.
const OtherPlanFormat* other_plan_format(JsonValue root);

}  // namespace placewright
