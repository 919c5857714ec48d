#include "analysis/cuts.h"

#include <algorithm>
#include <utility>

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

double link_cost(const Problem& problem, const Cut& cut) {
  double time = 0;
  for (const DeviceId to : cut.to) {
    time += problem.link_time(cut.tensor, cut.from, to) + problem.device(cut.from).send_overhead +
            problem.device(to).receive_overhead;
  }
  return time;
}

double host_cost(const Problem& problem, TensorId tensor, DeviceId from,
                 const std::vector<Place>& readers) {
  const double length = problem.host_time(tensor);
  double time = problem.on_host(from) ? 0 : length + problem.device(from).send_overhead;
  for (const Place& reader : readers) {
    if (!problem.on_host(reader.first)) {
      time += length + problem.device(reader.first).receive_overhead;
    }
  }
  return time;
}

}  // namespace

std::vector<Cut> cuts_of(const Problem& problem, const Plan& plan) {
  const Table<OpId, Place> places = places_of(problem, plan);
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
    Cut cut{tensor, home.first, {}, 0};
    for (const Place& reader : readers) cut.to.push_back(reader.first);
    cut.to.erase(std::unique(cut.to.begin(), cut.to.end()), cut.to.end());
    cut.time = problem.interconnect() == InterconnectKind::host
                   ? host_cost(problem, tensor, home.first, readers)
                   : link_cost(problem, cut);
    // Between host devices nothing moves.
    if (problem.interconnect() == InterconnectKind::host && problem.on_host(home.first) &&
        std::all_of(cut.to.begin(), cut.to.end(),
                    [&](DeviceId device) { return problem.on_host(device); })) {
      continue;
    }
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
