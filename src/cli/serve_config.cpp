#include "cli/serve_config.h"

#include <filesystem>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "backends/model_files.h"
#include "cli/exit_code.h"
#include "formats/input_error.h"
#include "formats/json_fields.h"
#include "formats/text_file.h"

namespace placewright {

// What requests are entitled to; of one model, or of all.
struct ConfiguredClass {
  std::optional<double> objective;  // milliseconds
  std::optional<double> priority;
  std::optional<double> weight;
  std::optional<double> queue;
};
struct ConfiguredModel {
  std::string path;
  std::vector<std::string> shapes;
  ConfiguredClass service;
};
// Of a model in the folder.
struct NamedClass {
  std::string model;
  ConfiguredClass service;
};
struct ServeConfig {
  std::vector<ConfiguredModel> models;
  std::vector<NamedClass> classes;
  ConfiguredClass all;
  std::optional<std::string> folder;
  std::optional<Precision> precision;
  std::optional<std::string> http;
  std::optional<std::string> grpc;
  std::optional<std::string> token;
  std::optional<std::string> tls_certificate;
  std::optional<std::string> tls_key;
  std::optional<std::string> tls_clients;
  std::optional<bool> insecure;
  std::optional<ServingPolicy> policy;
  std::optional<Late> late;
  std::optional<double> ageing;
  std::optional<double> share;
  std::optional<double> largest_body;  // MB
  std::optional<int> connections;
  std::optional<double> memory;  // MB
  std::optional<LogForm> log;
};

template <>
inline constexpr auto kFields<ConfiguredClass> = std::tuple{
    optional("objective", &ConfiguredClass::objective),
    optional("priority", &ConfiguredClass::priority), optional("weight", &ConfiguredClass::weight),
    optional("queue", &ConfiguredClass::queue)};
template <>
inline constexpr auto kFields<ConfiguredModel> = std::tuple{
    required("path", &ConfiguredModel::path), optional("shapes", &ConfiguredModel::shapes),
    optional("service", &ConfiguredModel::service)};
template <>
inline constexpr auto kFields<NamedClass> =
    std::tuple{required("model", &NamedClass::model), required("service", &NamedClass::service)};
template <>
inline constexpr auto kFields<ServeConfig> =
    std::tuple{optional("models", &ServeConfig::models),
               optional("classes", &ServeConfig::classes),
               optional("service", &ServeConfig::all),
               optional("folder", &ServeConfig::folder),
               optional("precision", &ServeConfig::precision),
               optional("http", &ServeConfig::http),
               optional("grpc", &ServeConfig::grpc),
               optional("token", &ServeConfig::token),
               optional("tls_certificate", &ServeConfig::tls_certificate),
               optional("tls_key", &ServeConfig::tls_key),
               optional("tls_clients", &ServeConfig::tls_clients),
               optional("insecure", &ServeConfig::insecure),
               optional("policy", &ServeConfig::policy),
               optional("late", &ServeConfig::late),
               optional("ageing", &ServeConfig::ageing),
               optional("share", &ServeConfig::share),
               optional("largest_body", &ServeConfig::largest_body),
               optional("connections", &ServeConfig::connections),
               optional("memory", &ServeConfig::memory),
               optional("log", &ServeConfig::log)};

namespace cli {
namespace {

class ConfigReader {
 public:
  explicit ConfigReader(const std::string& path)
      : path_(path), folder_(std::filesystem::path(path).parent_path()) {
    const std::string text = read_whole(path, kLargest);
    const JsonDocument document(text, path);
    ReadingContext context;
    read_record(document.root(), config, context);
    // What is not understood would be missing without a word once the server runs.
    const std::vector<std::string> unknown = context.unknown.warnings();
    if (!unknown.empty()) throw UsageError("--config: " + unknown.front());
    check();
  }

  [[nodiscard]] std::string file(const std::string& path) const {
    return (folder_ / path).string();
  }

  ServeConfig config;

 private:
  static constexpr std::size_t kLargest = 10'000'000;

