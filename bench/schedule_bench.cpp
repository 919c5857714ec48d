// How many ops per second the schedule evaluators place: Inception-V4 (491 ops) on four devices.

#include <random>

#include <benchmark/benchmark.h>

#include "evaluate/schedule.h"
#include "formats/problem_file.h"

namespace placewright {
namespace {

Problem inception(bool congestion) {
  ProblemFile file = read_problem(PLACEWRIGHT_SOURCE_DIR "/examples/moirai/inceptionv4.json", {});
  file.draft.rules.congestion = congestion;
  return Problem(std::move(file.draft));
}

std::vector<Placement> placements(const Problem& problem) {
  std::mt19937_64 random(1);
  std::vector<Placement> all(64, Placement(problem.op_count()));
  for (Placement& placement : all) {
    for (DeviceId& device : placement) device = DeviceId{random() % problem.device_count()};
  }
  return all;
}

void serial(benchmark::State& state) {
  const Problem problem = inception(state.range(0) != 0);
  const auto order = list_order(problem, upward_ranks(problem));
  const auto samples = placements(problem);
  ScheduleEvaluator evaluator(problem);
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(evaluator.value(order, samples[next++ % samples.size()]));
  }
  state.counters["ops/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(problem.op_count()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(serial)->ArgName("congestion")->Arg(1)->Arg(0);

void event_driven(benchmark::State& state) {
  const Problem problem = inception(state.range(0) != 0);
  const auto ranks = upward_ranks(problem);
  const auto samples = placements(problem);
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(dispatch(problem, samples[next++ % samples.size()], ranks));
  }
  state.counters["ops/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(problem.op_count()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(event_driven)->ArgName("congestion")->Arg(1)->Arg(0);

}  // namespace
}  // namespace placewright
