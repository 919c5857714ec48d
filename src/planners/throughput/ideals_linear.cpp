// ideals-linear: the best contiguous pipeline along linear orders of the graph.
//
// The program over ideals on prefixes of a few linear extensions (depth first from either end,
// breadth first, least cut first, random ones): all of them together, so that a plan may change
// from one order to another where their prefixes agree. Near-optimal, and O(blocks x stage length)
// for each order, so it serves tens of thousands of ops on many devices. Its certificate is the
// work bound.
//
// Reference: J. Tarnawski et al., NeurIPS 2020 ("DPL": one depth-first order).

#include <algorithm>

#include "planners/methods/contiguous_search.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

using namespace throughput;

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  const StageModel model = contiguous_model(problem);
  const auto random = static_cast<std::size_t>(settings.integer("random-orders"));
  const ProgramResult result = best_linear_split(model, random, model.work_bound(), control);
  Answer answer;
  answer.certificate = {model.work_bound(), "work"};
  if (result.split) answer.plan = plan_of_split(model, *result.split);
  if (answer.plan) {
    control.report(*answer.plan, model.work_bound());
  } else {
    answer.reason = result.split ? "the split that it found needs a link that does not exist"
                    : result.complete
                        ? "no linear order of the graph can be cut into stages that fit"
                        : control.stop_reason();
  }
  return answer;
}

}  // namespace

PlannerEntry ideals_linear() {
  return PlannerEntry{
      .name = "ideals-linear",
      .summary = "the best contiguous pipeline along linear orders of the graph",
      .objectives = {Objective::throughput},
      .knows = kContiguousKnows,
      .options = {{"random-orders", "random linear orders beside the four fixed ones",
                   std::int64_t{4}, 0, 1000}},
      .refuses = refuses_contiguous,
      .plan = plan};
}

}  // namespace placewright
