#include "serving/model_service.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/model_files.h"
#include "backends/registry.h"
#include "backends/target_devices.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "serving/stated_models.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;

std::optional<long> version_number(const std::string& text) {
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

// Whether the file, its links followed, lies in the folder.
bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code failed;
  const fs::path real = fs::canonical(file, failed);
  if (failed) return false;
  const fs::path root = fs::canonical(folder, failed);
  if (failed) return false;
  return std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
}

std::string stamp_of(const fs::path& file) {
  std::error_code failed;
  const auto time = fs::last_write_time(file, failed).time_since_epoch().count();
  const auto size = fs::is_regular_file(file, failed) ? fs::file_size(file, failed) : 0;
  return fmt::format("{} {}", time, size);
}

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

// As the value of a label has it between quotes.
std::string label_of(const std::string& text) {
  std::string label;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') label += '\\';
    label += letter == '\n' ? std::string("\\n") : std::string(1, letter);
  }
  return label;
}

}  // namespace

void LatencyHistogram::add(double milliseconds) {
  const auto bucket = std::ranges::lower_bound(kBounds, milliseconds) - kBounds.begin();
  counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(milliseconds, std::memory_order_relaxed);
}

std::string LatencyHistogram::text(const std::string& name, const std::string& labels) const {
  std::string text;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    count += counts_[i].load(std::memory_order_relaxed);
    const std::string bound =
        i < kBounds.size() ? fmt::format("{:g}", kBounds[i] / 1000) : std::string("+Inf");
    text += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, count);
  }
  text += fmt::format("{}_sum{{{}}} {}\n", name, labels, sum_.load() / 1000);
  return text + fmt::format("{}_count{{{}}} {}\n", name, labels, count);
}

ModelService::ModelService(const ServerSettings& settings, Log log)
    : settings_(settings),
      log_(std::move(log)),
      target_(target_of_cores(allowed_cores())),
      engine_(scheduler_of(settings)) {}

std::vector<ModelService::Found> ModelService::found() const {
  std::vector<Found> all;
  for (const std::string& path : settings_.models) {
    all.push_back({model_name_of(path), "1", path, stamp_of(path)});
  }
  if (!settings_.folder.empty()) add_from_folder(all);
  // The first of a name and version, or two files would replace each other for ever.
  std::ranges::sort(all.begin() + static_cast<std::ptrdiff_t>(settings_.models.size()), all.end(),
                    {}, &Found::path);
  std::set<std::pair<std::string, std::optional<long>>> seen;
  std::erase_if(all, [&](const Found& each) {
    return !seen.emplace(each.name, version_number(each.version)).second;
  });
  return all;
}

void ModelService::add_from_folder(std::vector<Found>& all) const {
  const auto add = [&](const std::string& name, const std::string& version, const fs::path& path) {
    if (backend_reading(path.string()) == nullptr) return;
    // A pipe would be read for ever.
    std::error_code failed;
    if (!fs::is_regular_file(path, failed) || !lies_in(path, settings_.folder)) return;
    all.push_back({name, version, path.string(), stamp_of(path)});
  };
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(settings_.folder, failed)) {
    if (!entry.is_directory(failed)) {
      add(model_name_of(entry.path().string()), "1", entry.path());
      continue;
    }
    for (const auto& version : fs::directory_iterator(entry.path(), failed)) {
      const std::string number = version.path().filename().string();
      if (!version.is_directory(failed) || !version_number(number)) continue;
      for (const auto& file : fs::directory_iterator(version.path(), failed)) {
        add(entry.path().filename().string(), number, file.path());
      }
    }
  }
}

void ModelService::load_all() {
  for (const Found& each : found()) {
    if (std::ranges::count(settings_.models, each.path) > 0) serve(each);
  }
  rescan();
  loaded_ = true;
}

