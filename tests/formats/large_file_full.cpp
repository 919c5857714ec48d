// A graph of 100,000 ops is read, checked and written in about a second.

#include <algorithm>
#include <ctime>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "formats/problem_file.h"

namespace placewright {
namespace {

ProblemDraft large_draft(std::size_t op_count, std::size_t device_count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> time(0, 1);
  ProblemDraft draft;
  draft.name = "large";
  draft.cluster.kinds = {{"a"}, {"b"}, {"c"}, {"d"}};
  draft.models = {{"model", 0, 1, {}}};
  for (std::size_t i = 0; i < device_count; ++i) {
    draft.cluster.devices.push_back({"device" + std::to_string(i), KindId{i % 4}, 16e9});
  }
  for (const DeviceId from : ids<DeviceId>(device_count)) {
    for (const DeviceId to : ids<DeviceId>(device_count)) {
      if (from != to) draft.cluster.links.push_back({from, to, 0.001, 1e6});
    }
  }
  for (std::size_t i = 0; i < op_count; ++i) {
    Op op;
    op.name = "layer" + std::to_string(i / 10) + "/convolution_" + std::to_string(i);
    op.type = "Convolution";
    op.memory = 1e6 * time(random);
    for (int kind = 0; kind < 4; ++kind) op.time.push_back(time(random));
    draft.ops.push_back(std::move(op));
    if (i + 50 >= op_count) continue;
    Tensor tensor;
    tensor.producer = OpId{i};
    tensor.consumers = {OpId{i + 1 + random() % 10}, OpId{i + 11 + random() % 10},
                        OpId{i + 21 + random() % 10}};
    tensor.bytes = 1e7 * time(random);
    draft.tensors.push_back(std::move(tensor));
  }
  return draft;
}

// Processor time, so that other work on the machine does not count.
double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(LargeFile, IsReadAndBuiltWithinASecond) {
  const ProblemDraft draft = large_draft(100'000, 64);
  double best_write = kInfinity;
  double best_read = kInfinity;
  for (int round = 0; round < 3; ++round) {
    const auto before_write = std::clock();
    const std::string text = write_problem(draft);
    best_write = std::min(best_write, seconds_since(before_write));
    EXPECT_GT(text.size(), 20'000'000U);

    const auto before_read = std::clock();
    ProblemFile file = parse_problem(text, "large.json");
    const Problem problem = build_problem(std::move(file.draft), file);
    best_read = std::min(best_read, seconds_since(before_read));
    EXPECT_TRUE(problem.draft() == draft);
  }
  RecordProperty("read_seconds", std::to_string(best_read));
  RecordProperty("write_seconds", std::to_string(best_write));
  EXPECT_LT(best_read, 1.0);
  EXPECT_LT(best_write, 1.0);
}

}  // namespace
}  // namespace placewright
