// problem/problem.h, problem/plan.h, verify/verifier.h: a placement of one's own as a plan, what
// the verifier says of it, and when everything happens.
//
//   own_placement PROBLEM

#include <cstdio>
#include <exception>

#include <placewright/placewright.h>

namespace {

using namespace placewright;

// Ops in topological order, the first half on the first device and the rest on the second.
Placement halves(const Problem& problem) {
  Placement placement(problem.op_count());
  for (const OpId op : problem.ops()) {
    const bool first = problem.topological_rank(op) < problem.op_count() / 2;
    placement[op] = DeviceId{first ? 0U : 1U};
  }
  return placement;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const Problem problem = open_problem(argv[1]);
  const std::optional<Plan> plan = plan_for(problem, halves(problem));
  if (!plan) {
    std::printf("not possible\n");
    return 1;
  }
  std::printf("%s %.6g\n", name_of(problem.objective()).data(), plan->value);
  for (const Violation& found : verify(problem, *plan)) {
    std::printf("%s: %s\n", name_of(found.code).data(), found.message.c_str());
  }
  if (plan->schedule) {
    std::printf("%zu transfers; the last op starts at %.6g\n", plan->schedule->transfers.size(),
                plan->schedule->start[problem.topological_order().back()]);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
