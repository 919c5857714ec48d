// placewright/session.h: measures a model on devices of this machine, plans it, and runs it on
// arrays of ours.
//
//   run_a_model MODEL DEVICE…

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <placewright/placewright.h>
#include <placewright/session.h>

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: run_a_model MODEL DEVICE...\n");
    return 2;
  }
  const std::vector<std::string> devices(argv + 2, argv + argc);
  const placewright::Problem problem =
      placewright::measure({argv[1]}, {.devices = devices, .repeat = 5});
  const placewright::PlanOutcome outcome =
      placewright::solve(problem, {.planner = "auto", .budget = {.seconds = 1}});
  if (!outcome.answer.plan) {
    std::printf("no plan: %s\n", outcome.answer.reason.c_str());
    return 1;
  }

  placewright::Session session(problem, *outcome.answer.plan);
  placewright::NamedArrays inputs;
  for (const placewright::ArrayType& input : session.inputs()) {
    std::size_t count = 1;
    for (const std::size_t size : input.shape) count *= size;
    // Ones; session.run converts them to the input's own type.
    inputs[input.name] =
        placewright::Array::of<float>(input.shape, std::vector<float>(count, 1.0F));
  }
  for (const auto& [name, array] : session.run(inputs)) {
    std::printf("%s: %zu numbers\n", name.c_str(), array.count());
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
