#include "planners/methods/layers.h"

#include <algorithm>

namespace placewright {

std::string refuses_layers(const Problem& problem) {
  if (problem.model_count() > 1) return "it plans one model at a time";
  if (problem.has_backward_ops()) return "it does not know training";
  if (problem.group_count() < problem.op_count()) return "it does not know colocation";
  if (std::ranges::any_of(problem.draft().ops, [](const Op& op) { return op.pinned_to.valid(); })) {
    return "it does not know pins";
  }
  if (problem.shared_weight_count() > 0) return "it does not know shared weights";
  return {};
}

}  // namespace placewright
