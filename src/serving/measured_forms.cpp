#include "serving/measured_forms.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/inputs.h"
#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "formats/input_error.h"
#include "machine/workers.h"
#include "problem/measured.h"
#include "profiling/segment_chain.h"
#include "serving/scheduler.h"

namespace placewright {
namespace {

constexpr double kGain = 0.95;
constexpr std::size_t kMostTogether = 16;

OpGroup all_ops(const NeuralModel& model) {
  OpGroup ops(model.graph().ops.size());
  std::iota(ops.begin(), ops.end(), std::size_t{0});
  return ops;
}

// Whether `found` is `one`, so many times.
bool is_times(const TensorType& one, const TensorType& found, std::size_t times) {
  if (one.shape.empty() || one.element != found.element) return false;
  std::vector<std::size_t> shape = one.shape;
  shape.front() *= times;
  return shape == found.shape;
}

bool is_batch_of(const ModelGraph& one, const ModelGraph& many, std::size_t times) {
  const auto type = [](const ModelGraph& graph, std::size_t output) -> const TensorType& {
    return type_of(graph, graph.outputs[output].tensor);
  };
  if (one.inputs.size() != many.inputs.size() || one.outputs.size() != many.outputs.size()) {
    return false;
  }
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    if (one.inputs[i].name != many.inputs[i].name) return false;
    if (!is_times(one.inputs[i].type, many.inputs[i].type, times)) return false;
  }
  for (std::size_t o = 0; o < one.outputs.size(); ++o) {
    if (!is_times(type(one, o), type(many, o), times)) return false;
  }
  return true;
}

// By output of the model.
std::vector<HostBuffer> outputs_of(const NeuralModel& model, const Target& target,
                                   const Buffers& inputs) {
  const auto part = model.compile(all_ops(model), compile_options(target));
  const auto request = part->request();
  for (std::size_t i = 0; i < part->inputs().size(); ++i) {
    request->bind_input(i, *inputs[part->inputs()[i].port]);
  }
  request->run();
  std::vector<HostBuffer> outputs;
  for (const GraphOutput& output : model.graph().outputs) {
    if (output.tensor.is_model_input()) {
      outputs.push_back(host_buffer(inputs[output.tensor.port]->bytes()));
      continue;
    }
    const auto place = std::ranges::find(part->outputs(), output.tensor) - part->outputs().begin();
    outputs.push_back(host_buffer(request->output(static_cast<std::size_t>(place)).bytes()));
  }
  return outputs;
}

// Whether each request of a batch gets what it gets alone: some models mix what lies in one tensor.
bool keeps_requests_apart(const NeuralModel& model, const NeuralModel& together, std::size_t size,
                          const Target& target) {
  Buffers joined;
  for (const GraphInput& input : together.graph().inputs) {
    joined.push_back(std::make_unique<HostBuffer>(static_cast<std::size_t>(input.type.bytes)));
  }
  std::vector<std::vector<HostBuffer>> alone;
  for (std::size_t place = 0; place < size; ++place) {
    const Buffers inputs = seeded_inputs(model.graph(), kProfileSeed + place, target);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto bytes = inputs[i]->bytes();
      std::memcpy(joined[i]->bytes().data() + place * bytes.size(), bytes.data(), bytes.size());
    }
    alone.push_back(outputs_of(model, target, inputs));
  }
  const std::vector<HostBuffer> outputs = outputs_of(together, target, joined);
  for (std::size_t place = 0; place < size; ++place) {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const TensorType& type = type_of(model.graph(), model.graph().outputs[o].tensor);
      const auto expected = alone[place][o].bytes();
      const auto found = outputs[o].bytes().subspan(place * expected.size(), expected.size());
      if (difference(type, expected, found) > tolerance_of(Precision::by_default)) return false;
    }
  }
  return true;
}

