// What a server says about itself.

#include <algorithm>

#include "serving/measured_forms.h"
#include "serving/model_service.h"
#include "serving/process_memory.h"

namespace placewright {

std::vector<std::shared_ptr<ServedVersion>> ModelService::all_served() const {
  std::vector<std::shared_ptr<ServedVersion>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, versions] : served_) {
    for (const auto& [number, version] : versions) all.push_back(version);
  }
  return all;
}

ModelReport ModelService::report_of(ServedVersion& version) {
  const Engine::ModelSnapshot now = engine_.snapshot(version.residence().number);
  const ModelCuts& cuts = version.cuts;
  ModelReport report{.name = version.name,
                     .version = version.version,
                     .state = version.resident() ? "ready" : "unloaded"};
  report.memory = version.memory;
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
  report.predicted = version.forecast->summary();
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
  report.cores = loader_.target().cores.size();
  report.busy_seconds = now.busy_seconds;
  report.backlog = now.backlog;
  report.memory = resident_bytes();
  const std::vector<Target> halves = halves_of(loader_.target());
  for (const Engine::RunningModel& running : now.running) {
    const Target& cores = running.half ? halves.at(*running.half) : loader_.target();
    report.running.push_back({running.model, name_of(cores)});
  }
  return report;
}

std::string ModelService::metrics() {
  ServiceReport whole = report();
  std::erase_if(whole.models, [](const ModelReport& model) { return model.own_time <= 0; });
  std::vector<ModelHistograms> histograms;
  for (const auto& version : all_served()) {
    const std::string labels = metric_labels(version->name, version->version);
    histograms.push_back({.measured = version->latency.text(kMeasuredMetric, labels),
                          .predicted = version->forecast->text(kPredictedMetric, labels)});
  }
  return metrics_text(whole, histograms);
}

}  // namespace placewright
