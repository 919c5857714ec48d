#include "planners/learned/learned.h"

namespace placewright {

void register_learned(Registry& registry) {
  registry.add(hsdag());
  registry.add(placeto());
  registry.add(rnn());
}

Registry with_front_end(const Registry& registry, const FrontEnd& front_end) {
  const std::string served_name = hsdag().name;
  Registry served;
  for (const PlannerEntry& entry : registry.entries()) {
    served.add(entry.name == served_name ? hsdag(front_end) : entry);
  }
  return served;
}

}  // namespace placewright
