#include "serving/model_service.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "backends/model_files.h"
#include "backends/registry.h"
#include "backends/target_devices.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "serving/measured_forms.h"
#include "serving/stated_models.h"

namespace placewright {
namespace {

SchedulerOptions scheduler_of(const ServerSettings& settings) {
  return {.policy = settings.policy,
          .late = settings.late,
          .ageing = settings.ageing,
          .share = settings.share};
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

// "1.20 ms, 1 segments, batches of 2 (0.90 ms each)".
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

// Of this process.
double resident_bytes() {
  std::ifstream pages("/proc/self/statm");
  double all = 0;
  double resident = 0;
  pages >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::vector<FoundModel> ModelService::found() const {
  return found_models(settings_.models, settings_.folder);
}

ModelService::ModelService(const ServerSettings& settings, Log log)
    : settings_(settings),
      log_(std::move(log)),
      target_(target_of_cores(allowed_cores())),
      engine_(scheduler_of(settings)) {}

void ModelService::load_all() {
  for (const FoundModel& each : found()) {
    if (std::ranges::count(settings_.models, each.path) > 0) serve(each);
  }
  rescan();
  loaded_ = true;
}

void ModelService::rescan() {
  const std::vector<FoundModel> all = found();
  std::set<std::string> there;
  for (const FoundModel& each : all) {
    there.insert(each.path);
    {
      const std::lock_guard lock(mutex_);
      if (unloaded_.contains(each.name)) continue;
      const auto known = stamps_.find(each.path);
      if (known != stamps_.end() && known->second == each.stamp) continue;
    }
    try {
      serve(each);
    } catch (const std::exception& error) {
      say(fmt::format("model '{}' version {} cannot be served: {}", each.name, each.version,
                      error.what()));
    }
  }
  std::vector<std::pair<std::string, std::string>> gone;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(stamps_, [&](const auto& each) { return !there.contains(each.first); });
    std::erase_if(failed_, [&](const auto& each) {
      return std::ranges::none_of(all, [&](const FoundModel& other) {
        return std::pair(other.name, other.version) == each.first;
      });
    });
    for (const auto& [name, versions] : served_) {
      for (const auto& [number, version] : versions) {
        if (!there.contains(version->path)) gone.emplace_back(name, version->version);
      }
    }
  }
  for (const auto& [name, version] : gone) retire(name, version);
}

void ModelService::load(const std::string& name) {
  bool any = false;
  {
    const std::lock_guard lock(mutex_);
    unloaded_.erase(name);
  }
  for (const FoundModel& each : found()) {
    if (each.name != name) continue;
    any = true;
    serve(each);
  }
  if (!any) throw UnknownModel(fmt::format("there is no model '{}'", name));
}

void ModelService::unload(const std::string& name) {
  std::vector<std::string> all;
  {
    const std::lock_guard lock(mutex_);
    const auto found = served_.find(name);
    if (found == served_.end()) throw UnknownModel(fmt::format("there is no model '{}'", name));
    unloaded_[name] = true;
    for (const auto& [number, version] : found->second) all.push_back(version->version);
  }
  for (const std::string& version : all) retire(name, version);
}

double ModelService::quantum_with(double whole) const {
  std::vector<ServedModel> models{{.name = "", .whole = whole}};
  const std::lock_guard lock(mutex_);
  for (const auto& [name, versions] : served_) {
    for (const auto& [number, version] : versions) {
      models.push_back({.name = name, .whole = version->model->cuts().whole});
    }
  }
  return quantum_of(models);
}

ModelCuts ModelService::cuts_of(const NeuralModel& model, const Runtime& runtime,
                                const ModelFile& file) const {
  const MeasureOptions measure{.repeat = 15, .seconds = 5};
  const KeptCuts kept(settings_.cache);
  const std::string key = fmt::format("forms {} {} {} {} {} {}", digest_of_file(file.path),
                                      fmt::join(file.shapes, " "), name_of(settings_.precision),
                                      runtime.version(), processor_name(), name_of(target_));
  std::optional<ModelCuts> whole = kept.find(key);
  if (!whole) {
    whole = ModelCuts{.whole = measure_whole(model, target_, measure)};
    measure_forms(*whole, model, runtime, file, target_, measure);
    kept.keep(key, *whole);
  }
  // Whole milliseconds, so that a restart finds what it kept.
  const double quantum = std::round(quantum_with(whole->whole));
  if (wanted_segments(whole->whole, quantum, 0) < 2) return *whole;
  const std::string cut_key = fmt::format("{} quantum {}", key, quantum);
  std::optional<ModelCuts> cuts = kept.find(cut_key);
  if (!cuts) {
    cuts = measure_model_cuts(model, target_, quantum, measure);
    cuts->batches = whole->batches;
    cuts->on_half = whole->on_half;
    kept.keep(cut_key, *cuts);
  }
  return *cuts;
}

ModelFile ModelService::file_of(const FoundModel& found) const {
  const std::vector<ModelFile> files = model_files(settings_.models, settings_.shapes);
  const auto named = std::ranges::find(files, found.path, &ModelFile::path);
  ModelFile file = named == files.end() ? ModelFile{.path = found.path} : *named;
  file.precision = settings_.precision;
  return file;
}

std::shared_ptr<LoadedModel> ModelService::loaded(const FoundModel& found) const {
  const BackendEntry* backend = backend_reading(found.path);
  if (backend == nullptr) throw InputError(found.path, "", "no backend reads this file");
  const Runtime& runtime = runtime_named(backend->name);
  const ModelFile file = file_of(found);
  const std::shared_ptr<const NeuralModel> model = read_model(runtime, file);
  require_datatypes(*model, found.path);
  ModelCuts cuts = cuts_of(*model, runtime, file);
  const BatchedModels batched = read_batches(cuts, *model, runtime, file);
  return std::make_shared<LoadedModel>(model, target_, std::move(cuts), batched);
}

void ModelService::serve(const FoundModel& found) {
  const std::lock_guard loading(loading_);
  {
    const std::lock_guard lock(mutex_);
    stamps_[found.path] = found.stamp;
    failed_[{found.name, found.version}] = "it is being loaded";
  }
  try {
    auto version = std::make_shared<ServedVersion>();
    version->name = found.name;
    version->version = found.version;
    version->path = found.path;
    version->model = loaded(found);
    version->number = engine_.add(version->model, found.name, class_of(settings_, found.name));
    publish(std::move(version));
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    failed_[{found.name, found.version}] = error.what();
    throw;
  }
}

// In place of the one before, if any: there is no moment without one.
void ModelService::publish(std::shared_ptr<ServedVersion> version) {
  const ModelCuts& cuts = version->model->cuts();
  std::string line = fmt::format("model '{}' version {} is ready: {}", version->name,
                                 version->version, forms_text(cuts));
  std::shared_ptr<ServedVersion> old = version;
  {
    const std::lock_guard lock(mutex_);
    failed_.erase({version->name, version->version});
    if (unloaded_.contains(version->name)) {
      line = fmt::format("model '{}' was unloaded while it was loaded", version->name);
    } else {
      old = std::exchange(served_[version->name][version_number(version->version).value_or(1)],
                          version);
      if (old != nullptr && old->path != version->path) stamps_.erase(old->path);
    }
  }
  say(line);
  if (old != nullptr) end(*old);
}

void ModelService::end(const ServedVersion& version) {
  engine_.remove(version.number);
  say(fmt::format("model '{}' version {} is unloaded", version.name, version.version));
}

void ModelService::retire(const std::string& name, const std::string& version) {
  std::shared_ptr<ServedVersion> old;
  {
    const std::lock_guard lock(mutex_);
    const auto versions = served_.find(name);
    if (versions == served_.end()) return;
    const auto found = versions->second.find(version_number(version).value_or(1));
    if (found == versions->second.end()) return;
    old = found->second;
    versions->second.erase(found);
    if (versions->second.empty()) served_.erase(versions);
    stamps_.erase(old->path);
  }
  end(*old);
}

std::shared_ptr<ServedVersion> ModelService::find(const std::string& name,
                                                  const std::string& version) const {
  const std::lock_guard lock(mutex_);
  const auto found = served_.find(name);
  if (found != served_.end()) {
    if (version.empty()) return found->second.rbegin()->second;
    const auto number = version_number(version);
    const auto one = found->second.find(number.value_or(0));
    if (one != found->second.end()) return one->second;
    throw UnknownModel(fmt::format("the model '{}' has no version '{}'", name, version));
  }
  for (const auto& [key, reason] : failed_) {
    if (key.first == name) {
      throw UnknownModel(fmt::format("the model '{}' is not served: {}", name, reason));
    }
  }
  throw UnknownModel(fmt::format("there is no model '{}'", name));
}

std::vector<std::string> ModelService::versions(const std::string& name) const {
  std::vector<std::string> versions;
  const std::lock_guard lock(mutex_);
  const auto found = served_.find(name);
  if (found == served_.end()) return versions;
  for (const auto& [number, version] : found->second) versions.push_back(version->version);
  return versions;
}

std::vector<ModelState> ModelService::states() const {
  std::vector<ModelState> states;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, versions] : served_) {
    for (const auto& [number, version] : versions) {
      states.push_back({name, version->version, true, ""});
    }
  }
  for (const auto& [key, reason] : failed_) {
    states.push_back({key.first, key.second, false, reason});
  }
  return states;
}

bool ModelService::ready() const {
  return loaded_ && !draining_;
}

std::optional<RequestId> ModelService::infer(const InferenceCall& call, Tell tell) {
  while (true) {
    const std::shared_ptr<ServedVersion> version = find(call.model, call.version);
    const ModelGraph& graph = version->model->graph();
    InferenceJob job{.model = version->number, .inputs = fitted_call(graph, call)};
    static_cast<void>(chosen_outputs(graph, call));
    job.deadline = call.timeout;
    job.tell = [version, tell](const InferenceAnswer& answer) {
      ++version->answers[static_cast<std::size_t>(answer.kind)];
      if (answer.kind == AnswerKind::done) version->latency.add(answer.took);
      tell(*version, answer);
    };
    try {
      return engine_.submit(std::move(job));
    } catch (const std::invalid_argument&) {
      // Another one has just taken its place, or nothing.
    }
  }
}

void ModelService::drain() {
  draining_ = true;
  engine_.drain();
}

std::vector<std::shared_ptr<ServedVersion>> ModelService::all_served() const {
  std::vector<std::shared_ptr<ServedVersion>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, versions] : served_) {
    for (const auto& [number, version] : versions) all.push_back(version);
  }
  return all;
}

