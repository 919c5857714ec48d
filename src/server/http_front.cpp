#include <charconv>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/part_inputs.h"
#include "formats/input_error.h"
#include "formats/json_text.h"
#include "server/fronts.h"
#include "server/http_limits.h"
#include "serving/rest_answer.h"
#include "serving/rest_call.h"

namespace placewright::server {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

constexpr int kBadRequest = 400;
constexpr int kUnauthorized = 401;
constexpr int kNotFound = 404;
constexpr int kTooLarge = 413;
constexpr const char* kTooLargeSentence = "the body is larger than the server accepts";
constexpr int kClientLeft = 499;
constexpr int kFault = 500;
constexpr int kUnavailable = 503;
constexpr int kTooLate = 504;

void set_json(httplib::Response& response, const Json& document) {
  response.set_content(json_text(document, -1), "application/json");
}
void set_error(httplib::Response& response, int status, const std::string& sentence) {
  response.status = status;
  set_json(response, {{"error", sentence}});
}

Words words_of(const std::string& path) {
  Words words;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) words.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Json tensor_json(const std::string& name, const TensorType& type) {
  return {{"name", name}, {"datatype", datatype_of(type.element)}, {"shape", type.shape}};
}

std::optional<std::size_t> header_length(const httplib::Request& request) {
  const std::string text = request.get_header_value("Inference-Header-Content-Length");
  if (text.empty()) return std::nullopt;
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw BadInference("Inference-Header-Content-Length is not a number");
  }
  return length;
}

