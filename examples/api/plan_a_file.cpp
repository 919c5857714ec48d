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
  const placewright::PlanOutcome outcome =
      placewright::solve(problem, {.planner = "auto", .budget = {.seconds = 2, .seed = 1}});
  const placewright::Answer& answer = outcome.answer;
  if (!answer.plan) {
    std::printf("no plan: %s\n", answer.reason.c_str());
    return 1;
  }
  std::printf("value %.6g, no plan below %.6g (%s)\n", answer.plan->value,
              answer.certificate.lower_bound, answer.certificate.method.c_str());
  for (const placewright::DeviceId device : problem.devices()) {
    std::size_t ops = 0;
    for (const placewright::OpId op : problem.ops()) {
      if (answer.plan->placement[op] == device) ++ops;
    }
    std::printf("%s runs %zu ops\n", problem.device(device).name.c_str(), ops);
  }

  placewright::save_plan(argv[2], problem, outcome);
  const placewright::OpenedPlan kept = placewright::open_plan(argv[2]);
  for (const placewright::Violation& found : placewright::verify(kept.problem, kept.plan())) {
    std::printf("%s: %s\n", placewright::name_of(found.code).data(), found.message.c_str());
    return 1;
  }
  std::printf("%s is valid\n", argv[2]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