ModelReport ModelService::report_of(ServedVersion& version) {
  const Engine::ModelSnapshot now = engine_.snapshot(version.number);
  const ModelCuts& cuts = version.model->cuts();
  ModelReport report{.name = version.name, .version = version.version, .state = "ready"};
  report.own_time = cuts.whole;
  report.segments = std::max<std::size_t>(cuts.segments.size(), 1);
  report.waiting = now.waiting;
  report.waiting_bytes = now.waiting_bytes;
  report.busy_seconds = now.busy_seconds;
  const auto count = [&](AnswerKind kind) {
    return version.answers[static_cast<std::size_t>(kind)].load();
  };
  report.done = count(AnswerKind::done);
  report.refused = count(AnswerKind::refused);
  report.late = count(AnswerKind::late);
  report.cancelled = count(AnswerKind::cancelled);
  report.failed = count(AnswerKind::failed);
  report.measured = version.latency.summary();
  if (now.forecast) report.predicted = now.forecast->summary();
  return report;
}

ServiceReport ModelService::report() {
  ServiceReport report{.version = PLACEWRIGHT_VERSION};
  for (const auto& version : all_served()) report.models.push_back(report_of(*version));
  for (const ModelState& state : states()) {
    if (state.ready) continue;
    report.models.push_back({.name = state.name, .version = state.version, .state = state.reason});
  }
  const Engine::Snapshot now = engine_.snapshot();
  report.up_seconds = milliseconds(Clock::now() - start_) / 1000;
  report.cores = target_.cores.size();
  report.busy_seconds = now.busy_seconds;
  report.backlog = now.backlog;
  report.memory = resident_bytes();
  const std::vector<Target> halves = halves_of(target_);
  for (const Engine::RunningModel& running : now.running) {
    const Target& cores = running.half ? halves.at(*running.half) : target_;
    report.running.push_back({running.model, name_of(cores)});
  }
  return report;
}

std::string ModelService::metrics() {
  ServiceReport whole = report();
  std::erase_if(whole.models, [](const ModelReport& model) { return model.state != "ready"; });
  std::vector<ModelHistograms> histograms;
  for (const auto& version : all_served()) {
    const std::string labels = metric_labels(version->name, version->version);
    const Engine::ModelSnapshot now = engine_.snapshot(version->number);
    histograms.push_back(
        {.measured = version->latency.text(kMeasuredMetric, labels),
         .predicted = now.forecast ? now.forecast->text(kPredictedMetric, labels) : std::string()});
  }
  return metrics_text(whole, histograms);
}

}  // namespace placewright
