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

  ArrivalRuns run(const std::vector<ArrivingModel>& arrivals, const ArrivalRule& rule,
                  const ArrivalRunOptions& options = {}) {
    return run_arrivals(
        problem_, models_, arrivals, 1, [&](std::size_t) { return rule; }, options);
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

ArrivalRule at_once() {
  return [](double, std::span<const ArrivalState> states) {
    std::vector<ArrivalStart> starts;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].stage == ArrivalStage::waiting) starts.push_back({i, DeviceId{0}});
    }
    return starts;
  };
}

TEST_P(ArrivalRun, ModelsRunWhenAndWhereTheRuleSays) {
  const std::vector<ArrivingModel> arrivals{{0, 0.0}, {0, 1.0}, {0, 1.0}, {0, 5.0}};
  const ArrivalRuns runs = run(arrivals, one_at_a_time(problem_.device_count()), {.repeat = 2});
  EXPECT_TRUE(runs.outputs.equal()) << runs.outputs.largest_difference;
  ASSERT_EQ(runs.states.size(), 1U);
  ASSERT_EQ(runs.states[0].size(), 2U);
  for (const auto& states : runs.states[0]) {
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

TEST_P(ArrivalRun, InferencesOfOneModelOnOneDeviceFollowEachOther) {
  const ArrivalRuns runs = run({{0, 0.0}, {0, 0.0}, {0, 0.0}}, at_once());
  EXPECT_TRUE(runs.outputs.equal());
  const auto& states = runs.states[0][0];
  for (std::size_t i = 1; i < states.size(); ++i) EXPECT_GE(states[i].start, states[i - 1].end);
}

TEST_P(ArrivalRun, WhatIsCancelledWhileItWaitsNeverStarts) {
  // The first one is never finished waiting for: it is cancelled, and only then the second one runs.
  std::vector<ArrivingModel> arrivals{{0, 0.0, 2.0}, {0, 0.0}};
  const auto rule = [](double, std::span<const ArrivalState> states) -> std::vector<ArrivalStart> {
    if (states[0].stage != ArrivalStage::cancelled) return {};
    if (states[1].stage != ArrivalStage::waiting) return {};
    return {{1, DeviceId{0}}};
  };
  const ArrivalRuns runs = run(arrivals, rule);
  EXPECT_EQ(runs.states[0][0][0].stage, ArrivalStage::cancelled);
  EXPECT_FALSE(runs.states[0][0][0].device.valid());
  EXPECT_EQ(runs.states[0][0][1].stage, ArrivalStage::complete);
  EXPECT_GE(runs.states[0][0][1].start, 2.0);
}

TEST_P(ArrivalRun, WhatIsCancelledAtOnceDoesNotCount) {
  // Right after its arrival, whether the rule has started it by then or not.
  const ArrivalRuns runs = run({{0, 0.0, 1e-6}, {0, 0.0}}, at_once());
  EXPECT_EQ(runs.states[0][0][0].stage, ArrivalStage::cancelled);
  EXPECT_EQ(runs.states[0][0][1].stage, ArrivalStage::complete);
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
  const ArrivalRuns runs = run({{0, 0.0, 20.0}}, at_once());
  EXPECT_EQ(runs.states[0][0][0].stage, ArrivalStage::cancelled);
  EXPECT_TRUE(runs.outputs.equal());
}

TEST_P(ArrivalRun, EndsWhenItIsInterrupted) {
  std::atomic<bool> stop{false};
  const auto rule = [&](double, std::span<const ArrivalState>) -> std::vector<ArrivalStart> {
    stop = true;
    return {{0, DeviceId{0}}};
  };
  const ArrivalRuns runs = run({{0, 0.0}, {0, 1e9}}, rule, {.stop = &stop});
  EXPECT_TRUE(runs.interrupted);
  EXPECT_TRUE(runs.states[0].empty());
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
