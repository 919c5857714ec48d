#include "running/arrival_run.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include "backends/opened_models.h"
#include "support/backend_case.h"
#include "support/folder.h"
#include "support/random_cuts.h"
#include "support/wrapped_model.h"

namespace placewright {
namespace {

using placewright::testing::BackendCase;
using placewright::testing::Folder;
using placewright::testing::model_draft;
using placewright::testing::name_of_case;
using placewright::testing::one_case_per_backend;
using placewright::testing::WrappedModel;
using placewright::testing::WrappedPart;
using placewright::testing::WrappedRequest;

class ArrivalRun : public ::testing::TestWithParam<BackendCase> {
 protected:
  ArrivalRun()
      : problem_(model_draft(GetParam(), folder_.file("models"),
                             placewright::testing::devices_for(GetParam().backend, 2),
                             Objective::total_completion)),
        models_(models_of(problem_)) {}

  // `copies` of each model on each device.
  ArrivalRuns run(const std::vector<ArrivingModel>& arrivals, const ArrivalRule& rule,
                  std::size_t repeat = 1, std::size_t copies = 1,
                  const std::atomic<bool>* stop = nullptr) {
    std::vector<ArrivalPlace> places = places_of(problem_, arrivals);
    for (ArrivalPlace& place : places) place.copies = copies;
    ArrivalRunner runner(problem_, models_, arrivals, places, {.stop = stop});
    return run_arrivals(
        runner, 1, [&](std::size_t) { return rule; }, repeat);
  }

  // All on the first device.
  static ArrivalRule at_once(std::size_t arrivals) {
    return all_at_once(std::vector<DeviceId>(arrivals, DeviceId{0}));
  }

  Folder folder_;
  Problem problem_;
  std::vector<std::unique_ptr<NeuralModel>> models_;
};

// The oldest that waits, once nothing runs, on one device after the other.
ArrivalRule one_at_a_time(std::size_t devices) {
  return [devices](double, std::span<const ArrivalState> states) -> std::vector<ArrivalStart> {
    for (const ArrivalState& state : states) {
      if (state.stage == ArrivalStage::started) return {};
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].stage == ArrivalStage::waiting) return {{i, DeviceId{i % devices}}};
    }
    return {};
  };
}

TEST_P(ArrivalRun, ModelsRunWhenAndWhereTheRuleSays) {
  const std::vector<ArrivingModel> arrivals{{0, 0.0}, {0, 1.0}, {0, 1.0}, {0, 5.0}};
  const ArrivalRuns runs = run(arrivals, one_at_a_time(problem_.device_count()), 2);
  EXPECT_TRUE(runs.outputs.equal()) << runs.outputs.largest_difference;
  ASSERT_EQ(runs.rounds.size(), 1U);
  ASSERT_EQ(runs.rounds[0].size(), 2U);
  for (const ArrivalRound& round : runs.rounds[0]) {
    const auto& states = round.states;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      EXPECT_EQ(states[i].stage, ArrivalStage::complete);
      EXPECT_EQ(states[i].device, DeviceId{i % problem_.device_count()});
      EXPECT_GE(states[i].start, arrivals[i].time);
      EXPECT_GE(states[i].end, states[i].start);
      if (i > 0) {
        EXPECT_GE(states[i].start, states[i - 1].end);
      }
    }
  }
}

TEST_P(ArrivalRun, MoreInferencesOfOneModelThanItHasCopiesFollowEachOther) {
  const ArrivalRuns runs = run({{0, 0.0}, {0, 0.0}, {0, 0.0}}, at_once(3));
  EXPECT_TRUE(runs.outputs.equal());
  EXPECT_FALSE(runs.rounds[0][0].watched) << "they waited for each other";
  const auto& states = runs.rounds[0][0].states;
  for (std::size_t i = 1; i < states.size(); ++i) EXPECT_GE(states[i].start, states[i - 1].end);
}

TEST_P(ArrivalRun, WhatIsCancelledWhileItWaitsNeverStarts) {
  // The first one is never finished waiting for: it is cancelled, and only then the second one
  // runs.
  std::vector<ArrivingModel> arrivals{{0, 0.0, 2.0}, {0, 0.0}};
  const auto rule = [](double, std::span<const ArrivalState> states) -> std::vector<ArrivalStart> {
    if (states[0].stage != ArrivalStage::cancelled) return {};
    if (states[1].stage != ArrivalStage::waiting) return {};
    return {{1, DeviceId{0}}};
  };
  const ArrivalRuns runs = run(arrivals, rule);
  EXPECT_EQ(runs.rounds[0][0].states[0].stage, ArrivalStage::cancelled);
  EXPECT_FALSE(runs.rounds[0][0].states[0].device.valid());
  EXPECT_EQ(runs.rounds[0][0].states[1].stage, ArrivalStage::complete);
  EXPECT_GE(runs.rounds[0][0].states[1].start, 2.0);
}

TEST_P(ArrivalRun, WhatIsCancelledAtOnceDoesNotCount) {
  // Right after its arrival, whether the rule has started it by then or not.
  const ArrivalRuns runs = run({{0, 0.0, 1e-6}, {0, 0.0}}, at_once(2));
  EXPECT_EQ(runs.rounds[0][0].states[0].stage, ArrivalStage::cancelled);
  EXPECT_EQ(runs.rounds[0][0].states[1].stage, ArrivalStage::complete);
}

