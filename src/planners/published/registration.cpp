#include "planners/published/published.h"
#include "planners/registry.h"

namespace placewright {

void register_published(Registry& registry) {
  registry.add(topo());
  registry.add(peft());
  registry.add(sct());
  registry.add(getf());
  registry.add(moirai());
  registry.add(ip_contiguous());
  registry.add(ip());
  registry.add(pipedream());
  registry.add(scotch());
  registry.add(local_search());
  registry.add(calls_greedy());
  registry.add(aswm());
  registry.add(tsam());
}

}  // namespace placewright
