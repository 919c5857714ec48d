#include "running/execution.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/input_error.h"
#include "support/folder.h"
#include "support/random_cuts.h"
#include "support/test_name.h"

namespace placewright {
namespace {

using placewright::testing::core_devices;
using placewright::testing::Folder;
using placewright::testing::random_cut_plan;
using placewright::testing::RandomSource;
using placewright::testing::zoo_draft;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Execution : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (core_devices(2).size() < 2) GTEST_SKIP() << "needs two cores";
  }

  [[nodiscard]] Problem problem(Objective objective) const {
    return Problem(zoo_draft(GetParam(), folder_.file("zoo"), core_devices(2), objective));
  }

  Folder folder_;
};

TEST_P(Execution, SchedulesCutAnywhereGiveTheOutputsOfTheWholeModel) {
  const Problem latency = problem(Objective::latency);
  const auto models = models_of(latency, openvino_runtime());
  RandomSource random(1);
  for (int i = 0; i < 3; ++i) {
    const Plan plan = random_cut_plan(latency, 4, random);
    const RunResult result =
        run_plan(latency, plan, models, openvino_runtime(), {.warm_up = 1, .repeat = 3, .seed = 7});
    ASSERT_TRUE(result.outputs.compared);
    EXPECT_LE(result.outputs.largest_difference, kOutputTolerance) << result.outputs.worst_output;
    EXPECT_EQ(result.segment_times.size(), result.segments.size());
    EXPECT_EQ(result.value.kept + result.value.rejected, 3);
  }
}

TEST_P(Execution, PipelinesKeepSamplesApart) {
  const Problem throughput = problem(Objective::throughput);
  const auto models = models_of(throughput, openvino_runtime());
  RandomSource random(2);
  for (int i = 0; i < 3; ++i) {
    const Plan plan = random_cut_plan(throughput, 3, random);
    const RunResult result = run_plan(throughput, plan, models, openvino_runtime(),
                                      {.warm_up = 4, .repeat = 20, .slots = 3});
    EXPECT_LE(result.outputs.largest_difference, kOutputTolerance) << result.outputs.worst_output;
    EXPECT_FALSE(result.events.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Execution,
                         ::testing::Values("tiny-branches", "tiny-pair", "tiny-bert"),
                         [](const auto& model) {
                           return placewright::testing::test_name(model.param);
                         });

// The real model, but the part with its last op fails at its third run.
class FailingModel final : public NeuralModel {
 public:
  explicit FailingModel(std::unique_ptr<NeuralModel> model) : model_(std::move(model)) {}

  [[nodiscard]] const ModelGraph& graph() const override { return model_->graph(); }
  [[nodiscard]] std::unique_ptr<CompiledPart> compile(
      std::span<const std::size_t> ops, const CompileOptions& options) const override {
    auto part = model_->compile(ops, options);
    const bool last = std::find(ops.begin(), ops.end(), graph().ops.size() - 1) != ops.end();
    if (!last) return part;
    return std::make_unique<Part>(std::move(part));
  }
  [[nodiscard]] std::vector<std::size_t> unsupported(const std::string& device) const override {
    return model_->unsupported(device);
  }
  void save(const std::string& path) const override { model_->save(path); }

 private:
  class Failing final : public Request {
   public:
    explicit Failing(std::unique_ptr<Request> request) : request_(std::move(request)) {}
    void bind_input(std::size_t input, std::byte* data) override {
      request_->bind_input(input, data);
    }
    // It reads from others, and nobody reads from it.
    void bind_input(std::size_t input, Request& producer, std::size_t output) override {
      request_->bind_input(input, producer, output);
    }
    [[nodiscard]] std::span<const std::byte> output(std::size_t output) override {
      return request_->output(output);
    }
    void run() override {
      if (++runs_ == 3) throw std::runtime_error("the device went away");
      request_->run();
    }
    void start() override { request_->start(); }
    void wait() override { request_->wait(); }
    [[nodiscard]] std::vector<NodeTime> times() const override { return request_->times(); }

   private:
    std::unique_ptr<Request> request_;
    int runs_ = 0;
  };

  class Part final : public CompiledPart {
   public:
    explicit Part(std::unique_ptr<CompiledPart> part) : part_(std::move(part)) {}
    [[nodiscard]] const std::vector<TensorKey>& inputs() const override { return part_->inputs(); }
    [[nodiscard]] const std::vector<TensorKey>& outputs() const override {
      return part_->outputs();
    }
    [[nodiscard]] std::vector<ExecutedNode> executed() const override { return part_->executed(); }
    [[nodiscard]] std::unique_ptr<Request> request() override {
      return std::make_unique<Failing>(part_->request());
    }

   private:
    std::unique_ptr<CompiledPart> part_;
  };

  std::unique_ptr<NeuralModel> model_;
};

// First half on one device, second half on the other: two segments.
Plan halves(const Problem& problem) {
  Placement placement(problem.op_count(), DeviceId{0});
  const auto order = problem.topological_order();
  for (std::size_t i = order.size() / 2; i < order.size(); ++i) placement[order[i]] = DeviceId{1};
  return plan_of_placement(problem, placement).value();
}

class Faults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (core_devices(2).size() < 2) GTEST_SKIP() << "needs two cores";
  }

  [[nodiscard]] Problem problem(Objective objective, std::vector<std::string> devices) const {
    return Problem(zoo_draft("tiny-branches", folder_.file("zoo"), devices, objective));
  }

  Folder folder_;
};

