// Latency against load, as charts: one of the 99th percentiles, one of the means, a line for each
// model.

#pragma once

#include <string>
#include <vector>

#include "report/line_chart.h"
#include "serving/load_sweep.h"

namespace placewright {

std::vector<LineChart> load_charts(const LoadSweep& sweep, const std::string& title);

}  // namespace placewright
