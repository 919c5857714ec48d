#include "verify/findings.h"

#include <algorithm>

namespace placewright::verifying {
namespace {

bool is_named(const Problem& problem, SpaceId space) {
  return space.index() < problem.draft().cluster.spaces.size();
}

}  // namespace

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

std::string called(const Problem& problem, ResourceId resource) {
  return fmt::format("resource '{}'", problem.resource(resource).name);
}

std::string called(const Problem& problem, SpaceId space) {
  return fmt::format("{} '{}'", is_named(problem, space) ? "memory space" : "device",
                     problem.space_name(space));
}

std::string stage_name(std::size_t stage) {
  return fmt::format("stage {}", stage + 1);
}

std::string call_name(std::size_t call) {
  return fmt::format("call {}", call + 1);
}

std::string located(const Problem& problem, SpaceId space) {
  return fmt::format("{} {}", is_named(problem, space) ? "in" : "on", called(problem, space));
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
