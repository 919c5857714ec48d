// Served models for real: compiled whole and in segments, and run by the scheduler's decisions.
//
// One thread runs the steps that the scheduler hands out; under ServingPolicy::together there is one for each
// model, up to kMostWorkers. What a client sends is bound as it is, without a copy, and outputs are lent to whoever
// asked until it has been told. Everything here may be called by any thread.

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

#include "backends/part_inputs.h"
#include "backends/runtime.h"
#include "machine/clock.h"
#include "machine/targets.h"
#include "serving/forecast.h"
#include "serving/measured_models.h"
#include "serving/scheduler.h"

namespace placewright {

// A model compiled for the cores that serve it.
class LoadedModel {
 public:
  // `cuts`: where it is cut. Throws RuntimeError.
  LoadedModel(std::shared_ptr<const NeuralModel> model, const Target& target, ModelCuts cuts);
  ~LoadedModel();
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  [[nodiscard]] const ModelGraph& graph() const { return model_->graph(); }
  [[nodiscard]] const ModelCuts& cuts() const { return cuts_; }

  using Bytes = std::span<const std::byte>;
  // By input of the model, of the right sizes; they must stay until the run has ended.
  void bind(const std::vector<Bytes>& inputs, bool in_segments);
  void run_whole();
  void run_segment(std::size_t segment);
  // By output of the model, until the next run.
  [[nodiscard]] std::vector<Bytes> outputs(bool of_segments);

 private:
  class LentBuffer;
  // A part with its request, and which of its inputs are the model's.
  struct Piece {
    std::unique_ptr<CompiledPart> part;
    std::unique_ptr<Request> request;
    std::vector<std::pair<std::size_t, std::size_t>> inputs;  // of the part, of the model
  };
  // Where a tensor comes from.
  struct Origin {
    std::size_t piece = 0;
    std::size_t output = 0;
  };

  Piece piece_of(std::span<const std::size_t> ops, const Target& target);

  std::shared_ptr<const NeuralModel> model_;
  ModelCuts cuts_;
  std::vector<std::unique_ptr<LentBuffer>> inputs_;
  Piece whole_;
  std::vector<Piece> segments_;
  std::map<TensorKey, Origin> origin_;
};

enum class AnswerKind { done, refused, late, cancelled, failed };

struct InferenceAnswer {
  AnswerKind kind = AnswerKind::done;
  std::string message;                              // one sentence unless done
  double retry_after = 0;                           // milliseconds, where refused
  std::vector<std::span<const std::byte>> outputs;  // by output of the model, while this is told
  double waited = 0;                                // milliseconds until it began
  double took = 0;                                  // from arrival to answer
};

struct InferenceJob {
  ModelNumber model = 0;
  std::vector<std::span<const std::byte>> inputs;  // by input of the model
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

  ModelNumber add(std::shared_ptr<LoadedModel> model, const std::string& name,
                  const ServiceClass& service);
  // The model takes no requests any more; those that it has are answered.
  void remove(ModelNumber model);

  // The number by which it is cancelled; nullopt: it has been told already. Throws std::invalid_argument for a
  // model that has been removed, and then never tells.
  std::optional<RequestId> submit(InferenceJob job);
  // Does nothing once it has been told.
  void cancel(RequestId request);
  // No requests from now on; returns when those that were accepted have been answered.
  void drain();

  struct Snapshot {
    EngineCounts counts;
    std::size_t live = 0;
    double backlog = 0;       // milliseconds of work
    double busy_seconds = 0;  // that the cores computed
    std::string running;      // the model that computes; empty: none
  };
  [[nodiscard]] Snapshot snapshot() const;
  // Of one model; of one that is gone there is nothing.
  struct ModelSnapshot {
    std::size_t waiting = 0;
    double waiting_bytes = 0;
    double busy_seconds = 0;
    std::shared_ptr<const LatencyRecord> forecast;
  };
  [[nodiscard]] ModelSnapshot snapshot(ModelNumber model);

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
    std::shared_ptr<const LatencyRecord> forecast;
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
  std::string compute(LoadedModel& model, const Step& step,
                      const std::vector<LoadedModel::Bytes>* inputs);
  void accept(RequestId id, InferenceJob job, std::optional<double> deadline, double moment);
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
  double busy_ = 0;
  std::string running_;
  bool draining_ = false;
  bool closed_ = false;
  std::vector<std::jthread> workers_;  // last, so that they end first
};

}  // namespace placewright
