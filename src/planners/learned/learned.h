// The learned planners: reinforcement learning on the problem at hand, or from a policy trained
// before (training.h).

#pragma once

#include <functional>
#include <string>

#include "planners/planner.h"
#include "planners/registry.h"

namespace placewright {

// What a plan takes when it is really run, in the problem's unit.
using Measure = std::function<double(const Problem&, const Plan&)>;

// What the planners may ask of whoever runs them, since planners know no file and no device; empty
// where it is not offered.
struct FrontEnd {
  // The bytes of the file that an option names.
  std::function<std::string(const std::string& path)> read_file = {};
  Measure measure = {};
};

PlannerEntry hsdag(FrontEnd front_end = {});
PlannerEntry placeto();
PlannerEntry rnn();

void register_learned(Registry& registry);

// The same planners, with the learned ones able to ask the front end.
Registry with_front_end(const Registry& registry, const FrontEnd& front_end);

}  // namespace placewright
