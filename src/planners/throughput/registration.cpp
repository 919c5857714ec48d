#include "planners/registry.h"
#include "planners/throughput/throughput.h"

namespace placewright {

void register_throughput(Registry& registry) {
  // Before pipelines of all ops: at 100,000 of them those have no plan in a second, layers have.
  registry.add(repeats_in_pipelines());
  registry.add(multilevel_pipelines());
  registry.add(ideals());
  registry.add(kinds());  // before ideals-linear, which takes longer: auto keeps the order
  registry.add(ideals_linear());
  registry.add(cpsat_throughput());
  registry.add(refine());
  registry.add(exhaustive_throughput());
  registry.add(shared_stages());
  registry.add(shared_ideals());
  registry.add(shared_search());
  registry.add(nodes());
}

}  // namespace placewright
