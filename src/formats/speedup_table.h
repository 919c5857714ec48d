// Tables of measured speed-ups by operator (CSV), as the Talos profiler writes them.
//
//   operator, speedup, cpu_tol_time, gpu_tol_time, cpu_avg_time, gpu_avg_time
//
// One line for each operator: its CPU time / its GPU time, the times over all its calls and for one
// call, in microseconds. Columns are found by name; `operator` and `speedup` must be there. The
// tables say nothing about the order of the calls nor about the graph, so they are profiles, not
// problems.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace placewright {

struct SpeedUpRow {
  std::string type;  // the operator
  double speed_up = 0;
  std::optional<double> cpu_total;
  std::optional<double> cpu_mean;  // of one call
  std::optional<double> gpu_mean;
};

struct SpeedUpTable {
  std::string name;
  std::vector<SpeedUpRow> rows;
};

// Throws InputError naming the line.
SpeedUpTable parse_speed_up_table(std::string_view text, const std::string& origin);
SpeedUpTable read_speed_up_table(const std::string& path);

}  // namespace placewright
