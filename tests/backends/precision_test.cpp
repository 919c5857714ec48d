// What models compute in: the backend's choice unless somebody asks for more or less.

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "problem/stated_precision.h"
#include "profiling/whole_times.h"
#include "running/accuracy.h"
#include "support/backend_case.h"
#include "support/folder.h"

namespace placewright {
namespace {

using placewright::testing::Folder;
using placewright::testing::model_file;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class PrecisionOnCores : public ::testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<NeuralModel> read(Precision precision) const {
    return runtime_named("openvino").read(path_, {}, precision);
  }
  static Precision computed(const NeuralModel& model) {
    return model.compile_whole({.device = "CPU"})->precision();
  }

  Folder folder_;
  std::string path_ = model_file({"openvino", "tiny-branches"}, folder_.file("models"));
};

TEST_F(PrecisionOnCores, IsTheBackendsUnlessAsked) {
  const Precision chosen = computed(*read(Precision::by_default));
  EXPECT_NE(chosen, Precision::by_default);
  const auto exact = read(Precision::f32);
  EXPECT_EQ(computed(*exact), Precision::f32);
  const auto again = exact->compile_whole({.device = "CPU", .precision = Precision::by_default});
  EXPECT_EQ(again->precision(), chosen) << "an option goes before the model's choice";
}

TEST_F(PrecisionOnCores, HintsLeaveTheRestToTheBackend) {
  const auto model = read(Precision::by_default);
  const auto part = model->compile_whole({.device = "CPU", .hint = Hint::throughput});
  EXPECT_EQ(part->precision(), computed(*model));
  EXPECT_GE(part->advised_requests(), 1U);
}

TEST_F(PrecisionOnCores, AccuracyIsNoneOfF32AndSmallOfLess) {
  const Target device = reference_target("openvino");
  const auto exact = read(Precision::f32);
  const auto part = exact->compile_whole({.device = "CPU"});
  EXPECT_FALSE(accuracy_of(*exact, *part, {}, 1, device).has_value());
  const auto model = read(Precision::by_default);
  const auto chosen = model->compile_whole({.device = "CPU"});
  const auto accuracy = accuracy_of(*model, *chosen, {}, 1, device);
  ASSERT_EQ(accuracy.has_value(), chosen->precision() != Precision::f32);
  if (!accuracy) return;
  EXPECT_GT(accuracy->inputs, 0U);
  EXPECT_GT(accuracy->largest_error, 0);
  EXPECT_LE(accuracy->mean_error, accuracy->largest_error);
  EXPECT_LE(accuracy->largest_error, tolerance_of(chosen->precision()));
}

TEST(PrecisionOfADevice, IsRefusedWhereItIsNot) {
  const Folder folder;
  const std::string path = model_file({"toy", "pair"}, folder.file("models"));
  const auto model = runtime_named("toy").read(path, {}, Precision::f16);
  EXPECT_THAT([&] { (void)model->compile_whole({.device = "toy:0"}); },
              ThrowsMessage<RuntimeError>(HasSubstr("does not compute in f16 here, only in: f32")));
  EXPECT_EQ(model->compile_whole({.device = "toy:1"})->precision(), Precision::f16);
}

TEST(PrecisionOfADevice, TheReferenceTakesItsOwnWhereItMust) {
  const Folder folder;
  const std::string path = model_file({"toy", "pair"}, folder.file("models"));
  const auto model = runtime_named("toy").read(path, {}, Precision::f16);
  EXPECT_EQ(reference_part(*model, reference_target("toy"))->precision(), Precision::f32);
}

TEST(PrecisionOfAProblem, IsStatedByItsOriginAndOldFilesMeanF32) {
  ProblemDraft draft;
  EXPECT_EQ(stated_precision(draft), Precision::f32);
  draft.origin.emplace_back("measured by placewright profile");
  state_precision(draft, Precision::by_default);
  EXPECT_EQ(stated_precision(draft), Precision::by_default);
  draft.origin.back() = std::string(kPrecisionOrigin) + "less";
  EXPECT_EQ(stated_precision(draft), Precision::f32);
}

TEST(WholeTimes, AreReadAsTheyWereWritten) {
  KindProfile kind;
  kind.kind = "cpu-2";
  kind.latency.median = 5.97;
  ProblemDraft draft;
  draft.origin = {whole_time_line("a on b", kind), "alone: much ms, c on cpu-2"};
  EXPECT_EQ(whole_time(draft, "a on b", "cpu-2"), 5.97);
  EXPECT_EQ(whole_time(draft, "b", "cpu-2"), std::nullopt);
  EXPECT_EQ(whole_time(draft, "c", "cpu-2"), std::nullopt);
}

TEST(Accuracy, CountsErrorsByTheLargestValueOfEachOutput) {
  AccuracySum errors;
  errors.add(std::vector<float>{1, -4, 2}, std::vector<float>{1, -4, 2.4F});
  errors.add(std::vector<float>{0.5F}, std::vector<float>{0.45F});
  EXPECT_NEAR(errors.largest(), 0.1, 1e-6);
  EXPECT_NEAR(errors.mean(), 0.05, 1e-6);
  EXPECT_TRUE(same_top(std::vector<float>{1, 3, 2}, std::vector<float>{0, 2, 1}));
  EXPECT_FALSE(same_top(std::vector<float>{1, 3, 2}, std::vector<float>{0, 2, 4}));
}

}  // namespace
}  // namespace placewright
