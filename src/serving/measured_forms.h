// What else a model is compiled as where it is worth it: batches, and an inference on half of the
// cores.
//
// Both are for short models: a batch, and an inference on half of the cores, run uncut. A form that
// takes more than kGain of what one request after the other takes is not worth its memory, and is
// not kept.

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backends/model_files.h"
#include "backends/runtime.h"
#include "machine/targets.h"
#include "profiling/measurement.h"
#include "serving/measured_models.h"

namespace placewright {

// The lower and the upper half of the cores; empty where there are fewer than two, or an odd
// number.
std::vector<Target> halves_of(const Target& target);

// The model for so many requests at once, whose inputs and outputs lie one behind the other;
// nullptr: its inputs or outputs have no first dimension for them, or its file has one request's
// size built in.
std::shared_ptr<const NeuralModel> read_batched(const Runtime& runtime, const ModelFile& file,
                                                const ModelGraph& graph, std::size_t size);

// Adds the times of what is worth it. A batch counts only if each of its requests gets the outputs
// that it gets alone.
void measure_forms(ModelCuts& cuts, const NeuralModel& model, const Runtime& runtime,
                   const ModelFile& file, const Target& target, const MeasureOptions& options);

// The models for the batch sizes of `cuts`. Throws InputError or RuntimeError.
BatchedModels read_batches(const ModelCuts& cuts, const NeuralModel& model, const Runtime& runtime,
                           const ModelFile& file);

}  // namespace placewright
