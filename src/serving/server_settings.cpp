#include "serving/server_settings.h"

#include "formats/json_fields.h"

namespace placewright {

template <>
inline constexpr auto kFields<ClassSetting> =
    std::tuple{required("model", &ClassSetting::model),
               optional("objective", &ClassSetting::objective).or_null(),
               optional("priority", &ClassSetting::priority).or_null(),
               optional("weight", &ClassSetting::weight).or_null(),
               optional("queue", &ClassSetting::queue).or_null()};

template <>
inline constexpr auto kFields<ServerSettings> =
    std::tuple{optional("models", &ServerSettings::models),
               optional("shapes", &ServerSettings::shapes),
               optional("precision", &ServerSettings::precision),
               optional("folder", &ServerSettings::folder),
               optional("http", &ServerSettings::http),
               optional("grpc", &ServerSettings::grpc),
               optional("token", &ServerSettings::token),
               optional("certificate", &ServerSettings::certificate),
               optional("key", &ServerSettings::key),
               optional("client_authority", &ServerSettings::client_authority),
               optional("cache", &ServerSettings::cache),
               optional("policy", &ServerSettings::policy),
               optional("late", &ServerSettings::late),
               optional("ageing", &ServerSettings::ageing),
               optional("share", &ServerSettings::share),
               optional("largest_body", &ServerSettings::largest_body),
               optional("connections", &ServerSettings::connections),
               optional("memory", &ServerSettings::memory),
               optional("log", &ServerSettings::log),
               optional("classes", &ServerSettings::classes)};

std::string settings_text(const ServerSettings& settings) {
  std::string text;
  append_record(text, settings, WritingContext{});
  return text;
}

ServerSettings parse_settings(std::string_view text) {
  const JsonDocument document(text, "settings");
  ServerSettings settings;
  ReadingContext context;
  read_record(document.root(), settings, context);
  return settings;
}

ServiceClass class_of(const ServerSettings& settings, const std::string& model) {
  ServiceClass service;
  for (const ClassSetting& setting : settings.classes) {
    if (!setting.model.empty() && setting.model != model) continue;
    if (setting.objective) service.objective = setting.objective;
    if (setting.priority) service.priority = static_cast<int>(*setting.priority);
    if (setting.weight) service.weight = *setting.weight;
    if (setting.queue) service.queue.requests = static_cast<std::size_t>(*setting.queue);
  }
  return service;
}

}  // namespace placewright
