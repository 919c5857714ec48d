// Training one policy on many problems.
//
// Before the first episode a good placement of each problem is looked for without a network (by
// walkers, from the best quick plan); what the network learns, beside its own rewards, is to do
// likewise. Each episode takes one problem, plays on it and improves the weights. Curriculum: it
// begins with the smallest quarter of the problems; the others come in by size, and from the middle
// of the training on all take part. Which problem an episode takes follows from the seed and its
// number alone, and the training state holds everything else that an episode depends on, so a
// training that was stopped goes on as if it had not been (with one thread: byte for byte).

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planners/learned/learner.h"
#include "planners/learned/policy.h"
#include "planners/learned/rollouts.h"
#include "planners/planner.h"

namespace placewright::learned {

struct TrainingOptions {
  LearnerOptions learner;
  PlacementGraphOptions features;
  std::uint64_t episodes = 1000;
  std::size_t teacher_rounds = 200;
};

// What one episode brought.
struct TrainingRow {
  std::uint64_t episode = 0;
  std::string problem;
  double reward = 0;   // value of the best single device / mean value of the samples
  double best = 0;     // best value so far on this problem ...
  double bound = 0;    // ... and its lower bound
  double entropy = 0;  // of a decision, as a share of the largest
  double seconds = 0;  // since the training began or was resumed
};

class Training {
 public:
  // Problems without a plan are left out. The problems must outlive the training.
  Training(const std::vector<Problem>& problems, const TrainingOptions& options, Control& control);
  ~Training();

  [[nodiscard]] std::size_t problem_count() const { return fields_.size(); }
  [[nodiscard]] std::uint64_t episode() const { return episode_; }
  [[nodiscard]] std::uint64_t placements() const;
  [[nodiscard]] bool done() const { return episode_ >= options_.episodes; }

  TrainingRow step();

  // The policy as it is now; with the training state, a checkpoint.
  enum class State { left_out, included };
  [[nodiscard]] Policy policy(State state) const;
  // Goes on where the checkpoint was made. Throws std::invalid_argument where it belongs to another
  // training.
  void resume(const Policy& checkpoint);

 private:
  struct Field;  // a problem to play on

  [[nodiscard]] Field& field_of(std::uint64_t episode);

  TrainingOptions options_;
  Control& control_;
  std::vector<std::unique_ptr<Field>> fields_;  // by size
  std::unique_ptr<Learner> learner_;
  std::uint64_t episode_ = 0;
};

}  // namespace placewright::learned
