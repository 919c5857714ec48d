// The models of a problem, read again from the files that they came from.

#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/registry.h"
#include "backends/runtime.h"
#include "problem/problem.h"

namespace placewright {

// In the problem's order, each by its backend, in the precision that the problem states or in this
// one. Throws InputError if one is missing, has changed, or has other ops than the problem.
std::vector<std::unique_ptr<NeuralModel>> models_of(const Problem& problem,
                                                    std::optional<Precision> precision = {});

// The backend that reads a model and runs it, as its source names it. Throws InputError if there is
// no such backend.
const BackendEntry& backend_of(const Model& model);

// The name of an op in its model: problems of several models put the model's name before it.
std::string_view name_in_model(const Problem& problem, OpId op);

}  // namespace placewright
