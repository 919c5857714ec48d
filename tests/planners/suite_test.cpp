// What every planner promises, asked of all that are registered and of none by name.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "planners/suite_checks.h"

namespace placewright::testing {
namespace {

#ifdef PLACEWRIGHT_SANITIZED
constexpr Extent kQuick{.every = 12, .steps = 300};
#else
constexpr Extent kQuick{.every = 4, .steps = 1000};
#endif

class Planners : public ::testing::TestWithParam<PlannerCase> {};

TEST_P(Planners, FindSoundPlansWhereNothingStandsInTheWay) {
  expect_sound_plans_where_nothing_stands_in_the_way(GetParam(), kQuick);
}

TEST_P(Planners, AreSoundUnderEveryRule) {
  expect_soundness_under_every_rule(GetParam(), kQuick);
}

TEST_P(Planners, PlanPublishedInputs) {
  expect_published_inputs_to_be_planned(GetParam(), kQuick);
}

TEST_P(Planners, GiveTheSamePlanForTheSameSeed) {
  expect_the_same_plan_for_the_same_seed(GetParam(), kQuick);
}

// Three ops of six bytes on two devices of ten: the sums fit, the ops do not.
TEST_P(Planners, HandOutNothingWhereNothingFits) {
  for (const InterconnectKind interconnect : interconnects(GetParam().objective)) {
    RandomProblemOptions options = plain(GetParam().objective, interconnect);
    options.ops = 3;
    options.models = 1;
    ProblemDraft draft = random_draft(options, 5);
    for (Op& op : draft.ops) op.memory = 6;
    for (Device& device : draft.cluster.devices) device.memory = 0;
    draft.cluster.devices[0].memory = draft.cluster.devices[1].memory = 10;
    const Problem problem(std::move(draft));
    if (!fits(GetParam().planner, problem)) continue;
    const Answer answer = answer_of(GetParam().planner, problem, kQuick.budget());
    EXPECT_FALSE(answer.plan);
    EXPECT_NE(answer.reason, "");
  }
}

TEST_P(Planners, ProveThatTooLittleMemoryIsInfeasible) {
  std::vector<ProblemDraft> drafts = easy_drafts(GetParam().objective);
  for (ProblemDraft& draft : drafts) {
    for (Op& op : draft.ops) op.memory = 6;
    for (Device& device : draft.cluster.devices)
      device.memory = device.space.valid() ? kInfinity : 10;
    for (Space& space : draft.cluster.spaces) space.memory = 10;
  }
  std::erase_if(drafts, [](const ProblemDraft& draft) {
    const auto alone = std::ranges::count_if(
        draft.cluster.devices, [](const Device& device) { return !device.space.valid(); });
    const std::size_t memories = draft.cluster.spaces.size() + static_cast<std::size_t>(alone);
    return 6 * draft.ops.size() <= 10 * memories;
  });
  const std::vector<Problem> problems = served(GetParam(), std::move(drafts));
  if (problems.empty()) return;  // which has failed, or there is no plugin
  const auto outcome = make_plan(problems[0], registry(), kQuick.request(GetParam().planner));
  EXPECT_EQ(outcome.answer.status(), Status::infeasible) << outcome.answer.reason;
  const std::string needed = std::to_string(6 * problems[0].op_count()) + " bytes";
  EXPECT_NE(outcome.answer.reason.find(needed), std::string::npos) << outcome.answer.reason;
}

TEST_P(Planners, RespectPinsAndColocation) {
  expect_pins_and_colocation(GetParam(), kQuick);
}

// Interrupts a planner that takes far more time than it was given. It counts this process's own
// time, of which other work on the machine takes nothing.
class Overtime {
 public:
  [[nodiscard]] const std::atomic<bool>* flag() const { return &over_; }
  [[nodiscard]] bool reached() const { return over_; }

 private:
  static constexpr std::clock_t kMost = 20 * CLOCKS_PER_SEC;
  std::atomic<bool> over_{false};
  std::jthread watch_{[this, begin = std::clock()](const std::stop_token& ended) {
    while (!ended.stop_requested() && !over_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      over_ = std::clock() - begin > kMost;
    }
  }};
};

TEST_P(Planners, KeepTheTimeLimit) {
  const std::optional<Problem> problem = largest_served(GetParam());
  if (!problem) GTEST_SKIP() << learned::why_no_plugin();
  const Overtime overtime;
  expect_sound(*problem,
               answer_of(GetParam().planner, *problem, Budget{.seconds = 0.1}, overtime.flag()));
  EXPECT_FALSE(overtime.reached()) << "the planner did not end by itself";
}

TEST_P(Planners, StopWhenInterrupted) {
  const std::atomic<bool> interrupted{true};
  const std::optional<Problem> problem = largest_served(GetParam());
  if (!problem) GTEST_SKIP() << learned::why_no_plugin();
  expect_sound(*problem,
               answer_of(GetParam().planner, *problem, Budget{.seconds = 1e6}, &interrupted));
}

TEST_P(Planners, NeverMakeTheStartPlanWorse) {
  expect_no_worse_than_the_start_plan(GetParam(), kQuick);
}

INSTANTIATE_TEST_SUITE_P(Registry, Planners, ::testing::ValuesIn(all_planner_cases()),
                         [](const auto& test) { return name_of(test.param); });

TEST(RegistryOfPlanners, RecordsAreComplete) {
  std::set<std::pair<std::string, Objective>> names;
  for (const PlannerEntry& entry : registry().entries()) {
    SCOPED_TRACE(entry.name);
    for (const Objective objective : entry.objectives) {
      EXPECT_TRUE(names.emplace(entry.name, objective).second) << name_of(objective);
    }
    EXPECT_NE(entry.name, "");
    EXPECT_NE(entry.summary, "");
    EXPECT_EQ(entry.summary.find('\n'), std::string::npos);
    EXPECT_LE(entry.summary.size(), 100U);
    EXPECT_FALSE(entry.objectives.empty());
    EXPECT_TRUE(entry.plan);
  }
}

TEST(RegistryOfPlanners, NamesAreUniqueForEachObjective) {
  Registry registry;
  const auto entry = [](std::vector<Objective> objectives) {
    PlannerEntry made;
    made.name = "twin";
    made.objectives = std::move(objectives);
    return made;
  };
  registry.add(entry({Objective::throughput}));
  registry.add(entry({Objective::latency, Objective::total_completion}));
  EXPECT_THROW(registry.add(entry({Objective::latency})), std::logic_error);
  EXPECT_TRUE(registry.find("twin", Objective::throughput)->serves(Objective::throughput));
  EXPECT_TRUE(registry.find("twin", Objective::latency)->serves(Objective::latency));
  EXPECT_NE(registry.find("twin", Objective::call_latency), nullptr);
  EXPECT_EQ(registry.find("other", Objective::latency), nullptr);
}

TEST(RegistryOfPlanners, DefaultsOfOptionsAreWithinTheirBounds) {
  for (const PlannerEntry& entry : registry().entries()) {
    for (const Option& option : entry.options) {
      SCOPED_TRACE(entry.name + ": " + option.name);
      EXPECT_NE(option.text, "");
      Settings settings(entry.options);
      const std::string standard =
          std::visit([](const auto& value) { return fmt::format("{}", value); }, option.standard);
      EXPECT_NO_THROW(settings.set(option.name, standard));
      EXPECT_EQ(settings.value(option.name), option.standard);
    }
  }
}

}  // namespace
}  // namespace placewright::testing
