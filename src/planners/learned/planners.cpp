// hsdag, placeto, rnn: planners that learn to place by playing against the evaluator.
//
// Each starts from the best single device (hsdag with `costs`, from the best plan of the planners
// that end at once) and keeps the best placement that it has seen, so it is never worse than one
// device. It ends with the budget (or after `episodes`) and proves nothing. Of hsdag's samples most
// walk (walkers.h): they change good placements a little, half of them by what the policy would do;
// `neighbours=0` leaves the network alone.
// Time: an episode costs one pass of the network and the evaluation of its samples. Memory:
// O(samples x ops), and what the network needs.
//
// With `published=true` hsdag takes the published settings: 128 channels, dropout 0.2, 20 steps of
// one placement for each episode, no baseline, features without costs, one output for each device,
// 25 episodes. The plain defaults are ours; docs/results/learned.md says what each brings.

#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "planners/learned/first_plan.h"
#include "planners/learned/learned.h"
#include "planners/learned/learner.h"
#include "planners/learned/policy.h"
#include "planners/learned/rollouts.h"
#include "planners/settings_error.h"

namespace placewright {
namespace {

// What a placement is worth: what the evaluator says, or a run on the real devices.
enum class Reward { simulated, measured, simulated_then_measured };

}  // namespace

template <>
inline constexpr auto kSpellings<Reward> =
    std::to_array<Spelling<Reward>>({{Reward::simulated, "simulated"},
                                     {Reward::measured, "measured"},
                                     {Reward::simulated_then_measured, "both"}});

namespace {

using namespace learned;

constexpr std::int64_t kPublishedEpisodes = 25;
// Planners that visit nodes one after the other; above this a visit takes too long.
constexpr std::size_t kMostVisitedNodes = 128;
constexpr std::size_t kMostSequenceNodes = 400;

// Of the budget, for each op of a placement: what the network does for it, against one evaluation.
std::uint64_t steps_per_op(Network network) {
  return network == Network::hsdag ? 4 : 32;
}

// The settings have checked that it is one of the choices.
template <class Enum>
Enum choice(const Settings& settings, const std::string& option) {
  return *value_named<Enum>(settings.text(option));
}

void take_published_settings(LearnerOptions& options, const Problem& problem) {
  options.any_devices = false;
  options.merge_bias = 0;
  options.device_count = static_cast<std::int64_t>(problem.device_count());
  options.channels = 128;
  options.dropout = 0.2;
  options.baseline = Baseline::none;
  options.steps = 20;
  options.samples = 1;
  options.discount = options.algorithm == Algorithm::ppo ? 0.99 : 0.95;
  options.learning_rate = 1e-3;
  options.entropy = 0;
  options.exploration = 0;
  options.imitation = 0;
  options.neighbours = 0;
}

LearnerOptions common_options(Network network, const Settings& settings, const Control& control) {
  LearnerOptions options;
  options.network = network;
  options.samples = settings.integer("samples");
  options.channels = settings.integer("channels");
  options.learning_rate = settings.number("learning-rate");
  options.entropy = settings.number("entropy");
  options.exploration = settings.number("exploration");
  options.seed = control.budget().seed;
  return options;
}

LearnerOptions hsdag_options(const Problem& problem, const Settings& settings,
                             const Control& control) {
  LearnerOptions options = common_options(Network::hsdag, settings, control);
  options.encoder = choice<Encoder>(settings, "encoder");
  options.parse = settings.flag("parse");
  options.algorithm = choice<Algorithm>(settings, "algorithm");
  options.baseline = choice<Baseline>(settings, "baseline");
  options.steps = settings.integer("steps");
  options.imitation = settings.number("imitation");
  options.merge_bias = settings.number("merge-bias");
  options.neighbours = settings.number("neighbours");
  options.guided = settings.number("guided");
  if (settings.flag("published")) take_published_settings(options, problem);
  return options;
}

bool has_choice(const PlacementGraph& graph) {
  for (std::size_t node = 0; node < graph.node_count(); ++node) {
    std::size_t devices = 0;
    for (std::size_t d = 0; d < graph.device_count; ++d) {
      devices += graph.allowed[node * graph.device_count + d];
    }
    if (devices > 1) return true;
  }
  return false;
}

// What a planner is about to do, from its settings.
struct LearningTask {
  LearnerOptions learner;
  PlacementGraphOptions features;
  std::optional<Policy> policy = {};
  bool one_pass = false;
  bool from_quick = false;  // begin with the best plan of the quick planners, not of one device
  std::int64_t episodes = 0;
  Reward reward = Reward::simulated;
};

// The network's library, when it is loaded for the first time.
constexpr double kSecondsToLoad = 0.2;

// Measured last: so much of the time is kept for it.
constexpr double kMeasuredShare = 0.2;

// The name of the policy that is part of the program.
constexpr std::string_view kShipped = "shipped";

Policy read_policy(const std::string& path, const FrontEnd& front_end) {
  if (path == kShipped) return decode(shipped_policy());
  if (!front_end.read_file) throw SettingsError("no policy can be read here");
  try {
    return decode(front_end.read_file(path));
  } catch (const std::exception& error) {
    throw SettingsError(fmt::format("policy '{}': {}", path, error.what()));
  }
}

void restore(Learner& learner, const Policy& policy) {
  try {
    learner.restore(policy.weights, {});
  } catch (const std::invalid_argument& error) {
    throw SettingsError(fmt::format("the policy cannot be used: {}", error.what()));
  }
}

// Node -> group, as the network had parsed the graph in the episode that found the best plan (if
// none improved the first plan, in the first episode); empty for networks that do not parse.
using NodeGroups = std::vector<std::int64_t>;

// About what the features of the graph take: the mean transfer of each tensor, over pairs of
// devices, and its ops on all devices.
double seconds_of_features(const Problem& problem) {
  const auto devices = static_cast<double>(problem.device_count());
  const double pairs = problem.interconnect() == InterconnectKind::links ? devices * devices : 1;
  return 2.5e-9 * static_cast<double>(problem.tensor_count()) * pairs +
         5e-8 * static_cast<double>(problem.op_count()) * devices;
}

// About what one pass of the network there and back takes, which cannot be interrupted.
struct PassCost {
  double seconds = 0;
  double bytes = 0;
};

PassCost cost_of_pass(const LearnerOptions& options, const PlacementGraph& graph) {
  const auto nodes = static_cast<double>(graph.node_count());
  const auto devices = static_cast<double>(graph.device_count);
  const double width = static_cast<double>(options.channels) / 64;
  switch (options.network) {
    case Network::hsdag:
      return {width * nodes * (5e-6 + 2e-6 * devices), width * nodes * (12e3 + 1.2e3 * devices)};
    case Network::rnn: {
      const double cells = width * nodes * static_cast<double>(options.samples);
      return {cells * (3e-5 + 6e-7 * devices), cells * (12e3 + 600 * devices)};
    }
    case Network::placeto:  // in small parts
      break;
  }
  return {};
}

// Episodes until the budget (less what is kept for measuring) ends; one that would not end in time
// is not begun.
NodeGroups play(const LearningTask& task, Learner& learner, Rollouts& rollouts,
                const Control& control) {
  const double kept = task.reward == Reward::simulated_then_measured
                          ? kMeasuredShare * control.budget().seconds
                          : 0;
  const double pass = cost_of_pass(task.learner, rollouts.graph()).seconds;
  NodeGroups groups;
  double value = rollouts.best_plan().value;
  const auto keep_groups = [&](Episode episode) {
    const double before = std::exchange(value, rollouts.best_plan().value);
    if (groups.empty() || value < before) groups = std::move(episode.group_of);
  };
  if (task.policy) keep_groups(learner.propose(rollouts, 0));
  if (task.one_pass) return groups;
  for (std::int64_t episode = 0; task.episodes == 0 || episode < task.episodes; ++episode) {
    if (rollouts.should_stop() || control.remaining() <= kept + pass) break;
    keep_groups(learner.play(rollouts, static_cast<std::uint64_t>(episode)));
  }
  return groups;
}

std::vector<std::vector<OpId>> op_groups(const PlacementGraph& graph, const NodeGroups& group_of) {
  std::map<std::int64_t, std::vector<OpId>> groups;
  for (const NodeId node : ids<NodeId>(group_of.size())) {
    std::vector<OpId>& group = groups[group_of[node.index()]];
    group.insert(group.end(), graph.ops[node].begin(), graph.ops[node].end());
  }
  std::vector<std::vector<OpId>> lists;
  for (auto& [number, ops] : groups) lists.push_back(std::move(ops));
  return lists;
}

Answer learn(const Problem& problem, const LearningTask& task, const Measure& measure,
             Control& control) {
  if (task.reward != Reward::simulated && !measure) {
    throw SettingsError("plans cannot be measured here: reward must be simulated");
  }
  Answer answer = task.from_quick ? quick_plan(problem, control) : first_plan(problem, control);
  if (!answer.plan || control.should_stop()) return answer;
  if (const std::string obstacle = control.cannot_afford(seconds_of_features(problem), 0);
      !obstacle.empty()) {
    control.note("the network was not begun: " + obstacle);
    return answer;
  }
  const PlacementGraph graph =
      placement_graph(problem, task.features, heft_placement(problem, control));
  if (!has_choice(graph)) return answer;
  Rollouts rollouts(problem, graph, control, std::move(*answer.plan),
                    steps_per_op(task.learner.network));
  if (task.reward == Reward::measured) rollouts.measure_with(measure);
  NodeGroups groups;
  const PassCost pass = cost_of_pass(task.learner, graph);
  const std::string obstacle = control.cannot_afford(kSecondsToLoad + pass.seconds, pass.bytes);
  if (!obstacle.empty()) control.note("the network was not begun: " + obstacle);
  if (obstacle.empty() && !rollouts.should_stop()) {
    const std::unique_ptr<Learner> learner = make_learner(task.learner);
    if (task.policy) restore(*learner, *task.policy);
    groups = play(task, *learner, rollouts, control);
  }
  if (task.reward == Reward::simulated_then_measured) rollouts.choose_by(measure);
  answer.plan = rollouts.best_plan();
  answer.plan->groups = op_groups(graph, groups);
  return answer;
}

Answer plan_hsdag(const Problem& problem, const Settings& settings, const FrontEnd& front_end,
                  Control& control) {
  const bool published = settings.flag("published");
  LearningTask task;
  task.learner = hsdag_options(problem, settings, control);
  task.features = {.coarsen = published ? Joining::chains : choice<Joining>(settings, "coarsen"),
                   .structure = settings.flag("structure"),
                   .costs = settings.flag("costs") && !published};
  task.episodes = settings.integer("episodes");
  if (published && task.episodes == 0) task.episodes = kPublishedEpisodes;
  task.one_pass = settings.flag("one-pass");
  task.from_quick = task.features.costs;
  task.reward = choice<Reward>(settings, "reward");
  std::string path = settings.text("policy");
  if (path.empty() && task.one_pass) path = kShipped;
  if (!path.empty()) {
    task.policy = read_policy(path, front_end);
    try {
      architecture_of(*task.policy, task.learner, task.features);
    } catch (const std::invalid_argument& error) {
      throw SettingsError(fmt::format("policy '{}': {}", path, error.what()));
    }
    if (task.learner.network != Network::hsdag) {
      throw SettingsError(fmt::format("policy '{}' is for another planner", path));
    }
  }
  return learn(problem, task, front_end.measure, control);
}

Answer plan_visiting(const Problem& problem, const Settings& settings, Control& control,
                     Network network, std::size_t most_nodes) {
  LearningTask task;
  task.learner = common_options(network, settings, control);
  task.features = {.coarsen = Joining::alike, .most_nodes = most_nodes};
  task.episodes = settings.integer("episodes");
  return learn(problem, task, {}, control);
}

Answer plan_placeto(const Problem& problem, const Settings& settings, Control& control) {
  return plan_visiting(problem, settings, control, Network::placeto, kMostVisitedNodes);
}

Answer plan_rnn(const Problem& problem, const Settings& settings, Control& control) {
  return plan_visiting(problem, settings, control, Network::rnn, kMostSequenceNodes);
}

struct CommonDefaults {
  std::int64_t samples;
  std::int64_t channels;
  double learning_rate;
  double entropy;
  double exploration;
};

std::vector<Option> common_option_records(const CommonDefaults& defaults) {
  return {{"samples", "placements drawn from one pass of the network", defaults.samples, 1, 65536},
          {"channels", "width of the network", defaults.channels, 4, 1024},
          {"learning-rate", "of the optimiser Adam", defaults.learning_rate, 1e-7, 1},
          {"entropy", "weight of the entropy bonus", defaults.entropy, 0, 10},
          {"exploration", "decisions of a placement taken at random, in the mean",
           defaults.exploration, 0, 1e6},
          {"episodes", "stop after so many; 0: when the budget ends", std::int64_t{0}, 0, 1e12}};
}

// The first spelling is the default.
template <class Enum>
Option choice_record(std::string name, std::string text) {
  return Option{.name = std::move(name),
                .text = std::move(text),
                .standard = names_of<Enum>().front(),
                .choices = names_of<Enum>()};
}

std::string refusal(const Problem&) {
  return why_no_plugin();
}

PlannerEntry entry_of(std::string name, std::string summary, std::vector<Option> options) {
  return PlannerEntry{.name = std::move(name),
                      .summary = std::move(summary),
                      .objectives = every_objective(),
                      .role = Role::published,
                      .effort = Effort::anytime,
                      .knows = kCommonAndSharing,
                      .options = std::move(options),
                      .refuses = refusal};
}

}  // namespace

PlannerEntry hsdag(FrontEnd front_end) {
  std::vector<Option> options = common_option_records(
      {.samples = 128, .channels = 64, .learning_rate = 3e-3, .entropy = 1e-3, .exploration = 2});
  const std::vector<Option> own = {
      {"policy", "start from this policy: a file made by 'placewright train', or 'shipped'",
       std::string{}},
      {"one-pass", "one pass of the policy (if none is named, the shipped one); no learning",
       false},
      choice_record<Reward>("reward", "both: simulated first, and the best plans measured last"),
      {"published", "the published settings, where they differ from ours", false},
      choice_record<Encoder>("encoder", "messages between neighbours"),
      choice_record<Joining>(
          "coarsen",
          "join chains of ops before anything else; alike: with the same fastest device"),
      {"structure", "features: degrees, shapes, position, fractal dimension", true},
      {"costs", "features: times, transfers, what HEFT would do (ours)", true},
      {"parse", "group nodes by the graph parsing network", true},
      choice_record<Algorithm>("algorithm", "of learning"),
      choice_record<Baseline>("baseline", "taken off the rewards"),
      {"steps", "passes of the network in an episode", std::int64_t{1}, 1, 1000},
      {"merge-bias", "what the score of an edge begins with; above 0 most nodes are merged", -1.0,
       -100, 100},
      {"neighbours", "share of the samples that change good placements a little", 0.75, 0, 0.9},
      {"guided", "share of those changes that the policy decides; the others are random", 0.5, 0,
       1},
      {"imitation", "pull towards the best placement so far", 0.02, 0, 10}};
  options.insert(options.end(), own.begin(), own.end());
  PlannerEntry entry = entry_of(
      "hsdag", "reinforcement learning: encode the graph, parse it into groups, place them",
      std::move(options));
  entry.plan = [front_end = std::move(front_end)](const Problem& problem, const Settings& settings,
                                                  Control& control) {
    return plan_hsdag(problem, settings, front_end, control);
  };
  return entry;
}

PlannerEntry placeto() {
  PlannerEntry entry =
      entry_of("placeto", "reinforcement learning: improves a placement node by node",
               common_option_records({.samples = 8,
                                      .channels = 32,
                                      .learning_rate = 3e-3,
                                      .entropy = 1e-3,
                                      .exploration = 2}));
  entry.plan = plan_placeto;
  return entry;
}

PlannerEntry rnn() {
  PlannerEntry entry = entry_of("rnn", "reinforcement learning: a sequence-to-sequence network",
                                common_option_records({.samples = 32,
                                                       .channels = 64,
                                                       .learning_rate = 3e-3,
                                                       .entropy = 1e-3,
                                                       .exploration = 2}));
  entry.plan = plan_rnn;
  return entry;
}

}  // namespace placewright
