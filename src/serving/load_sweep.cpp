#include "serving/load_sweep.h"

#include <algorithm>
#include <array>

namespace placewright {
namespace {

constexpr std::array kLoads{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95};
constexpr double kInTime = 0.99;

bool keeps_promises(const LoadPoint& point) {
  return std::ranges::all_of(point.summaries, [](const ServiceSummary& summary) {
    return summary.refused == 0 && summary.in_time.value_or(1) >= kInTime;
  });
}

}  // namespace

LoadSweep sweep_loads(std::span<const ServedModel> models, const SchedulerOptions& options,
                      const std::vector<RequestArrival>& arrivals, double overhead) {
  LoadSweep sweep;
  bool kept = true;
  for (const double load : kLoads) {
    const std::vector<RequestArrival> closer = at_load(models, arrivals, load);
    const ServiceSimulation run = simulate_service(models, options, closer, overhead);
    const LoadPoint& point =
        sweep.points.emplace_back(LoadPoint{load, summaries_of(models, closer, run)});
    if (!point.summaries.back().in_time) continue;
    if (!sweep.largest_load) sweep.largest_load = 0;
    kept = kept && keeps_promises(point);
    if (kept) sweep.largest_load = load;
  }
  return sweep;
}

}  // namespace placewright
