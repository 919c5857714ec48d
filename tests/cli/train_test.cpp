#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "planners/learned/learner.h"
#include "planners/learned/policy.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/published.h"
#include "zoo/zoo.h"

namespace placewright::testing {
namespace {

class TrainVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = learned::why_no_plugin();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  // A training of a second or two.
  static std::vector<std::string> training(const std::string& policy, std::size_t episodes = 60) {
    return {"train",
            "--generate",
            "layered=4",
            "--ops",
            "16",
            "--channels",
            "8",
            "--samples",
            "8",
            "--seed",
            "3",
            "--episodes",
            std::to_string(episodes),
            "-o",
            policy,
            "--quiet"};
  }
};

TEST_F(TrainVerb, TheSameCommandWritesTheSameBytesAndAPlannerTakesThem) {
  const Folder folder;
  ASSERT_EQ(run(training(folder.file("a.pw"))).exit_code, 0);
  ASSERT_EQ(run(training(folder.file("b.pw"))).exit_code, 0);
  EXPECT_EQ(folder.read("a.pw"), folder.read("b.pw"));
  EXPECT_EQ(folder.file_count(), 2U) << "no checkpoint is left";

  const auto plan = run({"plan", example_path("moirai/GoogLeNet.json"), "--planner", "hsdag",
                         "--option", "policy=" + folder.file("a.pw"), "--option", "one-pass=true",
                         "--json", "-o", folder.file("plan.json")});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_EQ(run({"check", folder.file("plan.json")}).exit_code, 0);
  const auto single =
      run({"plan", example_path("moirai/GoogLeNet.json"), "--planner", "single", "--json"});
  EXPECT_LE(plan.json()["value"].get<double>(), single.json()["value"].get<double>());
}

TEST_F(TrainVerb, GoesOnAfterKillAsIfNothingHadHappened) {
  // The kill must come before the end: if a training ends first, a longer one is killed.
  std::optional<Folder> made;
  std::vector<std::string> stopped;
  std::size_t episodes = 15;
  for (bool killed = false; !killed;) {
    const Folder& folder = made.emplace();
    ASSERT_LT(episodes *= 4, 20'000U) << "never killed before its end";
    stopped = training(folder.file("stopped.pw"), episodes);
    stopped.insert(stopped.end(), {"--checkpoint", "0", "--log", folder.file("curves.csv")});
    RunningProgram program(stopped);
    while (program.runs() && !std::filesystem::exists(folder.file("curves.csv")) &&
           !std::filesystem::exists(folder.file("stopped.pw"))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    program.send(SIGKILL);
    const auto ended = program.wait();
    ASSERT_TRUE(ended.exit_code == 0 || ended.exit_code == 128 + SIGKILL) << ended.err;
    killed = ended.exit_code != 0 && !std::filesystem::exists(folder.file("stopped.pw"));
  }

  const Folder& folder = *made;
  stopped.push_back("--resume");
  const auto resumed = run(stopped);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  ASSERT_EQ(run(training(folder.file("whole.pw"), episodes)).exit_code, 0);
  EXPECT_EQ(folder.read("stopped.pw"), folder.read("whole.pw"));
  // One row for each episode, none twice.
  const std::string curves = folder.read("curves.csv");
  EXPECT_EQ(std::count(curves.begin(), curves.end(), '\n'), 1 + static_cast<long>(episodes));
}

TEST_F(TrainVerb, WritesItsCurves) {
  const Folder folder;
  std::vector<std::string> arguments = training(folder.file("policy.pw"));
  arguments.insert(arguments.end(),
                   {"--log", folder.file("curves.csv"), "--page", folder.file("curves.html"),
                    "--events", folder.file("events")});
  ASSERT_EQ(run(arguments).exit_code, 0);
  EXPECT_EQ(folder.read("curves.csv").find("episode,reward,best,bound,entropy,seconds,problem\n"),
            0U);
  EXPECT_NE(folder.read("curves.html").find("<svg"), std::string::npos);
  EXPECT_NE(folder.read("events/events.out.tfevents.0.placewright").find("brain.Event:2"),
            std::string::npos);
}

TEST_F(TrainVerb, APolicyThatCannotBeUsedIsRefusedWithASentence) {
  const Folder folder;
  const auto plan_with = [&](const std::string& policy) {
    return run({"plan", example_path("moirai/example-1.json"), "--planner", "hsdag", "--option",
                "policy=" + policy});
  };
  ASSERT_EQ(run(training(folder.file("policy.pw"))).exit_code, 0);
  std::string bytes = folder.read("policy.pw");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  const auto damaged = plan_with(folder.write("damaged.pw", bytes));
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_NE(damaged.err.find("is damaged"), std::string::npos) << damaged.err;
  EXPECT_EQ(plan_with(folder.write("foreign.pw", "PK\x03\x04")).exit_code, 2);
  EXPECT_EQ(plan_with(folder.file("missing.pw")).exit_code, 2);
}

TEST_F(TrainVerb, APolicyShipsWithTheProgram) {
  const learned::Policy shipped = learned::decode(learned::shipped_policy());
  EXPECT_EQ(shipped.facts.at("seed"), "1");
  EXPECT_NE(shipped.facts.at("trained on"), "");
  EXPECT_TRUE(shipped.training_state.empty());
  const auto planned = [](std::vector<std::string> options) {
    options.insert(options.begin(), {"plan", example_path("moirai/GoogLeNet.json"), "--planner",
                                     "hsdag", "--json", "--option", "one-pass=true"});
    return run(options);
  };
  const auto unnamed = planned({});
  const auto named = planned({"--option", "policy=shipped"});
  ASSERT_EQ(unnamed.exit_code, 0) << unnamed.err;
  EXPECT_EQ(unnamed.json()["placement"], named.json()["placement"]);
}

// Rewards that are measured: a real model runs once for each sample.
TEST_F(TrainVerb, RewardsCanBeMeasured) {
  const Folder folder;
  const std::string model = make_zoo_model("tiny-branches", folder.file("")).xml;
  const std::string problem = folder.file("problem.json");
  ASSERT_EQ(run({"import", model, "-o", problem, "--quiet"}).exit_code, 0);
  for (const std::string reward : {"measured", "both"}) {
    const std::string plan = folder.file(reward + ".json");
    const auto planned = run({"plan", problem, "--planner", "hsdag", "--option", "reward=" + reward,
                              "--option", "samples=8", "--option", "episodes=1", "-o", plan});
    EXPECT_EQ(planned.exit_code, 0) << planned.err;
    EXPECT_EQ(run({"check", plan}).exit_code, 0);
  }
  const auto unmeasurable = run({"plan", example_path("moirai/GoogLeNet.json"), "--planner",
                                 "hsdag", "--option", "reward=measured"});
  EXPECT_EQ(unmeasurable.exit_code, 2);
  EXPECT_NE(unmeasurable.err.find("a plan cannot be measured"), std::string::npos)
      << unmeasurable.err;
}

TEST(WithoutThePlugin, TheProgramWorksAndSaysHowToGetIt) {
  ASSERT_EQ(setenv("PLACEWRIGHT_LEARNED_PLUGIN", "/no/such/plugin.so", 1), 0);
  const std::string problem = example_path("moirai/example-1.json");
  const auto learned = run({"plan", problem, "--planner", "hsdag"});
  const auto trained = run({"train", "--generate", "layered=2", "-o", "x.pw"});
  const auto other = run({"plan", problem, "--planner", "heft"});
  unsetenv("PLACEWRIGHT_LEARNED_PLUGIN");
  EXPECT_EQ(learned.exit_code, 2);
  EXPECT_EQ(trained.exit_code, 3);
  for (const auto& refused : {learned, trained}) {
    EXPECT_NE(refused.err.find("'scripts/setup learned' installs it"), std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(other.exit_code, 0) << other.err;
}

TEST(TrainVerbUsage, NeedsSomethingToTrainOn) {
  EXPECT_EQ(run({"train", "--generate", "layered", "-o", "x.pw"}).exit_code,
            learned::why_no_plugin().empty() ? 2 : 3);
}

}  // namespace
}  // namespace placewright::testing
