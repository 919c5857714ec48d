// The server that `placewright serve` becomes: its one argument is a file with what
// serving/server_settings.h writes.
//
// An executable of its own, since gRPC brings a protobuf that must not meet the one inside
// OpenVINO's wheel. It says where it listens on standard output, a line for each front, and what
// happens on standard error.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <malloc.h>
#include <nlohmann/json.hpp>

#include "formats/input_error.h"
#include "formats/json_text.h"
#include "formats/printable.h"
#include "formats/text_file.h"
#include "server/fronts.h"

namespace placewright::server {

bool same_token(std::string_view given, std::string_view expected) {
  unsigned different = given.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const char other = i < given.size() ? given[i] : '\0';
    different |= static_cast<unsigned>(static_cast<unsigned char>(expected[i] ^ other));
  }
  return different == 0;
}

namespace {

constexpr std::chrono::seconds kFarewell{10};

std::atomic<LogForm> log_form{LogForm::text};

void log_line(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const std::string moment = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(now),
                                         now.time_since_epoch().count() % 1000);
  if (log_form == LogForm::json) {
    const nlohmann::ordered_json event{{"time", moment}, {"message", line}};
    fmt::print(stderr, "{}\n", json_text(event, -1));
  } else {
    fmt::print(stderr, "{} {}\n", moment, printable(line));
  }
}

// Loads the models; looks at their folder every now and then.
void load_until(const std::stop_token& stop, ModelService& service, bool watch) {
  service.load_all();
  if (stop.stop_requested()) return;
  fmt::print("ready\n");
  std::fflush(stdout);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  while (watch) {
    if (never.wait_for(lock, stop, std::chrono::seconds(2),
                       [&] { return stop.stop_requested(); })) {
      return;
    }
    try {
      service.rescan();
    } catch (const std::exception& error) {
      log_line(fmt::format("the folder of models cannot be read: {}", error.what()));
    }
  }
}

int run(const std::string& path) {
  const ServerSettings settings = parse_settings(read_whole(path));
  log_form = settings.log;
  // Threads share one heap: with a heap for each, models that are loaded again leave holes in all.
  mallopt(M_ARENA_MAX, 1);
  // Every thread inherits the mask, and only this one takes the signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ModelService service(settings, log_line);
  std::vector<std::unique_ptr<Front>> fronts;
  if (!settings.http.empty()) {
    fronts.push_back(open_http(settings, service));
    fmt::print("http {}\n", fronts.back()->address());
  }
  if (!settings.grpc.empty()) {
    fronts.push_back(open_grpc(settings, service));
    fmt::print("grpc {}\n", fronts.back()->address());
  }
  std::fflush(stdout);
  // Beside this thread, so that a signal is heard while a model is loaded and measured.
  std::atomic<bool> loading{true};
  std::jthread loader([&](const std::stop_token& stop) {
    try {
      load_until(stop, service, !settings.folder.empty());
    } catch (const std::exception& error) {
      log_line(fmt::format("the models cannot be loaded: {}", error.what()));
      std::_Exit(4);
    }
    loading = false;
  });
  int signal = 0;
  sigwait(&signals, &signal);
  log_line("draining: new requests are refused, accepted requests are answered");
  loader.request_stop();
  service.drain();
  // Neither a slow client nor one that loads a model holds the end.
  std::thread([] {
    std::this_thread::sleep_for(kFarewell);
    log_line("some clients have not read their answers; the server does not wait longer");
    std::_Exit(0);
  }).detach();
  for (const auto& front : fronts) front->close();
  log_line("all accepted requests have been answered");
  // Nobody waits for a model that is being loaded, which can take a minute.
  if (loading) std::_Exit(0);
  return 0;
}

}  // namespace
}  // namespace placewright::server

int main(int argc, char** argv) {
  using placewright::server::run;
  if (argc != 2) {
    fmt::print(stderr, "placewright-server is started by 'placewright serve'\n");
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const placewright::InputError& error) {
    fmt::print(stderr, "placewright: error: {}\n", placewright::printable(error.what()));
    return 3;
  } catch (const std::exception& error) {
    fmt::print(stderr, "placewright: error: {}\n", placewright::printable(error.what()));
    return 4;
  }
}
