// What is asked of the planning service, and what it answers (src/planning/service.h).

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "placewright/coarsen/coarsen_method.h"
#include "placewright/planners/planner.h"
#include "placewright/problem/plan.h"

namespace placewright {

// A request that cannot be served as asked: an unknown planner or option, a planner that does not
// serve the objective, a start plan that is not valid.
class RequestError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

struct PlanRequest {
  std::string planner = "auto";
  std::vector<std::pair<std::string, std::string>> options = {};  // planner options as text
  Budget budget = {};
  const Plan* start = nullptr;  // improve this one; the outcome is never worse
  CoarsenOptions coarsening = {};
};

// What coarsening did, where it was asked for.
struct CoarseningSummary {
  CoarsenMethod method = CoarsenMethod::none;
  std::size_t ops_before = 0;
  std::size_t ops_after = 0;
  bool lossless = true;
};

struct PlanOutcome {
  Answer answer;  // its plan has been accepted by the verifier
  std::string planner;
  Settings settings;
  double seconds = 0;
  std::string fault = {};  // an internal error, in one sentence; then there is no plan
  std::optional<CoarseningSummary> coarsening = {};
  std::uint64_t seed = 1;
  // Beside the answer: members of `auto` that failed or were left out.
  std::vector<std::string> notes = {};

  [[nodiscard]] double value() const { return answer.value(); }
};

}  // namespace placewright
