#include "planners/flow/chain_groups.h"

#include "planners/methods/speed_up.h"
#include "problem/time_unit.h"

namespace placewright {

Partition packed_chains(const Problem& problem, double speedup_ratio, double longest) {
  const SpeedUps speed_ups(problem);
  const Partition chains = chain_partition(problem, speedup_ratio, longest);
  const double limit = in_unit(longest, problem.unit());
  struct Open {
    CoarseSet set;
    double time = 0;
  };
  Table<CoarseSet, Open> open(problem.op_count());
  Partition partition(problem.op_count());
  std::size_t count = 0;
  for (const OpId op : problem.topological_order()) {
    Open& group = open[chains[op]];
    if (!group.set.valid() || group.time >= limit) group = {CoarseSet{count++}, 0};
    group.time += speed_ups.reference_time(op);
    partition[op] = group.set;
  }
  return partition;
}

}  // namespace placewright
