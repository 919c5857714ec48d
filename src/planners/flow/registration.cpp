#include "planners/flow/flow.h"
#include "planners/registry.h"

namespace placewright {

void register_flow(Registry& registry) {
  registry.add(talos());
  registry.add(toct_exact());
  registry.add(prices());
}

}  // namespace placewright