TEST_F(Faults, AWorkerThatFailsStopsAllAndIsNamed) {
  for (const Objective objective : {Objective::latency, Objective::throughput}) {
    const Problem halved = problem(objective, core_devices(2));
    auto models = models_of(halved, openvino_runtime());
    models.front() = std::make_unique<FailingModel>(std::move(models.front()));
    try {
      run_plan(halved, halves(halved), models, openvino_runtime(),
               {.repeat = 50, .compare = false});
      FAIL() << "nothing was thrown";
    } catch (const RuntimeError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("segment "), HasSubstr(core_devices(2).back()),
                                      HasSubstr("the device went away")));
    }
  }
}

TEST_F(Faults, AnInterruptionEndsTheRun) {
  const Problem halved = problem(Objective::latency, core_devices(2));
  const auto models = models_of(halved, openvino_runtime());
  std::atomic<bool> stop{false};
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.store(true);
  });
  const RunResult result = run_plan(halved, halves(halved), models, openvino_runtime(),
                                    {.repeat = 100000000, .stop = &stop});
  EXPECT_TRUE(result.interrupted);
  EXPECT_TRUE(result.outputs.equal());
}

TEST_F(Faults, APlanForAnotherMachineIsRefused) {
  const Problem other = problem(Objective::latency, {core_devices(1).front(), "cpu:1023"});
  const auto models = models_of(other, openvino_runtime());
  EXPECT_THROW(run_plan(other, halves(other), models, openvino_runtime(), {}),
               std::invalid_argument);
  const Problem gpu = problem(Objective::latency, {core_devices(1).front(), "NONE.7"});
  EXPECT_THROW(
      run_plan(gpu, halves(gpu), models_of(gpu, openvino_runtime()), openvino_runtime(), {}),
      std::invalid_argument);
}

TEST_F(Faults, AModelThatChangedIsRefused) {
  const Problem halved = problem(Objective::latency, core_devices(2));
  const auto files = make_zoo_model("tiny-pair", folder_.file("zoo"));
  std::filesystem::rename(files.xml, folder_.file("zoo") + "/tiny-branches.xml");
  EXPECT_THROW(models_of(halved, openvino_runtime()), InputError);
  std::filesystem::remove(folder_.file("zoo") + "/tiny-branches.xml");
  EXPECT_THROW(models_of(halved, openvino_runtime()), InputError);
}

}  // namespace
}  // namespace placewright
