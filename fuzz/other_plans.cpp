// Plans in the formats of others, read against a small graph.

#include "formats/plan_file.h"
#include "reading.h"

namespace {

using namespace placewright;

constexpr std::string_view kGraph =
    R"({"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 100, "nodes": [
{"id": 1, "name": "a", "cpuLatency": 9, "fpgaLatency": 1, "supportedOnFpga": 1, "size": 1, "colorClass": 1},
{"id": 2, "name": "b", "cpuLatency": 9, "fpgaLatency": 1, "supportedOnFpga": 1, "size": 1},
{"id": 3, "name": "c", "cpuLatency": 9, "fpgaLatency": 1, "supportedOnFpga": 1, "size": 1, "colorClass": 1,
 "isBackwardNode": 1}],
"edges": [{"sourceId": 1, "destId": 2, "cost": 1}, {"sourceId": 2, "destId": 3, "cost": 1}]})";

struct Graph {
  ProblemFile file = parse_problem(kGraph, "small");
  Problem problem = build_problem(file);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Graph graph;
  const std::string_view text = fuzzing::text_of(data, size);
  try {
    kind_of_file(text, "fuzzed");
    const PlanFile file = PlanDocument(text, "fuzzed").read(graph.problem, graph.file.op_ids);
    fuzzing::require(!file.has_plan() || file.plan.placement.size() == graph.problem.op_count());
  } catch (const InputError&) {
  }
  return 0;
}
