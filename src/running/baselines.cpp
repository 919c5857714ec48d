#include "running/baselines.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "machine/workers.h"

namespace placewright {
namespace {

Buffers inputs_for(const NeuralModel& model, const Target& target, const RunOptions& options) {
  return model_inputs(model.graph(), options.given_to(0), options.seed, target);
}

// Inferences one after the other, in a thread bound to the cores.
Measured latency_on(const NeuralModel& model, const Target& target, const RunOptions& options) {
  const auto part = model.compile_whole({.device = target.device, .threads = target.threads()});
  const Buffers inputs = inputs_for(model, target, options);
  const auto request = request_with(*part, inputs);
  std::vector<double> kept;
  std::vector<double> rejected;
  bool watched = false;
  Workers workers({target}, options.stop);
  workers.run([&](std::size_t) {
    const std::unique_ptr<DisturbanceProbe> probe = probe_of(target);
    watched = probe != nullptr;
    for (int i = 0; i < options.warm_up + options.repeat && !workers.stopped(); ++i) {
      if (probe) probe->begin();
      const Clock::time_point start = Clock::now();
      request->run();
      const double length = milliseconds(Clock::now() - start);
      const double lost = probe ? probe->lost() : 0;
      if (i < options.warm_up) continue;
      (lost > kDisturbed * length ? rejected : kept).push_back(length);
    }
  });
  Measured latency = measured(std::move(kept), rejected);
  latency.watched = watched;
  return latency;
}

// As many inferences at once as there are cores; the backend's own threads do the work.
Baseline streams_on(const NeuralModel& model, const Target& target, const RunOptions& options) {
  const int count = target.threads();
  const auto part =
      model.compile_whole({.device = target.device, .threads = count, .streams = count});
  const Buffers inputs = inputs_for(model, target, options);
  std::vector<std::unique_ptr<Request>> requests;
  for (int i = 0; i < count; ++i) requests.push_back(request_with(*part, inputs));

  std::vector<double> latencies;
  std::vector<double> finished;
  std::vector<Clock::time_point> started(requests.size());
  const Clock::time_point origin = Clock::now();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    started[i] = Clock::now();
    requests[i]->start();
  }
  const int samples = (options.warm_up + options.repeat) * count;
  for (int sample = 0; sample < samples; ++sample) {
    if (options.stop != nullptr && options.stop->load()) break;
    const std::size_t slot = static_cast<std::size_t>(sample) % requests.size();
    requests[slot]->wait();
    if (sample >= options.warm_up * count) {
      latencies.push_back(milliseconds(Clock::now() - started[slot]));
      finished.push_back(milliseconds(Clock::now() - origin));
    }
    started[slot] = Clock::now();
    requests[slot]->start();
  }
  for (const auto& request : requests) request->wait();

  // Over stretches of a tenth, so that a single slow sample does not count for all.
  std::vector<double> per_sample;
  const std::size_t block = std::max<std::size_t>(1, finished.size() / 10);
  for (std::size_t i = block; i < finished.size(); i += block) {
    per_sample.push_back((finished[i] - finished[i - block]) / static_cast<double>(block));
  }
  // The threads that work are not ours to watch.
  Baseline streams{fmt::format("{} streams", count), measured(std::move(latencies), std::size_t{0}),
                   measured(std::move(per_sample), std::size_t{0})};
  streams.latency.watched = false;
  streams.per_sample.watched = false;
  return streams;
}

}  // namespace

std::vector<Baseline> measure_baselines(const NeuralModel& model,
                                        const std::vector<Target>& targets,
                                        const RunOptions& options) {
  std::vector<Baseline> baselines;
  std::set<std::string> kinds;
  std::set<int> cores;
  for (const Target& target : targets) {
    cores.insert(target.cores.begin(), target.cores.end());
    if (!kinds.insert(kind_of(target)).second) continue;
    const Measured latency = latency_on(model, target, options);
    baselines.push_back({fmt::format("{} alone", name_of(target)), latency, latency});
  }
  if (cores.size() < 2 || targets.size() < 2) return baselines;
  const auto on_cores = std::find_if(targets.begin(), targets.end(),
                                     [](const Target& target) { return !target.cores.empty(); });
  const Target all{on_cores->backend, on_cores->device, {cores.begin(), cores.end()}};
  const Measured threads = latency_on(model, all, options);
  baselines.push_back({fmt::format("{} threads", cores.size()), threads, threads});
  baselines.push_back(streams_on(model, all, options));
  return baselines;
}

}  // namespace placewright
