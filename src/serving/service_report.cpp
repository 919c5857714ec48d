#include "serving/service_report.h"

#include <functional>

#include <fmt/format.h>

#include "formats/json_fields.h"

namespace placewright {

template <>
inline constexpr auto kFields<LatencyRecord::Summary> = std::tuple{
    required("requests", &LatencyRecord::Summary::requests),
    required("mean", &LatencyRecord::Summary::mean), required("p50", &LatencyRecord::Summary::p50),
    required("p99", &LatencyRecord::Summary::p99)};

template <>
inline constexpr auto kFields<ModelReport> =
    std::tuple{required("name", &ModelReport::name),
               required("version", &ModelReport::version),
               required("state", &ModelReport::state),
               required("own_time", &ModelReport::own_time),
               required("segments", &ModelReport::segments),
               required("waiting", &ModelReport::waiting),
               required("waiting_bytes", &ModelReport::waiting_bytes),
               required("busy_seconds", &ModelReport::busy_seconds),
               required("memory", &ModelReport::memory),
               required("done", &ModelReport::done),
               required("refused", &ModelReport::refused),
               required("late", &ModelReport::late),
               required("cancelled", &ModelReport::cancelled),
               required("failed", &ModelReport::failed),
               required("measured", &ModelReport::measured),
               required("predicted", &ModelReport::predicted)};

template <>
inline constexpr auto kFields<RunningReport> =
    std::tuple{required("model", &RunningReport::model), required("cores", &RunningReport::cores)};

template <>
inline constexpr auto kFields<ServiceReport> =
    std::tuple{required("version", &ServiceReport::version),
               required("up_seconds", &ServiceReport::up_seconds),
               required("cores", &ServiceReport::cores),
               required("busy_seconds", &ServiceReport::busy_seconds),
               required("backlog", &ServiceReport::backlog),
               required("memory", &ServiceReport::memory),
               required("running", &ServiceReport::running),
               required("models", &ServiceReport::models).in(Lines::bracket_below)};

namespace {

// As the value of a label has it between quotes.
std::string label_of(const std::string& text) {
  std::string label;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') label += '\\';
    label += letter == '\n' ? std::string("\\n") : std::string(1, letter);
  }
  return label;
}

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

// A line for each model.
std::string of_models(const ServiceReport& report, std::string_view name, std::string_view type,
                      std::string_view help,
                      const std::function<double(const ModelReport&)>& value) {
  std::string text = head(name, type, help);
  for (const ModelReport& model : report.models) {
    text +=
        fmt::format("{}{{{}}} {}\n", name, metric_labels(model.name, model.version), value(model));
  }
  return text;
}

std::string one(std::string_view name, std::string_view type, std::string_view help, double value) {
  return head(name, type, help) + fmt::format("{} {}\n", name, value);
}

std::string answers(const ServiceReport& report) {
  constexpr const char* kName = "placewright_requests_total";
  std::string text = head(kName, "counter", "Requests by their answer.");
  for (const ModelReport& model : report.models) {
    const std::string labels = metric_labels(model.name, model.version);
    const auto add = [&](std::string_view answer, std::uint64_t count) {
      text += fmt::format("{}{{{},answer=\"{}\"}} {}\n", kName, labels, answer, count);
    };
    add("done", model.done);
    add("refused", model.refused);
    add("late", model.late);
    add("cancelled", model.cancelled);
    add("failed", model.failed);
  }
  return text;
}

}  // namespace

std::string report_text(const ServiceReport& report) {
  std::string text;
  append_record(text, report, WritingContext{}, Written::all);
  return text + "\n";
}

ServiceReport parse_report(std::string_view text, const std::string& name) {
  const JsonDocument document(text, name);
  ServiceReport report;
  ReadingContext context;
  read_record(document.root(), report, context);
  return report;
}

std::string metric_labels(const std::string& model, const std::string& version) {
  return fmt::format("model=\"{}\",version=\"{}\"", label_of(model), label_of(version));
}

std::string metrics_text(const ServiceReport& report,
                         const std::vector<ModelHistograms>& histograms) {
  using Model = const ModelReport&;
  const auto cores = static_cast<double>(report.cores);
  std::string text = answers(report);
  text += of_models(report, "placewright_queue_requests", "gauge", "Requests that wait.",
                    [](Model model) { return static_cast<double>(model.waiting); });
  text += of_models(report, "placewright_queue_bytes", "gauge", "Bytes of inputs that wait.",
                    [](Model model) { return model.waiting_bytes; });
  text += of_models(report, "placewright_model_seconds", "gauge",
                    "Measured time of one inference, uncut and alone.",
                    [](Model model) { return model.own_time / 1000; });
  text += of_models(report, "placewright_model_busy_core_seconds_total", "counter",
                    "Core time that the model computed.",
                    [&](Model model) { return model.busy_seconds * cores; });
  text += head(kMeasuredMetric, "histogram", "Measured time from arrival to answer.");
  for (const ModelHistograms& each : histograms) text += each.measured;
  text += head(kPredictedMetric, "histogram",
               "Time from arrival to answer of the same requests in the simulated server.");
  for (const ModelHistograms& each : histograms) text += each.predicted;
  text += one("placewright_cores", "gauge", "Cores that serve.", cores);
  text += one("placewright_busy_seconds_total", "counter", "Time in which the cores computed.",
              report.busy_seconds);
  text += one("placewright_busy_core_seconds_total", "counter",
              "Core time in which models computed.", report.busy_seconds * cores);
  text += one("placewright_backlog_seconds", "gauge", "Work that was accepted and is not done.",
              report.backlog / 1000);
  return text + one("placewright_resident_bytes", "gauge", "Memory of the server's process.",
                    report.memory);
}

}  // namespace placewright
