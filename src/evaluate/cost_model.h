// What depends on the form that plans of an objective have: schedules, pipelines, calls
// (docs/semantics.md). One class for each form, and one list of them; who asks about plans of any
// objective asks here, or one of the functions that do: plan_of_placement, simulate.

#pragma once

#include <optional>
#include <vector>

#include "evaluate/simulate.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

class CostModel {
 public:
  CostModel() = default;
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;
  virtual ~CostModel() = default;

  // See plan_of_placement (placement_plan.h).
  [[nodiscard]] virtual std::optional<Plan> plan_of(const Problem& problem,
                                                    const Placement& placement) const = 0;

  // The plan of the placement in the shape of another plan, with the times, loads and value of this
  // problem. The shape is the order of ops and transfers of a schedule, the stages and their
  // replicas, the calls. `shape` is for a problem with the same ops and tensors, whose devices are
  // the first ones of `problem`. Nullopt if it does not carry over.
  [[nodiscard]] virtual std::optional<Plan> in_the_shape_of(const Plan& shape,
                                                            const Problem& problem,
                                                            const Placement& placement) const = 0;

  // Adds what the plan does to a simulation that knows the resident memory of its placement.
  virtual void simulate(const Problem& problem, const Plan& plan, Simulation& simulation) const = 0;

  // The movements of the plan: a schedule's own, with times; else those that the plan needs, from 0
  // to their length.
  [[nodiscard]] virtual std::vector<Transfer> movements(const Problem& problem,
                                                        const Plan& plan) const = 0;

  // The time that devices spend on handing each tensor out and on taking it in.
  [[nodiscard]] virtual Table<TensorId, double> overheads(const Problem& problem,
                                                          const Plan& plan) const;
};

const CostModel& cost_model(const Problem& problem);

// One for each form.
const CostModel& schedule_costs();
const CostModel& pipeline_costs();
const CostModel& call_costs();

// What of `whole` is not busy; the rounding of a sum is not idle time.
double idle_time(double whole, double busy);

bool in_host_memory(const Problem& problem, DeviceId device);

}  // namespace placewright
