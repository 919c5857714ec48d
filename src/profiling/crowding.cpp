#include "profiling/crowding.h"

#include <algorithm>
#include <atomic>

#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "machine/workers.h"

namespace placewright {
namespace {

constexpr std::uint64_t kSeed = 1;  // of the inputs

}  // namespace

std::vector<Target> side_by_side(const std::vector<Target>& targets, std::size_t first) {
  std::vector<Target> chosen{targets[first]};
  for (const Target& target : targets) {
    if (target.cores.size() != chosen.front().cores.size()) continue;
    const bool fits = std::ranges::none_of(
        chosen, [&](const Target& other) { return share_a_core(target, other); });
    if (fits) chosen.push_back(target);
  }
  return chosen;
}

double error_of_factor(const Measured& alone, const Measured& crowded) {
  return (alone.spread() + crowded.spread()) / 2;
}

Measured measure_crowded(const NeuralModel& model, const std::vector<Target>& targets,
                         const MeasureOptions& options) {
  std::vector<std::unique_ptr<CompiledPart>> parts;
  std::vector<Buffers> inputs;
  std::vector<std::unique_ptr<Request>> requests;  // gone before the parts
  for (const Target& target : targets) {
    options.check();
    parts.push_back(model.compile_whole(compile_options(target)));
    inputs.push_back(seeded_inputs(model.graph(), kSeed, target));
    requests.push_back(request_with(*parts.back(), inputs.back()));
  }
  std::vector<TimedRun> runs;
  std::atomic<bool> ended{false};
  Workers workers(targets, options.stop);
  workers.run([&](std::size_t worker) {
    if (worker > 0) {
      while (!ended.load(std::memory_order_relaxed) && !workers.stopped()) requests[worker]->run();
      return;
    }
    for (std::size_t i = 0; i < options.warm_up; ++i) requests[0]->run();
    RunWatch watch(targets[0]);
    const Series series(options);
    while (series.goes_on(runs) && !workers.stopped()) {
      watch.begin();
      requests[0]->run();
      runs.push_back(watch.end());
    }
    ended.store(true, std::memory_order_relaxed);
  });
  options.check();
  return summary_of(runs);
}

}  // namespace placewright
