#include "report/what_if_chart.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace placewright {
namespace {

std::string axis_title(const WhatIfGrid& grid, Axis axis) {
  return axis == Axis::devices ? grid.counted + "s" : fmt::format("{} (factor)", name_of(axis));
}

std::string line_name(const WhatIfGrid& grid, Axis axis, double value) {
  if (axis == Axis::devices) {
    return fmt::format("{:g} {}{}", value, grid.counted, value == 1 ? "" : "s");
  }
  return fmt::format("{} x {:g}", name_of(axis), value);
}

// The axes that have more than one value, those with most values first; the first one at least.
std::vector<Axis> axes_by_size(const WhatIfGrid& grid) {
  constexpr auto kAxes = values_of<Axis>();
  std::vector<Axis> axes(kAxes.begin(), kAxes.end());
  std::stable_sort(axes.begin(), axes.end(),
                   [&](Axis a, Axis b) { return grid.values(a).size() > grid.values(b).size(); });
  while (axes.size() > 1 && grid.values(axes.back()).size() < 2) axes.pop_back();
  return axes;
}

// Factors that span a decade are read as ratios.
bool spans_a_decade(std::span<const double> values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least > 0 && *most >= 10 * *least;
}

}  // namespace

std::vector<LineChart> what_if_charts(const WhatIfGrid& grid, std::span<const WhatIfAnswer> answers,
                                      const std::string& title, const std::string& value_title) {
  const std::vector<Axis> axes = axes_by_size(grid);
  const std::vector<double> x_values = grid.values(axes[0]);
  // By the point on the axes that have charts of their own, then by the line's value.
  std::map<std::vector<double>, std::map<double, ChartLine>> groups;
  for (const WhatIfAnswer& answer : answers) {
    std::vector<double> rest;
    for (std::size_t i = 2; i < axes.size(); ++i) rest.push_back(answer.point.at(axes[i]));
    const double line_value = axes.size() > 1 ? answer.point.at(axes[1]) : 0;
    groups[rest][line_value].points.push_back(
        {answer.point.at(axes[0]), answer.per_sample(), answer.lower_bound() / answer.point.batch});
  }
  std::vector<LineChart> charts;
  for (auto& [rest, lines] : groups) {
    LineChart chart{
        title,       "dashed: lower bound, which no plan can beat", axis_title(grid, axes[0]),
        value_title, !x_values.empty() && spans_a_decade(x_values), {}};
    for (std::size_t i = 0; i < rest.size(); ++i) {
      chart.title += fmt::format(", {}", line_name(grid, axes[i + 2], rest[i]));
    }
    for (auto& [value, line] : lines) {
      if (axes.size() > 1) line.name = line_name(grid, axes[1], value);
      std::sort(line.points.begin(), line.points.end(),
                [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
      chart.lines.push_back(std::move(line));
    }
    charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace placewright
