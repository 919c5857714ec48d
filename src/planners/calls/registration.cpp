#include "planners/calls/calls.h"
#include "planners/registry.h"

namespace placewright {

void register_calls(Registry& registry) {
  registry.add(calls_chain());
  registry.add(calls_exact());
  registry.add(calls_search());
  registry.add(exhaustive_calls());
}

}  // namespace placewright
