#include "backends/opened_models.h"

#include <stdexcept>
#include <unordered_set>

#include <fmt/format.h>

#include "backends/model_files.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "problem/stated_precision.h"

namespace placewright {
namespace {

const ModelSource& source_in(const Problem& problem, ModelId id) {
  const Model& model = problem.model(id);
  if (model.source) return *model.source;
  throw InputError(problem.name(), "",
                   fmt::format("the problem does not say which file the model '{}' is in: only "
                               "problems made by 'placewright profile' or 'import' can be run",
                               model.name));
}

void require_same_ops(const Problem& problem, ModelId id, const ModelGraph& graph,
                      const std::string& path) {
  std::unordered_set<std::string_view> names;
  for (const GraphOp& op : graph.ops) names.insert(op.name);
  std::size_t count = 0;
  for (const OpId op : problem.ops()) {
    if (problem.op(op).model != id) continue;
    ++count;
    if (names.contains(name_in_model(problem, op))) continue;
    throw InputError(path, "", fmt::format("has no op '{}'", problem.op(op).name));
  }
  if (count != names.size()) {
    throw InputError(path, "",
                     fmt::format("has {} ops, and the problem has {}", names.size(), count));
  }
}

}  // namespace

std::vector<std::unique_ptr<NeuralModel>> models_of(const Problem& problem,
                                                    std::optional<Precision> precision) {
  std::vector<std::unique_ptr<NeuralModel>> models;
  if (!precision) precision = stated_precision(problem.draft());
  for (const ModelId id : problem.models()) {
    const ModelSource& source = source_in(problem, id);
    if (!source.digest.empty() && digest_of_file(source.path) != source.digest) {
      throw InputError(source.path, "", "has changed since the problem was made: profile it again");
    }
    models.push_back(
        read_model(runtime_named(backend_of(problem.model(id)).name),
                   {.path = source.path, .shapes = source.shapes, .precision = *precision}));
    require_same_ops(problem, id, models.back()->graph(), source.path);
  }
  return models;
}

const BackendEntry& backend_of(const Model& model) {
  if (!model.source) return backend_named(kDefaultBackend);
  try {
    return backend_named(model.source->backend);
  } catch (const std::invalid_argument& error) {
    throw InputError(model.source->path, "", error.what());
  }
}

std::string_view name_in_model(const Problem& problem, OpId op) {
  std::string_view name = problem.op(op).name;
  const std::string& model = problem.model(problem.op(op).model).name;
  if (problem.model_count() > 1 && name.starts_with(model) && name.size() > model.size() &&
      name[model.size()] == '/') {
    name.remove_prefix(model.size() + 1);
  }
  return name;
}

}  // namespace placewright
