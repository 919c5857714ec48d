#include "cli/serve_start.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/model_files.h"
#include "backends/registry.h"
#include "cli/choice_option.h"
#include "cli/model_problem.h"
#include "cli/number_option.h"
#include "cli/repeated_option.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "plugins/plugin_files.h"
#include "serving/server_settings.h"

namespace placewright::cli {
namespace {

constexpr const char* kNowhere = "none";

// "HOST:PORT"; empty for "none".
std::string address(std::string_view option, const std::string& text) {
  if (text == kNowhere) return "";
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw UsageError(fmt::format("{}: expected HOST:PORT or 'none', found '{}'", option, text));
  }
  parse_number(option, std::string_view(text).substr(colon + 1), NumberRange<int>{0, 65535});
  return text;
}

bool is_loopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return address.empty() || host.starts_with("127.") || host == "localhost" || host == "[::1]";
}

void require_guarded(const ServerSettings& settings, bool insecure) {
  if (is_loopback(settings.http) && is_loopback(settings.grpc)) return;
  if (insecure || !settings.token.empty() || !settings.client_authority.empty()) return;
  throw UsageError(
      "at this address other machines can send requests: give --token or --tls-clients, or allow "
      "it with --insecure");
}

std::string token_in(const std::string& path) {
  if (path.empty()) return "";
  std::string token = read_whole(path, 4096);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.empty()) throw InputError(path, "", "holds no token");
  return token;
}

}  // namespace

std::vector<ClassSetting> classes_of(const ServiceOptions& service) {
  std::vector<ClassSetting> classes;
  const auto add = [&](const std::vector<std::string>& texts, auto set) {
    for (const std::string& text : texts) {
      const auto [name, value] = model_value(text);
      ClassSetting& setting = classes.emplace_back();
      setting.model = name;
      set(setting, value);
    }
  };
  add(service.objectives, [](ClassSetting& setting, const std::string& value) {
    setting.objective = 1000 * parse_duration("--objective", value);
  });
  add(service.priorities, [](ClassSetting& setting, const std::string& value) {
    setting.priority = parse_number("--priority", value, NumberRange<int>{-1000, 1000});
  });
  add(service.weights, [](ClassSetting& setting, const std::string& value) {
    setting.weight = parse_number("--weight", value, NumberRange<double>{1e-6, 1e6});
  });
  add(service.queues, [](ClassSetting& setting, const std::string& value) {
    setting.queue = parse_number("--queue", value, NumberRange<double>{1, 1e6});
  });
  return classes;
}

void require_models(const std::vector<std::string>& models, const std::string& folder) {
  if (models.empty() && folder.empty()) {
    throw UsageError("name the models to serve, or a folder of models with --folder");
  }
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    throw InputError(folder, "", "is not a folder");
  }
  std::vector<std::string> names;
  for (const std::string& model : models) {
    if (!std::filesystem::exists(model)) throw InputError(model, "", "there is no such file");
    if (backend_reading(model) == nullptr) {
      throw InputError(model, "",
                       "is not a model; 'serve --rate' can predict latencies from a problem file");
    }
    names.push_back(model_name_of(model));
    if (std::ranges::count(names, names.back()) > 1) {
      throw UsageError(fmt::format("two models are called '{}'", names.back()));
    }
  }
}

namespace {

// In a folder any name may come later.
void require_known(const ServerSettings& settings) {
  if (!settings.folder.empty()) return;
  std::vector<std::string> names{""};
  for (const std::string& model : settings.models) names.push_back(model_name_of(model));
  for (const ClassSetting& setting : settings.classes) {
    if (std::ranges::find(names, setting.model) != names.end()) continue;
    throw UsageError(fmt::format("no model is called '{}', there is: {}", setting.model,
                                 fmt::join(names.begin() + 1, names.end(), ", ")));
  }
}

// An open file that no other user can read, as arguments can be: the text holds the clients' token.
int file_in_memory(const std::string& text) {
  const int file = memfd_create("settings", 0);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw RuntimeError(fmt::format("cannot keep the server's settings: {}", std::strerror(errno)));
  }
  return file;
}

}  // namespace

