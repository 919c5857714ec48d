// A plan as a file keeps it: what the planner answered, how it was asked, and which problem it is
// for.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "placewright/problem/plan.h"

namespace placewright {

// Where the problem of a plan is: everything needed to read it again as the planner saw it.
struct ProblemReference {
  std::string path;               // as given; "-" or empty: not in a file
  std::string digest;             // of the file's bytes
  std::string format = {};        // where it was forced
  std::string cluster_path = {};  // empty: the problem's own devices
  std::string cluster_digest = {};

  friend bool operator==(const ProblemReference&, const ProblemReference&) = default;
};

struct PlanFile {
  Plan plan;  // without a placement: there is no plan; infinite: a value or load is not stated
  Certificate certificate;
  Status status = Status::unknown;
  std::optional<double> stated_bound = {};  // when read: what the file says, which may be wrong
  std::optional<double> stated_gap = {};
  std::string planner;
  std::map<std::string, std::string> settings;
  std::uint64_t seed = 0;
  double seconds = 0;
  std::string reason;  // no plan: why
  ProblemReference problem;
  std::vector<std::string> warnings;  // unknown keys, when read

  [[nodiscard]] bool has_plan() const { return !plan.placement.empty(); }
};

}  // namespace placewright
