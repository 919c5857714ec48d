#include "planners/methods/stage_annealing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "bounds/rounding.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/pipeline_evaluator.h"
#include "planners/methods/load_norm.h"
#include "planners/random_numbers.h"

namespace placewright::throughput {
namespace {

constexpr std::uint64_t kMovesPerStep = 64;
constexpr std::uint64_t kFirstCooling = 200;  // moves for each block
constexpr double kHot = 0.02;                 // of the value
constexpr double kCold = 2e-3;                // of that

class StageAnnealing {
 public:
  StageAnnealing(const StageModel& model, const Plan& start, Control& control)
      : model_(model),
        control_(control),
        evaluator_(model.problem(), start.placement),
        ledger_(model.problem(), start.placement),
        random_(control.budget().seed),
        groups_(model.block_count()),
        before_(model.block_count()),
        place_(model.block_count()),
        best_value_(start.value) {
    const Problem& problem = model.problem();
    for (const GroupId group : problem.groups()) {
      groups_[model.blocks().block_of[problem.group_ops(group).front()].index()].push_back(group);
    }
    for (std::uint32_t v = 0; v < model.block_count(); ++v) {
      for (const BlockId next : model.blocks().successors[BlockId{v}]) {
        before_[next.index()].push_back(v);
      }
    }
    order_devices(start);
    best_ = place_;
  }

  std::optional<Plan> run(std::uint64_t most_moves) {
    if (devices_.size() < 2 || !blocks_are_whole()) return std::nullopt;
    std::uint64_t length = kFirstCooling * (1 + model_.block_count());
    for (std::uint64_t done = 0; done < most_moves && !control_.should_stop(); length *= 2) {
      length = std::min(length, most_moves - done);
      cool(length);
      done += length;
      restore_best();
    }
    if (!found_) return std::nullopt;
    return pipeline_plan(model_.problem(), evaluator_.placement());
  }

 private:
  void order_devices(const Plan& start) {
    const Problem& problem = model_.problem();
    Table<DeviceId, char> used(problem.device_count(), 0);
    for (const Stage& stage : start.stages) {
      for (const OpId op : stage.ops) {
        place_[model_.blocks().block_of[op].index()] = devices_.size();
      }
      devices_.push_back(stage.devices.front());
      used[stage.devices.front()] = 1;
    }
    for (const DeviceId device : problem.devices()) {
      if (used[device] == 0) devices_.push_back(device);
    }
  }

  // A plan from elsewhere may part ops that the model takes for one block.
  [[nodiscard]] bool blocks_are_whole() const {
    for (std::size_t v = 0; v < groups_.size(); ++v) {
      for (const GroupId group : groups_[v]) {
        if (evaluator_.device(group) != devices_[place_[v]]) return false;
      }
    }
    return true;
  }

  void cool(std::uint64_t moves) {
    temperature_ = kHot * evaluator_.value();
    const double hot = temperature_;
    norm_ = {};
    energy_ = energy();
    for (std::uint64_t move = 0; move < moves; ++move) {
      if (move % kMovesPerStep == 0) {
        if (control_.should_stop(1)) return;
        const double share = static_cast<double>(move) / static_cast<double>(moves);
        temperature_ = hot * std::pow(kCold, share);
        if (norm_.sharpen(share)) energy_ = energy();
      }
      change();
      if (!within_memory() || !accept()) take_back(0);
      trail_.clear();
    }
  }

  void change() {
    const auto block = static_cast<std::uint32_t>(random_.below(model_.block_count()));
    const std::size_t from = place_[block];
    const std::size_t to = other_place(from);
    if (!shift(block, to) || random_() % 2 == 0) return;
    const auto back = static_cast<std::uint32_t>(random_.below(model_.block_count()));
    const std::size_t shifted = trail_.size();
    if (place_[back] == to && !shift(back, from)) take_back(shifted);
  }

  std::size_t other_place(std::size_t from) {
    if (random_() % 8 == 0) return random_.below(devices_.size());
    if (from == 0) return 1;
    return from + 1 == devices_.size() || random_() % 2 == 0 ? from - 1 : from + 1;
  }

  // The block and what must follow it. False: some device may not have a block of them; the trail
  // says what was done.
  bool shift(std::uint32_t block, std::size_t to) {
    const std::size_t from = place_[block];
    if (from == to) return true;
    std::size_t next = trail_.size();
    if (!put(block, to)) return false;
    for (; next < trail_.size(); ++next) {
      const std::uint32_t moved = trail_[next].block;
      if (to > from) {
        for (const BlockId after : model_.blocks().successors[BlockId{moved}]) {
          const auto other = static_cast<std::uint32_t>(after.index());
          if (place_[other] < to && !put(other, to)) return false;
        }
      } else {
        for (const std::uint32_t other : before_[moved]) {
          if (place_[other] > to && !put(other, to)) return false;
        }
      }
    }
    return true;
  }

  bool put(std::uint32_t block, std::size_t to) {
    const DeviceId device = devices_[to];
    for (const GroupId group : groups_[block]) {
      if (!model_.problem().group_allowed(group, device)) {
        impossible_ = true;
        return false;
      }
    }
    trail_.push_back({block, place_[block]});
    move(block, to);
    return true;
  }

  void move(std::uint32_t block, std::size_t to) {
    for (const GroupId group : groups_[block]) {
      ledger_.remove_group(group, devices_[place_[block]]);
      ledger_.add_group(group, devices_[to]);
      evaluator_.move(group, devices_[to]);
    }
    place_[block] = to;
  }

  void take_back(std::size_t length) {
    for (; trail_.size() > length; trail_.pop_back()) move(trail_.back().block, trail_.back().from);
    impossible_ = false;
  }

  [[nodiscard]] bool within_memory() const {
    return !impossible_ && std::all_of(trail_.begin(), trail_.end(), [&](const Step& step) {
      return ledger_.within(devices_[place_[step.block]]);
    });
  }

  [[nodiscard]] double energy() const { return norm_.of(evaluator_, devices_); }

  bool accept() {
    const double after = energy();
    if (after > energy_ && !random_.chance(std::exp((energy_ - after) / temperature_))) {
      return false;
    }
    energy_ = after;
    if (evaluator_.value() < safe_sum(best_value_) && ledger_.within()) {
      best_value_ = evaluator_.value();
      best_ = place_;
      found_ = true;
    }
    return true;
  }

  void restore_best() {
    for (std::uint32_t v = 0; v < model_.block_count(); ++v) {
      if (place_[v] != best_[v]) move(v, best_[v]);
    }
  }

  struct Step {
    std::uint32_t block = 0;
    std::size_t from = 0;
  };

  const StageModel& model_;
  Control& control_;
  PipelineEvaluator evaluator_;
  MemoryLedger ledger_;
  RandomNumbers random_;
  std::vector<std::vector<GroupId>> groups_;        // by block
  std::vector<std::vector<std::uint32_t>> before_;  // by block: those just before it
  std::vector<DeviceId> devices_;                   // by place
  std::vector<std::size_t> place_;                  // by block
  std::vector<std::size_t> best_;
  double best_value_;
  bool found_ = false;
  std::vector<Step> trail_;
  bool impossible_ = false;  // the trail ends where a block may not be
  LoadNorm norm_;
  double energy_ = 0;
  double temperature_ = 0;
};

}  // namespace

std::optional<Plan> anneal_stages(const StageModel& model, const Plan& start,
                                  std::uint64_t most_moves, Control& control) {
  return StageAnnealing(model, start, control).run(most_moves);
}

}  // namespace placewright::throughput
