// The plugin's exported functions.

#include "planners/learned/plugin/torch_learner.h"

namespace placewright::learned {
namespace {

std::unique_ptr<Learner> make(const LearnerOptions& options) {
  switch (options.network) {
    case Network::hsdag:
      return make_hsdag(options);
    case Network::placeto:
      return make_placeto(options);
    case Network::rnn:
      return make_rnn(options);
  }
  return nullptr;
}

}  // namespace
}  // namespace placewright::learned

extern "C" __attribute__((visibility("default"))) int placewright_learner_interface() {
  return placewright::learned::kLearnerInterface;
}

extern "C" __attribute__((visibility("default"))) placewright::learned::Learner*
placewright_make_learner(const placewright::learned::LearnerOptions& options) {
  return placewright::learned::make(options).release();
}
