// Requests to a server over gRPC, and what their latencies are: what `placewright serve` costs
// beside its models.
//
//   serving_load HOST:PORT MODEL [--clients N] [--seconds S] [--rate N] [--seed N]
//
// Without --rate each client sends its next request when it has the answer of the last one (a
// closed loop). With --rate requests come at random moments, so many a second, whether or not
// others have been answered (an open loop), and a latency counts from the moment at which the
// request should have been sent. Any server of the Open Inference Protocol will do; inputs are
// zeros. It prints one JSON object.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <inference.grpc.pb.h>

#include "serving/inference.h"
#include "serving/simulation.h"

namespace placewright {
namespace {

using Clock = std::chrono::steady_clock;
using Service = inference::GRPCInferenceService;

struct LoadOptions {
  std::string address;
  std::string model;
  int clients = 1;
  double seconds = 5;
  double warm_up = 1;
  double rate = 0;  // a second; 0: closed loop
  std::uint64_t seed = 1;
};

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::unique_ptr<Service::Stub> stub_of(const LoadOptions& options, int client) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt("client", client);  // channels of equal arguments share a connection
  return Service::NewStub(
      grpc::CreateCustomChannel(options.address, grpc::InsecureChannelCredentials(), arguments));
}

// Zeros for every input that the server describes.
inference::ModelInferRequest request_for(const LoadOptions& options) {
  grpc::ClientContext context;
  inference::ModelMetadataRequest asked;
  asked.set_name(options.model);
  inference::ModelMetadataResponse model;
  const grpc::Status status = stub_of(options, 0)->ModelMetadata(&context, asked, &model);
  if (!status.ok()) throw std::runtime_error(status.error_message());
  inference::ModelInferRequest request;
  request.set_model_name(options.model);
  for (const auto& described : model.inputs()) {
    auto& input = *request.add_inputs();
    input.set_name(described.name());
    input.set_datatype(described.datatype());
    std::size_t bytes = size_of_datatype(described.datatype());
    for (const std::int64_t size : described.shape()) {
      input.add_shape(size);
      bytes *= static_cast<std::size_t>(size);
    }
    request.add_raw_input_contents()->assign(bytes, '\0');
  }
  return request;
}

// Latencies and errors of all clients.
class Results {
 public:
  void add(const grpc::Status& status, double latency, bool counts) {
    const std::lock_guard lock(mutex_);
    if (!status.ok()) {
      ++errors_;
      last_error_ = status.error_message();
    } else if (counts) {
      latencies_.push_back(latency);
    }
  }
  void print(const LoadOptions& options) {
    double mean = 0;
    for (const double each : latencies_) mean += each / static_cast<double>(latencies_.size());
    fmt::print(
        "{{\"model\": \"{}\", \"clients\": {}, \"rate\": {}, \"requests\": {}, \"errors\": {}, "
        "\"requests_per_second\": {:.1f}, \"mean_ms\": {:.4f}, \"p50_ms\": {:.4f}, "
        "\"p95_ms\": {:.4f}, \"p99_ms\": {:.4f}}}\n",
        options.model, options.clients, options.rate, latencies_.size(), errors_,
        static_cast<double>(latencies_.size()) / options.seconds, mean, percentile(latencies_, 0.5),
        percentile(latencies_, 0.95), percentile(latencies_, 0.99));
    if (errors_ > 0) fmt::print(stderr, "the last error: {}\n", last_error_);
  }
  [[nodiscard]] bool any_error() const { return errors_ > 0; }

 private:
  std::mutex mutex_;
  std::vector<double> latencies_;
  std::size_t errors_ = 0;
  std::string last_error_;
};

void send_in_turn(const LoadOptions& options, const inference::ModelInferRequest& request,
                  int client, Results& results) {
  const auto stub = stub_of(options, client);
  const Clock::time_point begin = Clock::now();
  const double end = 1000 * (options.warm_up + options.seconds);
  inference::ModelInferResponse response;
  for (double now = 0; now < end; now = milliseconds_since(begin)) {
    grpc::ClientContext context;
    const Clock::time_point sent = Clock::now();
    const grpc::Status status = stub->ModelInfer(&context, request, &response);
    results.add(status, milliseconds_since(sent), now >= 1000 * options.warm_up);
    if (!status.ok()) return;
  }
}

struct OpenCall {
  grpc::ClientContext context;
  inference::ModelInferResponse response;
  Clock::time_point due;
};

void send_at_random(const LoadOptions& options, const inference::ModelInferRequest& request,
                    Results& results) {
  const auto stub = stub_of(options, 0);
  std::mt19937_64 random(options.seed);
  std::exponential_distribution<double> gap(options.rate);
  std::atomic<std::size_t> open{0};
  const Clock::time_point begin = Clock::now();
  double due = 0;
  while (due < options.warm_up + options.seconds) {
    due += gap(random);
    auto* call = new OpenCall;  // deleted by its own answer
    call->due =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(due));
    std::this_thread::sleep_until(call->due);
    ++open;
    const bool counts = due >= options.warm_up;
    stub->async()->ModelInfer(&call->context, &request, &call->response,
                              [call, counts, &results, &open](const grpc::Status& status) {
                                results.add(status, milliseconds_since(call->due), counts);
                                delete call;
                                --open;
                              });
  }
  while (open > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

int run(const LoadOptions& options) {
  const inference::ModelInferRequest request = request_for(options);
  Results results;
  if (options.rate > 0) {
    send_at_random(options, request, results);
  } else {
    std::vector<std::jthread> clients;
    for (int client = 0; client < options.clients; ++client) {
      clients.emplace_back([&, client] { send_in_turn(options, request, client, results); });
    }
    clients.clear();  // joins
  }
  results.print(options);
  return results.any_error() ? 1 : 0;
}

}  // namespace
}  // namespace placewright

int main(int argc, char** argv) {
  placewright::LoadOptions options;
  CLI::App program("Requests to a server over gRPC, and their latencies");
  program.add_option("address", options.address, "HOST:PORT")->required();
  program.add_option("model", options.model, "The model's name")->required();
  program.add_option("--clients", options.clients, "Clients in a closed loop")
      ->check(CLI::Range(1, 1000));
  program.add_option("--seconds", options.seconds, "How long to count")
      ->check(CLI::Range(0.1, 3600.0));
  program.add_option("--warm-up", options.warm_up, "Seconds before that")
      ->check(CLI::Range(0.0, 600.0));
  program.add_option("--rate", options.rate, "Requests a second at random moments")
      ->check(CLI::Range(0.0, 1e6));
  program.add_option("--seed", options.seed, "Of the moments");
  CLI11_PARSE(program, argc, argv);
  try {
    return placewright::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "serving_load: error: {}\n", error.what());
    return 1;
  }
}