// A model whose inferences, but for the first on a device, end only when they are stopped.
class EndlessModel final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;

  [[nodiscard]] std::unique_ptr<CompiledPart> compile(
      std::span<const std::size_t> ops, const CompileOptions& options) const override {
    return std::make_unique<WrappedPart<Endless>>(WrappedModel::compile(ops, options));
  }

 private:
  class Endless final : public WrappedRequest {
   public:
    using WrappedRequest::WrappedRequest;
    void run() override {
      WrappedRequest::run();
      if (!std::exchange(warm_, true)) return;
      constexpr std::chrono::seconds kGiveUp{60};
      std::unique_lock lock(mutex_);
      if (bell_.wait_for(lock, kGiveUp, [this] { return std::exchange(stopped_, false); })) {
        throw RequestStopped("it was stopped");
      }
      throw std::runtime_error("nobody stopped it");
    }
    void stop() override {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      bell_.notify_one();
    }

   private:
    std::mutex mutex_;
    std::condition_variable bell_;
    bool stopped_ = false;
    bool warm_ = false;
  };
};

TEST_P(ArrivalRun, WhatIsCancelledWhileItRunsIsStopped) {
  models_[0] = std::make_unique<EndlessModel>(std::move(models_[0]));
  const ArrivalRuns runs = run({{0, 0.0, 20.0}}, at_once(1));
  EXPECT_EQ(runs.rounds[0][0].states[0].stage, ArrivalStage::cancelled);
  EXPECT_TRUE(runs.outputs.equal());
}

// A model of which an inference, but for the first of each copy, ends only when another one has
// begun.
class SociableModel final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;

  [[nodiscard]] std::unique_ptr<CompiledPart> compile(
      std::span<const std::size_t> ops, const CompileOptions& options) const override {
    return std::make_unique<WrappedPart<Sociable>>(WrappedModel::compile(ops, options));
  }

 private:
  class Sociable final : public WrappedRequest {
   public:
    using WrappedRequest::WrappedRequest;
    void run() override {
      WrappedRequest::run();
      if (!std::exchange(warm_, true)) return;
      constexpr std::chrono::seconds kGiveUp{60};
      std::unique_lock lock(mutex);
      ++running;
      bell.notify_all();
      if (!bell.wait_for(lock, kGiveUp, [] { return running > 1; })) {
        throw std::runtime_error("nobody else came");
      }
    }

   private:
    bool warm_ = false;
    inline static std::mutex mutex;
    inline static std::condition_variable bell;
    inline static int running = 0;
  };
};

TEST_P(ArrivalRun, CopiesOfOneModelRunAtTheSameTime) {
  if (GetParam().backend == "toy") GTEST_SKIP() << "one backend is enough for a count of all";
  models_[0] = std::make_unique<SociableModel>(std::move(models_[0]));
  const ArrivalRuns runs = run({{0, 0.0}, {0, 0.0}}, at_once(2), 1, 2);
  const ArrivalRound& round = runs.rounds[0][0];
  EXPECT_LT(round.states[0].start, round.states[1].end);
  EXPECT_LT(round.states[1].start, round.states[0].end);
  EXPECT_FALSE(round.watched) << "they wait for each other";
  EXPECT_FALSE(round.disturbed);
  EXPECT_TRUE(runs.outputs.equal());
}

TEST_P(ArrivalRun, CoresThatAreNotSharedAreWatched) {
  const ArrivalRuns runs = run({{0, 0.0}, {0, 0.0}}, one_at_a_time(problem_.device_count()));
  EXPECT_EQ(runs.rounds[0][0].watched, GetParam().backend != "toy");
}

TEST_P(ArrivalRun, TheShortestOfThoseThatWaitIsFirst) {
  const std::vector<ArrivingModel> arrivals(3);
  const ArrivalRuns runs =
      run(arrivals, shortest_first(std::vector<DeviceId>(3, DeviceId{0}), {3, 1, 2}));
  const auto& states = runs.rounds[0][0].states;
  EXPECT_GE(states[2].start, states[1].end);
  EXPECT_GE(states[0].start, states[2].end);
}

TEST_P(ArrivalRun, EndsWhenItIsInterrupted) {
  std::atomic<bool> stop{false};
  const auto rule = [&](double, std::span<const ArrivalState>) -> std::vector<ArrivalStart> {
    stop = true;
    return {{0, DeviceId{0}}};
  };
  const ArrivalRuns runs = run({{0, 0.0}, {0, 1e9}}, rule, 1, 1, &stop);
  EXPECT_TRUE(runs.interrupted);
  EXPECT_TRUE(runs.rounds[0].empty());
}

TEST_P(ArrivalRun, WhatARuleThrowsComesOut) {
  const auto rule = [](double, std::span<const ArrivalState>) -> std::vector<ArrivalStart> {
    throw std::domain_error("no");
  };
  EXPECT_THROW(run({{0, 0.0}}, rule), std::domain_error);
}

INSTANTIATE_TEST_SUITE_P(Backends, ArrivalRun, ::testing::ValuesIn(one_case_per_backend()),
                         name_of_case);

}  // namespace
}  // namespace placewright
