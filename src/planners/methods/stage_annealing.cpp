#include "planners/methods/stage_annealing.h"

#include <algorithm>
#include <vector>

#include "evaluate/pipeline.h"
#include "planners/methods/pipeline_annealer.h"

namespace placewright::throughput {
namespace {

constexpr std::uint64_t kFirstCooling = 200;  // moves for each block
constexpr double kCold = 2e-3;                // of the first temperature

// By block.
std::vector<std::vector<GroupId>> groups_of(const StageModel& model) {
  std::vector<std::vector<GroupId>> groups(model.block_count());
  const Problem& problem = model.problem();
  for (const GroupId group : problem.groups()) {
    groups[model.blocks().block_of[problem.group_ops(group).front()].index()].push_back(group);
  }
  return groups;
}

class StageAnnealing : PipelineAnnealer {
 public:
  StageAnnealing(const StageModel& model, const std::vector<std::vector<GroupId>>& groups,
                 const Plan& start, Control& control)
      : PipelineAnnealer(model.problem(), groups, start.placement, control, control.budget().seed),
        model_(model),
        before_(model.block_count()),
        place_(model.problem().device_count()),
        best_(start.placement),
        best_value_(start.value) {
    for (Unit v = 0; v < model.block_count(); ++v) {
      for (const BlockId next : model.blocks().successors[BlockId{v}]) {
        before_[next.index()].push_back(v);
      }
    }
    order_devices(start);
  }

  std::optional<Plan> run(std::uint64_t most_moves) {
    if (devices_.size() < 2 || !blocks_are_whole()) return std::nullopt;
    std::uint64_t length = kFirstCooling * (1 + model_.block_count());
    for (std::uint64_t done = 0; done < most_moves && !control_.should_stop(); length *= 2) {
      length = std::min(length, most_moves - done);
      cool(
          {.moves = length, .cold = kCold}, best_value_, [&] { return change(); },
          [&] {
            best_value_ = evaluator_.value();
            best_ = evaluator_.placement();
            found_ = true;
          });
      done += length;
      for (Unit v = 0; v < model_.block_count(); ++v) {
        put(v, best_[problem_.group_ops(groups_[v].front()).front()]);
      }
    }
    if (!found_) return std::nullopt;
    return pipeline_plan(problem_, evaluator_.placement());
  }

 private:
  [[nodiscard]] std::size_t place(Unit block) const { return place_[device(block)]; }

  void order_devices(const Plan& start) {
    Table<DeviceId, char> used(problem_.device_count(), 0);
    for (const Stage& stage : start.stages) {
      devices_.push_back(stage.devices.front());
      used[stage.devices.front()] = 1;
    }
    for (const DeviceId device : problem_.devices()) {
      if (used[device] == 0) devices_.push_back(device);
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) place_[devices_[i]] = i;
  }

  // A plan from elsewhere may part ops that the model takes for one block.
  [[nodiscard]] bool blocks_are_whole() const {
    for (Unit v = 0; v < model_.block_count(); ++v) {
      for (const GroupId group : groups_[v]) {
        if (evaluator_.device(group) != device(v)) return false;
      }
    }
    return true;
  }

  // False: some device may not have a block of them.
  bool change() {
    const auto block = static_cast<Unit>(random_.below(model_.block_count()));
    const std::size_t from = place(block);
    const std::size_t to = other_place(from);
    if (!shift(block, to)) return false;
    if (random_() % 2 == 0) return true;
    const auto back = static_cast<Unit>(random_.below(model_.block_count()));
    const std::size_t shifted = trail_.size();
    if (place(back) == to && !shift(back, from)) take_back(shifted);
    return true;
  }

  std::size_t other_place(std::size_t from) {
    if (random_() % 8 == 0) return random_.below(devices_.size());
    if (from == 0) return 1;
    return from + 1 == devices_.size() || random_() % 2 == 0 ? from - 1 : from + 1;
  }

  // The block and what must follow it. False: some device may not have a block of them; the trail
  // says what was done.
  bool shift(Unit block, std::size_t to) {
    const std::size_t from = place(block);
    if (from == to) return true;
    std::size_t next = trail_.size();
    if (!move(block, devices_[to])) return false;
    for (; next < trail_.size(); ++next) {
      const Unit moved = trail_[next].unit;
      if (to > from) {
        for (const BlockId after : model_.blocks().successors[BlockId{moved}]) {
          const auto other = static_cast<Unit>(after.index());
          if (place(other) < to && !move(other, devices_[to])) return false;
        }
      } else {
        for (const Unit other : before_[moved]) {
          if (place(other) > to && !move(other, devices_[to])) return false;
        }
      }
    }
    return true;
  }

  const StageModel& model_;
  std::vector<std::vector<Unit>> before_;  // by block: those just before it
  std::vector<DeviceId> devices_;          // by place
  Table<DeviceId, std::size_t> place_;
  Placement best_;
  double best_value_;
  bool found_ = false;
};

}  // namespace

std::optional<Plan> anneal_stages(const StageModel& model, const Plan& start,
                                  std::uint64_t most_moves, Control& control) {
  const std::vector<std::vector<GroupId>> groups = groups_of(model);
  return StageAnnealing(model, groups, start, control).run(most_moves);
}

}  // namespace placewright::throughput
