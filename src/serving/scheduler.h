// Which request computes next, on cores that serve several models.
//
// A request is a model's segments, one after the other, or the model uncut where no other model is
// served. At every border (the end of a segment) the scheduler says what runs next, so that a short
// request waits for one segment of a long one and not for all of it. There is no clock in here:
// every call says what time it is, in milliseconds, so that the server and the simulator
// (simulation.h) run the same code.
//
//   order     The higher priority first. Of one priority, requests with a deadline before the others, the
//             earliest deadline first; the others by policy (ServingPolicy). A request that has begun is
//             finished before another one of its model begins: its intermediate tensors are the model's.
//             Where one of its model with an earlier turn waits, it inherits that turn.
//   ageing    A request that is older than `ageing` times its own time is *aged*. As long as there is one, the
//             one that arrived first gets the share `share` of the time, whatever the order says.
//   admission A request with a deadline is accepted if it and all that were accepted before it can still be
//             in time, with the share of the time that ageing leaves; else it is refused at once, or with
//             Late::serve follows behind as one without a deadline.
//   limits    A model whose queue is full in requests or bytes refuses.
//   batches   A request that begins takes along as many that wait for its model as a measured batch
//             makes cheaper for each; a batch is one step. Nobody's deadline is missed for it.
//   halves    Two short requests that come next run side by side, each on half of the cores, where by the
//             measured times both end sooner than one after the other and neither is late for it. What
//             comes next takes the half that is free if it ends no later there than by waiting for the
//             other one. While a request is aged, all cores compute together.
//
// Bound of the wait. Let a request be aged at a decision at time t. Let W be the work left at t of
// it, of all that arrived before it, and of one request of each model (which may have begun); with
// batches each counts as the longest of them. Let s be the longest step on all cores, h the longest
// one on half of them. Then it ends by t + h + (W + s) / share. Proof: By t + h no half computes,
// and none does while a request is aged. From then on `owed_` grows by the share of the time and
// falls by the service to the first aged request, but not below -(1 - share) s. A decision with
// owed_ >= 0 serves that request, so owed_ <= share x s. In time T it gets at least share x T - s.
// All of that service goes to work in W, so share x T - s < W until the request has ended.
//
// A decision takes O(models), a deadline's admission O(requests with deadlines).

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "problem/spelling.h"
#include "serving/served_model.h"

namespace placewright {

// The order of requests without a deadline.
enum class ServingPolicy { normalised, srpt, arrival, together };
template <>
inline constexpr auto kSpellings<ServingPolicy> = std::to_array<Spelling<ServingPolicy>>(
    {{ServingPolicy::normalised, "normalised", "least remaining time x own time first"},
     {ServingPolicy::srpt, "srpt", "least remaining time first"},
     {ServingPolicy::arrival, "arrival", "one at a time, uncut, as they come"},
     {ServingPolicy::together, "together", "all at once, uncut, each with all cores"}});

// What becomes of a request that cannot be in time.
enum class Late { refuse, serve };
template <>
inline constexpr auto kSpellings<Late> =
    std::to_array<Spelling<Late>>({{Late::refuse, "refuse", "answered at once with the reason"},
                                   {Late::serve, "serve", "served behind those that are in time"}});

struct SchedulerOptions {
  ServingPolicy policy = ServingPolicy::normalised;
  Late late = Late::refuse;
  double ageing = 20;         // times its own time
  double share = 0.1;         // of the time, for what has aged
  double margin = 0.05;       // of a deadline's distance that admission leaves free
  double longest_batch = 10;  // milliseconds that a batch may take
  std::size_t copies = 1;     // of a model at once, under `together`
};

using RequestId = std::uint64_t;  // in the order of arrival
using ModelNumber = std::size_t;

struct NewRequest {
  ModelNumber model = 0;
  double bytes = 0;
  std::optional<double> deadline = {};  // a moment; the model's objective counts too
};

enum class RefusalReason { queue_full, queue_bytes, too_late };

struct Refusal {
  RefusalReason reason = RefusalReason::queue_full;
  std::string text;        // one sentence
  double retry_after = 0;  // milliseconds
};

// The request's number, or why it is refused.
struct Admission {
  std::optional<RequestId> request = {};
  std::optional<Refusal> refusal = {};
};

// What is to run: a segment of one request, or one or more requests uncut.
struct Step {
  ModelNumber model = 0;
  std::vector<RequestId> requests;
  std::optional<std::size_t> segment = {};  // nullopt: uncut
  std::optional<std::size_t> half = {};     // of the cores, 0 or 1; nullopt: all
  bool last = true;                         // the requests end with it
  double expected = 0;                      // milliseconds
};

class Scheduler {
 public:
  explicit Scheduler(SchedulerOptions options = {});

  // A model that is served from now on. Its number is not used again.
  ModelNumber add(ServedModel model);
  // The model takes no requests any more. Those that it has are served, then it is forgotten.
  void remove(ModelNumber model);
  // Whether the model is served, or has requests.
  [[nodiscard]] bool has(ModelNumber model) const { return models_.contains(model); }
  [[nodiscard]] const ServedModel& model(ModelNumber model) const {
    return models_.at(model).served;
  }
  // Whether requests run uncut: nobody else is there to run at a border.
  [[nodiscard]] bool is_alone() const { return models_.size() == 1; }

