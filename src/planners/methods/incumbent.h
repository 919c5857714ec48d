// Incumbent: the best plan so far of a planner that looks at placements, and the bound that goes
// with it.

#pragma once

#include <optional>
#include <string>

#include "planners/planner.h"
#include "problem/plan.h"

namespace placewright::throughput {

class Incumbent {
 public:
  // Starts from the control's plan, where there is one.
  Incumbent(const Problem& problem, Control& control);

  // A contiguous plan, which every rule accepts, from `ideals` within a share of the time.
  void take_contiguous_plan(double share);
  // Kept if it is valid and better; answers whether it was.
  bool offer(const Placement& placement);

  // A better plan of a planner that runs beside this one.
  void take_from_others();

  [[nodiscard]] const std::optional<Plan>& plan() const { return plan_; }
  [[nodiscard]] double value() const { return plan_ ? plan_->value : kInfinity; }
  void raise_bound(double bound, std::string method);
  [[nodiscard]] double bound() const { return certificate_.lower_bound; }
  [[nodiscard]] bool settled() const;

  // `reason`: why there is no plan, if there is none.
  Answer answer(std::string reason, bool proved_infeasible = false);

 private:
  const Problem& problem_;
  Control& control_;
  std::optional<Plan> plan_;
  Certificate certificate_;
};

}  // namespace placewright::throughput
