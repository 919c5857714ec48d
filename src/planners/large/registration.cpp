#include "planners/large/large.h"
#include "planners/registry.h"

namespace placewright {

void register_large(Registry& registry) {
  registry.add(repeats());
  registry.add(multilevel());
}

}  // namespace placewright
