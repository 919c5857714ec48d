// Placements proposed by a network, made feasible and evaluated, in batches over all threads.
//
// Nothing that a network proposes is only penalised:
//
//   unsupported ops, pins, colocation   never proposed (PlacementGraph::allowed; nodes are whole
//                                       colocation groups)
//   memory                              nodes move off overfull devices, the cheapest move per byte
//                                       first
//   contiguous stages, device calls     devices are ordered by where they would work and get runs
//                                       of the blocks that agree with the proposal as far as
//                                       possible
//   what is still infeasible            becomes the plan that the rollouts began with
//
// The value is that of the problem's evaluator. For schedules it is `dispatch` by the ranks that
// the placement itself gives the ops: a list schedule in one fixed order is faster to compute, but
// takes HEFT's own placement of Inception-V3 for a tenth worse than it is, and what is learned from
// it is to please that order. A placement of a few hundred ops takes some tens of microseconds. An
// op of a placement counts `steps_per_op` steps of the budget, more where the network works longer
// for it.

#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "planners/learned/learned.h"
#include "planners/learned/learner.h"
#include "planners/learned/walkers.h"
#include "planners/planner.h"

namespace placewright::learned {

class Rollouts final : public Environment {
 public:
  // `first` is feasible. The arguments must outlive the rollouts.
  Rollouts(const Problem& problem, const PlacementGraph& graph, Control& control, Plan first,
           std::uint64_t steps_per_op = 1);
  ~Rollouts() override;

  [[nodiscard]] const PlacementGraph& graph() const override { return graph_; }
  std::vector<double> evaluate(std::span<std::int32_t> devices) override;
  void explore(std::span<const std::int32_t> drawn, std::span<const std::int64_t> group_of,
               double guided) override;
  [[nodiscard]] double scale() const override { return scale_; }
  [[nodiscard]] std::span<const std::int32_t> best() const override { return best_row_; }
  // Looks at the clock each time: what happens between two questions takes long.
  [[nodiscard]] bool should_stop() override {
    return control_.remaining() <= 0 || control_.should_stop(0);
  }

  // Rounds of exploring without a network; in place of a policy stands the first plan.
  void walk(std::size_t rounds);

  // Takes over a placement found elsewhere if it is better; one with split nodes is left alone.
  void offer(std::vector<std::int32_t> row);

  // From now on values are measured, one placement after the other.
  void measure_with(Measure measure);
  // Measures the last plans that were the best so far, and makes the one that is best then the
  // best.
  void choose_by(const Measure& measure);

  // The best plan so far, and how many placements were evaluated.
  [[nodiscard]] const Plan& best_plan() const { return best_plan_; }
  [[nodiscard]] std::uint64_t placements() const { return placements_; }

 private:
  class Worker;

  void evaluate_row(Worker& worker, std::span<std::int32_t> row, double& value) const;
  [[nodiscard]] double value_of(Worker& worker, std::span<const std::int32_t> row) const;
  void count_placements(std::size_t count);
  void keep_if_better(std::span<const std::int32_t> row, double value);

  const Problem& problem_;
  const PlacementGraph& graph_;
  Control& control_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Plan best_plan_;
  double best_value_;  // as evaluated; the plan's may be less
  std::vector<std::int32_t> best_row_;
  Walkers walkers_;
  std::vector<std::int32_t> first_row_;
  double first_value_;
  double scale_;
  std::uint64_t steps_per_op_;
  Measure measure_ = {};
  std::deque<Plan> latest_;  // plans that were the best so far, the newest last
  std::uint64_t placements_ = 0;
};

}  // namespace placewright::learned
