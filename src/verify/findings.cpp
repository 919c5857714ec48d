#include "verify/findings.h"

#include <algorithm>

namespace placewright::verifying {

std::vector<Violation> Findings::take() && {
  if (count_ > kListedViolations) {
    listed_.push_back(
        {ViolationCode::further_violations,
         fmt::format("{} further violations are not listed", count_ - kListedViolations),
         {},
         {}});
  }
  return std::move(listed_);
}

std::string called(const Problem& problem, OpId op) {
  return fmt::format("op '{}'", problem.op(op).name);
}

std::string called(const Problem& problem, DeviceId device) {
  return fmt::format("device '{}'", problem.device(device).name);
}

std::string called(const Problem& problem, TensorId tensor) {
  const std::string& name = problem.tensor(tensor).name;
  if (!name.empty()) return fmt::format("tensor '{}'", name);
  return fmt::format("the tensor of {}", called(problem, problem.producer(tensor)));
}

bool same_value(double left, double right) {
  if (!std::isfinite(left) || !std::isfinite(right)) return false;
  return std::abs(left - right) <= kValueTolerance * std::max(std::abs(left), std::abs(right));
}

void check_value(double stated, double computed, Findings& findings) {
  if (same_value(stated, computed)) return;
  findings.add(ViolationCode::value_wrong, {}, {}, "the plan states the value {:.9g}, it is {:.9g}",
               stated, computed);
}

}  // namespace placewright::verifying
