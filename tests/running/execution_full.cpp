// Splits at random: a hundred plans on three models give the outputs of the unsplit model.

#include <gtest/gtest.h>

#include "running/execution.h"
#include "support/folder.h"
#include "support/random_cuts.h"
#include "support/test_name.h"

namespace placewright {
namespace {

using placewright::testing::core_devices;
using placewright::testing::Folder;
using placewright::testing::model_draft;
using placewright::testing::random_cut_plan;
using placewright::testing::RandomSource;

class RandomSplits : public ::testing::TestWithParam<const char*> {};

TEST_P(RandomSplits, GiveEqualOutputs) {
  if (core_devices(2).size() < 2) GTEST_SKIP() << "needs two cores";
  const Folder folder;
  RandomSource random(5);
  for (const Objective objective : {Objective::latency, Objective::throughput}) {
    const Problem problem(
        model_draft({"openvino", GetParam()}, folder.file("zoo"), core_devices(2), objective));
    const auto models = models_of(problem);
    for (int i = 0; i < 17; ++i) {
      const Plan plan = random_cut_plan(problem, 1 + static_cast<double>(random.below(8)), random);
      const RunResult result =
          run_plan(problem, plan, models, {.warm_up = 0, .repeat = 2, .slots = 2});
      EXPECT_TRUE(result.outputs.equal())
          << result.segments.size() << " segments, output " << result.outputs.worst_output;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, RandomSplits,
                         ::testing::Values("squeezenet", "bninception", "swin-t"),
                         [](const auto& model) {
                           return placewright::testing::test_name(model.param);
                         });

}  // namespace
}  // namespace placewright
