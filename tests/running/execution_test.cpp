#include "running/execution.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/target_devices.h"
#include "evaluate/pipeline.h"
#include "formats/input_error.h"
#include "formats/run_file.h"
#include "machine/target_cluster.h"
#include "problem/exclusion.h"
#include "running/run_record.h"
#include "support/backend_case.h"
#include "support/folder.h"
#include "support/random_cuts.h"
#include "support/wrapped_model.h"

namespace placewright {
namespace {

using placewright::testing::backend_cases;
using placewright::testing::BackendCase;
using placewright::testing::core_devices;
using placewright::testing::devices_for;
using placewright::testing::Folder;
using placewright::testing::model_draft;
using placewright::testing::name_of_case;
using placewright::testing::one_case_per_backend;
using placewright::testing::random_cut_plan;
using placewright::testing::RandomSource;
using placewright::testing::WrappedModel;
using placewright::testing::WrappedPart;
using placewright::testing::WrappedRequest;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Execution : public ::testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    if (devices().size() < 2) GTEST_SKIP() << "needs two cores";
  }

  [[nodiscard]] static std::vector<std::string> devices() {
    return devices_for(GetParam().backend, 3);
  }
  [[nodiscard]] Problem problem(Objective objective) const {
    return Problem(model_draft(GetParam(), folder_.file("models"), devices(), objective));
  }

  Folder folder_;
};

// Every tensor that goes from one memory to another is copied, and nothing else is.
void expect_copies_between_memories(const Problem& problem, const RunResult& result) {
  ASSERT_EQ(result.copy_times.size(), result.copies.size());
  const auto memory = [&](DeviceId id) {
    return device_of(target_named(problem.device(id).name)).space;
  };
  bool crosses = false;
  for (const Segment& segment : result.segments) {
    for (const std::size_t producer : segment.inputs) {
      crosses |=
          memory(result.segments[producer].devices.front()) != memory(segment.devices.front());
    }
  }
  EXPECT_EQ(result.copies.empty(), !crosses);
  for (std::size_t i = 0; i < result.copies.size(); ++i) {
    const TensorCopy& copy = result.copies[i];
    EXPECT_NE(memory(copy.from), memory(copy.to));
    EXPECT_GT(copy.bytes, 0);
    EXPECT_GT(result.copy_times[i].kept + result.copy_times[i].rejected, 0U) << copy.tensor;
    EXPECT_FALSE(result.copy_times[i].watched);
  }
}

// The file of a run reads back as what was written, and belongs to its plan.
void expect_file_of_run(const Problem& problem, const Plan& plan, const RunResult& result) {
  const std::string text = write_run(run_file_of(problem, plan, result, {}));
  const RunFile file = parse_run(text, "written");
  EXPECT_EQ(write_run(file), text);
  EXPECT_EQ(file.warnings, std::vector<std::string>{});
  EXPECT_EQ(mismatch(file, problem, plan), "");
  EXPECT_EQ(file.transfers.size(), result.copies.size());
  double of_devices = 0;
  double of_segments = 0;
  for (const RunDevice& device : file.devices) of_devices += device.predicted;
  for (const RunSegment& segment : file.segments) of_segments += segment.predicted;
  EXPECT_NEAR(of_devices, of_segments, 1e-9 * of_segments);
  for (const RunModel& model : file.models) {
    EXPECT_EQ(model.predicted.has_value(), plan.schedule.has_value()) << model.name;
  }
  const auto transfers =
      std::count_if(file.timeline.begin(), file.timeline.end(),
                    [](const auto& event) { return event.transfer.has_value(); });
  EXPECT_EQ(transfers > 0, !result.copies.empty() && !result.events.empty());
}

TEST_P(Execution, SchedulesCutAnywhereGiveTheOutputsOfTheWholeModel) {
  const Problem latency = problem(Objective::latency);
  const auto models = models_of(latency);
  RandomSource random(1);
  for (int i = 0; i < 3; ++i) {
    const Plan plan = random_cut_plan(latency, 4, random);
    const RunResult result =
        run_plan(latency, plan, models, {.warm_up = 1, .repeat = 3, .seed = 7});
    ASSERT_TRUE(result.outputs.compared);
    EXPECT_TRUE(result.outputs.equal())
        << result.outputs.worst_output << " differs by " << result.outputs.largest_difference;
    EXPECT_EQ(result.segment_times.size(), result.segments.size());
    EXPECT_EQ(result.value.kept + result.value.rejected, 3U);
    expect_copies_between_memories(latency, result);
    expect_file_of_run(latency, plan, result);
  }
}

