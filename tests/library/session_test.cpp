// A model from its file to results on the caller's arrays: placewright/session.h.

#include "placewright/session.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/import.h"
#include "backends/model_files.h"
#include "backends/registry.h"
#include "backends/target_devices.h"
#include "machine/target_cluster.h"
#include "placewright/placewright.h"
#include "support/folder.h"
#include "zoo/zoo.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;

// Estimated costs: what a session computes does not depend on them.
Problem estimated(const std::string& path, Objective objective,
                  const std::vector<std::string>& shapes = {}) {
  const std::vector<Target> targets = all_targets(backend_named(kDefaultBackend));
  const auto model = runtime_named(kDefaultBackend).read(path, shapes_named(shapes));
  ProblemDraft draft = draft_of(model->graph(), "tiny", source_of(path, shapes, {}));
  const Cluster cluster = cluster_of_targets(targets, devices_of(targets));
  std::vector<PeakRates> rates;
  for (const std::size_t device : first_of_each_kind(cluster)) {
    rates.push_back(usual_rates(targets[device]));
  }
  estimate_times(draft, model->graph(), cluster, rates);
  draft.objective = objective;
  return Problem(std::move(draft));
}

class SessionTest : public ::testing::Test {
 protected:
  [[nodiscard]] Session session(const std::string& planner,
                                Objective objective = Objective::latency) const {
    const Problem problem = estimated(model_, objective);
    const PlanOutcome outcome =
        solve(problem, {.planner = planner, .budget = {.steps = 50, .seed = 3}});
    return {problem, outcome.answer.plan.value()};
  }

  testing::Folder folder_;
  std::string model_ = make_zoo_model("tiny-branches", folder_.file("")).xml;
};

NamedArrays filled(const Session& session, float value) {
  NamedArrays arrays;
  for (const ArrayType& input : session.inputs()) {
    std::size_t count = 1;
    for (const std::size_t size : input.shape) count *= size;
    arrays[input.name] = Array::of<float>(input.shape, std::vector<float>(count, value));
  }
  return arrays;
}

std::vector<float> first_of(const NamedArrays& arrays) {
  return arrays.begin()->second.values<float>();
}

void expect_close(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
}

std::size_t devices_used(const Session& session) {
  std::set<DeviceId> used;
  for (const OpId op : session.problem().ops()) used.insert(session.plan().placement[op]);
  return used.size();
}

TEST_F(SessionTest, ASampleRunsInTheVariantOfItsShapes) {
  Session both = session("single");
  const std::vector<std::size_t> shape = both.inputs().front().shape;
  const std::string& name = both.inputs().front().name;
  std::vector<std::size_t> twice = shape;
  twice[0] = 2;
  const Problem problem =
      estimated(model_, Objective::latency, {fmt::format("{}={}", name, fmt::join(twice, "x"))});
  const Plan plan = solve(problem, {.planner = "single"}).answer.plan.value();
  both.add_variant(problem, plan);
  Session large(problem, plan);
  Session small = session("single");
  const NamedArrays one = filled(small, 0.5F);
  const NamedArrays two = filled(large, 0.5F);
  const std::vector<NamedArrays> samples = {one, two, two, one};
  const std::vector<NamedArrays> outputs = both.run_all(samples);
  ASSERT_EQ(outputs.size(), 4U);
  for (const std::size_t i : {0U, 3U}) expect_close(first_of(outputs[i]), first_of(small.run(one)));
  for (const std::size_t i : {1U, 2U}) expect_close(first_of(outputs[i]), first_of(large.run(two)));
  NamedArrays none = one;
  none.begin()->second = Array::of<float>({5}, std::vector<float>(5, 0));
  try {
    (void)both.run(none);
    ADD_FAILURE() << "it ran";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("no variant takes inputs of these shapes; there are: " + name));
  }
}

TEST_F(SessionTest, ComputesTheSameOnAnyPlacement) {
  Session whole = session("single");
  Session split = session("random");
  for (const float value : {0.0F, 1.0F, -0.5F}) {
    const NamedArrays outputs = whole.run(filled(whole, value));
    ASSERT_EQ(outputs.size(), whole.outputs().size());
    expect_close(first_of(split.run(filled(split, value))), first_of(outputs));
  }
  EXPECT_NE(first_of(whole.run(filled(whole, 1))), first_of(whole.run(filled(whole, 0))));
}

