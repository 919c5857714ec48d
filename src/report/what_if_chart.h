// The answers of a what-if as charts: the value over the axis with most values, a line for each
// value of the axis with the next most, and a chart for each point of the others.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/what_if.h"
#include "report/line_chart.h"

namespace placewright {

// `title` names the problem; `value_title` says what the value is, with its unit.
std::vector<LineChart> what_if_charts(const WhatIfGrid& grid, std::span<const WhatIfAnswer> answers,
                                      const std::string& title, const std::string& value_title);

}  // namespace placewright