TEST_P(Execution, ARunThatIsToLastHasMoreSamplesThanAskedFor) {
  const Problem latency = problem(Objective::latency);
  RandomSource random(9);
  const Plan plan = random_cut_plan(latency, 1, random);
  std::atomic<bool> stop{false};
  RunOptions options{.warm_up = 0, .repeat = 3, .at_least = 1e6, .compare = false, .stop = &stop};
  options.progress = [&](double) { stop = true; };
  EXPECT_TRUE(run_plan(latency, plan, models_of(latency), options).interrupted);
}

TEST_P(Execution, PipelinesKeepSamplesApart) {
  const Problem throughput = problem(Objective::throughput);
  const auto models = models_of(throughput);
  RandomSource random(2);
  for (int i = 0; i < 3; ++i) {
    const Plan plan = random_cut_plan(throughput, 3, random);
    const RunResult result =
        run_plan(throughput, plan, models, {.warm_up = 4, .repeat = 20, .slots = 3});
    EXPECT_TRUE(result.outputs.equal())
        << result.outputs.worst_output << " differs by " << result.outputs.largest_difference;
    EXPECT_FALSE(result.events.empty());
    expect_copies_between_memories(throughput, result);
  }
}

TEST_P(Execution, ReplicasTakeSamplesInTurn) {
  ProblemDraft draft =
      model_draft(GetParam(), folder_.file("models"), devices(), Objective::throughput);
  draft.rules.max_replicas = 2;
  const Problem throughput(std::move(draft));
  const auto models = models_of(throughput);
  const auto& ops = throughput.topological_order();
  const Plan plan = pipeline_plan(
      throughput, {{.devices = {DeviceId{0}, DeviceId{1}}, .ops = {ops.begin(), ops.end()}}});
  const RunResult result = run_plan(throughput, plan, models, {.warm_up = 4, .repeat = 15});
  EXPECT_TRUE(result.outputs.equal())
      << result.outputs.worst_output << " differs by " << result.outputs.largest_difference;
  EXPECT_EQ(result.value.kept + result.value.rejected, 8U) << "rounds of two samples";
  std::set<DeviceId> at_work;
  for (const StepEvent& event : result.events) at_work.insert(event.device);
  EXPECT_EQ(at_work, (std::set{DeviceId{0}, DeviceId{1}}));
}

// A model that remembers what it was compiled with.
class RememberingModel final : public WrappedModel {
 public:
  RememberingModel(std::unique_ptr<NeuralModel> model, std::vector<CompileOptions>& compiled)
      : WrappedModel(std::move(model)), compiled_(compiled) {}

  [[nodiscard]] std::unique_ptr<CompiledPart> compile(
      std::span<const std::size_t> ops, const CompileOptions& options) const override {
    compiled_.push_back(options);
    return WrappedModel::compile(ops, options);
  }

 private:
  std::vector<CompileOptions>& compiled_;
};

// A model with a replica on each of the devices.
class ReplicatedModel {
 public:
  explicit ReplicatedModel(const std::vector<std::string>& devices) {
    ProblemDraft draft = model_draft({"openvino", "tiny-branches"}, folder_.file("models"), devices,
                                     Objective::throughput);
    draft.rules.max_replicas = static_cast<int>(devices.size());
    problem_.emplace(std::move(draft));
    models_ = models_of(*problem_);
    models_.front() = std::make_unique<RememberingModel>(std::move(models_.front()), compiled_);
  }

  RunResult run() { return loaded({.warm_up = 2, .repeat = 6, .compare = false}).measure(); }
  LoadedPlan loaded(RunOptions options) {
    const auto& ops = problem_->topological_order();
    const auto devices = problem_->devices();
    plan_ = pipeline_plan(*problem_, {{.devices = {devices.begin(), devices.end()},
                                       .ops = {ops.begin(), ops.end()}}});
    return {*problem_, plan_, models_, std::move(options)};
  }

  [[nodiscard]] const std::vector<CompileOptions>& compiled() const { return compiled_; }

 private:
  Folder folder_;
  std::optional<Problem> problem_;
  std::vector<CompileOptions> compiled_;
  std::vector<std::unique_ptr<NeuralModel>> models_;
  Plan plan_;
};

TEST(Replicas, OnEqualSetsOfCoresAreStreamsOfOnePart) {
  if (core_devices(2).size() < 2) GTEST_SKIP() << "needs two cores";
  ReplicatedModel replicated(core_devices(2));
  const RunResult result = replicated.run();
  ASSERT_EQ(replicated.compiled().size(), 1U);
  EXPECT_EQ(replicated.compiled().front().streams, 2);
  EXPECT_EQ(replicated.compiled().front().threads, 2);
  EXPECT_FALSE(replicated.compiled().front().pinned);
  EXPECT_TRUE(result.value.watched);
}

