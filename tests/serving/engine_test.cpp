#include "serving/engine.h"

#include <future>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/registry.h"
#include "backends/target_devices.h"
#include "serving/inference.h"
#include "serving/measured_forms.h"
#include "support/folder.h"
#include "zoo/zoo.h"

namespace placewright {
namespace {

using testing::Folder;

// A small model in three segments, whose times nobody measured.
class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = make_zoo_model("tiny-branches", folder_.file("zoo")).xml;
    try {
      network_ = runtime_named(kDefaultBackend).read(path);
    } catch (const RuntimeError& error) {
      GTEST_SKIP() << error.what();
    }
    inputs_ = seeded_inputs(network_->graph(), 1, target_);
    for (const auto& input : inputs_) given_.push_back(input->bytes());
  }

  std::shared_ptr<LoadedModel> loaded() {
    const ModelGraph& graph = network_->graph();
    std::vector<OpGroup> ordered;
    for (std::size_t op = 0; op < graph.ops.size(); ++op) ordered.push_back({op});
    const std::vector<double> times(graph.ops.size(), 1);
    ModelCuts cuts{.whole = 1, .segments = narrow_segments(graph, ordered, times, 3)};
    cuts.times.assign(cuts.segments.size(), 0.4);
    EXPECT_EQ(cuts.segments.size(), 3U);
    return std::make_shared<LoadedModel>(network_, target_, std::move(cuts));
  }

  // Asks and waits.
  InferenceAnswer asked(Engine& engine, ModelNumber model, std::optional<double> deadline = {}) {
    std::promise<InferenceAnswer> promise;
    engine.submit({.model = model,
                   .inputs = given_,
                   .deadline = deadline,
                   .tell = [&](const InferenceAnswer& answer) {
                     results_.clear();
                     for (const auto& output : answer.outputs) {
                       results_.emplace_back(output.begin(), output.end());
                     }
                     promise.set_value(answer);
                   }});
    return promise.get_future().get();
  }

  Folder folder_;
  Target target_ = target_of_cores(allowed_cores());
  std::shared_ptr<const NeuralModel> network_;
  Buffers inputs_;
  std::vector<std::span<const std::byte>> given_;
  std::vector<std::vector<std::byte>> results_;
};

TEST_F(EngineTest, AnswersAloneAndInSegmentsAlike) {
  Engine engine({});
  const ModelNumber first = engine.add(loaded(), "first", {});
  ASSERT_EQ(asked(engine, first).kind, AnswerKind::done);
  const auto uncut = results_;
  engine.add(loaded(), "second", {});
  ASSERT_EQ(asked(engine, first).kind, AnswerKind::done);
  const ModelGraph& graph = network_->graph();
  ASSERT_EQ(results_.size(), graph.outputs.size());
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const TensorType& type = type_of(graph, graph.outputs[i].tensor);
    EXPECT_LE(difference(type, uncut[i], results_[i]), tolerance_of(Precision::bf16));
  }
}

TEST_F(EngineTest, AnswersEveryRequestOnce) {
  Engine engine({});
  const std::vector<ModelNumber> models{engine.add(loaded(), "first", {}),
                                        engine.add(loaded(), "second", {})};
  constexpr std::size_t kRequests = 60;
  std::vector<std::atomic<int>> told(kRequests);
  std::vector<std::optional<RequestId>> ids;
  for (std::size_t i = 0; i < kRequests; ++i) {
    ids.push_back(engine.submit({.model = models[i % 2],
                                 .inputs = given_,
                                 .tell = [&told, i](const InferenceAnswer&) { ++told[i]; }}));
    if (i % 7 == 0) engine.cancel(ids[i].value());
  }
  engine.drain();
  for (const auto& each : told) EXPECT_EQ(each, 1);
  const Engine::Snapshot after = engine.snapshot();
  EXPECT_EQ(after.live, 0U);
  EXPECT_EQ(after.counts.completed + after.counts.cancelled, kRequests);
  EXPECT_EQ(asked(engine, models[0]).kind, AnswerKind::refused) << "it has drained";
}

