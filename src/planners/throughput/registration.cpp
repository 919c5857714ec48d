#include "planners/registry.h"
#include "planners/throughput/throughput.h"

namespace placewright {

void register_throughput(Registry& registry) {
  registry.add(ideals());
  registry.add(ideals_linear());
  registry.add(ip_contiguous());
  registry.add(ip());
  registry.add(cpsat_throughput());
  registry.add(refine());
  registry.add(pipedream());
  registry.add(scotch());
  registry.add(local_search());
}

}  // namespace placewright
