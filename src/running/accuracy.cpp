#include "running/accuracy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/part_inputs.h"
#include "machine/clock.h"

namespace placewright {
namespace {

constexpr std::size_t kMostInputs = 8;
constexpr double kLongest = 2000;  // milliseconds after which no other input begins

bool is_row(const TensorType& type) {
  const auto wide = std::ranges::count_if(type.shape, [](std::size_t size) { return size > 1; });
  return type.element == "f32" && wide == 1;
}

std::vector<float> values_of(Buffer& buffer, const Target& device) {
  const HostBuffer bytes = read_back(buffer, device);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.bytes().data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

void AccuracySum::add(std::span<const float> exact, std::span<const float> found) {
  double scale = 0;
  for (const float value : exact) scale = std::max(scale, std::abs(static_cast<double>(value)));
  if (scale == 0) scale = 1;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double apart = std::abs(static_cast<double>(exact[i]) - static_cast<double>(found[i]));
    const double error =
        std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart / scale;
    largest_ = std::max(largest_, error);
    sum_ += error;
  }
  count_ += exact.size();
}

bool same_top(std::span<const float> exact, std::span<const float> found) {
  const auto place = [](std::span<const float> values) {
    return std::ranges::max_element(values) - values.begin();
  };
  return place(exact) == place(found);
}

std::unique_ptr<CompiledPart> reference_part(const NeuralModel& model, const Target& device) {
  try {
    return model.compile_whole({.device = device.device});
  } catch (const RuntimeError&) {
    return model.compile_whole({.device = device.device, .precision = Precision::by_default});
  }
}

std::optional<Accuracy> accuracy_of(const NeuralModel& model, CompiledPart& part,
                                    const NamedArrays& given, std::uint64_t seed,
                                    const Target& device) {
  if (part.precision() == Precision::f32) return std::nullopt;
  const ModelGraph& graph = model.graph();
  const auto exact = model.compile_whole({.device = device.device, .precision = Precision::f32});
  const auto& outputs = part.outputs();
  const bool classifier = outputs.size() == 1 && is_row(type_of(graph, outputs.front()));
  Accuracy accuracy;
  if (classifier) accuracy.same_top = 0;
  AccuracySum errors;
  const bool all_given = std::ranges::all_of(
      graph.inputs, [&](const GraphInput& input) { return given.contains(input.name); });
  const std::size_t most = all_given ? 1 : kMostInputs;
  const Clock::time_point begin = Clock::now();
  while (accuracy.inputs < most && milliseconds(Clock::now() - begin) < kLongest) {
    const Buffers inputs = model_inputs(graph, given, seed + accuracy.inputs, device);
    const auto right = request_with(*exact, inputs);
    const auto own = request_with(part, inputs);
    right->run();
    own->run();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (type_of(graph, outputs[i]).element != "f32") continue;
      const std::vector<float> expected = values_of(right->output(i), device);
      const std::vector<float> found = values_of(own->output(i), device);
      errors.add(expected, found);
      if (classifier && same_top(expected, found)) ++*accuracy.same_top;
    }
    ++accuracy.inputs;
  }
  accuracy.largest_error = errors.largest();
  accuracy.mean_error = errors.mean();
  return accuracy;
}

}  // namespace placewright
