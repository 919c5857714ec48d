// The plugin of the learned planners as it was built for another interface: what it makes would be
// wrong, so nobody may call it.

#include <cstdlib>

#include "planners/learned/learner.h"

extern "C" int placewright_learner_interface() {
  return placewright::learned::kLearnerInterface + 1;
}

extern "C" placewright::learned::Learner* placewright_make_learner(
    const placewright::learned::LearnerOptions& /*options*/) {
  std::abort();
}
