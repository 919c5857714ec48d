#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/server_credentials.h>
#include <inference.grpc.pb.h>

#include "backends/part_inputs.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "server/fronts.h"
#include "server/grpc_call.h"

namespace placewright::server {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using grpc::Status;
using grpc::StatusCode;

Status status_of(const InferenceAnswer& answer) {
  switch (answer.kind) {
    case AnswerKind::done:
      return Status::OK;
    case AnswerKind::refused:
      return {StatusCode::UNAVAILABLE, answer.message};
    case AnswerKind::late:
      return {StatusCode::DEADLINE_EXCEEDED, answer.message};
    case AnswerKind::cancelled:
      return {StatusCode::CANCELLED, answer.message};
    case AnswerKind::failed:
      return {StatusCode::INTERNAL, answer.message};
  }
  return {StatusCode::INTERNAL, answer.message};
}

// Calls `action`; what it throws becomes a status.
template <class Action>
Status attempted(const Action& action) {
  try {
    action();
    return Status::OK;
  } catch (const BadInference& error) {
    return {StatusCode::INVALID_ARGUMENT, error.what()};
  } catch (const UnknownModel& error) {
    return {StatusCode::NOT_FOUND, error.what()};
  } catch (const InputError& error) {
    return {StatusCode::INVALID_ARGUMENT, error.message()};
  } catch (const std::exception& error) {
    return {StatusCode::INTERNAL, error.what()};
  }
}

// The time that a client still waits, in milliseconds.
std::optional<double> time_left(const CallbackServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  const std::chrono::duration<double, std::milli> left =
      deadline - std::chrono::system_clock::now();
  // Beyond a day nobody means it.
  if (left.count() > 86'400'000.0) return std::nullopt;
  return left.count();
}

// One inference on its way. What outlives the call is shared: the answer and a cancellation may
// come while it is being submitted.
class InferReactor final : public ServerUnaryReactor {
 public:
  InferReactor(ModelService& service, CallbackServerContext& context,
               const inference::ModelInferRequest& request, inference::ModelInferResponse& response)
      : service_(service), shared_(std::make_shared<Shared>()) {
    const std::shared_ptr<Shared> shared = shared_;
    ModelService& asked = service;
    std::optional<RequestId> id;
    const Status status = attempted([&] {
      shared->call = call_of(request);
      if (const auto left = time_left(context)) {
        shared->call.timeout = std::min(*left, shared->call.timeout.value_or(*left));
      }
      id = asked.infer(shared->call, [this, shared, &response](const ServedVersion& version,
                                                               const InferenceAnswer& answer) {
        Status given = status_of(answer);
        if (given.ok()) {
          given = attempted([&] {
            fill_response(response, version.graph, shared->call, version.version, answer.outputs);
          });
        }
        Finish(given);
      });
    });
    if (!status.ok()) {
      Finish(status);
      return;
    }
    if (!id) return;
    shared->request = *id;
    if (shared->left) asked.cancel(*id);
  }

  void OnCancel() override {
    shared_->left = true;
    if (const RequestId id = shared_->request) service_.cancel(id);
  }
  void OnDone() override { delete this; }

 private:
  struct Shared {
    InferenceCall call;
    std::atomic<RequestId> request{0};
    std::atomic<bool> left{false};
  };
  ModelService& service_;
  std::shared_ptr<Shared> shared_;
};

class Protocol final : public inference::GRPCInferenceService::CallbackService {
 public:
  Protocol(ModelService& service, std::string token)
      : service_(service), token_(std::move(token)) {}

