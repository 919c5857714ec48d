// A straight line through points some of which may be far off.

#pragma once

#include <vector>

namespace placewright {

struct LinePoint {
  double x = 0;
  double y = 0;
};

struct Line {
  double offset = 0;
  double slope = 0;

  [[nodiscard]] double at(double x) const { return offset + slope * x; }
};

// The least sum of absolute errors, neither number negative. Errors count relative to x + `small`:
// below `small` all of y is the offset.
Line robust_line(const std::vector<LinePoint>& points, double small);

}  // namespace placewright
