// Which models are in memory, and the requests for those that are not.

#include <algorithm>

#include <fmt/format.h>

#include "serving/model_service.h"
#include "serving/process_memory.h"

namespace placewright {
namespace {

constexpr double kMega = 1e6;

double weights_of(const ModelGraph& graph) {
  double bytes = 0;
  for (const Weight& weight : graph.weights) bytes += weight.bytes;
  return bytes;
}

}  // namespace

// What models take in memory: the process grows by it. Memory that was free inside the process
// hides some of that, but not the weights.
void ModelService::bring_in(ServedVersion& version) {
  if (settings_.memory > 0) make_room(version, version.memory);
  const double before = resident_bytes();
  auto model = loader_.load(version.path, own_times_beside(version.name));
  version.memory = std::max(resident_bytes() - before, weights_of(model->graph()));
  if (settings_.memory > 0) make_room(version, version.memory);
  if (version.graph.outputs.empty()) {
    version.graph = model->graph();
    version.cuts = model->cuts();
  }
  const ServiceClass service = class_of(settings_, version.name);
  const ModelNumber number = engine_.add(model, version.name, service, version.forecast);
  version.set_residence({number, std::move(model)});
}

// The model that was asked for least recently leaves first.
void ModelService::make_room(const ServedVersion& wanted, double bytes) {
  if (bytes > settings_.memory) {
    throw RuntimeError(
        fmt::format("the model '{}' takes {:.0f} MB, and all models may take {:.0f} MB (--memory)",
                    wanted.name, bytes / kMega, settings_.memory / kMega));
  }
  while (true) {
    double taken = bytes;
    std::shared_ptr<ServedVersion> oldest;
    for (const auto& version : all_served()) {
      if (version.get() == &wanted || !version->resident()) continue;
      taken += version->memory;
      if (oldest == nullptr || version->last_use < oldest->last_use) oldest = version;
    }
    if (taken <= settings_.memory || oldest == nullptr) return;
    Residence old = oldest->take_residence();
    engine_.remove(old.number);
    old.model.reset();
    give_back_memory();
    say(fmt::format("model '{}' version {} leaves the memory for '{}'; a request brings it back",
                    oldest->name, oldest->version, wanted.name));
  }
}

std::optional<RequestId> ModelService::infer(const InferenceCall& call, Tell tell) {
  while (true) {
    const std::shared_ptr<ServedVersion> version = find(call.model, call.version);
    version->last_use = ++uses_;
    RequestInputs inputs = fitted_call(version->graph, call);
    static_cast<void>(chosen_outputs(version->graph, call));
    const Residence residence = version->residence();
    if (residence.model == nullptr) {
      wait_for_model({version, &call, std::move(tell), Clock::now()});
      return std::nullopt;
    }
    InferenceJob job{.model = residence.number, .inputs = std::move(inputs), .client_id = call.id};
    job.deadline = call.timeout;
    job.tell = [version, tell](const InferenceAnswer& answer) { count(*version, answer, tell); };
    try {
      return engine_.submit(std::move(job));
    } catch (const std::invalid_argument&) {
      // Another one has just taken its place, or nothing.
    }
  }
}

void ModelService::count(ServedVersion& version, const InferenceAnswer& answer, const Tell& tell) {
  ++version.answers[static_cast<std::size_t>(answer.kind)];
  if (answer.kind == AnswerKind::done) version.latency.add(answer.took);
  tell(version, answer);
}

void ModelService::wait_for_model(WaitingCall call) {
  const std::size_t limit = class_of(settings_, call.version->name).queue.requests;
  {
    const std::lock_guard lock(mutex_);
    if (!draining_ && waiting_.size() < limit) {
      waiting_.push_back(std::move(call));
      wanted_.notify_one();
      return;
    }
  }
  refuse(call, draining_ ? std::string("the server ends: it takes no requests any more")
                         : fmt::format("{} requests wait for models to be loaded", limit));
}

void ModelService::refuse(const WaitingCall& call, const std::string& reason) {
  count(*call.version, {.kind = AnswerKind::refused, .message = reason, .retry_after = 1000},
        call.tell);
}

// The thread that loads the models of waiting requests, in the order in which they came.
void ModelService::bring_in_on_demand(const std::stop_token& stop) {
  while (true) {
    WaitingCall call;
    {
      std::unique_lock lock(mutex_);
      if (!wanted_.wait(lock, stop, [&] { return !waiting_.empty(); })) return;
      call = std::move(waiting_.front());
      waiting_.pop_front();
      ++bringing_;
    }
    submit_when_resident(call);
    const std::lock_guard lock(mutex_);
    --bringing_;
    wanted_.notify_all();
  }
}

void ModelService::submit_when_resident(WaitingCall& call) {
  ServedVersion& version = *call.version;
  try {
    const std::lock_guard loading(loading_);
    if (find(version.name, version.version) == call.version && !version.resident()) {
      bring_in(version);
      say(fmt::format("model '{}' version {} is back", version.name, version.version));
    }
  } catch (const std::exception& error) {
    return refuse(call, error.what());
  }
  InferenceJob job{.model = version.residence().number, .inputs = {}, .client_id = call.call->id};
  if (call.call->timeout) {
    job.deadline = *call.call->timeout - milliseconds(Clock::now() - call.since);
  }
  const std::shared_ptr<ServedVersion> shared = call.version;
  job.tell = [shared, tell = call.tell](const InferenceAnswer& answer) {
    count(*shared, answer, tell);
  };
  try {
    job.inputs = fitted_call(version.graph, *call.call);
    engine_.submit(std::move(job));
  } catch (const std::exception&) {
    refuse(call, fmt::format("the model '{}' was unloaded", version.name));
  }
}

// Returns when nobody waits for a model any more.
void ModelService::answer_waiting() {
  std::unique_lock lock(mutex_);
  wanted_.wait(lock, [&] { return waiting_.empty() && bringing_ == 0; });
}

}  // namespace placewright
