#include "running/practice.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "problem/exclusion.h"
#include "problem/measured.h"
#include "problem/time_unit.h"

namespace placewright {
namespace {

constexpr std::size_t kLeastRuns = 5;       // of each model
constexpr std::size_t kLeastOnADevice = 3;  // inferences, of whichever model
constexpr int kAttempts = 3;                // if others disturb a round

// Devices of one kind that can work at once, and the models that each of them can run.
struct Side {
  std::vector<DeviceId> devices;
  std::vector<std::size_t> models;
};

Side side_of(const Problem& problem, const std::vector<ArrivalPlace>& places, KindId kind) {
  std::set<DeviceId> devices;
  std::set<std::size_t> models;
  for (const ArrivalPlace& place : places) {
    if (problem.kind_of(place.device) != kind) continue;
    devices.insert(place.device);
    models.insert(place.model);
  }
  Side side{.devices = {}, .models = {models.begin(), models.end()}};
  for (const DeviceId device : devices) {
    const bool free = std::ranges::none_of(side.devices, [&](DeviceId other) {
      return exclude_each_other(problem, device, other);
    });
    if (free) side.devices.push_back(device);
  }
  return side;
}

// Each model as often as the others, all there from the beginning.
std::vector<ArrivingModel> queue_of(const Side& side) {
  const std::size_t models = side.models.size();
  const std::size_t least = std::max(kLeastRuns * models, kLeastOnADevice * side.devices.size());
  std::vector<ArrivingModel> queue;
  while (queue.size() < least) {
    for (const std::size_t model : side.models) queue.push_back({.model = model});
  }
  return queue;
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

// By model, of the inferences that ended before the last one started, or of all if there is none.
std::map<std::size_t, double> medians(const std::vector<ArrivingModel>& queue,
                                      const std::vector<ArrivalState>& states) {
  const double empty = std::ranges::max(states, {}, &ArrivalState::start).start;
  std::map<std::size_t, std::vector<double>> beside;
  std::map<std::size_t, std::vector<double>> all;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const double time = states[i].end - states[i].start;
    all[queue[i].model].push_back(time);
    if (states[i].end <= empty) beside[queue[i].model].push_back(time);
  }
  std::map<std::size_t, double> medians;
  for (auto& [model, times] : all) {
    auto& counted = beside[model].empty() ? times : beside[model];
    medians[model] = median(std::move(counted));
  }
  return medians;
}

// By model and kind, in milliseconds.
double stated_time(const Problem& problem, std::size_t model, KindId kind) {
  double time = 0;
  for (const OpId op : problem.ops()) {
    if (problem.op(op).model.index() == model) time += problem.op(op).time[kind.index()];
  }
  return time * milliseconds_in(problem.unit());
}

}  // namespace

std::optional<std::vector<PractisedTime>> practise(
    ArrivalRunner& runner, const Problem& problem, const std::vector<ArrivalPlace>& places,
    const std::function<void(const std::string& what)>& progress) {
  std::vector<PractisedTime> times;
  for (std::size_t number = 0; number < problem.kind_count(); ++number) {
    const KindId kind{number};
    const Side side = side_of(problem, places, kind);
    if (side.models.empty()) continue;
    if (progress) progress(fmt::format("practising on {}", problem.draft().cluster.kinds[number].name));
    const std::vector<ArrivingModel> queue = queue_of(side);
    std::optional<ArrivalRound> round;
    for (int attempt = 0; attempt < kAttempts && (!round || round->disturbed); ++attempt) {
      round = runner.run(queue, from_one_queue(side.devices));
      if (!round) return std::nullopt;
    }
    for (const auto& [model, time] : medians(queue, round->states)) {
      times.push_back({model, kind, stated_time(problem, model, kind), time});
    }
  }
  return times;
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
