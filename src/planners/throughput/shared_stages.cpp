// shared-stages: pipelines on sets of cores at once, along one order of the graph
// (shared_program.h).
//
// The bound is the work of all resources together (bounds/work.h). Other orders, stages that take
// turns on sets of cores that overlap, and all that the program leaves to the evaluator:
// shared-search.

#include "planners/bound_of_problem.h"
#include "planners/throughput/shared_program.h"
#include "planners/throughput/throughput.h"
#include "problem/exclusion.h"

namespace placewright {
namespace {

Answer plan(const Problem& problem, const Settings& /*settings*/, Control& control) {
  if (auto infeasible = throughput::too_much_for_one_memory(problem)) return *infeasible;
  Answer answer;
  answer.certificate = bound_of_problem(problem, control);
  answer.plan = throughput::shared_program(problem, blocks_of(problem), control);
  if (answer.plan) {
    control.report(*answer.plan, answer.certificate.lower_bound);
  } else {
    answer.reason =
        control.should_stop() ? control.stop_reason() : "no interval of the order fits the devices";
  }
  return answer;
}

std::string refuses(const Problem& problem) {
  if (!ops_take_whole_resources(problem)) return "it knows devices that take their resources whole";
  return throughput::refuses_shared_program(problem);
}

}  // namespace

PlannerEntry shared_stages() {
  return PlannerEntry{
      .name = "shared-stages",
      .summary = "stages, replicas and threads on sets of cores, along one order of the graph",
      .objectives = {Objective::throughput},
      .knows = kCommonAndSharing - Features{Feature::several_spaces, Feature::training},
      .refuses = refuses,
      .plan = plan};
}

}  // namespace placewright
