#include "profiling/crowding.h"

#include <algorithm>
#include <atomic>

#include "backends/target_devices.h"
#include "machine/workers.h"

namespace placewright {
namespace {

CompiledWhole compiled_whole(const NeuralModel& model, const Target& target) {
  CompiledWhole result;
  result.part = model.compile_whole(compile_options(target));
  result.inputs = seeded_inputs(model.graph(), kProfileSeed, target);
  result.request = request_with(*result.part, result.inputs);
  return result;
}

}  // namespace

std::vector<Target> side_by_side(const std::vector<Target>& targets, std::size_t first) {
  std::vector<Target> chosen{targets[first]};
  const auto add_those_that_fit = [&](bool of_its_size) {
    for (const Target& target : targets) {
      if (target.cores.empty()) continue;
      if ((target.cores.size() == targets[first].cores.size()) != of_its_size) continue;
      const bool fits = std::ranges::none_of(
          chosen, [&](const Target& other) { return share_a_core(target, other); });
      if (fits) chosen.push_back(target);
    }
  };
  add_those_that_fit(true);
  add_those_that_fit(false);
  return chosen;
}

BusyDevices::BusyDevices(std::span<const NeuralModel* const> models, std::vector<Target> targets,
                         const MeasureOptions& options)
    : targets_(std::move(targets)), loads_(targets_.size()) {
  if (targets_.empty()) return;
  for (std::size_t card = 0; card < std::max(models.size(), targets_.size()); ++card) {
    options.check();
    const NeuralModel& model = *models[card % models.size()];
    const Target& target = targets_[card % targets_.size()];
    loads_[card % targets_.size()].push_back(compiled_whole(model, target));
  }
}

void BusyDevices::beside(const Target& target, const std::function<void()>& work,
                         const MeasureOptions& options) {
  std::vector<Target> all{target};
  all.insert(all.end(), targets_.begin(), targets_.end());
  std::atomic<bool> ended{false};
  Workers workers(std::move(all), options.stop);
  workers.run([&](std::size_t worker) {
    if (worker == 0) {
      work();
      ended.store(true, std::memory_order_relaxed);
      return;
    }
    while (!ended.load(std::memory_order_relaxed) && !workers.stopped()) {
      for (const CompiledWhole& load : loads_[worker - 1]) load.request->run();
    }
  });
  options.check();
}

double TurnTimes::factor() const {
  return again.median > 0 ? std::max(1.0, first.median / again.median) : 1;
}

std::string TurnTimes::doubt() const {
  const std::string doubt = doubt_of(first);
  return doubt.empty() ? doubt_of(again) : doubt;
}

std::vector<TurnTimes> measure_turns(std::span<const NeuralModel* const> models,
                                     const Target& target, BusyDevices& busy,
                                     const MeasureOptions& options) {
  std::vector<CompiledWhole> compiled;
  for (const NeuralModel* model : models) {
    options.check();
    compiled.push_back(compiled_whole(*model, target));
  }
  std::vector<std::vector<TimedRun>> first(models.size());
  std::vector<std::vector<TimedRun>> again(models.size());
  const auto turns = [&] {
    for (const CompiledWhole& model : compiled) model.request->run();
    const CoreCheck cores(target.cores);
    RunWatch watch(target);
    const auto watched_run = [&](std::size_t model) {
      watch.begin();
      compiled[model].request->run();
      return watch.end();
    };
    const Series series(options);
    while (std::ranges::any_of(first, [&](const auto& runs) { return series.goes_on(runs); })) {
      options.check();
      for (std::size_t model = 0; model < models.size(); ++model) {
        first[model].push_back(watched_run(model));
        again[model].push_back(watched_run(model));
      }
    }
    for (auto* series_runs : {&first, &again}) {
      for (std::vector<TimedRun>& runs : *series_runs) judge(cores, runs);
    }
  };
  busy.beside(target, turns, options);
  std::vector<TurnTimes> times;
  for (std::size_t model = 0; model < models.size(); ++model) {
    times.push_back({summary_of(first[model]), summary_of(again[model])});
  }
  return times;
}

}  // namespace placewright
