#include "profiling/recheck.h"

#include <cmath>

#include <fmt/format.h>

#include "backends/registry.h"
#include "machine/target_cluster.h"
#include "profiling/op_times.h"
#include "profiling/whole_times.h"

namespace placewright {
namespace {

constexpr double kSeconds = 1;   // of runs
constexpr double kSmall = 0.05;  // milliseconds: a smaller difference is that of two compilations

std::vector<std::size_t> all_ops(const ModelGraph& graph) {
  std::vector<std::size_t> ops(graph.ops.size());
  for (std::size_t op = 0; op < ops.size(); ++op) ops[op] = op;
  return ops;
}

}  // namespace

Recheck recheck(const ProblemDraft& kept, const ProfileRequest& request) {
  const std::vector<std::size_t> first = first_of_each_kind(kept.cluster);
  MeasureOptions options = request.measure;
  options.seconds = kSeconds / static_cast<double>(kept.models.size() * first.size());
  const Runtime& runtime = runtime_named(request.targets.front().backend);
  Recheck result;
  for (std::size_t number = 0; number < kept.models.size(); ++number) {
    const Model& model = kept.models[number];
    const ModelFile& file = request.files[number];
    const auto read = read_model(runtime, file);
    for (std::size_t kind = 0; kind < first.size(); ++kind) {
      const auto before = whole_time(kept, model.name, kept.cluster.kinds[kind].name);
      if (!before || *before <= 0) continue;
      options.check();
      const Target& target = request.targets[first[kind]];
      BusyDevices nobody;
      const LoadedOps found = measure_ops(*read, all_ops(read->graph()), target, nobody, options);
      const Measured& latency = found.alone.latency;
      if (latency.disturbed()) result.disturbed = true;
      const double apart = std::abs(latency.median - *before);
      const double drift = apart / *before;
      if (apart <= kSmall || drift <= result.drift) continue;
      result.drift = drift;
      result.what = fmt::format("{} on {}", model.name, name_of(target));
    }
  }
  return result;
}

}  // namespace placewright
