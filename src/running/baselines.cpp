#include "running/baselines.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backends/part_inputs.h"
#include "machine/workers.h"

namespace placewright {
namespace {

// Inferences one after the other, in a thread bound to the cores.
Measured latency_on(const NeuralModel& model, const Target& target, const RunOptions& options) {
  const auto part = model.compile_whole({.device = target.device, .threads = target.threads()});
  const std::vector<Bytes> inputs = seeded_inputs(model.graph(), options.seed);
  const auto request = request_with(*part, inputs);
  std::vector<double> kept;
  int rejected = 0;
  Workers workers({target}, options.stop);
  workers.run([&](std::size_t) {
    for (int i = 0; i < options.warm_up + options.repeat && !workers.stopped(); ++i) {
      const Clock::time_point start = Clock::now();
      const LostTime lost(target);
      request->run();
      const double away = lost.so_far();
      const double length = milliseconds(Clock::now() - start);
      if (i < options.warm_up) continue;
      if (away > kDisturbed * length) {
        ++rejected;
      } else {
        kept.push_back(length);
      }
    }
  });
  return measured(std::move(kept), rejected);
}

// As many inferences at once as there are streams; OpenVINO's own threads do the work.
Baseline streams_on(const NeuralModel& model, const std::vector<int>& cores,
                    const RunOptions& options) {
  const int count = static_cast<int>(cores.size());
  const auto part = model.compile_whole({.threads = count, .streams = count});
  const std::vector<Bytes> inputs = seeded_inputs(model.graph(), options.seed);
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
  return {fmt::format("{} streams", count), measured(std::move(latencies), 0),
          measured(std::move(per_sample), 0)};
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
  const std::vector<int> all(cores.begin(), cores.end());
  const Measured threads = latency_on(model, {"CPU", all}, options);
  baselines.push_back({fmt::format("{} threads", all.size()), threads, threads});
  baselines.push_back(streams_on(model, all, options));
  return baselines;
}

}  // namespace placewright
