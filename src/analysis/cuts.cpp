#include "analysis/cuts.h"

#include <algorithm>
#include <utility>

#include "evaluate/rules/transfers.h"

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

// The devices that the tensor travels to: one for each other memory space that reads it.
std::vector<DeviceId> receivers_of(const Problem& problem, const Placement& placement,
                                   const Cut& cut) {
  std::vector<SpaceId> spaces;
  for (const DeviceId to : cut.to) {
    if (!problem.same_space(cut.from, to)) spaces.push_back(problem.space(to));
  }
  std::sort(spaces.begin(), spaces.end());
  spaces.erase(std::unique(spaces.begin(), spaces.end()), spaces.end());
  std::vector<DeviceId> receivers;
  for (const SpaceId space : spaces) {
    receivers.push_back(receiving_device(problem, placement, cut.tensor, space));
  }
  return receivers;
}

struct Movements {
  double time = 0;
  std::size_t leaving = 0;  // transfers that leave the producer's device
};

Movements over_links(const Problem& problem, const Cut& cut,
                     const std::vector<DeviceId>& receivers) {
  Movements movements{0, receivers.size()};
  for (const DeviceId to : receivers) movements.time += problem.link_time(cut.tensor, cut.from, to);
  return movements;
}

Movements through_host(const Problem& problem, const Cut& cut,
                       const std::vector<DeviceId>& receivers) {
  const std::size_t leaving = receivers.empty() || problem.on_host(cut.from) ? 0 : 1;
  const auto entering =
      std::ranges::count_if(receivers, [&](DeviceId device) { return !problem.on_host(device); });
  return {static_cast<double>(leaving + static_cast<std::size_t>(entering)) *
              problem.host_time(cut.tensor),
          leaving};
}

// What every device but the producer's bears that reads the tensor; host memory is read for
// nothing.
double receiving_cost(const Problem& problem, const Cut& cut) {
  double time = 0;
  for (const DeviceId to : cut.to) {
    const bool from_host_memory = problem.interconnect() == InterconnectKind::host &&
                                  problem.on_host(to) && !problem.same_space(cut.from, to);
    if (!from_host_memory) time += problem.receive_overhead(cut.tensor, to);
  }
  return time;
}

double cost_of_devices(const Problem& problem, const Placement& placement, const Cut& cut) {
  const std::vector<DeviceId> receivers = receivers_of(problem, placement, cut);
  const Movements movements = problem.interconnect() == InterconnectKind::host
                                  ? through_host(problem, cut, receivers)
                                  : over_links(problem, cut, receivers);
  const bool handed_over =
      std::ranges::any_of(cut.to, [&](DeviceId to) { return problem.same_space(cut.from, to); });
  const std::size_t sends = movements.leaving + (handed_over ? 1 : 0);
  return movements.time + static_cast<double>(sends) * problem.send_overhead(cut.tensor, cut.from) +
         receiving_cost(problem, cut);
}

// Between calls everything goes through host memory, also within a memory space.
double cost_of_calls(const Problem& problem, TensorId tensor, DeviceId from,
                     const std::vector<Place>& readers) {
  const double length = problem.host_time(tensor);
  double time = problem.on_host(from) ? 0 : length + problem.send_overhead(tensor, from);
  for (const auto& [device, call] : readers) {
    if (!problem.on_host(device)) time += length + problem.receive_overhead(tensor, device);
  }
  return time;
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
    cut.time = problem.objective() == Objective::call_latency
                   ? cost_of_calls(problem, tensor, home.first, readers)
                   : cost_of_devices(problem, plan.placement, cut);
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
