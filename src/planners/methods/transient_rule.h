// Transient speed-up (`total-completion`): whenever a device is free and ops are ready, the pair of
// ready op and free device with the largest speed-up starts; of equal pairs the op that was ready
// first, then the first device. A device is never left idle while an op that it may run is ready,
// even where waiting for a faster one would pay. O(events x ready ops x devices).
//
// It looks at no later event, so it is an online rule as it stands: models that arrive later change
// nothing before their arrival.

#pragma once

#include "planners/methods/device_choice.h"
#include "planners/methods/event_run.h"
#include "planners/methods/speed_up.h"
#include "planners/planner.h"

namespace placewright {

Answer largest_speed_ups_first(const Problem& problem, Control& control);

// The rule for one event: until no pair is left.
void start_largest_speed_ups(EventRun& run, const SpeedUps& speed_ups, DeviceChoice& choice);

}  // namespace placewright
