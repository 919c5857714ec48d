#include "running/practice.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "problem/exclusion.h"
#include "problem/measured.h"
#include "problem/time_unit.h"
#include "running/turns.h"

namespace placewright {
namespace {

// In each turn.
constexpr std::size_t kLeastRuns = 2;       // of each model
constexpr std::size_t kLeastOnADevice = 3;  // inferences, of whichever model

// Milliseconds of inferences of a model, and of those among them that had busy neighbours.
struct Inferences {
  std::vector<double> all;
  std::vector<double> beside;

  [[nodiscard]] double time() const { return median(beside.empty() ? all : beside); }
};

// Devices of one kind that can work at once, and the models that they run.
struct Side {
  KindId kind;
  std::vector<DeviceId> devices;
  std::vector<std::size_t> models;
  std::map<std::size_t, Inferences> inferences = {};  // by model
};

Side side_of(const Problem& problem, const std::vector<ArrivalPlace>& places, KindId kind) {
  std::set<DeviceId> devices;
  std::set<std::size_t> models;
  for (const ArrivalPlace& place : places) {
    if (problem.kind_of(place.device) != kind) continue;
    devices.insert(place.device);
    models.insert(place.model);
  }
  Side side{.kind = kind, .devices = {}, .models = {models.begin(), models.end()}};
  for (const DeviceId device : devices) {
    const bool free = std::ranges::none_of(
        side.devices, [&](DeviceId other) { return exclude_each_other(problem, device, other); });
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

void count(Side& side, const std::vector<ArrivingModel>& queue,
           const std::vector<ArrivalState>& states) {
  const double empty = std::ranges::max(states, {}, &ArrivalState::start).start;
  for (std::size_t i = 0; i < states.size(); ++i) {
    Inferences& inferences = side.inferences[queue[i].model];
    const double time = states[i].end - states[i].start;
    inferences.all.push_back(time);
    if (states[i].end <= empty) inferences.beside.push_back(time);
  }
}

// In milliseconds.
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
  std::vector<Side> sides;
  for (std::size_t kind = 0; kind < problem.kind_count(); ++kind) {
    Side side = side_of(problem, places, KindId{kind});
    if (!side.models.empty()) sides.push_back(std::move(side));
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    if (progress) progress(fmt::format("practising, turn {} of {}", turn + 1, kTurns));
    for (const std::size_t number : order_in_turn(turn, sides.size())) {
      const std::vector<ArrivingModel> queue = queue_of(sides[number]);
      const auto round = runner.run(queue, from_one_queue(sides[number].devices));
      if (!round) return std::nullopt;
      count(sides[number], queue, round->states);
    }
  }
  std::vector<PractisedTime> times;
  for (const Side& side : sides) {
    for (const auto& [model, inferences] : side.inferences) {
      times.push_back(
          {model, side.kind, stated_time(problem, model, side.kind), inferences.time()});
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
