#include "planners/registry.h"
#include "planners/throughput/throughput.h"

namespace placewright {

void register_throughput(Registry& registry) {
  registry.add(ideals());
  registry.add(ideals_linear());
  registry.add(kinds());
  registry.add(cpsat_throughput());
  registry.add(refine());
  registry.add(exhaustive_throughput());
  registry.add(shared_stages());
}

}  // namespace placewright