TEST_F(EngineTest, RefusesDeadlinesThatCannotBeMetAndModelsThatAreGone) {
  Engine engine({});
  const ModelNumber model = engine.add(loaded(), "first", {});
  EXPECT_EQ(asked(engine, model, -1).kind, AnswerKind::late);
  EXPECT_EQ(asked(engine, model, 0.1).kind, AnswerKind::refused);
  EXPECT_EQ(asked(engine, model, 10'000).kind, AnswerKind::done);
  engine.remove(model);
  EXPECT_THROW(asked(engine, model), std::invalid_argument);
}

TEST_F(EngineTest, AModelThatIsRemovedAnswersWhatWaits) {
  Engine engine({});
  const ModelNumber model = engine.add(loaded(), "first", {});
  std::atomic<int> done = 0;
  for (int i = 0; i < 20; ++i) {
    engine.submit({.model = model, .inputs = given_, .tell = [&](const InferenceAnswer& answer) {
                     done += answer.kind == AnswerKind::done ? 1 : 0;
                   }});
  }
  engine.remove(model);
  engine.drain();
  EXPECT_EQ(done, 20);
}

TEST_F(EngineTest, ForecastsWhatItsRequestsMeetWith) {
  Engine engine({});
  const auto forecast = std::make_shared<LatencyRecord>();
  const ModelNumber model = engine.add(loaded(), "first", {}, forecast);
  constexpr std::uint64_t kRequests = 10;
  for (std::uint64_t i = 0; i < kRequests; ++i)
    ASSERT_EQ(asked(engine, model).kind, AnswerKind::done);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the model is said to take 1 ms
  const Engine::ModelSnapshot after = engine.snapshot(model);
  EXPECT_EQ(forecast->summary().requests, kRequests);
  EXPECT_GE(forecast->summary().p50, 1 - 1e-9);
  EXPECT_GT(after.busy_seconds, 0);
  EXPECT_EQ(after.waiting, 0U);
}

TEST_F(EngineTest, AllAtOnceAnswersTheSame) {
  Engine engine({.policy = ServingPolicy::together});
  const ModelNumber first = engine.add(loaded(), "first", {});
  const ModelNumber second = engine.add(loaded(), "second", {});
  std::atomic<int> done = 0;
  for (int i = 0; i < 20; ++i) {
    engine.submit({.model = i % 2 == 0 ? first : second,
                   .inputs = given_,
                   .tell = [&](const InferenceAnswer& answer) {
                     done += answer.kind == AnswerKind::done ? 1 : 0;
                   }});
  }
  engine.drain();
  EXPECT_EQ(done, 20);
}

// Requests with inputs of their own, in the forms whose times make the scheduler choose them.
class EngineForms : public EngineTest {
 protected:
  void answer_all(const ModelCuts& cuts, const BatchedModels& batched) {
    Engine engine({});
    const ModelNumber number =
        engine.add(std::make_shared<LoadedModel>(network_, target_, cuts, batched), "model", {});
    constexpr std::size_t kRequests = 24;
    std::vector<Buffers> inputs;
    std::vector<RequestInputs> given(kRequests);
    std::vector<std::vector<std::byte>> alone(kRequests);
    std::vector<std::vector<std::byte>> found(kRequests);
    for (std::size_t i = 0; i < kRequests; ++i) {
      inputs.push_back(seeded_inputs(network_->graph(), i + 1, target_));
      for (const auto& input : inputs.back()) given[i].push_back(input->bytes());
      given_ = given[i];
      EXPECT_EQ(asked(engine, number).kind, AnswerKind::done);
      alone[i] = results_.front();
    }
    for (std::size_t i = 0; i < kRequests; ++i) {
      engine.submit(
          {.model = number, .inputs = given[i], .tell = [&, i](const InferenceAnswer& answer) {
             if (answer.kind != AnswerKind::done) return;
             found[i].assign(answer.outputs[0].begin(), answer.outputs[0].end());
           }});
    }
    engine.drain();
    const ModelGraph& graph = network_->graph();
    const TensorType& type = type_of(graph, graph.outputs[0].tensor);
    for (std::size_t i = 0; i < kRequests; ++i) {
      ASSERT_EQ(found[i].size(), alone[i].size()) << i;
      EXPECT_LE(difference(type, alone[i], found[i]), tolerance_of(Precision::bf16)) << i;
    }
    EXPECT_NE(alone[0], alone[1]) << "or nothing was told apart";
  }
};

TEST_F(EngineForms, BatchesAnswerEachRequestItsOwn) {
  const Runtime& runtime = runtime_named(kDefaultBackend);
  const ModelFile file{.path = folder_.file("zoo") + "/tiny-branches.xml"};
  const ModelCuts cuts{.whole = 5, .batches = {{2, 5.5}, {4, 6}}};
  const BatchedModels batched = read_batches(cuts, *network_, runtime, file);
  ASSERT_EQ(batched.size(), 2U);
  answer_all(cuts, batched);
}

TEST_F(EngineForms, HalvesOfTheCoresAnswerTheSame) {
  if (halves_of(target_).empty()) GTEST_SKIP() << "one core has no halves";
  answer_all({.whole = 5, .on_half = 6}, {});
}

TEST_F(EngineForms, WhatIsMeasuredIsWorthIt) {
  const Runtime& runtime = runtime_named(kDefaultBackend);
  const ModelFile file{.path = folder_.file("zoo") + "/tiny-branches.xml"};
  const MeasureOptions options{.repeat = 5, .seconds = 1};
  ModelCuts cuts{.whole = measure_whole(*network_, target_, options)};
  measure_forms(cuts, *network_, runtime, file, target_, options);
  double each = cuts.whole;
  for (const auto& [size, time] : cuts.batches) {
    EXPECT_LT(time / static_cast<double>(size), each);
    each = time / static_cast<double>(size);
  }
  EXPECT_LT(cuts.on_half, 2 * cuts.whole);
}

TEST(KeptCutsTest, ComeBackAsTheyWere) {
  const Folder folder;
  const KeptCuts kept(folder.file("cache"));
  EXPECT_FALSE(kept.find("model").has_value());
  kept.keep("model", {.whole = 2.5,
                      .segments = {{0, 2}, {1}},
                      .times = {1, 1.75},
                      .batches = {{2, 3.5}, {4, 6}},
                      .on_half = 4.5});
  const ModelCuts cuts = kept.find("model").value();
  EXPECT_EQ(cuts.whole, 2.5);
  EXPECT_EQ(cuts.segments, (std::vector<OpGroup>{{0, 2}, {1}}));
  EXPECT_EQ(cuts.times, (std::vector<double>{1, 1.75}));
  EXPECT_EQ(cuts.batches, (std::map<std::size_t, double>{{2, 3.5}, {4, 6}}));
  EXPECT_EQ(cuts.on_half, 4.5);
  EXPECT_FALSE(kept.find("another model").has_value());
}

}  // namespace
}  // namespace placewright