  ServerUnaryReactor* ServerLive(CallbackServerContext* context,
                                 const inference::ServerLiveRequest* /*request*/,
                                 inference::ServerLiveResponse* response) override {
    response->set_live(true);
    return finished(*context, Status::OK);
  }
  ServerUnaryReactor* ServerReady(CallbackServerContext* context,
                                  const inference::ServerReadyRequest* /*request*/,
                                  inference::ServerReadyResponse* response) override {
    response->set_ready(service_.ready());
    return finished(*context, Status::OK);
  }
  ServerUnaryReactor* ModelReady(CallbackServerContext* context,
                                 const inference::ModelReadyRequest* request,
                                 inference::ModelReadyResponse* response) override {
    return answer(*context, [&] {
      try {
        static_cast<void>(service_.find(request->name(), request->version()));
        response->set_ready(true);
      } catch (const UnknownModel&) {
        response->set_ready(false);
      }
    });
  }
  ServerUnaryReactor* ServerMetadata(CallbackServerContext* context,
                                     const inference::ServerMetadataRequest* /*request*/,
                                     inference::ServerMetadataResponse* response) override {
    response->set_name(kServerName);
    response->set_version(PLACEWRIGHT_VERSION);
    response->add_extensions("model_repository");
    return finished(*context, Status::OK);
  }
  ServerUnaryReactor* ModelMetadata(CallbackServerContext* context,
                                    const inference::ModelMetadataRequest* request,
                                    inference::ModelMetadataResponse* response) override {
    return answer(*context, [&] {
      const auto version = service_.find(request->name(), request->version());
      const ModelGraph& graph = version->graph;
      response->set_name(version->name);
      for (const std::string& each : service_.versions(version->name)) {
        response->add_versions(each);
      }
      response->set_platform("openvino");
      for (const GraphInput& input : graph.inputs) {
        describe(*response->add_inputs(), input.name, input.type);
      }
      for (const GraphOutput& output : graph.outputs) {
        describe(*response->add_outputs(), output.name, type_of(graph, output.tensor));
      }
    });
  }
  ServerUnaryReactor* ModelInfer(CallbackServerContext* context,
                                 const inference::ModelInferRequest* request,
                                 inference::ModelInferResponse* response) override {
    if (!may_enter(*context)) return stranger(*context);
    return new InferReactor(service_, *context, *request, *response);
  }
  ServerUnaryReactor* RepositoryIndex(CallbackServerContext* context,
                                      const inference::RepositoryIndexRequest* request,
                                      inference::RepositoryIndexResponse* response) override {
    return answer(*context, [&] {
      for (const ModelState& state : service_.states()) {
        if (request->ready() && !state.ready) continue;
        auto& model = *response->add_models();
        model.set_name(state.name);
        model.set_version(state.version);
        model.set_state(state.ready ? "READY" : "UNAVAILABLE");
        model.set_reason(state.reason);
      }
    });
  }
  ServerUnaryReactor* RepositoryModelLoad(
      CallbackServerContext* context, const inference::RepositoryModelLoadRequest* request,
      inference::RepositoryModelLoadResponse* /*response*/) override {
    return answer(*context, [&] { service_.load(request->model_name()); });
  }
  ServerUnaryReactor* RepositoryModelUnload(
      CallbackServerContext* context, const inference::RepositoryModelUnloadRequest* request,
      inference::RepositoryModelUnloadResponse* /*response*/) override {
    return answer(*context, [&] { service_.unload(request->model_name()); });
  }

 private:
  static void describe(inference::ModelMetadataResponse::TensorMetadata& tensor,
                       const std::string& name, const TensorType& type) {
    tensor.set_name(name);
    tensor.set_datatype(std::string(datatype_of(type.element)));
    for (const std::size_t size : type.shape) tensor.add_shape(static_cast<std::int64_t>(size));
  }
  [[nodiscard]] bool may_enter(const CallbackServerContext& context) const {
    if (token_.empty()) return true;
    const auto found = context.client_metadata().find("authorization");
    if (found == context.client_metadata().end()) return false;
    return same_token({found->second.data(), found->second.size()}, "Bearer " + token_);
  }
  static ServerUnaryReactor* stranger(CallbackServerContext& context) {
    return finished(context, {StatusCode::UNAUTHENTICATED, "the token is missing or wrong"});
  }
  static ServerUnaryReactor* finished(CallbackServerContext& context, const Status& status) {
    ServerUnaryReactor* reactor = context.DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }
  template <class Action>
  ServerUnaryReactor* answer(CallbackServerContext& context, const Action& action) {
    if (!may_enter(context)) return stranger(context);
    return finished(context, attempted(action));
  }

  ModelService& service_;
  std::string token_;
};

std::shared_ptr<grpc::ServerCredentials> credentials_of(const ServerSettings& settings) {
  if (settings.certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back(
      {read_whole(settings.key), read_whole(settings.certificate)});
  if (!settings.client_authority.empty()) {
    options.pem_root_certs = read_whole(settings.client_authority);
    options.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return grpc::SslServerCredentials(options);
}

// What requests may take while they are read; beyond it gRPC reads slower, and then refuses.
double memory_for(const ServerSettings& settings) {
  return std::max(256e6, 8 * settings.largest_body);
}

class GrpcFront final : public Front {
 public:
  GrpcFront(const ServerSettings& settings, ModelService& service)
      : protocol_(service, settings.token) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(settings.grpc, credentials_of(settings), &port_);
    // Two servers on one port would share the clients by chance.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(static_cast<int>(settings.largest_body));
    builder.SetResourceQuota(
        grpc::ResourceQuota("requests").Resize(static_cast<std::size_t>(memory_for(settings))));
    builder.RegisterService(&protocol_);
    server_ = builder.BuildAndStart();
    if (!server_ || port_ == 0) {
      throw std::runtime_error(
          fmt::format("cannot listen at {}: the port is in use, or the address is not of this "
                      "machine",
                      settings.grpc));
    }
    host_ = settings.grpc.substr(0, settings.grpc.rfind(':'));
  }
  ~GrpcFront() override { GrpcFront::close(); }

  [[nodiscard]] std::string address() const override { return fmt::format("{}:{}", host_, port_); }
  void close() override {
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
    server_->Wait();
  }

 private:
  Protocol protocol_;
  int port_ = 0;
  std::string host_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

std::unique_ptr<Front> open_grpc(const ServerSettings& settings, ModelService& service) {
  return std::make_unique<GrpcFront>(settings, service);
}

}  // namespace placewright::server
