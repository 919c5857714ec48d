// Training: the same by seed, resumed, beside other libraries; and rollouts on any problem.

#include <gtest/gtest.h>

#include "backends/registry.h"
#include "planners/learned/first_plan.h"
#include "planners/learned/learner.h"
#include "planners/learned/rollouts.h"
#include "planners/learned/training.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/folder.h"
#include "support/random_problem.h"
#include "verify/verifier.h"
#include "zoo/zoo.h"

namespace placewright::learned {
namespace {

using testing::random_draft;
using testing::RandomProblemOptions;

class Learning : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_plugin().empty()) GTEST_SKIP() << why_no_plugin();
  }

  static std::vector<Problem> problems() {
    std::vector<Problem> made;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      RandomProblemOptions options;
      options.ops = 6 + 4 * seed;
      made.emplace_back(random_draft(options, seed));
    }
    return made;
  }

  static TrainingOptions training_options() {
    TrainingOptions options;
    options.episodes = 12;
    options.learner.samples = 16;
    options.learner.channels = 16;
    return options;
  }
};

TEST_F(Learning, TheSameSeedGivesTheSamePolicyByteForByte) {
  const std::vector<Problem> fields = problems();
  const auto trained = [&](std::uint64_t seed) {
    TrainingOptions options = training_options();
    options.learner.seed = seed;
    Control control("train", Budget{.seconds = 300});
    Training training(fields, options, control);
    while (!training.done()) training.step();
    return encode(training.policy(Training::State::included));
  };
  const std::string first = trained(5);
  EXPECT_EQ(first, trained(5));
  EXPECT_NE(first, trained(6));
}

TEST_F(Learning, AResumedTrainingEndsAsOneThatNeverStopped) {
  const std::vector<Problem> fields = problems();
  Control control("train", Budget{.seconds = 300});
  Training whole(fields, training_options(), control);
  while (!whole.done()) whole.step();

  Training first(fields, training_options(), control);
  for (int i = 0; i < 5; ++i) first.step();
  const std::string checkpoint = encode(first.policy(Training::State::included));
  Training second(fields, training_options(), control);
  second.resume(decode(checkpoint));
  EXPECT_EQ(second.episode(), 5U);
  while (!second.done()) second.step();
  EXPECT_EQ(second.policy(Training::State::left_out), whole.policy(Training::State::left_out));
}

TEST_F(Learning, AForeignCheckpointIsRefused) {
  const std::vector<Problem> fields = problems();
  Control control("train", Budget{.seconds = 300});
  Training training(fields, training_options(), control);
  Policy checkpoint = training.policy(Training::State::included);
  checkpoint.weights[0].shape[0] += 1;
  EXPECT_THROW(training.resume(checkpoint), std::invalid_argument);
  checkpoint = training.policy(Training::State::included);
  checkpoint.weights.pop_back();
  EXPECT_THROW(training.resume(checkpoint), std::invalid_argument);
  checkpoint = training.policy(Training::State::included);
  checkpoint.facts["encoder"] = "gat";
  EXPECT_THROW(training.resume(checkpoint), std::invalid_argument);
}

// A network that parses says into what; the others have nothing to say.
TEST_F(Learning, PlansOfHsdagHaveGroupsThatCoverEveryOpOnce) {
  const Problem problem = std::move(problems().back());
  const auto groups_of = [&](const char* planner) {
    PlanRequest request;
    request.planner = planner;
    request.budget = Budget{.seconds = 60, .steps = 20'000};
    const PlanOutcome outcome = make_plan(problem, planning_registry(), request);
    return outcome.answer.plan.value().groups;
  };
  Table<OpId, int> times(problem.op_count(), 0);
  const auto groups = groups_of("hsdag");
  for (const std::vector<OpId>& group : groups) {
    EXPECT_FALSE(group.empty());
    for (const OpId op : group) ++times[op];
  }
  for (const OpId op : problem.ops()) EXPECT_EQ(times[op], 1) << problem.op(op).name;
  EXPECT_TRUE(groups_of("rnn").empty());
}

// Each brings thread pools and symbols of its own (protobuf, TBB, OpenMP); they take turns here.
TEST_F(Learning, LibtorchLivesBesideCpSatAndOpenVinoInOneProcess) {
  const testing::Folder folder;
  const auto& openvino = runtime_named("openvino");
  const auto model = openvino.read(make_zoo_model("tiny-branches", folder.file("")).xml);
  const std::string device = openvino.devices().front().name;
  const std::vector<Problem> fields = problems();
  for (const char* planner : {"cpsat", "hsdag", "cpsat", "rnn"}) {
    PlanRequest request;
    request.planner = planner;
    request.budget = Budget{.seconds = 60, .steps = 20'000};
    const PlanOutcome outcome = make_plan(fields[0], planning_registry(), request);
    EXPECT_EQ(outcome.fault, "") << planner;
    EXPECT_TRUE(outcome.answer.plan) << planner;
    const auto compiled = model->compile_whole({.device = device});
    compiled->request()->run();
  }
}

// Whatever is proposed, what comes back is feasible and is worth what the evaluator says.
TEST(Rollouts, MakeEveryProposalFeasible) {
  std::size_t checked = 0;
  for (const Objective objective : {Objective::latency, Objective::throughput,
                                    Objective::call_latency, Objective::total_completion}) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      RandomProblemOptions options;
      options.objective = objective;
      options.interconnect =
          objective == Objective::call_latency ? InterconnectKind::host : InterconnectKind::links;
      options.ops = 10;
      options.models = objective == Objective::total_completion ? 2 : 1;
      options.binding_memory = seed % 2 == 0;
      options.colocation = seed % 3 == 0;
      options.unsupported = seed % 4 == 0;
      options.pins = seed % 5 == 0;
      const Problem problem(random_draft(options, seed));
      Control control("test", Budget{.seconds = 60});
      Answer first = first_plan(problem, control);
      if (!first.plan) continue;
      const PlacementGraph graph = placement_graph(problem, {}, Placement(problem.op_count()));
      Rollouts rollouts(problem, graph, control, std::move(*first.plan));
      testing::RandomSource random(seed);
      for (int i = 0; i < 20; ++i) {
        std::vector<std::int32_t> row;
        for (const NodeId node : ids<NodeId>(graph.node_count())) {
          std::size_t device = random.below(graph.device_count);
          while (!graph.may_go(node, DeviceId{device})) device = (device + 1) % graph.device_count;
          row.push_back(static_cast<std::int32_t>(device));
        }
        const std::vector<double> values = rollouts.evaluate(row);
        ASSERT_EQ(values.size(), 1U);
        ASSERT_LT(values[0], kInfinity);
        const auto violations = verify(problem, rollouts.best_plan());
        ASSERT_TRUE(violations.empty()) << violations.front().message;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 2000U);
}

}  // namespace
}  // namespace placewright::learned
