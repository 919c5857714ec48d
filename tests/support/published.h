// The published inputs under examples/, read for tests.

#pragma once

#include <string>

#include "formats/plan_file.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "problem/problem.h"
#include "support/locations.h"

namespace placewright::testing {

inline std::string example_path(const std::string& name) {
  return source_path("examples/" + name);
}

inline ProblemFile published_file(const std::string& name, Objective objective) {
  ReadOptions options;
  options.objective = objective;
  return read_problem(example_path(name), options);
}

inline Problem published_problem(const std::string& name, Objective objective) {
  return build_problem(published_file(name, objective));
}

// The expert's placement; `name` is that of the layer graph.
inline Placement expert_placement(const std::string& name, const ProblemFile& file,
                                  const Problem& problem) {
  const std::string path = example_path("msr/human-experts/" + name + "_expert.json");
  return PlanDocument(read_whole(path), path).read(problem, file.op_ids).plan.placement;
}

}  // namespace placewright::testing
