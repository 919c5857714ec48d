// placewright/placewright.h: reads a problem, plans it, checks the plan, keeps it and reads it
// back.
//
//   plan_a_file PROBLEM PLAN_TO_WRITE

#include <cstdio>
#include <exception>

#include <placewright/placewright.h>

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: plan_a_file PROBLEM PLAN_TO_WRITE\n");
    return 2;
  }
  const placewright::Problem problem = placewright::open_problem(argv[1]);
  const placewright::Result result =
      placewright::solve(problem, {.planner = "auto", .seconds = 2, .seed = 1});
  if (!result.plan) {
    std::printf("no plan: %s\n", result.reason.c_str());
    return 1;
  }
  std::printf("value %.6g, no plan below %.6g (%s)\n", result.plan->value,
              result.certificate.lower_bound, result.certificate.method.c_str());
  for (const placewright::DeviceId device : problem.devices()) {
    std::size_t ops = 0;
    for (const placewright::OpId op : problem.ops()) {
      if (result.plan->placement[op] == device) ++ops;
    }
    std::printf("%s runs %zu ops\n", problem.device(device).name.c_str(), ops);
  }

  placewright::save_result(argv[2], problem, result);
  const placewright::OpenedPlan kept = placewright::open_plan(argv[2]);
  for (const placewright::Finding& finding : placewright::check_plan(kept.problem, kept.plan)) {
    std::printf("%s: %s\n", finding.code.c_str(), finding.message.c_str());
    return 1;
  }
  std::printf("%s is valid\n", argv[2]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
