#include "planners/baselines/baselines.h"
#include "planners/registry.h"

namespace placewright {

void register_baselines(Registry& registry) {
  registry.add(single());
  registry.add(random_placement());
  registry.add(heft());
  registry.add(lists());
  registry.add(etf());
}

}  // namespace placewright
