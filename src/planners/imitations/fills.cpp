// What popular tools do with a model and several devices (methods/fill_rules.h has each rule).
//
// memory-first   accelerate's automatic device map: devices in the order given, fastest first by
// convention proportional   llama.cpp's layer split priority       ONNX Runtime's list of execution
// providers and OpenVINO's HETERO: devices are named in
//                order of preference

#include "planners/imitations/imitations.h"
#include "planners/methods/fill_rules.h"

namespace placewright {
namespace {

template <class Rule>
PlannerEntry fill_entry(const char* name, const char* summary, Rule rule) {
  return PlannerEntry{.name = name,
                      .summary = summary,
                      .objectives = every_objective(),
                      .role = Role::imitation,
                      .effort = Effort::instant,
                      .knows = kCommonAndSharing,
                      .plan = [rule](const Problem& problem, const Settings&, Control& control) {
                        return rule(problem, control);
                      }};
}

}  // namespace

PlannerEntry memory_first() {
  return fill_entry("memory-first",
                    "fill each device's memory in turn (accelerate's automatic map)", fill_in_turn);
}

PlannerEntry proportional() {
  return fill_entry("proportional", "ops in proportion to each device's memory (llama.cpp's split)",
                    fill_in_proportion);
}

PlannerEntry priority() {
  PlannerEntry made = fill_entry(
      "priority", "the first device in order that supports the op (ONNX Runtime, HETERO)",
      first_that_fits);
  made.effort = Effort::quick;
  return made;
}

}  // namespace placewright
