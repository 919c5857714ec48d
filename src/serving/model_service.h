// The models that a server has, by name and version, over one engine: loaded, unloaded, described,
// asked.
//
// Models come from files that the server was started with, and from a folder (model_folder.h).

#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/model_files.h"
#include "serving/engine.h"
#include "serving/inference.h"
#include "serving/model_folder.h"
#include "serving/server_settings.h"
#include "serving/service_report.h"

namespace placewright {

// No model of that name is served; one sentence.
class UnknownModel : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A version of a model, while it is served.
struct ServedVersion {
  std::string name;
  std::string version;
  std::string path;
  ModelNumber number = 0;
  std::shared_ptr<LoadedModel> model;
  LatencyRecord latency;
  std::array<std::atomic<std::uint64_t>, 5> answers{};  // by AnswerKind
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

 private:
  [[nodiscard]] std::vector<FoundModel> found() const;
  void serve(const FoundModel& found);
  [[nodiscard]] std::vector<std::shared_ptr<ServedVersion>> all_served() const;
  [[nodiscard]] ModelReport report_of(ServedVersion& version);
  void publish(std::shared_ptr<ServedVersion> version);
  void end(const ServedVersion& version);
  void retire(const std::string& name, const std::string& version);
  [[nodiscard]] ModelFile file_of(const FoundModel& found) const;
  [[nodiscard]] std::shared_ptr<LoadedModel> loaded(const FoundModel& found) const;
  [[nodiscard]] ModelCuts cuts_of(const NeuralModel& model, const Runtime& runtime,
                                  const ModelFile& file) const;
  [[nodiscard]] double quantum_with(double whole) const;
  void say(const std::string& line) const { log_(line); }

  const Clock::time_point start_ = Clock::now();
  const ServerSettings settings_;
  Log log_;
  Target target_;
  mutable std::mutex loading_;  // one model at a time
  mutable std::mutex mutex_;    // of the maps
  std::map<std::string, std::map<long, std::shared_ptr<ServedVersion>>> served_;
  std::map<std::pair<std::string, std::string>, std::string> failed_;  // why, by name and version
  std::map<std::string, std::string> stamps_;  // by path, when it was loaded
  std::map<std::string, bool> unloaded_;       // by name, on demand
  std::atomic<bool> loaded_{false};
  std::atomic<bool> draining_{false};
  Engine engine_;  // last, so that it ends first
};

}  // namespace placewright
