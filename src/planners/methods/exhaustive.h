// What planners that try every plan of a small problem share: which problems are small enough, the
// best plan so far, and the answer. An enumeration that ends without being stopped has proved its
// best plan optimal, or that there is none.

#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "planners/planner.h"

namespace placewright {

class Enumeration {
 public:
  explicit Enumeration(Control& control) : control_(control) {
    if (control.start != nullptr) best_ = *control.start;
  }

  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] double value() const { return best_ ? best_->value : kInfinity; }

  // Another candidate is looked at.
  void count() { stopped_ = stopped_ || control_.should_stop(1); }

  // The candidate is better than what was there.
  void take(Plan plan) {
    control_.report(plan, 0);
    best_ = std::move(plan);
  }

  // `seen`: what was enumerated, "pipeline". `open`: no plan that was not looked at is better than
  // this.
  [[nodiscard]] Answer answer(std::string_view seen, double open = 0) && {
    if (stopped_) {
      const Certificate bound{std::min(open, value()),
                              fmt::format("every {} looked at or left", seen)};
      return {std::move(best_), open > 0 ? bound : Certificate{}, false, control_.stop_reason()};
    }
    if (best_) {
      const Certificate proof{best_->value, fmt::format("every {} looked at", seen)};
      return {std::move(best_), proof, false, ""};
    }
    return {{}, {}, true, fmt::format("every {} was tried, and none keeps all rules", seen)};
  }

 private:
  Control& control_;
  std::optional<Plan> best_;
  bool stopped_ = false;
};

// The planner `exhaustive` of one objective.
template <class Enumerated>
PlannerEntry exhaustive(Objective objective, double (*candidate_count)(const Problem&)) {
  constexpr double kMostCandidates = 100'000;
  return PlannerEntry{.name = "exhaustive",
                      .summary = "tries every plan of a small problem, under any rules",
                      .objectives = {objective},
                      .strength = Strength::exact,
                      .refuses = [candidate_count](const Problem& problem) -> std::string {
                        const bool few = candidate_count(problem) <= kMostCandidates;
                        return few ? "" : "it has too many plans to try them all";
                      },
                      .plan = [](const Problem& problem, const Settings&,
                                 Control& control) { return Enumerated(problem, control).run(); }};
}

}  // namespace placewright
