#include "planners/learned/training.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "bounds/bounds.h"
#include "planners/learned/first_plan.h"
#include "planners/random_numbers.h"

namespace placewright::learned {
namespace {

constexpr double kFirstShare = 0.25;
constexpr const char* kBestPrefix = "best.";

}  // namespace

struct Training::Field {
  Field(const Problem& made_for, const TrainingOptions& options, Plan quick, double single,
        Control& control)
      : problem(made_for),
        single_value(single),
        bound(best_lower_bound(made_for).lower_bound),
        graph(placement_graph(made_for, options.features, heft_placement(made_for, control))),
        rollouts(made_for, graph, control, std::move(quick)) {
    rollouts.walk(options.teacher_rounds);
  }

  const Problem& problem;
  double single_value;
  double bound;
  PlacementGraph graph;
  Rollouts rollouts;
};

Training::Training(const std::vector<Problem>& problems, const TrainingOptions& options,
                   Control& control)
    : options_(options), control_(control) {
  for (const Problem& problem : problems) {
    Answer quick = quick_plan(problem, control);
    if (!quick.plan) continue;
    const double single = first_plan(problem, control).value();
    fields_.push_back(
        std::make_unique<Field>(problem, options, std::move(*quick.plan), single, control));
  }
  if (fields_.empty()) throw std::invalid_argument("no problem to train on has a plan");
  std::stable_sort(fields_.begin(), fields_.end(), [](const auto& a, const auto& b) {
    return a->problem.op_count() < b->problem.op_count();
  });
  learner_ = make_learner(options.learner);
}

Training::~Training() = default;

std::uint64_t Training::placements() const {
  std::uint64_t sum = 0;
  for (const auto& field : fields_) sum += field->rollouts.placements();
  return sum;
}

Training::Field& Training::field_of(std::uint64_t episode) {
  const double progress = static_cast<double>(episode) /
                          static_cast<double>(std::max<std::uint64_t>(1, options_.episodes));
  const double share = std::min(1.0, kFirstShare + (1 - kFirstShare) * 2 * progress);
  const auto open =
      static_cast<std::size_t>(std::ceil(share * static_cast<double>(fields_.size())));
  RandomNumbers random(options_.learner.seed * 1000003U + episode);
  return *fields_[random.below(std::max<std::size_t>(1, open))];
}

TrainingRow Training::step() {
  Field& field = field_of(episode_);
  const Episode played = learner_->play(field.rollouts, episode_);
  if (played.learned) ++episode_;
  return TrainingRow{.episode = episode_,
                     .problem = field.problem.name(),
                     .reward = played.mean_value > 0 ? field.single_value / played.mean_value : 1,
                     .best = field.rollouts.best_plan().value,
                     .bound = field.bound,
                     .entropy = played.entropy,
                     .seconds = control_.elapsed()};
}

Policy Training::policy(State state) const {
  Policy policy;
  write_architecture(options_.learner, options_.features, policy);
  policy.facts["seed"] = std::to_string(options_.learner.seed);
  policy.facts["episodes"] = std::to_string(episode_);
  std::string names;
  for (const auto& field : fields_) names += (names.empty() ? "" : ", ") + field->problem.name();
  policy.facts["trained on"] = names;
  policy.weights = learner_->weights();
  if (state == State::left_out) return policy;
  policy.training_state = learner_->optimiser_state();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const auto row = fields_[i]->rollouts.best();
    policy.training_state.push_back(NamedTensor{fmt::format("{}{}", kBestPrefix, i),
                                                {static_cast<std::int64_t>(row.size())},
                                                {row.begin(), row.end()}});
  }
  return policy;
}

void Training::resume(const Policy& checkpoint) {
  Policy own;
  write_architecture(options_.learner, options_.features, own);
  for (const auto& [key, value] : own.facts) {
    const auto found = checkpoint.facts.find(key);
    if (found == checkpoint.facts.end() || found->second != value) {
      throw std::invalid_argument(fmt::format("the checkpoint has another '{}'", key));
    }
  }
  learner_->restore(checkpoint.weights, checkpoint.training_state);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    for (const NamedTensor& tensor : checkpoint.training_state) {
      if (tensor.name != fmt::format("{}{}", kBestPrefix, i)) continue;
      std::vector<std::int32_t> row(tensor.values.begin(), tensor.values.end());
      if (row.size() != fields_[i]->graph.node_count()) {
        throw std::invalid_argument("the checkpoint was made on other problems");
      }
      fields_[i]->rollouts.offer(std::move(row));
    }
  }
  try {
    episode_ = std::stoull(checkpoint.facts.at("episodes"));
  } catch (const std::exception&) {
    throw std::invalid_argument("the checkpoint does not say how far it is");
  }
}

}  // namespace placewright::learned
