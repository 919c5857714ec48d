// Between a problem's own unit of time and milliseconds. Times without a unit count as
// milliseconds.

#pragma once

#include "problem/objective.h"

namespace placewright {

// How many milliseconds one unit is.
double milliseconds_in(TimeUnit unit);

// So many milliseconds, in the unit.
double in_unit(double milliseconds, TimeUnit unit);

}  // namespace placewright
