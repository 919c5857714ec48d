#include "serving/model_loader.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/registry.h"
#include "backends/target_devices.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "serving/inference.h"
#include "serving/measured_forms.h"
#include "serving/stated_models.h"

namespace placewright {
namespace {

MeasureOptions serving_measurement() {
  return {.repeat = 15, .seconds = 5};
}

void require_datatypes(const NeuralModel& model, const std::string& path) {
  const auto check = [&](const std::string& name, const std::string& element) {
    if (!datatype_of(element).empty()) return;
    throw InputError(
        path, "",
        fmt::format("'{}' has elements of the type {}, which cannot be served", name, element));
  };
  const ModelGraph& graph = model.graph();
  for (const GraphInput& input : graph.inputs) check(input.name, input.type.element);
  for (const GraphOutput& output : graph.outputs) {
    check(output.name, type_of(graph, output.tensor).element);
  }
}

}  // namespace

ModelLoader::ModelLoader(const ServerSettings& settings)
    : settings_(settings), target_(target_of_cores(allowed_cores())) {}

ModelLoader::Opened ModelLoader::open(const std::string& path) const {
  const BackendEntry* backend = backend_reading(path);
  if (backend == nullptr) throw InputError(path, "", "no backend reads this file");
  Opened opened{.runtime = &runtime_named(backend->name)};
  const std::vector<ModelFile> files = model_files(settings_.models, settings_.shapes);
  const auto named = std::ranges::find(files, path, &ModelFile::path);
  opened.file = named == files.end() ? ModelFile{.path = path} : *named;
  opened.file.precision = settings_.precision;
  opened.model = read_model(*opened.runtime, opened.file);
  require_datatypes(*opened.model, path);
  opened.key = fmt::format("forms {} {} {} {} {} {}", digest_of_file(path),
                           fmt::join(opened.file.shapes, " "), name_of(settings_.precision),
                           opened.runtime->version(), processor_name(), name_of(target_));
  return opened;
}

ModelCuts ModelLoader::whole_of(const Opened& opened) const {
  const KeptCuts kept(settings_.cache);
  if (const auto whole = kept.find(opened.key)) return *whole;
  const MeasureOptions options = serving_measurement();
  ModelCuts whole{.whole = measure_whole(*opened.model, target_, options)};
  measure_forms(whole, *opened.model, *opened.runtime, opened.file, target_, options);
  kept.keep(opened.key, whole);
  return whole;
}

ModelCuts ModelLoader::cuts_of(const Opened& opened, std::span<const double> others) const {
  ModelCuts whole = whole_of(opened);
  std::vector<ServedModel> models{{.name = "", .whole = whole.whole}};
  for (const double other : others) models.push_back({.name = "", .whole = other});
  // Whole milliseconds, so that a restart finds what it kept.
  const double quantum = std::round(quantum_of(models));
  if (wanted_segments(whole.whole, quantum, 0) < 2) return whole;
  const KeptCuts kept(settings_.cache);
  const std::string key = fmt::format("{} quantum {}", opened.key, quantum);
  if (const auto cuts = kept.find(key)) return *cuts;
  ModelCuts cuts = measure_model_cuts(*opened.model, target_, quantum, serving_measurement());
  cuts.batches = whole.batches;
  cuts.on_half = whole.on_half;
  kept.keep(key, cuts);
  return cuts;
}

std::shared_ptr<LoadedModel> ModelLoader::load(const std::string& path,
                                               std::span<const double> others) const {
  const Opened opened = open(path);
  ModelCuts cuts = cuts_of(opened, others);
  const BatchedModels batched = read_batches(cuts, *opened.model, *opened.runtime, opened.file);
  return std::make_shared<LoadedModel>(opened.model, target_, std::move(cuts), batched);
}

ModelCuts ModelLoader::measure(const std::string& path, std::span<const double> others) const {
  return cuts_of(open(path), others);
}

double ModelLoader::own_time(const std::string& path) const {
  return whole_of(open(path)).whole;
}

std::vector<ServedModel> served_models(const ServerSettings& settings) {
  // On two cores, by bench/serving_load of a model that does nothing: one client and eight.
  constexpr double kFront = 0.05;
  constexpr double kWay = 0.14;
  const ModelLoader loader(settings);
  std::vector<double> own;
  for (const std::string& path : settings.models) own.push_back(loader.own_time(path));
  std::vector<ServedModel> models;
  for (std::size_t i = 0; i < own.size(); ++i) {
    std::vector<double> others = own;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const ModelCuts cuts = loader.measure(settings.models[i], others);
    models.push_back({.name = model_name_of(settings.models[i]),
                      .whole = cuts.whole,
                      .segments = cuts.times,
                      .batches = cuts.batches,
                      .on_half = cuts.on_half,
                      .front = kFront,
                      .way = kWay});
  }
  return models;
}

std::string forms_text(const ModelCuts& cuts) {
  std::string text = fmt::format("{:.2f} ms, {} segments", cuts.whole,
                                 std::max<std::size_t>(cuts.segments.size(), 1));
  for (const auto& [size, time] : cuts.batches) {
    text +=
        fmt::format(", {:.2f} ms each in batches of {}", time / static_cast<double>(size), size);
  }
  if (cuts.on_half > 0) text += fmt::format(", {:.2f} ms on half of the cores", cuts.on_half);
  return text;
}

}  // namespace placewright
