// The engine of the server, asked by several threads while models come and go.

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "serving/engine.h"
#include "support/backend_case.h"
#include "support/folder.h"

namespace placewright::testing {
namespace {

class EngineOnThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string file = model_file({"toy", "chain"}, folder_.file("models"));
    target_ = target_named("toy:host");
    network_ = runtime_named("toy").read(file);
    inputs_ = seeded_inputs(network_->graph(), 1, target_);
    for (const auto& input : inputs_) given_.push_back(input->bytes());
  }

  std::shared_ptr<LoadedModel> loaded() {
    const ModelGraph& graph = network_->graph();
    std::vector<OpGroup> ordered;
    for (std::size_t op = 0; op < graph.ops.size(); ++op) ordered.push_back({op});
    const std::vector<double> times(graph.ops.size(), 1);
    ModelCuts cuts{.whole = 0.2, .segments = narrow_segments(graph, ordered, times, 3)};
    cuts.times.assign(cuts.segments.size(), 0.1);
    return std::make_shared<LoadedModel>(network_, target_, std::move(cuts));
  }

  Folder folder_;
  Target target_;
  std::shared_ptr<const NeuralModel> network_;
  Buffers inputs_;
  RequestInputs given_;
};

TEST_F(EngineOnThreads, TellsEveryRequestOnceWhileModelsComeAndGo) {
  constexpr int kClients = 3;
  constexpr int kRequests = 100;
  Engine engine({});
  const ModelNumber fixed = engine.add(loaded(), "fixed", {});
  std::atomic<ModelNumber> changing{engine.add(loaded(), "changing", {})};
  std::vector<std::atomic<int>> told(kClients * kRequests);
  std::atomic<int> gone{0};
  std::atomic<bool> ended{false};
  {
    std::jthread reloads([&] {
      while (!ended) {
        const ModelNumber next = engine.add(loaded(), "changing", {});
        engine.remove(changing.exchange(next));
      }
    });
    std::jthread looks([&] {
      while (!ended) {
        EXPECT_LE(engine.snapshot().running.size(), 2U);
        static_cast<void>(engine.snapshot(fixed));
        EXPECT_FALSE(engine.trace().text().empty());
        std::this_thread::yield();
      }
    });
    std::vector<std::jthread> clients;
    for (int client = 0; client < kClients; ++client) {
      clients.emplace_back([&, client] {
        for (int i = 0; i < kRequests; ++i) {
          std::atomic<int>& count = told[static_cast<std::size_t>(client * kRequests + i)];
          const ModelNumber model = i % 2 == 0 ? fixed : changing.load();
          try {
            const auto id = engine.submit({.model = model,
                                           .inputs = given_,
                                           .tell = [&](const InferenceAnswer&) { ++count; }});
            if (id && i % 5 == 0) engine.cancel(*id);
          } catch (const std::invalid_argument&) {
            ++count;
            ++gone;
          }
        }
      });
    }
    clients.clear();  // joins
    ended = true;
  }
  engine.drain();
  for (const auto& each : told) EXPECT_EQ(each, 1);
  const EngineCounts counts = engine.snapshot().counts;
  EXPECT_EQ(counts.failed, 0U);
  EXPECT_EQ(counts.completed + counts.cancelled + counts.refused + static_cast<unsigned>(gone),
            static_cast<unsigned>(kClients * kRequests));
}

}  // namespace
}  // namespace placewright::testing