void ServeStartOptions::add_to(CLI::App& verb) {
  verb.add_option("--folder", folder, "Serve the models in this folder, and watch it for changes")
      ->type_name("FOLDER");
  model.add_to(verb);
  verb.add_option("--http", http, "Where HTTP listens, or 'none'")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  verb.add_option("--grpc", grpc, "Where gRPC listens, or 'none'")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  verb.add_option("--token", token_file, "Ask clients for the token in this file")
      ->type_name("FILE");
  verb.add_option("--tls-certificate", certificate, "TLS: certificate of the server (PEM)")
      ->type_name("FILE");
  verb.add_option("--tls-key", key, "TLS: private key of the server (PEM)")->type_name("FILE");
  verb.add_option("--tls-clients", client_authority,
                  "TLS: ask clients for a certificate that this authority signed (PEM)")
      ->type_name("FILE");
  verb.add_flag("--insecure", insecure,
                "Serve other machines without a token or client certificates");
  add_number(verb, "--largest-body", largest_body, {0.001, 2000},
             "Refuse requests with more than this many MB");
  add_number(verb, "--connections", connections, {1, 10000},
             "Accept at most this many HTTP connections");
  add_number(
      verb, "--memory", memory, {0, 1e9},
      "Keep all models within this many MB (0: no limit); unload the one used least recently");
  add_choice(verb, "--log", log, "Form of the log");
}

ExitCode start_serving(const std::vector<std::string>& models, const ServiceOptions& service,
                       const ServeStartOptions& options) {
  if (options.certificate.empty() != options.key.empty()) {
    throw UsageError("--tls-certificate and --tls-key: give both or neither");
  }
  if (!options.client_authority.empty() && options.certificate.empty()) {
    throw UsageError("--tls-clients needs --tls-certificate and --tls-key");
  }
  if (models.empty() && !options.model.shapes.empty()) {
    throw UsageError("--shape: name the model's file; models in --folder need fixed shapes");
  }
  ServerSettings settings;
  settings.models = models;
  settings.folder = options.folder;
  settings.shapes = options.model.shapes;
  settings.precision = options.model.precision.value_or(Precision::by_default);
  settings.http = address("--http", options.http);
  settings.grpc = address("--grpc", options.grpc);
  if (settings.http.empty() && settings.grpc.empty()) {
    throw UsageError("--http and --grpc: one of them must listen");
  }
  settings.token = token_in(options.token_file);
  settings.certificate = options.certificate;
  settings.key = options.key;
  settings.client_authority = options.client_authority;
  settings.cache = cache_folder();
  settings.policy = service.scheduler.policy;
  settings.late = service.scheduler.late;
  settings.ageing = service.scheduler.ageing;
  settings.share = service.scheduler.share;
  settings.largest_body = options.largest_body * 1e6;
  settings.connections = options.connections;
  settings.memory = options.memory * 1e6;
  settings.log = options.log;
  settings.classes = classes_of(service);
  require_guarded(settings, options.insecure);
  require_models(models, options.folder);
  require_known(settings);
  const auto servers = plugin_files("PLACEWRIGHT_SERVER", "placewright-server");
  if (servers.empty()) {
    throw RuntimeError(
        "placewright-server is not beside the program: install libgrpc++-dev, "
        "protobuf-compiler-grpc and libcpp-httplib-dev (scripts/setup serving), then build again");
  }
  const std::string program = servers.front().string();
  const std::string file = fmt::format("/proc/self/fd/{}", file_in_memory(settings_text(settings)));
  execl(program.c_str(), "placewright-server", file.c_str(), static_cast<char*>(nullptr));
  throw RuntimeError(fmt::format("{} cannot be started: {}", program, std::strerror(errno)));
}

}  // namespace placewright::cli