TEST(Replicas, AsStreamsTakeEverySampleOnceAndNoMoreAtATimeThanThereAreStreams) {
  if (core_devices(2).size() < 2) GTEST_SKIP() << "needs two cores";
  ReplicatedModel replicated(core_devices(2));
  const RunResult result = replicated.loaded({.warm_up = 0, .repeat = 30}).measure();
  EXPECT_TRUE(result.outputs.compared && result.outputs.equal());
  std::multiset<std::size_t> samples;
  for (const StepEvent& event : result.events) {
    samples.insert(event.sample);
    EXPECT_EQ(event.device, DeviceId{event.sample % 2});
    EXPECT_LE(std::ranges::count_if(result.events,
                                    [&](const StepEvent& other) {
                                      return other.start <= event.start && event.start < other.end;
                                    }),
              2);
  }
  ASSERT_FALSE(samples.empty());
  EXPECT_EQ(*samples.rbegin() - *samples.begin() + 1, samples.size()) << "a stretch without a gap";
  EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), samples.size());
}

TEST(Replicas, AsStreamsCanBeInterruptedAndRunAgain) {
  if (core_devices(2).size() < 2) GTEST_SKIP() << "needs two cores";
  ReplicatedModel replicated(core_devices(2));
  std::atomic<bool> stop{true};
  LoadedPlan loaded = replicated.loaded({.repeat = 8, .compare = false, .stop = &stop});
  EXPECT_TRUE(loaded.measure().interrupted);
  stop = false;
  const RunResult again = loaded.measure();
  EXPECT_FALSE(again.interrupted);
  EXPECT_GT(again.value.kept + again.value.rejected, 0U);
}

TEST(Replicas, OnAllCoresAreBoundByTheBackendIfTheirNamesSaySo) {
  std::vector<std::string> devices = core_devices(allowed_cores().size());
  if (devices.size() < 2) GTEST_SKIP() << "needs two cores";
  for (std::string& device : devices) device += kPinnedEnding;
  ReplicatedModel replicated(devices);
  (void)replicated.run();
  ASSERT_EQ(replicated.compiled().size(), 1U);
  EXPECT_EQ(replicated.compiled().front().streams, static_cast<int>(devices.size()));
  EXPECT_TRUE(replicated.compiled().front().pinned);
}

TEST(Replicas, OnSomeCoresAreNotBoundByTheBackend) {
  if (core_devices(2).size() < 2) GTEST_SKIP() << "needs two cores";
  ReplicatedModel replicated({core_devices(1).front() + std::string(kPinnedEnding)});
  EXPECT_THROW(replicated.run(), std::invalid_argument);
  EXPECT_TRUE(replicated.compiled().empty());
}

INSTANTIATE_TEST_SUITE_P(Backends, Execution, ::testing::ValuesIn(backend_cases()), name_of_case);

// Two cores, each alone and both together.
class SharedCores : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (allowed_cores().size() < 2) GTEST_SKIP() << "needs two cores";
  }

  [[nodiscard]] Problem problem(Objective objective) const {
    const BackendCase each{"openvino", GetParam()};
    ProblemDraft draft =
        model_draft(each, folder_.file("models"), devices_for("openvino", 2), objective);
    const std::vector<int> cores = allowed_cores();
    const std::vector<Target> targets = {target_of_cores({cores[0]}), target_of_cores({cores[1]}),
                                         target_of_cores({cores[0], cores[1]})};
    draft.cluster = cluster_of_targets(targets, devices_of(targets));
    for (Op& op : draft.ops) op.time.push_back(op.time.front() * 0.6);
    return Problem(std::move(draft));
  }

  Folder folder_;
};

// No two segments of the median sample have a core at the same time.
void expect_cores_have_one_holder(const Problem& problem, const RunResult& result) {
  for (const StepEvent& a : result.events) {
    for (const StepEvent& b : result.events) {
      if (a.step == b.step || !exclude_each_other(problem, a.device, b.device)) continue;
      EXPECT_TRUE(a.end <= b.start || b.end <= a.start)
          << "segments " << a.step << " and " << b.step;
    }
  }
}

