// What computing in less than f32 costs: the outputs of a whole model beside those that it has in
// f32.
//
// Both run on the device that outputs are compared with, with the same inputs: the given ones, or
// some from seeds. An error counts relative to the largest value of its output. Where a model has a
// single output of one row of real numbers, a classifier's, the place of the largest of them counts
// too.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "backends/runtime.h"
#include "formats/array.h"
#include "machine/targets.h"

namespace placewright {

struct Accuracy {
  double largest_error = 0;             // relative to the largest value of its output
  double mean_error = 0;                // of all values, the same way
  std::size_t inputs = 0;               // that were tried
  std::optional<std::size_t> same_top;  // of these; nullopt: the model is no classifier
};

// Errors of outputs, added one output after the other.
class AccuracySum {
 public:
  // Values of an output in f32 and in what the model computes in.
  void add(std::span<const float> exact, std::span<const float> found);
  [[nodiscard]] double largest() const { return largest_; }
  [[nodiscard]] double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }

 private:
  double largest_ = 0;
  double sum_ = 0;
  std::size_t count_ = 0;
};

// Whether the largest value is at the same place; of several largest ones the first counts.
bool same_top(std::span<const float> exact, std::span<const float> found);

// The model as a whole for the device, in its precision, or in the device's own where it does not
// have that.
std::unique_ptr<CompiledPart> reference_part(const NeuralModel& model, const Target& device);

// Nullopt if the part computes in f32 already. It takes about as long as a few inferences in f32.
std::optional<Accuracy> accuracy_of(const NeuralModel& model, CompiledPart& part,
                                    const NamedArrays& given, std::uint64_t seed,
                                    const Target& device);

}  // namespace placewright
