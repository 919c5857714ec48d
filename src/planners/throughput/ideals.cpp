// ideals: the best jointly contiguous pipeline, exactly (methods/contiguous_plan.h).

#include "planners/methods/contiguous_plan.h"
#include "planners/methods/contiguous_search.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  return throughput::best_contiguous_plan(
      problem, control,
      {.ideal_limit = static_cast<std::size_t>(settings.integer("ideal-limit")),
       .wide_from = static_cast<std::size_t>(settings.integer("wide-from"))});
}

}  // namespace

PlannerEntry ideals() {
  return PlannerEntry{
      .name = "ideals",
      .summary = "the best contiguous pipeline: a program over the down-sets of the graph",
      .objectives = {Objective::throughput},
      .strength = Strength::exact,
      .knows = throughput::kContiguousKnows,
      .options = {{"ideal-limit", "down-sets to hold at most", std::int64_t{3'000'000}, 100, 1e9},
                  {"wide-from",
                   "down-sets from which searches for wide graphs have their turn; 0: never",
                   std::int64_t{20'000}, 0, 1e9}},
      .refuses = throughput::refuses_contiguous,
      .plan = plan};
}

}  // namespace placewright