TEST_F(SessionTest, RunsSeveralSamplesInOrder) {
  Session whole = session("single");
  Session pipeline = session("random", Objective::throughput);
  EXPECT_GE(devices_used(pipeline), std::min<std::size_t>(2, pipeline.problem().device_count()));
  std::vector<NamedArrays> samples;
  for (int i = 0; i < 7; ++i) samples.push_back(filled(whole, static_cast<float>(i) / 7));
  const std::vector<NamedArrays> outputs = pipeline.run_all(samples);
  ASSERT_EQ(outputs.size(), samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    expect_close(first_of(outputs[i]), first_of(whole.run(samples[i])));
  }
}

TEST_F(SessionTest, InputsThatAreLeftOutKeepTheirValues) {
  Session one = session("single");
  const std::vector<float> outputs = first_of(one.run(filled(one, 0.25)));
  expect_close(first_of(one.run({})), outputs);
}

// Samples of a pipeline are in memories of their own.
TEST_F(SessionTest, InputsThatAreLeftOutKeepTheirValuesInAPipelineToo) {
  Session pipeline = session("single", Objective::throughput);
  const std::vector<NamedArrays> samples = {
      filled(pipeline, 0.25), {}, {}, filled(pipeline, -0.5), {}, {}, {}};
  const std::vector<NamedArrays> outputs = pipeline.run_all(samples);
  for (const std::size_t i : {1U, 2U}) expect_close(first_of(outputs[i]), first_of(outputs[0]));
  for (const std::size_t i : {4U, 5U, 6U}) {
    expect_close(first_of(outputs[i]), first_of(outputs[3]));
  }
  EXPECT_NE(first_of(outputs[0]), first_of(outputs[3]));
  expect_close(first_of(pipeline.run({})), first_of(outputs[3]));
}

TEST_F(SessionTest, RefusesWhatDoesNotFit) {
  Session one = session("single");
  const auto fault = [&](const NamedArrays& inputs) -> std::string {
    try {
      (void)one.run(inputs);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  const std::string input = one.inputs().front().name;
  const Array small = Array::of<float>({1}, std::vector<float>{1});
  EXPECT_THAT(fault({{input, small}}), HasSubstr("not 1"));
  EXPECT_THAT(fault({{"other", small}}), HasSubstr("no input 'other'"));
  Array cut_off = filled(one, 1).at(input);
  cut_off.bytes.pop_back();
  EXPECT_THAT(fault({{input, cut_off}}), HasSubstr("bytes of values"));
  const Array whole = filled(one, 1).at(input);
  EXPECT_THAT(fault({{input, whole}, {"", whole}}), HasSubstr("is given twice"));
  EXPECT_THAT(fault({{input, whole}, {"tiny:" + input, whole}}), HasSubstr("is given twice"));
}

TEST_F(SessionTest, ComesFromAPlanFile) {
  const Problem problem = estimated(model_, Objective::latency);
  const PlanOutcome outcome = solve(problem, {.planner = "heft"});
  save_plan(folder_.file("plan.json"), problem, outcome);
  Session opened = open_session(folder_.file("plan.json"));
  Session direct(problem, outcome.answer.plan.value());
  expect_close(first_of(opened.run(filled(opened, 1))), first_of(direct.run(filled(direct, 1))));
}

TEST(Measure, GivesAProblemThatNamesItsModel) {
  const testing::Folder folder;
  const std::string model = make_zoo_model("tiny-branches", folder.file("")).xml;
  const std::string core = name_of(all_targets(backend_named(kDefaultBackend)).front());
  const Problem problem = measure({model}, {.devices = {core}, .repeat = 1});
  EXPECT_EQ(problem.device(DeviceId{0}).name, core);
  EXPECT_GT(problem.op_count(), 1U);
  const PlanOutcome outcome = solve(problem, {.planner = "single"});
  Session session(problem, outcome.answer.plan.value());
  EXPECT_EQ(session.run({}).size(), session.outputs().size());
  EXPECT_THROW((void)measure({model}, {.devices = {"cpu:99999"}}), std::invalid_argument);
  EXPECT_THROW((void)measure({}), std::invalid_argument);
}

}  // namespace
}  // namespace placewright
