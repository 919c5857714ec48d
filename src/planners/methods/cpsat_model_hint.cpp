#include <algorithm>
#include <map>
#include <ranges>
#include <tuple>

#include "planners/methods/cpsat_model_state.h"
#include "problem/exclusion.h"
#include "problem/lanes.h"

namespace placewright {
namespace {

using solvers::CpExpression;
using solvers::CpLiteral;
using solvers::CpVariable;
using Units = std::int64_t;

}  // namespace

std::int64_t ScheduleModel::State::value(const Values& values, CpLiteral literal) {
  const int code = literal.code();
  return code >= 0 ? values[static_cast<std::size_t>(code)]
                   : 1 - values[static_cast<std::size_t>(-code - 1)];
}

std::int64_t ScheduleModel::State::value(const Values& values, const CpExpression& sum) {
  std::int64_t total = sum.offset;
  for (const auto& term : sum.terms) {
    total += term.coefficient * values[static_cast<std::size_t>(term.variable.index)];
  }
  return total;
}

Units ScheduleModel::State::earliest(const Values& values, CpVariable variable) const {
  Units time = 0;
  for (const Precedence& before : precedences_[static_cast<std::size_t>(variable.index)]) {
    if (std::all_of(before.conditions.begin(), before.conditions.end(),
                    [&](CpLiteral literal) { return value(values, literal) != 0; })) {
      time = std::max(time, value(values, before.earlier));
    }
  }
  return time;
}

namespace {

// When the resources are free while a hint is timed, one activity after the other.
class FreeTimes {
 public:
  FreeTimes(const Problem& problem, const std::vector<ScheduleScope::Busy>& busy,
            const TimeGrid& grid)
      : problem_(problem),
        lanes_(problem.device_count()),
        held_(problem.resource_count(), 0),
        out_(problem.space_count()),
        in_(problem.space_count()) {
    for (const DeviceId device : problem.devices()) {
      lanes_[device].assign(static_cast<std::size_t>(useful_lanes(problem, device)), 0);
    }
    for (const ScheduleScope::Busy& taken : busy) {
      busy_.push_back(
          {taken.resource, taken.device, grid.units(taken.start), grid.units(taken.end)});
    }
  }

  // Those of which nothing is left for others; the rest may be wrong in a hint.
  [[nodiscard]] auto whole_uses(DeviceId device) const {
    return problem_.uses(device) | std::views::filter([this](const ResourceUse& use) {
             return takes_whole(problem_, use);
           });
  }

  Units take_lane(DeviceId device, Units ready, Units length) {
    if (length == 0) return ready;
    auto& lanes = lanes_[device];
    Units& free = *std::min_element(lanes.begin(), lanes.end());
    Units start = std::max(ready, free);
    for (const ResourceUse& use : whole_uses(device)) start = std::max(start, held_[use.resource]);
    start = past_busy(start, length, [&](const Taken& taken) {
      return taken.resource == Facility::compute && taken.device == device;
    });
    for (const ResourceUse& use : whole_uses(device)) held_[use.resource] = start + length;
    free = start + length;
    return start;
  }

  Units take_ports(SpaceId from, SpaceId to, Units ready, Units length) {
    if (length == 0) return ready;
    Units start = ready;
    if (from.valid()) start = std::max(start, out_[from]);
    if (to.valid()) start = std::max(start, in_[to]);
    start = past_busy(start, length, [&](const Taken& taken) {
      const SpaceId space = problem_.space(taken.device);
      return (taken.resource == Facility::out_port && space == from) ||
             (taken.resource == Facility::in_port && space == to);
    });
    if (from.valid()) out_[from] = start + length;
    if (to.valid()) in_[to] = start + length;
    return start;
  }

 private:
  struct Taken {
    Facility resource;
    DeviceId device;
    Units start;
    Units end;
  };

  template <class Needed>
  [[nodiscard]] Units past_busy(Units start, Units length, const Needed& needed) const {
    for (Units before = -1; before != start;) {
      before = start;
      for (const Taken& taken : busy_) {
        if (!needed(taken)) continue;
        if (start < taken.end && taken.start < start + length) start = taken.end;
      }
    }
    return start;
  }

