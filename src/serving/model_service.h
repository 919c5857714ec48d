// The models that a server has, by name and version, over one engine: loaded, unloaded, described,
// asked.
//
// Models come from files that the server was started with, and from a folder (model_folder.h).

#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "serving/engine.h"
#include "serving/inference.h"
#include "serving/model_folder.h"
#include "serving/model_loader.h"
#include "serving/server_settings.h"
#include "serving/service_report.h"

namespace placewright {

// No model of that name is served; one sentence.
class UnknownModel : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A model in memory.
struct Residence {
  ModelNumber number = 0;
  std::shared_ptr<LoadedModel> model;  // nullptr: it is not there
};

// A version of a model, while it is served. It may be out of memory until somebody asks for it.
class ServedVersion {
 public:
  std::string name;
  std::string version;
  std::string path;
  // Of the first time that it was loaded; they do not change while it is served.
  ModelGraph graph;
  ModelCuts cuts;
  std::atomic<double> memory{0};  // bytes, where it has been loaded
  std::atomic<std::uint64_t> last_use{0};
  LatencyRecord latency;
  std::shared_ptr<LatencyRecord> forecast;
  std::array<std::atomic<std::uint64_t>, 5> answers{};  // by AnswerKind

  [[nodiscard]] bool resident() const { return residence().model != nullptr; }
  [[nodiscard]] Residence residence() const {
    const std::lock_guard lock(mutex_);
    return residence_;
  }
  void set_residence(Residence residence) {
    const std::lock_guard lock(mutex_);
    residence_ = std::move(residence);
  }
  Residence take_residence() {
    const std::lock_guard lock(mutex_);
    return std::exchange(residence_, {});
  }

 private:
  mutable std::mutex mutex_;
  Residence residence_;
};

struct ModelState {
  std::string name;
  std::string version;
  bool ready = false;
  std::string reason;  // why not
};

class ModelService {
 public:
  // Says what happens, a line for each event.
  using Log = std::function<void(const std::string& line)>;

  ModelService(const ServerSettings& settings, Log log);

  // All models that there are. A file that the server was started with must load, or this throws;
  // one of the folder that cannot be loaded is said in the log, and not ready.
  void load_all();
  // From the folder or the files that the server was started with. Throws UnknownModel, InputError,
  // RuntimeError.
  void load(const std::string& name);
  void unload(const std::string& name);
  // Loads what is new or has changed in the folder, and unloads what is gone.
  void rescan();

  // Throws UnknownModel.
  [[nodiscard]] std::shared_ptr<ServedVersion> find(const std::string& name,
                                                    const std::string& version) const;
  [[nodiscard]] std::vector<std::string> versions(const std::string& name) const;
  [[nodiscard]] std::vector<ModelState> states() const;
  [[nodiscard]] bool ready() const;

  // With the version that has computed it. Called once, by any thread.
  using Tell = std::function<void(const ServedVersion& version, const InferenceAnswer& answer)>;
  // The call must stay until it has been told. Throws UnknownModel and BadInference, and then never
  // tells.
  std::optional<RequestId> infer(const InferenceCall& call, Tell tell);
  void cancel(RequestId request) { engine_.cancel(request); }
  void drain();

  [[nodiscard]] ServiceReport report();
  // The same and the histograms, for Prometheus.
  [[nodiscard]] std::string metrics();
  // The last requests as a timeline (service_trace.h).
  [[nodiscard]] std::string trace(const std::optional<std::string>& client_id) const {
    return engine_.trace().text(client_id);
  }

 private:
  // A request for a model that is not in memory.
  struct WaitingCall {
    std::shared_ptr<ServedVersion> version;
    const InferenceCall* call = nullptr;
    Tell tell;
    Clock::time_point since;
  };

  [[nodiscard]] std::vector<FoundModel> found() const;
  void serve(const FoundModel& found);
  [[nodiscard]] std::vector<std::shared_ptr<ServedVersion>> all_served() const;
  [[nodiscard]] ModelReport report_of(ServedVersion& version);
  void publish(std::shared_ptr<ServedVersion> version);
  void end(ServedVersion& version);
  void retire(const std::string& name, const std::string& version);
  [[nodiscard]] std::vector<double> own_times_beside(const std::string& name) const;
  void bring_in(ServedVersion& version);
  void make_room(const ServedVersion& wanted, double bytes);
  static void count(ServedVersion& version, const InferenceAnswer& answer, const Tell& tell);
  void wait_for_model(WaitingCall call);
  static void refuse(const WaitingCall& call, const std::string& reason);
  void bring_in_on_demand(const std::stop_token& stop);
  void submit_when_resident(WaitingCall& call);
  void answer_waiting();
  void say(const std::string& line) const { log_(line); }

  const Clock::time_point start_ = Clock::now();
  const ServerSettings settings_;
  Log log_;
  ModelLoader loader_;
  mutable std::mutex loading_;  // one model at a time
  mutable std::mutex mutex_;    // of the maps
  std::map<std::string, std::map<long, std::shared_ptr<ServedVersion>>> served_;
  std::map<std::pair<std::string, std::string>, std::string> failed_;  // why, by name and version
  std::map<std::string, std::string> stamps_;  // by path, when it was loaded
  std::map<std::string, bool> unloaded_;       // by name, on demand
  std::atomic<bool> loaded_{false};
  std::atomic<bool> draining_{false};
  std::atomic<std::uint64_t> uses_{0};
  std::condition_variable_any wanted_;
  std::deque<WaitingCall> waiting_;  // for models that are not in memory
  std::size_t bringing_ = 0;         // of these, for whom a model is being loaded
  Engine engine_;
  std::jthread bringer_;  // last, so that it ends first
};

}  // namespace placewright
