#include "analysis/cuts.h"

#include <algorithm>
#include <utility>

#include "evaluate/cost_model.h"

namespace placewright {
namespace {

// Where an op is, as far as transfers see: its device, and the call on it.
using Place = std::pair<DeviceId, std::size_t>;

Table<OpId, Place> places_of(const Problem& problem, const Plan& plan) {
  Table<OpId, Place> places(problem.op_count());
  for (const OpId op : problem.ops()) places[op] = {plan.placement[op], 0};
  for (std::size_t call = 0; call < plan.calls.size(); ++call) {
    for (const OpId op : plan.calls[call].ops) places[op].second = call + 1;
  }
  return places;
}

// What moving each tensor takes in all, the overheads of cuts included.
Table<TensorId, double> times_of_cuts(const Problem& problem, const Plan& plan) {
  const CostModel& costs = cost_model(problem);
  Table<TensorId, double> times = costs.overheads(problem, plan);
  for (const Transfer& transfer : costs.movements(problem, plan)) {
    times[transfer.tensor] += transfer.end - transfer.start;
  }
  return times;
}

// Whether nothing moves and nobody spends time on it.
bool stays_on_host(const Problem& problem, const Cut& cut) {
  const auto on_host = [&](DeviceId device) { return problem.on_host(device); };
  return problem.interconnect() == InterconnectKind::host && cut.time == 0 && on_host(cut.from) &&
         std::ranges::all_of(cut.to, on_host);
}

}  // namespace

std::vector<Cut> cuts_of(const Problem& problem, const Plan& plan) {
  const Table<OpId, Place> places = places_of(problem, plan);
  const Table<TensorId, double> times = times_of_cuts(problem, plan);
  std::vector<Cut> cuts;
  for (const TensorId tensor : problem.tensors()) {
    const Place home = places[problem.producer(tensor)];
    std::vector<Place> readers;
    for (const OpId consumer : problem.consumers(tensor)) {
      if (places[consumer] != home) readers.push_back(places[consumer]);
    }
    if (readers.empty()) continue;
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    Cut cut{tensor, home.first, {}, times[tensor]};
    for (const Place& reader : readers) cut.to.push_back(reader.first);
    cut.to.erase(std::unique(cut.to.begin(), cut.to.end()), cut.to.end());
    if (stays_on_host(problem, cut)) continue;
    cuts.push_back(std::move(cut));
  }
  std::stable_sort(cuts.begin(), cuts.end(),
                   [](const Cut& a, const Cut& b) { return a.time > b.time; });
  return cuts;
}

double time_of_cuts(const Problem& problem, const Plan& plan) {
  double time = 0;
  for (const Cut& cut : cuts_of(problem, plan)) time += cut.time;
  return time;
}

}  // namespace placewright
