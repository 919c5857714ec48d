// Where the checks put what they find, and how they name things in a sentence.

#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "problem/problem.h"
#include "verify/verifier.h"

namespace placewright::verifying {

class Findings {
 public:
  template <class... Args>
  void add(ViolationCode code, std::vector<OpId> ops, std::vector<DeviceId> devices,
           fmt::format_string<Args...> sentence, Args&&... args) {
    if (++count_ > kListedViolations) return;
    listed_.push_back({code, fmt::format(sentence, std::forward<Args>(args)...), std::move(ops),
                       std::move(devices)});
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::vector<Violation> take() &&;

 private:
  std::vector<Violation> listed_;
  std::size_t count_ = 0;
};

// "op 'conv'", "device 'gpu'", "tensor 'x'" or "the tensor of op 'conv'", "resource 'core0'".
std::string called(const Problem& problem, OpId op);
std::string called(const Problem& problem, DeviceId device);
std::string called(const Problem& problem, TensorId tensor);
std::string called(const Problem& problem, ResourceId resource);
// "memory space 'ram'", or "device 'gpu'" if the device has it for itself.
std::string called(const Problem& problem, SpaceId space);
// "in memory space 'ram'", "on device 'gpu'".
std::string located(const Problem& problem, SpaceId space);

// "stage 1", "call 1": the place in the plan's list, counted from 1 as the other verbs do.
std::string stage_name(std::size_t stage);
std::string call_name(std::size_t call);

// A time of a plan can be judged at all.
inline bool is_time(double time) {
  return std::isfinite(time) && time >= 0;
}

inline constexpr double kTimeTolerance = 1e-9;    // of the plan's horizon
inline constexpr double kValueTolerance = 1e-9;   // of the value
inline constexpr double kMemoryTolerance = 1e-9;  // of the space's memory

// Equal up to kValueTolerance; never when one of them is infinite or not a number.
bool same_value(double left, double right);

// Adds `value_wrong` when the plan states another value.
void check_value(double stated, double computed, Findings& findings);

}  // namespace placewright::verifying
