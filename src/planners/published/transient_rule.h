// TSAM's rule for one event (tsam.cpp): of the ready ops and idle devices the pair of largest
// speed-up starts, until no pair is left.

#pragma once

#include "planners/device_choice.h"
#include "planners/flow/event_run.h"
#include "planners/flow/speed_up.h"

namespace placewright {

void start_largest_speed_ups(EventRun& run, const SpeedUps& speed_ups, DeviceChoice& choice);

}  // namespace placewright
