// Served models for real: run by the scheduler's decisions, step by step.
//
// Two threads run the steps that the scheduler hands out, since two halves of the cores may compute
// at once; under ServingPolicy::together there is one for each model, up to kMostWorkers. Outputs
// are lent to whoever asked until it has been told. Everything here may be called by any thread.

#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "machine/clock.h"
#include "serving/forecast.h"
#include "serving/loaded_model.h"
#include "serving/scheduler.h"
#include "serving/service_trace.h"

namespace placewright {

enum class AnswerKind { done, refused, late, cancelled, failed };
template <>
inline constexpr auto kSpellings<AnswerKind> =
    std::to_array<Spelling<AnswerKind>>({{AnswerKind::done, "done", ""},
                                         {AnswerKind::refused, "refused", ""},
                                         {AnswerKind::late, "late", ""},
                                         {AnswerKind::cancelled, "cancelled", ""},
                                         {AnswerKind::failed, "failed", ""}});

struct InferenceAnswer {
  AnswerKind kind = AnswerKind::done;
  std::string message;         // one sentence unless done
  double retry_after = 0;      // milliseconds, where refused
  std::vector<Bytes> outputs;  // by output of the model, while this is told
  double waited = 0;           // milliseconds until it began
  double took = 0;             // from arrival to answer
};

struct InferenceJob {
  ModelNumber model = 0;
  RequestInputs inputs;
  std::string client_id = {};           // what the client calls the request
  std::optional<double> deadline = {};  // milliseconds from now; then nobody wants the answer
  // Called once, by any thread, and not for long. The inputs must stay until then.
  std::function<void(const InferenceAnswer& answer)> tell;
};

// What an engine has done.
struct EngineCounts {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::uint64_t completed = 0;
  std::uint64_t late = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
};

class Engine {
 public:
  explicit Engine(const SchedulerOptions& options);
  // Ends at the next border; those who wait are told that they are cancelled.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // `forecast`: of what the latencies of its requests should be.
  ModelNumber add(std::shared_ptr<LoadedModel> model, const std::string& name,
                  const ServiceClass& service,
                  std::shared_ptr<LatencyRecord> forecast = std::make_shared<LatencyRecord>());
  // The model takes no requests any more; those that it has are answered.
  void remove(ModelNumber model);

  // The number by which it is cancelled; nullopt: it has been told already. Throws
  // std::invalid_argument for a model that has been removed, and then never tells.
  std::optional<RequestId> submit(InferenceJob job);
  // Does nothing once it has been told.
  void cancel(RequestId request);
  // No requests from now on; returns when those that were accepted have been answered.
  void drain();

  struct RunningModel {
    std::string model;
    std::optional<std::size_t> half = {};  // of the cores; nullopt: all
  };
  struct Snapshot {
    EngineCounts counts;
    std::size_t live = 0;
    double backlog = 0;       // milliseconds of work
    double busy_seconds = 0;  // that the cores computed; half of them count half
    std::vector<RunningModel> running;
  };
  [[nodiscard]] Snapshot snapshot() const;
  // Of one model; of one that is gone there is nothing.
  struct ModelSnapshot {
    std::size_t waiting = 0;
    double waiting_bytes = 0;
    double busy_seconds = 0;
  };
  [[nodiscard]] ModelSnapshot snapshot(ModelNumber model);
  [[nodiscard]] const ServiceTrace& trace() const { return trace_; }

 private:
  struct Pending {
    InferenceJob job;
    double arrival = 0;
    double begin = -1;
    double expires = 0;  // 0: never
  };
  // A model that is served, or has requests.
  struct Entry {
    std::shared_ptr<LoadedModel> model;
    std::string name;
    double busy = 0;  // milliseconds
  };
  // An answer to give when the lock is free.
  struct Told {
    Pending pending;
    InferenceAnswer answer;
  };

  [[nodiscard]] double now() const { return milliseconds(Clock::now() - start_); }
  void work();
  void run_step(const Step& step, std::unique_lock<std::mutex>& lock);
  // Of the requests that begin with this step, or of none.
  std::vector<const RequestInputs*> inputs_of(const Step& step);
  void accept(RequestId id, InferenceJob job, std::optional<double> deadline, double moment);
  void note(RequestId id, const Pending& pending, AnswerKind kind, double moment);
  void settle(RequestId id, AnswerKind kind, const std::string& message, std::vector<Told>& told);
  // The memory of a model that has been removed, once it has no requests.
  void let_go(ModelNumber model);
  void expire(std::vector<Told>& told);
  // Without the lock.
  void tell(std::vector<Told>& told);

  const Clock::time_point start_ = Clock::now();
  const SchedulerOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Scheduler scheduler_;
  ServiceForecast forecast_;
  std::map<ModelNumber, Entry> models_;
  std::map<RequestId, Pending> pending_;
  std::set<std::pair<double, RequestId>> expiring_;  // by deadline
  std::size_t untold_ = 0;                           // settled, and their clients are not told yet
  EngineCounts counts_;
  ServiceTrace trace_;
  double busy_ = 0;
  std::map<RequestId, RunningModel> running_;  // by the first request of the step
  bool draining_ = false;
  bool closed_ = false;
  std::vector<std::jthread> workers_;  // last, so that they end first
};

}  // namespace placewright