void measure_batches(ModelCuts& cuts, const NeuralModel& model, const Runtime& runtime,
                     const ModelFile& file, const Target& target, const MeasureOptions& options) {
  const double longest = SchedulerOptions{}.longest_batch;
  double each = cuts.whole;
  for (std::size_t size = 2; size <= kMostTogether; size *= 2) {
    // Even at half the time for each it would be too long.
    if (cuts.whole * static_cast<double>(size) / 2 > longest) return;
    options.check();
    const auto together = read_batched(runtime, file, model.graph(), size);
    if (!together || !keeps_requests_apart(model, *together, size, target)) return;
    const double time = measure_whole(*together, target, options);
    const double of_each = time / static_cast<double>(size);
    if (time > longest || of_each > kGain * each) return;
    cuts.batches[size] = time;
    each = of_each;
  }
}

// Of one inference on each half of the cores at once: the slower one.
double measure_on_half(const NeuralModel& model, const Target& target,
                       const MeasureOptions& options) {
  const std::vector<Target> halves = halves_of(target);
  const Buffers inputs = seeded_inputs(model.graph(), kProfileSeed, target);
  std::vector<std::unique_ptr<SegmentChain>> chains;
  for (const Target& half : halves) {
    chains.push_back(
        std::make_unique<SegmentChain>(model, std::vector<OpGroup>{all_ops(model)}, half, inputs));
  }
  std::vector<ChainRuns> runs(halves.size());
  std::atomic<std::size_t> busy{halves.size()};
  Workers workers(halves);
  workers.run([&](std::size_t half) {
    RunWatch watch(halves[half]);
    const Series series(options);
    for (std::size_t i = 0; i < options.warm_up; ++i) chains[half]->run();
    workers.meet(half, 1);
    while (series.goes_on(runs[half].runs)) chains[half]->run_watched(watch, runs[half]);
    --busy;
    // The other half's runs shall all be beside one of this half.
    while (busy > 0 && !workers.stopped()) chains[half]->run();
  });
  double slower = 0;
  for (const ChainRuns& each : runs) slower = std::max(slower, summary_of(each.runs).median);
  return slower;
}

}  // namespace

std::vector<Target> halves_of(const Target& target) {
  const std::size_t count = target.cores.size();
  if (count < 2 || count % 2 != 0) return {};
  const auto middle = target.cores.begin() + static_cast<std::ptrdiff_t>(count / 2);
  return {target_of_cores({target.cores.begin(), middle}),
          target_of_cores({middle, target.cores.end()})};
}

std::shared_ptr<const NeuralModel> read_batched(const Runtime& runtime, const ModelFile& file,
                                                const ModelGraph& graph, std::size_t size) {
  ModelFile together{.path = file.path, .shapes = {}, .precision = file.precision};
  for (const GraphInput& input : graph.inputs) {
    if (input.type.shape.empty()) return nullptr;
    std::vector<std::size_t> shape = input.type.shape;
    shape.front() *= size;
    together.shapes.push_back(fmt::format("{}={}", input.name, fmt::join(shape, "x")));
  }
  try {
    std::shared_ptr<const NeuralModel> model = read_model(runtime, together);
    return is_batch_of(graph, model->graph(), size) ? model : nullptr;
  } catch (const InputError&) {
    return nullptr;
  } catch (const std::invalid_argument&) {
    return nullptr;  // a name that no shape can be written for
  }
}

void measure_forms(ModelCuts& cuts, const NeuralModel& model, const Runtime& runtime,
                   const ModelFile& file, const Target& target, const MeasureOptions& options) {
  const double longest = SchedulerOptions{}.longest_batch;
  measure_batches(cuts, model, runtime, file, target, options);
  if (halves_of(target).empty() || cuts.whole > longest) return;
  const double on_half = measure_on_half(model, target, options);
  if (on_half <= kGain * 2 * cuts.whole && on_half <= longest) cuts.on_half = on_half;
}

BatchedModels read_batches(const ModelCuts& cuts, const NeuralModel& model, const Runtime& runtime,
                           const ModelFile& file) {
  BatchedModels batched;
  for (const auto& [size, time] : cuts.batches) {
    batched[size] = read_batched(runtime, file, model.graph(), size);
    if (batched[size] == nullptr) {
      throw InputError(file.path, "", fmt::format("cannot be read for {} requests at once", size));
    }
  }
  return batched;
}

}  // namespace placewright
