// A second bound of training steps, from the stages that any plan must have (training_planner.h).
//
// Let T be the longest (m - 1) slots of a replica, and A the longest update plus the longest
// all-reduce: a step takes T + A and the slots of all stages, the fill. For T <= t and A <= a, a
// replica of the stage [i, j) on a group of d GPUs takes at most floor(1 + t / slot) micro-batches
// (fewer where its memory holds only so many), so the stage needs GPUs for all M of them, and at
// least so many replicas that their all-reduce must fit into a. A program over prefixes finds the
// partition of the layers with the least fill, where the GPUs of each pool have a price; the prices
// come from cutting planes. Any prices give a valid bound (Lagrange).
//
// What makes it strong: slots include the sends of a boundary at the best link of the pool; the
// program knows how many stages follow (up to 12), so memory holds the right number of activations,
// and small GPUs are out of the first stages; replicas in two pools talk over the link between
// them, and the slower pool's slot counts.
//
// Ranges of (T, A) are split best first until the least bound reaches the best plan known, a range
// is narrow, or after `steps` of them. Time: steps x prices tried x
// depths x layers^2 x pools.

#pragma once

#include "planners/training/training_search.h"

namespace placewright {

// Of micro-batches of this size. `simple` is a bound that is known. Infinite if no plan exists.
class PartitionBound {
 public:
  PartitionBound(const TrainingSearch& search, int micro_batch);

  // False if memory alone forbids every plan.
  [[nodiscard]] bool feasible() const { return feasible_; }
  // Seconds of the stages, for T <= `steady` and A <= `tail`; at least `enough` is as good as more.
  [[nodiscard]] double fill(double steady, double tail, double enough) const;

 private:
  // A kind of group for one stage.
  struct Choice {
    GroupType type;
    double slot = 0;
    double update = 0;
    double exchange_of_two = 0;  // all-reduce of two replicas
  };
  struct Stage {
    std::vector<Choice> choices;
    double exchange_across = 0;  // all-reduce of two replicas in two pools
  };
  // A stage that takes GPUs of this pool: seconds, and how many.
  struct Option {
    double slot = 0;
    std::size_t pool = 0;
    double gpus = 0;
  };
  struct Options {
    std::vector<Option> all;
    std::vector<std::size_t> begin;  // in `all`, by depth and stage
  };
  void find_depths();
  void find_stages();
  [[nodiscard]] int most_micro_batches(const GroupType& type, std::size_t first, std::size_t last,
                                       int depth) const;
  [[nodiscard]] bool can_hold(std::size_t first, std::size_t last, int depth) const;
  [[nodiscard]] Stage stage_of(std::size_t first, std::size_t last) const;
  [[nodiscard]] double fastest(std::size_t pool, std::size_t other, int streams) const;
  [[nodiscard]] double slot_of(const GroupType& type, std::size_t first, std::size_t last) const;
  [[nodiscard]] double gradients(int degree, std::size_t first, std::size_t last) const;
  // With all replicas alike: whole groups. With replicas of several types, of which this one takes
  // the micro-batches: parts of groups, and the slot of another one where that is longer.
  void add_options(std::size_t stage, std::size_t depth, double steady, double tail,
                   std::vector<Option>& options) const;
  [[nodiscard]] Options options_for(double steady, double tail) const;
  [[nodiscard]] double priced(const Options& options, const std::vector<double>& prices,
                              std::vector<double>& gpus) const;
  [[nodiscard]] std::size_t index(std::size_t first, std::size_t last) const {
    return first * (layers_ + 1) + last;
  }

  const StepModel& model_;
  const TrainingProblem& problem_;
  std::vector<GroupType> types_;
  std::size_t layers_;
  int micro_batch_;
  int micro_batches_;
  bool feasible_ = false;
  std::size_t depths_ = 1;     // the last one stands for all deeper ones too
  std::vector<int> behind_;    // the fewest stages that the layers from here on need
  std::vector<Stage> stages_;  // by index()
  std::vector<int> most_;      // micro-batches that memory allows, by stage, choice and depth
  std::vector<double> gpus_;   // of each pool
};

// Over all sizes of micro-batches; `simple[i]` is a bound for the i-th size. At most `value`.
double partition_bound(const TrainingSearch& search, const std::vector<double>& simple,
                       double value);

}  // namespace placewright
