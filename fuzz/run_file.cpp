// Runs are read, and compared with a plan of a small problem whose names the corpus uses.

#include "formats/run_file.h"

#include "reading.h"

namespace {

using namespace placewright;

constexpr std::string_view kProblem = R"({"placewright": "problem", "version": 1, "unit": "ms",
"kinds": [{"name": "gpu"}, {"name": "cpu"}],
"devices": [{"name": "GPU", "kind": "gpu"}, {"name": "CPU", "kind": "cpu"}],
"interconnect": {"kind": "links", "all": {"latency": 1}},
"ops": [{"name": "op1", "time": [1, 3]}, {"name": "op2", "time": [2, 3]}],
"tensors": [{"name": "x", "from": "op1", "to": ["op2"], "bytes": 4}]})";

const Problem& small_problem() {
  static const Problem problem = build_problem(parse_problem(kProblem, "small"));
  return problem;
}

Plan plan_on_first_device() {
  Plan plan;
  plan.placement.assign(small_problem().op_count(), DeviceId{0});
  plan.value = 3;
  return plan;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const RunFile run = parse_run(fuzzing::text_of(data, size), "fuzzed");
    (void)mismatch(run, small_problem(), plan_on_first_device());
  } catch (const InputError&) {
  }
  return 0;
}
