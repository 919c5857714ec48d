#include "planners/imitations/imitations.h"
#include "planners/registry.h"

namespace placewright {

void register_imitations(Registry& registry) {
  registry.add(memory_first());
  registry.add(proportional());
  registry.add(priority());
}

}  // namespace placewright
