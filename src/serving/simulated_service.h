// A service in simulated time: the scheduler (scheduler.h), and steps that take the times of their
// models.
//
// Whoever has it hands in what happens and when. `simulate_service` (simulation.h) does so with a
// trace, and the engine beside its own requests as they come: so the running server knows what was
// to be expected of them.
//
// Under ServingPolicy::together the requests that compute share the cores in equal parts, which is
// what they do at best: really they also disturb each other's caches.

#pragma once

#include <optional>
#include <vector>

#include "serving/scheduler.h"

namespace placewright {

enum class RequestFate { complete, refused, cancelled };

class SimulatedService {
 public:
  // `overhead`: milliseconds that receiving and answering a request cost beside its steps.
  explicit SimulatedService(const SchedulerOptions& options, double overhead = 0)
      : scheduler_(options), overhead_(overhead) {}

  ModelNumber add(ServedModel model) { return scheduler_.add(std::move(model)); }
  void remove(ModelNumber model) { scheduler_.remove(model); }

  // What ended, in the order of the moments.
  struct Ended {
    RequestId request = 0;
    ModelNumber model = 0;
    RequestFate fate = RequestFate::complete;
    double moment = 0;
  };
  // Steps that end until then have ended; the moments of all calls must not fall.
  void advance(double moment);
  Admission submit(const NewRequest& request, double moment);
  void cancel(RequestId request, double moment);
  // Until nothing computes any more.
  void finish();
  // What has ended since the last call.
  [[nodiscard]] std::vector<Ended> take_ended() { return std::exchange(ended_, {}); }

  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] double busy() const { return busy_; }
  [[nodiscard]] std::size_t live() const { return scheduler_.live(); }

 private:
  struct RunningStep {
    Step step;
    double left = 0;  // milliseconds, as long as it has the cores that it was measured on
  };

  [[nodiscard]] double pace(const RunningStep& running) const;
  [[nodiscard]] std::optional<double> earliest_end() const;
  void pass(double moment);
  void end_step();
  void start_steps();

  Scheduler scheduler_;
  double overhead_;
  std::vector<RunningStep> running_;
  std::vector<Ended> ended_;
  double now_ = 0;
  double busy_ = 0;
};

}  // namespace placewright
