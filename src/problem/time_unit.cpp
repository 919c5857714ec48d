#include "problem/time_unit.h"

namespace placewright {

double milliseconds_in(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::seconds:
      return 1e3;
    case TimeUnit::microseconds:
      return 1e-3;
    case TimeUnit::milliseconds:
    case TimeUnit::none:
      return 1;
  }
  return 1;
}

double in_unit(double milliseconds, TimeUnit unit) {
  return milliseconds / milliseconds_in(unit);
}

}  // namespace placewright
