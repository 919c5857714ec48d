#include "running/practice.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "problem/exclusion.h"
#include "problem/measured.h"
#include "problem/time_unit.h"
#include "running/turns.h"

namespace placewright {
namespace {

// In milliseconds.
double stated_time(const Problem& problem, std::size_t model, KindId kind) {
  double time = 0;
  for (const OpId op : problem.ops()) {
    if (problem.op(op).model.index() == model) time += problem.op(op).time[kind.index()];
  }
  return time * milliseconds_in(problem.unit());
}

// Devices of one kind that can work at once, and what they run.
struct Side {
  KindId kind;
  std::vector<DeviceId> devices;
  std::vector<ArrivingModel> queue;
  std::map<std::size_t, std::vector<double>> times = {};  // by model: the mean of each turn
};

std::vector<DeviceId> at_once(const Problem& problem, const std::set<DeviceId>& devices) {
  std::vector<DeviceId> chosen;
  for (const DeviceId device : devices) {
    const bool free = std::ranges::none_of(
        chosen, [&](DeviceId other) { return exclude_each_other(problem, device, other); });
    if (free) chosen.push_back(device);
  }
  return chosen;
}

// All there from the beginning, the shortest first.
std::vector<ArrivingModel> queue_of(const std::map<std::size_t, double>& stated,
                                    std::span<const ArrivingModel> arrivals) {
  std::vector<ArrivingModel> queue;
  std::map<std::size_t, std::size_t> runs;
  for (const ArrivingModel& arrival : arrivals) {
    if (!stated.contains(arrival.model) || runs[arrival.model]++ == kMostRuns) continue;
    queue.push_back({.model = arrival.model});
  }
  std::ranges::stable_sort(queue, {},
                           [&](const ArrivingModel& arrival) { return stated.at(arrival.model); });
  return queue;
}

Side side_of(const Problem& problem, std::span<const ArrivingModel> arrivals,
             const std::vector<ArrivalPlace>& places, KindId kind) {
  std::set<DeviceId> devices;
  std::map<std::size_t, double> stated;
  for (const ArrivalPlace& place : places) {
    if (problem.kind_of(place.device) != kind) continue;
    devices.insert(place.device);
    stated.try_emplace(place.model, stated_time(problem, place.model, kind));
  }
  return {kind, at_once(problem, devices), queue_of(stated, arrivals)};
}

// Whatever waits, in its order, on whichever device is free.
ArrivalRule from_one_queue(std::vector<DeviceId> devices) {
  return [devices = std::move(devices)](double, std::span<const ArrivalState> states) {
    std::vector<DeviceId> free = devices;
    for (const ArrivalState& state : states) {
      if (state.stage == ArrivalStage::started) std::erase(free, state.device);
    }
    std::vector<ArrivalStart> starts;
    for (std::size_t i = 0; i < states.size() && starts.size() < free.size(); ++i) {
      if (states[i].stage != ArrivalStage::waiting) continue;
      starts.push_back({i, free[starts.size()]});
    }
    return starts;
  };
}

void add_turn(Side& side, const ArrivalRound& round) {
  std::map<std::size_t, std::vector<double>> times;
  for (std::size_t i = 0; i < side.queue.size(); ++i) {
    const ArrivalState& state = round.states[i];
    times[side.queue[i].model].push_back(state.end - state.start);
  }
  for (const auto& [model, taken] : times) {
    const double sum = std::accumulate(taken.begin(), taken.end(), 0.0);
    side.times[model].push_back(sum / static_cast<double>(taken.size()));
  }
}

}  // namespace

std::optional<std::vector<PractisedTime>> practise(
    ArrivalRunner& runner, const Problem& problem, std::span<const ArrivingModel> arrivals,
    const std::vector<ArrivalPlace>& places,
    const std::function<void(const std::string& what)>& progress) {
  std::vector<Side> sides;
  for (std::size_t kind = 0; kind < problem.kind_count(); ++kind) {
    Side side = side_of(problem, arrivals, places, KindId{kind});
    if (!side.queue.empty()) sides.push_back(std::move(side));
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    if (progress) progress(fmt::format("practising, turn {} of {}", turn + 1, kTurns));
    for (const std::size_t number : order_in_turn(turn, sides.size())) {
      Side& side = sides[number];
      const auto round = runner.run(side.queue, from_one_queue(side.devices));
      if (!round) return std::nullopt;
      add_turn(side, *round);
    }
  }
  std::vector<PractisedTime> practised;
  for (Side& side : sides) {
    for (auto& [model, times] : side.times) {
      const double stated = stated_time(problem, model, side.kind);
      practised.push_back({model, side.kind, stated, median(std::move(times))});
    }
  }
  return practised;
}

ProblemDraft as_practised(const Problem& problem, const std::vector<PractisedTime>& times) {
  ProblemDraft draft = problem.draft();
  for (const PractisedTime& time : times) {
    if (!(time.stated > 0) || !(time.measured > 0)) continue;
    for (Op& op : draft.ops) {
      if (op.model.index() == time.model) op.time[time.kind.index()] *= time.measured / time.stated;
    }
  }
  return draft;
}

}  // namespace placewright