  void require(const std::string& place, const std::optional<double>& value, double least,
               double most) const {
    if (!value || (*value >= least && *value <= most)) return;
    throw InputError(
        path_, place,
        fmt::format("expected a number from {:g} to {:g}, found {:g}", least, most, *value));
  }
  void check(const std::string& place, const ConfiguredClass& service) const {
    require(place + "/objective", service.objective, 1e-3, 1e9);
    require(place + "/priority", service.priority, 0, 1000);
    require(place + "/weight", service.weight, 1e-6, 1e6);
    require(place + "/queue", service.queue, 1, 1e6);
  }
  void check() const {
    check("service", config.all);
    for (std::size_t i = 0; i < config.models.size(); ++i) {
      check(fmt::format("models/{}/service", i), config.models[i].service);
    }
    for (std::size_t i = 0; i < config.classes.size(); ++i) {
      check(fmt::format("classes/{}/service", i), config.classes[i].service);
    }
    require("ageing", config.ageing, 1, 1e15);
    require("share", config.share, 0.001, 1);
    require("largest_body", config.largest_body, 0.001, 2000);
    require("connections", config.connections, 1, 10000);
    require("memory", config.memory, 1, 1e9);
  }

  std::string path_;
  std::filesystem::path folder_;
};

// In front of what flags say, so that these count.
void add_class(ServiceOptions& options, const std::string& model, const ConfiguredClass& given) {
  const std::string prefix = model.empty() ? "" : model + "=";
  const auto add = [&](std::vector<std::string>& texts, const std::optional<double>& value,
                       std::string_view unit) {
    if (value) texts.push_back(fmt::format("{}{}{}", prefix, *value, unit));
  };
  add(options.objectives, given.objective, "ms");
  add(options.priorities, given.priority, "");
  add(options.weights, given.weight, "");
  add(options.queues, given.queue, "");
}

ServiceOptions classes_of(const ServeConfig& config) {
  ServiceOptions classes;
  add_class(classes, "", config.all);
  for (const ConfiguredModel& model : config.models) {
    add_class(classes, model_name_of(model.path), model.service);
  }
  for (const NamedClass& each : config.classes) add_class(classes, each.model, each.service);
  return classes;
}

void prepend(std::vector<std::string>& texts, const std::vector<std::string>& front) {
  texts.insert(texts.begin(), front.begin(), front.end());
}

}  // namespace

void apply_config(const std::string& path, const CLI::App& verb, ServeSimulationOptions& simulation,
                  ServeStartOptions& start) {
  const ConfigReader reader(path);
  const ServeConfig& config = reader.config;
  const auto set = [&](const char* flag, auto& option, const auto& value) {
    if (value && verb.count(flag) == 0) option = *value;
  };
  const auto set_file = [&](const char* flag, std::string& option,
                            const std::optional<std::string>& value) {
    if (value && verb.count(flag) == 0) option = reader.file(*value);
  };
  if (simulation.models.empty()) {
    for (const ConfiguredModel& model : config.models) {
      simulation.models.push_back(reader.file(model.path));
      for (const std::string& shape : model.shapes) {
        const bool one = config.models.size() == 1;
        start.model.shapes.push_back(one ? shape : model_name_of(model.path) + ":" + shape);
      }
    }
  }
  ServiceOptions& service = simulation.service;
  const ServiceOptions classes = classes_of(config);
  prepend(service.objectives, classes.objectives);
  prepend(service.priorities, classes.priorities);
  prepend(service.weights, classes.weights);
  prepend(service.queues, classes.queues);
  set("--policy", service.scheduler.policy, config.policy);
  set("--late", service.scheduler.late, config.late);
  set("--ageing", service.scheduler.ageing, config.ageing);
  set("--share", service.scheduler.share, config.share);
  set_file("--folder", start.folder, config.folder);
  set("--precision", start.model.precision, config.precision);
  set("--http", start.http, config.http);
  set("--grpc", start.grpc, config.grpc);
  set_file("--token", start.token_file, config.token);
  set_file("--tls-certificate", start.certificate, config.tls_certificate);
  set_file("--tls-key", start.key, config.tls_key);
  set_file("--tls-clients", start.client_authority, config.tls_clients);
  set("--insecure", start.insecure, config.insecure);
  set("--largest-body", start.largest_body, config.largest_body);
  set("--connections", start.connections, config.connections);
  set("--memory", start.memory, config.memory);
  set("--log", start.log, config.log);
}

}  // namespace cli
}  // namespace placewright
