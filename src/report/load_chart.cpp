#include "report/load_chart.h"

#include <fmt/format.h>

namespace placewright {
namespace {

LineChart chart_of(const LoadSweep& sweep, const std::string& title, const std::string& y_title,
                   double ServiceSummary::*value) {
  LineChart chart{.title = title,
                  .x_title = "load (share of the time that the requests need)",
                  .y_title = y_title};
  if (sweep.largest_load) {
    chart.subtitle =
        *sweep.largest_load > 0
            ? fmt::format("latency objectives are met up to a load of {:g}", *sweep.largest_load)
            : "latency objectives are met at none of these loads";
  }
  const std::size_t models = sweep.points.empty() ? 0 : sweep.points.front().summaries.size() - 1;
  for (std::size_t model = 0; model < models; ++model) {
    ChartLine& line = chart.lines.emplace_back();
    for (const LoadPoint& point : sweep.points) {
      line.name = point.summaries[model].model;
      line.points.push_back({point.load, point.summaries[model].*value});
    }
  }
  return chart;
}

}  // namespace

std::vector<LineChart> load_charts(const LoadSweep& sweep, const std::string& title) {
  return {chart_of(sweep, title + ": 99th percentile", "p99 (ms)", &ServiceSummary::p99),
          chart_of(sweep, title + ": mean", "mean (ms)", &ServiceSummary::mean)};
}

}  // namespace placewright
