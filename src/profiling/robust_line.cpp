#include "profiling/robust_line.h"

#include <algorithm>
#include <cmath>

namespace placewright {
namespace {

// Weighted least squares with neither number negative.
Line line_through(const std::vector<LinePoint>& points, const std::vector<double>& weights) {
  double sum = 0;
  double sum_x = 0;
  double sum_y = 0;
  double sum_xx = 0;
  double sum_xy = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [x, y] = points[i];
    sum += weights[i];
    sum_x += weights[i] * x;
    sum_y += weights[i] * y;
    sum_xx += weights[i] * x * x;
    sum_xy += weights[i] * x * y;
  }
  const double determinant = sum * sum_xx - sum_x * sum_x;
  if (!(determinant > 0)) return {sum > 0 ? std::max(0.0, sum_y / sum) : 0, 0};
  const double slope = (sum * sum_xy - sum_x * sum_y) / determinant;
  if (slope < 0) return {std::max(0.0, sum_y / sum), 0};
  const double offset = (sum_y - slope * sum_x) / sum;
  if (offset < 0) return {0, std::max(0.0, sum_xy / sum_xx)};
  return {offset, slope};
}

}  // namespace

Line robust_line(const std::vector<LinePoint>& points, double small) {
  constexpr int kReweightings = 20;
  std::vector<double> scale;
  std::vector<double> weights;
  for (const LinePoint& point : points) {
    scale.push_back(point.x + small);
    weights.push_back(1 / (scale.back() * scale.back()));
  }
  Line line = line_through(points, weights);
  // Reweighted towards the least sum of absolute errors: a point far off counts for little.
  for (int round = 0; round < kReweightings && !points.empty(); ++round) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < points.size(); ++i) {
      errors.push_back(std::abs(points[i].y - line.at(points[i].x)) / scale[i]);
    }
    const double floor = std::max(0.01 * std::ranges::max(errors), 1e-15);
    for (std::size_t i = 0; i < points.size(); ++i) {
      weights[i] = 1 / (scale[i] * scale[i] * std::max(errors[i], floor));
    }
    line = line_through(points, weights);
  }
  return line;
}

}  // namespace placewright
