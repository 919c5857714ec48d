// The door to the learned planners' networks, which live in a plugin on libtorch: no torch type
// passes through it, and the program loads the plugin only when a learned planner is asked for.
//
// A Learner holds the weights of one network and improves them by playing episodes. An episode
// proposes placements for the graph of an Environment, which makes them feasible and says what they
// are worth. Everything random follows from the seed and the number of the episode, so that a
// training that is resumed goes on as if it had never stopped.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planners/learned/placement_graph.h"

namespace placewright::learned {

enum class Network { hsdag, placeto, rnn };
enum class Encoder { gcn, gin, gat, none };
enum class Algorithm { reinforce, ppo };
enum class Baseline { none, mean, moving };

}  // namespace placewright::learned

namespace placewright {

template <>
inline constexpr auto kSpellings<learned::Network> =
    std::to_array<Spelling<learned::Network>>({{learned::Network::hsdag, "hsdag"},
                                               {learned::Network::placeto, "placeto"},
                                               {learned::Network::rnn, "rnn"}});
template <>
inline constexpr auto kSpellings<learned::Encoder> =
    std::to_array<Spelling<learned::Encoder>>({{learned::Encoder::gcn, "gcn"},
                                               {learned::Encoder::gin, "gin"},
                                               {learned::Encoder::gat, "gat"},
                                               {learned::Encoder::none, "none"}});
template <>
inline constexpr auto kSpellings<learned::Algorithm> = std::to_array<Spelling<learned::Algorithm>>(
    {{learned::Algorithm::reinforce, "reinforce"}, {learned::Algorithm::ppo, "ppo"}});
template <>
inline constexpr auto kSpellings<learned::Baseline> =
    std::to_array<Spelling<learned::Baseline>>({{learned::Baseline::mean, "mean"},
                                                {learned::Baseline::moving, "moving"},
                                                {learned::Baseline::none, "none"}});

}  // namespace placewright

namespace placewright::learned {

// Grows whenever something here or in what it includes changes: a plugin that was built for another
// number is refused before it is called.
inline constexpr int kLearnerInterface = 1;

struct LearnerOptions {
  Network network = Network::hsdag;
  Encoder encoder = Encoder::gcn;
  bool parse = true;        // hsdag: group nodes before they are placed
  double merge_bias = -1;   // hsdag: what an edge's score begins with, before the sigmoid
  bool any_devices = true;  // one head for every device; else one output for each of a fixed number
  std::int64_t device_count = 0;  // of a fixed number
  std::int64_t channels = 64;
  double dropout = 0;
  Algorithm algorithm = Algorithm::reinforce;
  Baseline baseline = Baseline::mean;
  std::int64_t steps = 1;      // hsdag: of an episode
  std::int64_t samples = 128;  // placements of each step
  double discount = 0.95;
  double learning_rate = 3e-3;
  double entropy = 1e-3;   // weight of the entropy bonus
  double exploration = 2;  // decisions of a placement that are taken at random, in the mean
  double imitation = 0.1;  // weight of the best placement so far
  double neighbours = 0;   // hsdag: share of the samples that change good placements a little ...
  double guided = 0.5;     // ... and of those, share that do what the policy has drawn
  std::uint64_t seed = 1;
};

// What a network plays against.
class Environment {
 public:
  Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  virtual ~Environment() = default;

  [[nodiscard]] virtual const PlacementGraph& graph() const = 0;
  // Values of several placements: `devices` has a row of one device for each node. Rows that are
  // not feasible are repaired in place first; a node whose ops a repair has put on several devices
  // becomes -1.
  virtual std::vector<double> evaluate(std::span<std::int32_t> devices) = 0;
  // Looks for better placements near good ones, a share of them (`guided`) by what the policy would
  // do instead: `drawn` has a row for each placement to look at, `group_of` the policy's groups of
  // nodes.
  virtual void explore(std::span<const std::int32_t> drawn, std::span<const std::int64_t> group_of,
                       double guided) = 0;
  // The value that rewards are measured against; not zero.
  [[nodiscard]] virtual double scale() const = 0;
  // The best placement so far, as a row.
  [[nodiscard]] virtual std::span<const std::int32_t> best() const = 0;
  [[nodiscard]] virtual bool should_stop() = 0;
};

struct Episode {
  bool learned = true;  // false: the time was over before, and the weights are as they were
  double mean_value = 0;
  double entropy = 0;                  // of a decision, in the mean, as a share of the largest
  std::vector<std::int64_t> group_of;  // hsdag: node -> group, of the last step
};

struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;

  friend bool operator==(const NamedTensor&, const NamedTensor&) = default;
};

using Weights = std::vector<NamedTensor>;

class Learner {
 public:
  Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;

  // Plays and learns, unless the environment stops before there is anything to learn from.
  virtual Episode play(Environment& environment, std::uint64_t number) = 0;
  // Proposes the most likely placement, and samples beside it; the weights stay.
  virtual Episode propose(Environment& environment, std::uint64_t number) = 0;

  [[nodiscard]] virtual Weights weights() const = 0;
  // What the optimiser remembers, to go on learning exactly where another left off.
  [[nodiscard]] virtual Weights optimiser_state() const = 0;
  // Throws std::invalid_argument with one sentence where names or shapes are not those of the
  // network.
  virtual void restore(const Weights& weights, const Weights& optimiser_state) = 0;
};

// Empty where the plugin can be used, else one sentence that says how to get it. Does not load it.
std::string why_no_plugin();

// Loads the plugin on the first call. Throws std::runtime_error with one sentence.
std::unique_ptr<Learner> make_learner(const LearnerOptions& options);

}  // namespace placewright::learned
