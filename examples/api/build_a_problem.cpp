// problem/draft.h, problem/objective.h, problem/ids.h: a problem made in code, under two
// objectives.
//
// Two branches of a small network on a fast and a slow device: as a schedule of one sample, and as
// a pipeline.

#include <cstdio>

#include <placewright/placewright.h>

namespace {

using namespace placewright;

ProblemDraft two_branches() {
  ProblemDraft draft;
  draft.name = "two branches";
  draft.unit = TimeUnit::milliseconds;
  draft.cluster.kinds = {{"fast"}, {"slow"}};
  draft.cluster.devices = {{.name = "gpu", .kind = KindId{0}, .memory = 8},
                           {.name = "cpu", .kind = KindId{1}}};
  draft.cluster.interconnect = InterconnectKind::links;
  draft.cluster.links = {{.from = DeviceId{0}, .to = DeviceId{1}, .latency = 0.5, .bandwidth = 4},
                         {.from = DeviceId{1}, .to = DeviceId{0}, .latency = 0.5, .bandwidth = 4}};
  draft.models = {{.name = "model"}};

  // By kind: milliseconds on the fast and on the slow device.
  const auto add_op = [&](const char* name, double fast, double slow, double memory) {
    draft.ops.push_back({.name = name, .memory = memory, .time = {fast, slow}});
    return OpId{draft.ops.size() - 1};
  };
  const OpId split = add_op("split", 1, 2, 1);
  const OpId left = add_op("left", 4, 9, 4);
  const OpId right = add_op("right", 3, 5, 4);
  const OpId join = add_op("join", 1, 2, 1);
  draft.tensors = {{.producer = split, .consumers = {left, right}, .bytes = 2},
                   {.producer = left, .consumers = {join}, .bytes = 1},
                   {.producer = right, .consumers = {join}, .bytes = 1}};
  return draft;
}

void print_best(ProblemDraft draft, Objective objective) {
  draft.objective = objective;
  const Problem problem(std::move(draft));
  const PlanOutcome outcome = solve(problem, {.budget = {.seconds = 1}});
  if (!outcome.answer.plan) return;
  std::printf("%s: %.4g ms;", name_of(objective).data(), outcome.value());
  for (const OpId op : problem.ops()) {
    const Device& device = problem.device(outcome.answer.plan->placement[op]);
    std::printf(" %s on %s;", problem.op(op).name.c_str(), device.name.c_str());
  }
  std::printf("\n");
}

}  // namespace

int main() {
  print_best(two_branches(), Objective::latency);
  print_best(two_branches(), Objective::throughput);
}