  const Problem& problem_;
  Table<DeviceId, std::vector<Units>> lanes_;
  Table<ResourceId, Units> held_;
  Table<SpaceId, Units> out_;
  Table<SpaceId, Units> in_;
  std::vector<Taken> busy_;
};

}  // namespace

std::vector<ScheduleModel::State::Activity> ScheduleModel::State::activities_in_order(
    const Schedule& schedule) const {
  std::map<std::tuple<TensorId, Leg, SpaceId>, double> known;
  for (const Transfer& transfer : schedule.transfers) {
    const SpaceId to = transfer.to.valid() ? problem_.space(transfer.to) : SpaceId{};
    known[{transfer.tensor, transfer.leg, to}] = transfer.start;
  }
  std::vector<Activity> activities;
  for (const OpId op : order_) {
    activities.push_back({schedule.start[op], 3 * problem_.topological_rank(op), op, nullptr});
  }
  for (const Sending& sending : sendings_) {
    const OpId producer = problem_.producer(sending.tensor);
    double start = inside(producer) ? schedule.end[producer] : 0;
    for (const Route& route : sending.routes) {
      const auto found = known.find({route.tensor, route.leg, route.to});
      if (found != known.end()) start = std::max(start, found->second);
    }
    const std::size_t leg = sending.leg == Leg::in ? 2 : 1;
    activities.push_back({start, 3 * problem_.topological_rank(producer) + leg, OpId{}, &sending});
  }
  std::stable_sort(activities.begin(), activities.end(), [](const Activity& a, const Activity& b) {
    return std::tuple(a.start, a.rank) < std::tuple(b.start, b.rank);
  });
  return activities;
}

// The order of the schedule on the grid: each activity as early as those before it allow.
void ScheduleModel::State::time_activities(Values& values, const Schedule& schedule) const {
  const auto set = [&](CpVariable variable, Units time) {
    values[static_cast<std::size_t>(variable.index)] = time;
  };
  FreeTimes free(problem_, scope_.busy, grid_);
  for (const Activity& activity : activities_in_order(schedule)) {
    if (activity.sending != nullptr) {
      const Sending& sending = *activity.sending;
      Units start = earliest(values, sending.start);
      for (const Route& route : sending.routes) {
        if (value(values, route.taken) == 0) continue;
        start = free.take_ports(route.from, route.to, start, route.length);
      }
      set(sending.start, start);
      continue;
    }
    const OpVariables& variables = ops_[activity.op];
    const Units length = value(values, variables.length);
    DeviceId device;
    for (const Choice& choice : choices(activity.op)) {
      if (value(values, choice.here) != 0) device = choice.device;
    }
    const Units ready = earliest(values, variables.start);
    const Units start = device.valid() ? free.take_lane(device, ready, length) : ready;
    set(variables.start, start);
    if (variables.length_variable) set(*variables.length_variable, length);
    if (variables.end_variable) set(*variables.end_variable, start + length);
  }
  for (const CpVariable completion : completions_) set(completion, earliest(values, completion));
}

void ScheduleModel::State::hint(const Placement& placement, const Schedule& schedule) {
  if (alike_.empty()) return hint_as_it_is(placement, schedule);
  const Table<DeviceId, DeviceId> names = renamed(placement);
  Placement other = placement;
  for (const OpId op : problem_.ops()) {
    if (other[op].valid()) other[op] = names[other[op]];
  }
  Schedule same = schedule;
  for (Transfer& transfer : same.transfers) {
    if (transfer.from.valid()) transfer.from = names[transfer.from];
    if (transfer.to.valid()) transfer.to = names[transfer.to];
  }
  hint_as_it_is(other, same);
}

void ScheduleModel::State::hint_as_it_is(const Placement& placement, const Schedule& schedule) {
  Values values(static_cast<std::size_t>(model_.variables()), 0);
  values[static_cast<std::size_t>(yes_.code())] = 1;
  for (const OpId op : order_) {
    for (const Choice& choice : choices(op)) {
      if (is_true(choice.here)) continue;
      values[static_cast<std::size_t>(choice.here.code())] = placement[op] == choice.device ? 1 : 0;
    }
  }
  for (const auto& [variable, rule] : derived_) {
    values[static_cast<std::size_t>(variable.index)] = rule(values) ? 1 : 0;
  }
  time_activities(values, schedule);
  for (int i = 0; i < model_.variables(); ++i) {
    model_.set_hint(CpVariable{i}, values[static_cast<std::size_t>(i)]);
  }
}

}  // namespace placewright
