// Plans with their problem inside are read against that one, others against a small problem whose
// names the corpus uses.

#include <optional>

#include "formats/plan_file.h"
#include "reading.h"

namespace {

using namespace placewright;

constexpr std::string_view kProblem = R"({"placewright": "problem", "version": 1, "name": "small",
"kinds": [{"name": "gpu"}, {"name": "cpu"}],
"devices": [{"name": "gpu0", "kind": "gpu"}, {"name": "cpu0", "kind": "cpu"}],
"interconnect": {"kind": "links", "all": {"latency": 1}},
"ops": [{"name": "a", "time": [1, 3]}, {"name": "b", "time": [2, 3]}, {"name": "c", "time": [2, 5]}],
"tensors": [{"name": "x", "from": "a", "to": ["b", "c"], "bytes": 4}]})";

const Problem& small_problem() {
  static const Problem problem = build_problem(parse_problem(kProblem, "small"));
  return problem;
}

void read_plan_text(std::string_view text) {
  const PlanDocument document(text, "fuzzed");
  PlanReference reference = document.reference();
  std::optional<Problem> embedded;
  if (reference.embedded) embedded.emplace(build_problem(std::move(*reference.embedded)));
  const Problem& problem = embedded ? *embedded : small_problem();
  const PlanFile file = document.read(problem);
  if (!file.has_plan()) return;
  const PlanFile again =
      PlanDocument(write_plan(problem, file, {.embed = true}), "written").read(problem);
  fuzzing::require(again.plan == file.plan);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read_plan_text(fuzzing::text_of(data, size));
  } catch (const InputError&) {
  }
  return 0;
}