class HttpFront final : public Front {
 public:
  HttpFront(const ServerSettings& settings, ModelService& service)
      : service_(service), settings_(settings), server_(limited_http_server(settings)) {
    prepare();
    const std::size_t colon = settings.http.rfind(':');
    host_ = settings.http.substr(0, colon);
    const int wanted = std::stoi(settings.http.substr(colon + 1));
    port_ = wanted == 0 ? server_->bind_to_any_port(host_)
                        : (server_->bind_to_port(host_, wanted) ? wanted : -1);
    if (port_ <= 0) {
      throw std::runtime_error(
          fmt::format("cannot listen at {}: the port is in use, or the address is not of this "
                      "machine",
                      settings.http));
    }
    listener_ = std::jthread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~HttpFront() override { HttpFront::close(); }

  [[nodiscard]] std::string address() const override { return fmt::format("{}:{}", host_, port_); }
  void close() override {
    server_->stop();
    if (listener_.joinable()) listener_.join();
  }

 private:
  using Handler = void (HttpFront::*)(const httplib::Request&, httplib::Response&, const Words&);

  void prepare() {
    const auto connections = static_cast<std::size_t>(settings_.connections);
    server_->new_task_queue = [connections] { return new httplib::ThreadPool(connections); };
    server_->set_keep_alive_max_count(1'000'000);
    server_->set_payload_max_length(static_cast<std::size_t>(settings_.largest_body));
    server_->set_tcp_nodelay(true);
    // One instance on a port: a second one shall be told that it is in use.
    server_->set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server_->set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      const bool large = response.status == kTooLarge;
      set_error(response, response.status, large ? kTooLargeSentence : "the request is malformed");
    });
    const auto answer = [this](Handler handler) {
      return [this, handler](const httplib::Request& request, httplib::Response& response) {
        attempt(request, response, handler);
      };
    };
    server_->Get(".*", answer(&HttpFront::get));
    server_->Post(".*", [this](const httplib::Request& request, httplib::Response& response,
                               const httplib::ContentReader& reader) {
      if (!may_enter(request, settings_)) return stranger(response);
      httplib::Request whole = request;
      if (read_body(whole, response, reader)) attempt(whole, response, &HttpFront::post);
    });
  }

  static void stranger(httplib::Response& response) {
    set_error(response, kUnauthorized, "the token is missing or wrong");
  }

  // The library limits what a client states, not what comes in chunks or unpacked. What is beyond
  // the limit is read and forgotten, so that the next request on the connection is found.
  bool read_body(httplib::Request& request, httplib::Response& response,
                 const httplib::ContentReader& reader) const {
    const bool empty =
        !request.has_header("Content-Length") && !request.has_header("Transfer-Encoding");
    if (empty) return true;  // the library would wait for the end of the connection
    if (request.is_multipart_form_data()) {
      reader([](const auto&) { return true; }, [](const char*, std::size_t) { return true; });
      set_error(response, kBadRequest,
                "a form is not an inference request; send JSON or binary data");
      return false;
    }
    const auto limit = static_cast<std::size_t>(settings_.largest_body);
    bool large = false;
    const bool read = reader([&](const char* data, std::size_t size) {
      large = large || size > limit - request.body.size();
      if (!large) request.body.append(data, size);
      return true;
    });
    if (large) set_error(response, kTooLarge, kTooLargeSentence);
    return read && !large;
  }

  void attempt(const httplib::Request& request, httplib::Response& response, Handler handler) {
    // Many ranges would make an answer of any size.
    if (!request.ranges.empty()) {
      return set_error(response, kBadRequest, "an answer has no ranges");
    }
    if (!may_enter(request, settings_)) return stranger(response);
    try {
      (this->*handler)(request, response, words_of(request.path));
    } catch (const BadInference& error) {
      set_error(response, kBadRequest, error.what());
    } catch (const UnknownModel& error) {
      set_error(response, kNotFound, error.what());
    } catch (const InputError& error) {
      set_error(response, kBadRequest, error.message());
    } catch (const std::exception& error) {
      set_error(response, kFault, error.what());
    }
  }

  void get(const httplib::Request& request, httplib::Response& response, const Words& words) {
    if (words == Words{"metrics"}) {
      response.set_content(service_.metrics(), "text/plain; version=0.0.4");
    } else if (words == Words{"v2", "report"}) {
      response.set_content(report_text(service_.report()), "application/json");
    } else if (words == Words{"v2", "trace"}) {
      const bool one = request.has_param("id");
      response.set_content(
          service_.trace(one ? std::optional(request.get_param_value("id")) : std::nullopt),
          "application/json");
    } else if (words == Words{"v2"}) {
      set_json(response, {{"name", kServerName},
                          {"version", PLACEWRIGHT_VERSION},
                          {"extensions", {"model_repository", "binary_tensor_data"}}});
    } else if (words == Words{"v2", "health", "live"}) {
      set_json(response, {{"live", true}});
    } else if (words == Words{"v2", "health", "ready"}) {
      response.status = service_.ready() ? 200 : kUnavailable;
      set_json(response, {{"ready", service_.ready()}});
    } else if (words.size() >= 3 && words[0] == "v2" && words[1] == "models") {
      get_model(response, words);
    } else {
      set_error(response, kNotFound, "nothing is served at this path");
    }
  }

  // /v2/models/NAME[/versions/V][/ready]
  void get_model(httplib::Response& response, Words words) {
    const bool ready = words.back() == "ready" && words.size() > 3;
    if (ready) words.pop_back();
    const auto version = named(words);
    if (!version) return set_error(response, kNotFound, "nothing is served at this path");
    if (ready) return set_json(response, {{"ready", true}});
    const ModelGraph& graph = (*version)->graph;
    Json inputs = Json::array();
    for (const GraphInput& input : graph.inputs) {
      inputs.push_back(tensor_json(input.name, input.type));
    }
    Json outputs = Json::array();
    for (const GraphOutput& output : graph.outputs) {
      outputs.push_back(tensor_json(output.name, type_of(graph, output.tensor)));
    }
    set_json(response, {{"name", (*version)->name},
                        {"versions", service_.versions((*version)->name)},
                        {"platform", "openvino"},
                        {"inputs", std::move(inputs)},
                        {"outputs", std::move(outputs)}});
  }

  // Nullopt for another path.
  std::optional<std::shared_ptr<ServedVersion>> named(const Words& words) {
    if (words.size() == 3) return service_.find(words[2], "");
    if (words.size() == 5 && words[3] == "versions") return service_.find(words[2], words[4]);
    return std::nullopt;
  }

  void post(const httplib::Request& request, httplib::Response& response, const Words& words) {
    if (words.size() >= 4 && words[0] == "v2" && words[1] == "models" && words.back() == "infer") {
      const bool of_version = words.size() == 6 && words[3] == "versions";
      if (words.size() == 4 || of_version) {
        return infer(request, response, words[2], of_version ? words[4] : "");
      }
    }
    if (words == Words{"v2", "repository", "index"}) return index(response);
    const bool repository = words.size() == 5 && words[1] == "repository" && words[2] == "models";
    if (repository && words[4] == "load") return service_.load(words[3]);
    if (repository && words[4] == "unload") return service_.unload(words[3]);
    set_error(response, kNotFound, "nothing is served at this path");
  }

  void index(httplib::Response& response) {
    Json models = Json::array();
    for (const ModelState& state : service_.states()) {
      models.push_back({{"name", state.name},
                        {"version", state.version},
                        {"state", state.ready ? "READY" : "UNAVAILABLE"},
                        {"reason", state.reason}});
    }
    set_json(response, models);
  }

  void infer(const httplib::Request& request, httplib::Response& response, const std::string& model,
             const std::string& version) {
    InferenceCall call = parse_rest_call(request.body, header_length(request));
    call.model = model;
    call.version = version;
    std::promise<void> answered;
    std::exception_ptr failure;
    const auto id =
        service_.infer(call, [&](const ServedVersion& by, const InferenceAnswer& answer) {
          try {
            write_answer(response, by, call, answer);
          } catch (...) {
            failure = std::current_exception();
          }
          answered.set_value();
        });
    const std::future<void> told = answered.get_future();
    constexpr std::chrono::milliseconds kGlance{50};
    while (told.wait_for(kGlance) != std::future_status::ready) {
      if (id && client_has_left()) {
        service_.cancel(*id);
        told.wait();  // until the next border
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  static void write_answer(httplib::Response& response, const ServedVersion& version,
                           const InferenceCall& call, const InferenceAnswer& answer) {
    switch (answer.kind) {
      case AnswerKind::done: {
        RestAnswer made = rest_answer(version.graph, call, version.version, answer.outputs);
        if (made.header) {
          response.set_header("Inference-Header-Content-Length", std::to_string(*made.header));
        }
        response.set_header("Content-Type",
                            made.header ? "application/octet-stream" : "application/json");
        response.body = std::move(made.body);
        return;
      }
      case AnswerKind::refused:
        response.set_header("Retry-After",
                            std::to_string(1 + static_cast<long>(answer.retry_after / 1000)));
        return set_error(response, kUnavailable, answer.message);
      case AnswerKind::late:
        return set_error(response, kTooLate, answer.message);
      case AnswerKind::cancelled:
        return set_error(response, kClientLeft, answer.message);
      case AnswerKind::failed:
        return set_error(response, kFault, answer.message);
    }
  }

  ModelService& service_;
  const ServerSettings& settings_;
  std::unique_ptr<httplib::Server> server_;
  std::string host_;
  int port_ = 0;
  std::jthread listener_;
};

}  // namespace

std::unique_ptr<Front> open_http(const ServerSettings& settings, ModelService& service) {
  return std::make_unique<HttpFront>(settings, service);
}

}  // namespace placewright::server