  // Throws std::invalid_argument for a model that is not served.
  Admission submit(const NewRequest& request, double now);
  // Whether the request left at once; one that has begun leaves at its next border, and `finish`
  // says so.
  bool cancel(RequestId request);

  // What runs next; nullopt: nothing waits, or the cores are busy. The caller runs it and calls
  // `finish`.
  std::optional<Step> next(double now);
  struct Finished {
    std::vector<RequestId> completed;
    std::vector<RequestId> cancelled;
  };
  Finished finish(const Step& step, double now);

  // Accepted and neither complete nor dropped.
  [[nodiscard]] std::size_t live() const { return where_.size(); }
  // Of a request that lives.
  [[nodiscard]] std::optional<ModelNumber> model_of(RequestId request) const {
    const auto found = where_.find(request);
    return found == where_.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] std::size_t waiting(ModelNumber model) const {
    return has(model) ? models_.at(model).waiting.size() : 0;
  }
  [[nodiscard]] double waiting_bytes(ModelNumber model) const {
    return has(model) ? models_.at(model).bytes : 0;
  }
  // Milliseconds of work that was accepted and is not done.
  [[nodiscard]] double backlog() const;
  // The moment by which an aged request has ended; nullopt: it is not aged, or unknown. At a
  // decision.
  [[nodiscard]] std::optional<double> bound(RequestId request, double now) const;

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Request {
    RequestId id = 0;
    double arrival = 0;
    double bytes = 0;
    double deadline = kNever;
    bool cancelled = false;
  };
  // The requests that have begun and not ended: one, or a batch. Under `together` several of them.
  struct Begun {
    std::vector<Request> requests;
    bool cut = false;
    std::optional<std::size_t> half = {};
    std::size_t next_segment = 0;
    double running_since = kNever;
    double step = 0;  // milliseconds of the step that runs

    [[nodiscard]] bool runs() const { return running_since != kNever; }
    [[nodiscard]] double step_left(double now) const {
      return step > 0 ? std::max(0.0, step - (now - running_since)) : 0;
    }
  };
  struct Entry {
    ServedModel served;
    bool is_served = true;
    double own = 0;                                // of a request that has not begun
    std::vector<double> left;                      // from a segment to the end
    std::map<RequestId, Request> waiting;          // by arrival
    std::set<std::pair<double, RequestId>> turns;  // of these: by deadline, arrival
    double bytes = 0;                              // of these
    std::vector<Begun> begun;
  };
  // What is compared between models: the smallest is next.
  struct Turn {
    int priority = 0;  // negated
    double deadline = kNever;
    double score = 0;
    RequestId id = 0;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };

  void renew_times();
  // A model that is not served and has no requests any more.
  void forget_if_done(ModelNumber model);
  [[nodiscard]] bool runs_cut(const Entry& entry) const;
  [[nodiscard]] double remaining(const Entry& entry, const Begun& begun) const;
  [[nodiscard]] Turn turn_of(const Entry& entry, const Request& request, double left) const;
  [[nodiscard]] std::optional<Turn> turn_of(const Entry& entry) const;
  [[nodiscard]] std::optional<Turn> waiting_turn_of(const Entry& entry, std::size_t place) const;
  [[nodiscard]] const Request* oldest(const Entry& entry) const;
  [[nodiscard]] bool is_aged(const Entry& entry, const Request& request, double now) const;
  [[nodiscard]] std::optional<ModelNumber> oldest_aged(double now) const;
  [[nodiscard]] std::optional<ModelNumber> first_in_turn() const;
  [[nodiscard]] std::optional<Refusal> obstacle(const Entry& entry, const NewRequest& request,
                                                double deadline, double now) const;
  [[nodiscard]] bool fits(const Entry& entry, double deadline, double now) const;
  [[nodiscard]] bool in_segments() const {
    return options_.policy == ServingPolicy::normalised || options_.policy == ServingPolicy::srpt;
  }
  [[nodiscard]] double first_deadline_beside(const Entry& entry) const;
  [[nodiscard]] std::size_t batch_size(const Entry& entry, double now) const;
  [[nodiscard]] const Begun* on_a_half() const;
  [[nodiscard]] bool can_run_on_half(const Entry& entry) const;
  [[nodiscard]] std::optional<ModelNumber> next_after(ModelNumber first) const;
  [[nodiscard]] bool run_better_side_by_side(ModelNumber first, double now) const;
  std::optional<Step> next_on_half(double now);
  Step begin_on_half(ModelNumber model, std::size_t half, double now);
  Step begin_or_go_on(ModelNumber model, double now);
  [[nodiscard]] double longest_service(const Entry& entry) const;
  [[nodiscard]] double longest_step() const;
  [[nodiscard]] double longest_on_half() const;
  Request take(Entry& entry, RequestId id);
  void begin(Entry& entry, double now);
  Step step_of(ModelNumber model, Begun& begun, double now);
  std::optional<Step> next_together(double now);
  void account(const Step& step, double taken);

  SchedulerOptions options_;
  std::map<ModelNumber, Entry> models_;
  std::map<RequestId, ModelNumber> where_;
  ModelNumber next_model_ = 0;
  std::size_t running_ = 0;  // steps
  RequestId last_id_ = 0;
  double owed_ = 0;                             // to aged requests, milliseconds
  std::optional<ModelNumber> aged_model_ = {};  // at the last decision
};

}  // namespace placewright