TEST_P(SharedCores, SchedulesGiveTheOutputsOfTheWholeModelAndNobodyTakesAnothersCores) {
  const Problem latency = problem(Objective::latency);
  const auto models = models_of(latency);
  RandomSource random(3);
  for (int i = 0; i < 4; ++i) {
    const Plan plan = random_cut_plan(latency, 6, random);
    const RunResult result = run_plan(latency, plan, models, {.warm_up = 1, .repeat = 5});
    EXPECT_TRUE(result.outputs.equal())
        << result.outputs.worst_output << " differs by " << result.outputs.largest_difference;
    EXPECT_EQ(result.value.kept + result.value.rejected, 5U);
    expect_cores_have_one_holder(latency, result);
  }
}

TEST_P(SharedCores, PipelinesTakeTurnsOnTheCores) {
  const Problem throughput = problem(Objective::throughput);
  const auto models = models_of(throughput);
  RandomSource random(4);
  for (int i = 0; i < 3; ++i) {
    const Plan plan = random_cut_plan(throughput, 3, random);
    const RunResult result =
        run_plan(throughput, plan, models, {.warm_up = 4, .repeat = 20, .slots = 3});
    EXPECT_TRUE(result.outputs.equal())
        << result.outputs.worst_output << " differs by " << result.outputs.largest_difference;
    EXPECT_FALSE(result.events.empty());
  }
}

std::string name_of_model(const ::testing::TestParamInfo<std::string>& model) {
  return placewright::testing::test_name(model.param);
}
INSTANTIATE_TEST_SUITE_P(OpenVino, SharedCores, ::testing::Values("tiny-branches", "tiny-bert"),
                         name_of_model);

// The real model, but the part with its last op fails at its third run.
class FailingModel final : public WrappedModel {
 public:
  using WrappedModel::WrappedModel;

  [[nodiscard]] std::unique_ptr<CompiledPart> compile(
      std::span<const std::size_t> ops, const CompileOptions& options) const override {
    auto part = WrappedModel::compile(ops, options);
    const bool last = std::find(ops.begin(), ops.end(), graph().ops.size() - 1) != ops.end();
    if (!last) return part;
    return std::make_unique<WrappedPart<Failing>>(std::move(part));
  }

 private:
  class Failing final : public WrappedRequest {
   public:
    using WrappedRequest::WrappedRequest;
    void run() override {
      if (++runs_ == 3) throw std::runtime_error("the device went away");
      WrappedRequest::run();
    }

   private:
    int runs_ = 0;
  };
};

// First half on one device, second half on the other: two segments.
Plan halves(const Problem& problem) {
  Placement placement(problem.op_count(), DeviceId{0});
  const auto order = problem.topological_order();
  for (std::size_t i = order.size() / 2; i < order.size(); ++i) placement[order[i]] = DeviceId{1};
  return plan_of_placement(problem, placement).value();
}

class Faults : public ::testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    if (devices().size() < 2) GTEST_SKIP() << "needs two cores";
  }

  [[nodiscard]] static std::vector<std::string> devices() {
    return devices_for(GetParam().backend, 2);
  }
  [[nodiscard]] Problem problem(Objective objective, const std::vector<std::string>& names) const {
    return Problem(model_draft(GetParam(), folder_.file("models"), names, objective));
  }

  Folder folder_;
};

TEST_P(Faults, AWorkerThatFailsStopsAllAndIsNamed) {
  for (const Objective objective : {Objective::latency, Objective::throughput}) {
    const Problem halved = problem(objective, devices());
    auto models = models_of(halved);
    models.front() = std::make_unique<FailingModel>(std::move(models.front()));
    try {
      run_plan(halved, halves(halved), models, {.repeat = 50, .compare = false});
      FAIL() << "nothing was thrown";
    } catch (const RuntimeError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("segment "), HasSubstr(devices().back()),
                                      HasSubstr("the device went away")));
    }
  }
}

TEST_P(Faults, AnInterruptionEndsTheRun) {
  for (const Objective objective : {Objective::latency, Objective::throughput}) {
    const Problem halved = problem(objective, devices());
    const auto models = models_of(halved);
    std::atomic<bool> stop{false};
    std::jthread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      stop.store(true);
    });
    const RunResult result =
        run_plan(halved, halves(halved), models, {.repeat = 100000000, .stop = &stop});
    EXPECT_TRUE(result.interrupted);
    EXPECT_TRUE(result.outputs.equal());
  }
}

TEST_P(Faults, APlanForAnotherMachineIsRefused) {
  for (const char* absent : {"cpu:1023", "GPU.7", "toy:7", "none"}) {
    const Problem other = problem(Objective::latency, {devices().front(), absent});
    EXPECT_THROW(run_plan(other, halves(other), models_of(other), {}), std::invalid_argument)
        << absent;
  }
}

