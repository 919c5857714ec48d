#include "planners/latency/latency.h"
#include "planners/registry.h"

namespace placewright {

void register_latency(Registry& registry) {
  registry.add(repeats_in_schedules());
  registry.add(multilevel_schedules());
  registry.add(decompose());
  registry.add(hubs());
  registry.add(few_devices());
  registry.add(search());
  registry.add(cpsat_schedule());
}

}  // namespace placewright