void ModelService::rescan() {
  const std::vector<Found> all = found();
  std::set<std::string> there;
  for (const Found& each : all) {
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
      return std::ranges::none_of(all, [&](const Found& other) {
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
  for (const Found& each : found()) {
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

ModelCuts ModelService::cuts_of(const NeuralModel& model, const Found& found) const {
  const MeasureOptions measure{.repeat = 15, .seconds = 5};
  const KeptCuts kept(settings_.cache);
  const std::string key =
      fmt::format("{} {} {} {} {} {}", digest_of_file(found.path), fmt::join(settings_.shapes, " "),
                  name_of(settings_.precision), runtime_named(target_.backend).version(),
                  processor_name(), name_of(target_));
  std::optional<ModelCuts> whole = kept.find(key);
  if (!whole) {
    whole = ModelCuts{.whole = measure_whole(model, target_, measure)};
    kept.keep(key, *whole);
  }
  // Whole milliseconds, so that a restart finds what it kept.
  const double quantum = std::round(quantum_with(whole->whole));
  if (wanted_segments(whole->whole, quantum, 0) < 2) return *whole;
  const std::string cut_key = fmt::format("{} quantum {}", key, quantum);
  std::optional<ModelCuts> cuts = kept.find(cut_key);
  if (!cuts) {
    cuts = measure_model_cuts(model, target_, quantum, measure);
    kept.keep(cut_key, *cuts);
  }
  return *cuts;
}

void ModelService::serve(const Found& found) {
  const std::lock_guard loading(loading_);
  const BackendEntry* backend = backend_reading(found.path);
  {
    const std::lock_guard lock(mutex_);
    stamps_[found.path] = found.stamp;
    failed_[{found.name, found.version}] = "it is being loaded";
  }
  try {
    if (backend == nullptr) {
      throw InputError(found.path, "", "is no model that a backend reads");
    }
    const std::vector<ModelFile> files = model_files(settings_.models, settings_.shapes);
    const auto named = std::ranges::find(files, found.path, &ModelFile::path);
    ModelFile file = named == files.end() ? ModelFile{.path = found.path} : *named;
    file.precision = settings_.precision;
    std::shared_ptr<const NeuralModel> model = read_model(runtime_named(backend->name), file);
    require_datatypes(*model, found.path);
    ModelCuts cuts = cuts_of(*model, found);
    auto version = std::make_shared<ServedVersion>();
    version->name = found.name;
    version->version = found.version;
    version->path = found.path;
    version->model = std::make_shared<LoadedModel>(std::move(model), target_, std::move(cuts));
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
  std::string line =
      fmt::format("model '{}' version {} is ready: {:.2f} ms, {} segments", version->name,
                  version->version, cuts.whole, std::max<std::size_t>(cuts.segments.size(), 1));
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

std::optional<RequestId> ModelService::infer(const std::shared_ptr<ServedVersion>& version,
                                             const InferenceCall& call,
                                             std::function<void(const InferenceAnswer&)> tell) {
  const ModelGraph& graph = version->model->graph();
  InferenceJob job{.model = version->number, .inputs = fitted_call(graph, call)};
  static_cast<void>(chosen_outputs(graph, call));
  job.deadline = call.timeout;
  job.tell = [version, tell = std::move(tell)](const InferenceAnswer& answer) {
    ++version->answers[static_cast<std::size_t>(answer.kind)];
    if (answer.kind == AnswerKind::done) version->latency.add(answer.took);
    tell(answer);
  };
  return engine_.submit(std::move(job));
}

void ModelService::drain() {
  draining_ = true;
  engine_.drain();
}

std::string ModelService::metrics() const {
  constexpr std::array kKinds{"done", "refused", "late", "cancelled", "failed"};
  std::vector<std::shared_ptr<ServedVersion>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, versions] : served_) {
      for (const auto& [number, version] : versions) all.push_back(version);
    }
  }
  std::string requests = "# TYPE placewright_requests_total counter\n";
  std::string queue = "# TYPE placewright_queue_requests gauge\n";
  std::string own = "# TYPE placewright_model_seconds gauge\n";
  std::string latency = "# TYPE placewright_latency_seconds histogram\n";
  for (const auto& version : all) {
    const std::string labels =
        fmt::format("model=\"{}\",version=\"{}\"", label_of(version->name), version->version);
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      requests += fmt::format("placewright_requests_total{{{},answer=\"{}\"}} {}\n", labels,
                              kKinds[kind], version->answers[kind].load());
    }
    queue += fmt::format("placewright_queue_requests{{{}}} {}\n", labels,
                         engine_.waiting(version->number));
    own += fmt::format("placewright_model_seconds{{{}}} {}\n", labels,
                       version->model->cuts().whole / 1000);
    latency += version->latency.text("placewright_latency_seconds", labels);
  }
  const Engine::Snapshot now = engine_.snapshot();
  return requests + queue + own + latency +
         fmt::format(
             "# TYPE placewright_busy_seconds_total counter\n"
             "placewright_busy_seconds_total {}\n"
             "# TYPE placewright_backlog_seconds gauge\nplacewright_backlog_seconds {}\n",
             now.busy_seconds, now.backlog / 1000);
}

}  // namespace placewright