TEST_P(Faults, APlanOnDevicesOfAnotherBackendIsRefused) {
  const std::string other =
      GetParam().backend == "toy" ? core_devices(1).front() : devices_for("toy", 1).front();
  const Problem mixed = problem(Objective::latency, {devices().front(), other});
  EXPECT_THROW(run_plan(mixed, halves(mixed), models_of(mixed), {}), std::invalid_argument);
}

TEST_P(Faults, AModelThatChangedIsRefused) {
  const Problem halved = problem(Objective::latency, devices());
  const std::string path = halved.model(ModelId{0}).source->path;
  std::ofstream(path, std::ios::app) << " ";
  EXPECT_THROW(models_of(halved), InputError);
  std::filesystem::remove(path);
  EXPECT_THROW(models_of(halved), InputError);
}

INSTANTIATE_TEST_SUITE_P(Backends, Faults, ::testing::ValuesIn(one_case_per_backend()),
                         name_of_case);

TEST(Memories, OfTheirOwnAreCheckedForRoom) {
  // 200 MB of weights for a device that has 100 MB.
  const Folder folder;
  placewright::testing::register_toy_backend();
  const std::string path = folder.write("large.toy", "input x 1\nmix a x 1 1\noutput a\n");
  const auto model = runtime_named("toy").read(path);
  ProblemDraft draft = draft_of(model->graph(), "large", source_of(path, {}, ""));
  draft.cluster.kinds = {{.name = "toy"}};
  draft.cluster.devices = {{.name = "toy:0", .kind = KindId{0}}};
  draft.ops.front().time = {1};
  draft.ops.front().memory = 2e8;
  const Problem problem(std::move(draft));
  try {
    run_plan(problem, *plan_of_placement(problem, Placement(1, DeviceId{0})), models_of(problem),
             {});
    FAIL() << "nothing was thrown";
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("too little memory for 'toy:0'"), HasSubstr("200 MB"),
                                    HasSubstr("100 MB")));
  }
}

TEST(Memories, ADeviceWithoutAProbeCannotTell) {
  const Folder folder;
  for (const auto& [devices, watched] :
       {std::pair{std::vector<std::string>{"toy:0", "toy:host"}, true},
        std::pair{std::vector<std::string>{"toy:0", "toy:1"}, false}}) {
    const Problem problem(
        model_draft({"toy", "chain"}, folder.file(""), devices, Objective::latency));
    const RunResult result = run_plan(problem, halves(problem), models_of(problem), {.repeat = 3});
    EXPECT_EQ(result.value.watched, watched);
    EXPECT_TRUE(result.segment_times.front().watched);
    EXPECT_EQ(result.segment_times.back().watched, watched);
    EXPECT_EQ(result.outputs.tolerance, tolerance_of(watched ? Precision::f32 : Precision::f16));
  }
}

TEST(SeveralModels, RunTogetherOnTheirOwnBackends) {
  if (core_devices(1).empty()) GTEST_SKIP() << "needs a core";
  const Folder folder;
  const std::string core = core_devices(1).front();
  ProblemDraft draft =
      model_draft({"openvino", "tiny-pair"}, folder.file(""), {core, "toy:0"}, Objective::latency);
  const ProblemDraft other =
      model_draft({"toy", "pair"}, folder.file(""), {core, "toy:0"}, Objective::latency);
  const std::size_t first = draft.ops.size();
  draft.models.push_back(other.models.front());
  for (Op op : other.ops) {
    op.model = ModelId{1};
    op.name = "pair/" + op.name;
    draft.ops.push_back(std::move(op));
  }
  for (std::size_t i = 0; i < first; ++i) draft.ops[i].name = "tiny-pair/" + draft.ops[i].name;
  for (Tensor tensor : other.tensors) {
    tensor.name = "pair/" + tensor.name;
    tensor.producer = OpId{first + tensor.producer.index()};
    for (OpId& consumer : tensor.consumers) consumer = OpId{first + consumer.index()};
    draft.tensors.push_back(std::move(tensor));
  }
  draft.objective = Objective::total_completion;
  const Problem problem(std::move(draft));
  Placement placement(problem.op_count(), DeviceId{0});
  for (std::size_t i = first; i < problem.op_count(); ++i) placement[OpId{i}] = DeviceId{1};
  const RunResult result =
      run_plan(problem, *plan_of_placement(problem, placement), models_of(problem), {.repeat = 3});
  EXPECT_TRUE(result.outputs.equal()) << result.outputs.worst_output;
  EXPECT_EQ(result.completions.size(), 2U);
}

}  // namespace
}  // namespace placewright
