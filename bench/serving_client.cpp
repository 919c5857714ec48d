// The client of bench/serving.py: calls over gRPC at given moments (open loop), or so many at a
// time (closed loop).
//
//   serving_client ORDER.json
//
//   {"address": "HOST:PORT",
//    "calls": [{"method": "/PACKAGE.SERVICE/METHOD", "metadata": {…}, "message": "FILE"}],
//    "arrivals": [[SECOND, CALL], …]}                         open loop, or
//   {…, "closed": {"seconds": 5, "clients": 8}}               closed loop, of the first call
//
// Messages are sent as they are in their files, and answers are not read, so that the client takes
// little of the machine. It prints [[STATUS, MILLISECONDS], …]: of each arrival from its moment on,
// whenever it was sent, or of each call of the closed loop.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr int kConnections = 4;
constexpr std::chrono::seconds kPatience{60};

struct Call {
  std::string method;
  std::vector<std::pair<std::string, std::string>> metadata;
  grpc::ByteBuffer message;
};

struct Outcome {
  int status = -1;
  double milliseconds = 0;
};

// A call on its way.
struct Flight {
  std::size_t index = 0;
  Clock::time_point since;
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Call call_of(const Json& json) {
  Call call{.method = json.at("method"), .metadata = {}, .message = {}};
  if (json.contains("metadata")) {
    for (const auto& [key, value] : json.at("metadata").items()) {
      call.metadata.emplace_back(key, value.get<std::string>());
    }
  }
  const grpc::Slice slice(content(json.at("message")));
  call.message = grpc::ByteBuffer(&slice, 1);
  return call;
}

class Client {
 public:
  Client(const std::string& address, std::vector<Call> calls) : calls_(std::move(calls)) {
    for (int i = 0; i < kConnections; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetMaxReceiveMessageSize(-1);
      const auto channel =
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
      if (!channel->WaitForConnected(std::chrono::system_clock::now() + kPatience)) {
        throw std::runtime_error("nobody listens at " + address);
      }
      stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
    }
  }

  void start(std::size_t index, std::size_t call, Clock::time_point since) {
    const Call& made = calls_.at(call);
    auto* flight = new Flight{.index = index, .since = since};  // ended by `next`
    for (const auto& [key, value] : made.metadata) flight->context.AddMetadata(key, value);
    flight->context.set_deadline(std::chrono::system_clock::now() + kPatience);
    flight->reader = stubs_[index % stubs_.size()]->PrepareUnaryCall(&flight->context, made.method,
                                                                     made.message, &queue_);
    flight->reader->StartCall();
    flight->reader->Finish(&flight->answer, &flight->status, flight);
  }

  // Waits for the end of one.
  std::pair<std::size_t, Outcome> next() {
    void* tag = nullptr;
    bool good = false;
    queue_.Next(&tag, &good);
    const std::unique_ptr<Flight> flight(static_cast<Flight*>(tag));
    const std::chrono::duration<double, std::milli> took = Clock::now() - flight->since;
    return {flight->index, {static_cast<int>(flight->status.error_code()), took.count()}};
  }

 private:
  std::vector<Call> calls_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  grpc::CompletionQueue queue_;
};

std::vector<Outcome> open_loop(Client& client, const Json& arrivals) {
  std::vector<Outcome> outcomes(arrivals.size());
  const auto begin = Clock::now() + std::chrono::milliseconds(20);
  std::jthread listener([&] {
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const auto [index, outcome] = client.next();
      outcomes[index] = outcome;
    }
  });
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const auto moment = begin + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(arrivals[i].at(0).get<double>()));
    std::this_thread::sleep_until(moment);
    client.start(i, arrivals[i].at(1).get<std::size_t>(), moment);
  }
  listener.join();
  return outcomes;
}

std::vector<Outcome> closed_loop(Client& client, const Json& closed) {
  std::vector<Outcome> outcomes;
  const auto end = Clock::now() + std::chrono::duration<double>(closed.at("seconds").get<double>());
  std::size_t flying = closed.at("clients").get<std::size_t>();
  for (std::size_t i = 0; i < flying; ++i) client.start(i, 0, Clock::now());
  while (flying > 0) {
    const auto [index, outcome] = client.next();
    outcomes.push_back(outcome);
    if (Clock::now() < end) {
      client.start(index, 0, Clock::now());
    } else {
      --flying;
    }
  }
  return outcomes;
}

int run(const std::string& path) {
  const Json order = Json::parse(content(path));
  std::vector<Call> calls;
  for (const Json& each : order.at("calls")) calls.push_back(call_of(each));
  Client client(order.at("address"), std::move(calls));
  const std::vector<Outcome> outcomes = order.contains("closed")
                                            ? closed_loop(client, order.at("closed"))
                                            : open_loop(client, order.at("arrivals"));
  Json printed = Json::array();
  for (const Outcome& each : outcomes) printed.push_back({each.status, each.milliseconds});
  std::puts(printed.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("serving_client is started by bench/serving.py\n", stderr);
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "serving_client: %s\n", error.what());
    return 1;
  }
}
