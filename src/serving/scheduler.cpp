#include "serving/scheduler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

namespace placewright {
namespace {

// Of its share of a single request: a batch that saves less is not worth the wait.
constexpr double kBatchGain = 0.97;

std::vector<double> sums_to_end(const std::vector<double>& times) {
  std::vector<double> left(times.size() + 1, 0);
  for (std::size_t i = times.size(); i-- > 0;) left[i] = left[i + 1] + times[i];
  return left;
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options) : options_(options) {}

ModelNumber Scheduler::add(ServedModel model) {
  Entry& entry = models_[next_model_];
  entry.left = sums_to_end(model.segments);
  entry.served = std::move(model);
  renew_times();
  return next_model_++;
}

void Scheduler::remove(ModelNumber model) {
  if (!has(model)) return;
  models_.at(model).is_served = false;
  forget_if_done(model);
}

void Scheduler::forget_if_done(ModelNumber model) {
  const Entry& entry = models_.at(model);
  if (entry.is_served || !entry.waiting.empty() || !entry.begun.empty()) return;
  models_.erase(model);
  if (aged_model_ == model) aged_model_.reset();
  renew_times();
}

bool Scheduler::runs_cut(const Entry& entry) const {
  return in_segments() && entry.served.can_be_cut() && !is_alone();
}

// Whether requests run in segments depends on who else is served.
void Scheduler::renew_times() {
  for (auto& [number, entry] : models_) {
    entry.own = runs_cut(entry) ? entry.left.front() : entry.served.whole;
  }
}

Admission Scheduler::submit(const NewRequest& request, double now) {
  if (!has(request.model) || !models_.at(request.model).is_served) {
    throw std::invalid_argument("the model is not served");
  }
  Entry& entry = models_.at(request.model);
  const std::optional<double>& objective = entry.served.service.objective;
  double deadline =
      std::min(request.deadline.value_or(kNever), objective ? now + *objective : kNever);
  if (auto refusal = obstacle(entry, request, deadline, now)) {
    if (refusal->reason != RefusalReason::too_late || options_.late == Late::refuse) {
      return {.refusal = std::move(refusal)};
    }
    deadline = kNever;
  }
  const RequestId id = ++last_id_;
  entry.waiting.emplace(id, Request{id, now, request.bytes, deadline});
  entry.turns.emplace(deadline, id);
  entry.bytes += request.bytes;
  where_.emplace(id, request.model);
  return {.request = id};
}

std::optional<Refusal> Scheduler::obstacle(const Entry& entry, const NewRequest& request,
                                           double deadline, double now) const {
  const QueueLimit& limit = entry.served.service.queue;
  const std::string& name = entry.served.name;
  if (entry.waiting.size() >= limit.requests) {
    return Refusal{RefusalReason::queue_full,
                   fmt::format("{} requests wait for the model '{}' already", limit.requests, name),
                   backlog()};
  }
  if (entry.bytes + request.bytes > limit.bytes) {
    return Refusal{
        RefusalReason::queue_bytes,
        fmt::format("the inputs that wait for the model '{}' would take more than {:.0f} MB", name,
                    limit.bytes / 1e6),
        backlog()};
  }
  if (deadline != kNever && !fits(entry, deadline, now)) {
    return Refusal{
        RefusalReason::too_late,
        fmt::format("the model '{}' needs {:.1f} ms and {:.1f} ms of other work are before it: "
                    "the answer would come after the deadline, in {:.1f} ms",
                    name, entry.own, backlog(), std::max(0.0, deadline - now)),
        backlog()};
  }
  return std::nullopt;
}

// Earliest deadline first is feasible if for each deadline all work up to it fits before it.
bool Scheduler::fits(const Entry& entry, double deadline, double now) const {
  std::vector<std::pair<double, double>> work{{deadline, entry.own}};
  double blocked = 0;
  bool shared = false;
  for (const auto& [number, each] : models_) {
    for (const Begun& begun : each.begun) {
      double earliest = kNever;
      for (const Request& request : begun.requests) earliest = std::min(earliest, request.deadline);
      // The step that computes is before all others.
      const double step = begun.step_left(now);
      blocked += step;
      const double later = remaining(each, begun) - begun.step;
      if (earliest != kNever) work.emplace_back(earliest, later);
      shared = shared || earliest == kNever;
    }
    for (const auto& [moment, id] : each.turns) {
      if (moment == kNever) {
        shared = true;
        break;
      }
      work.emplace_back(moment, each.own);
    }
  }
  std::ranges::sort(work);
  const double rate = shared ? 1 - options_.share : 1;
  double done = now + blocked;
  for (const auto& [moment, time] : work) {
    done += time / rate;
    if (moment >= deadline && done > moment - options_.margin * std::max(0.0, moment - now)) {
      return false;
    }
  }
  return true;
}

bool Scheduler::cancel(RequestId id) {
  const auto found = where_.find(id);
  if (found == where_.end()) return false;
  const ModelNumber model = found->second;
  Entry& entry = models_.at(model);
  if (entry.waiting.contains(id)) {
    take(entry, id);
    where_.erase(found);
    forget_if_done(model);
    return true;
  }
  for (auto begun = entry.begun.begin(); begun != entry.begun.end(); ++begun) {
    const auto request = std::ranges::find(begun->requests, id, &Request::id);
    if (request == begun->requests.end()) continue;
    request->cancelled = true;
    // Between two steps nobody computes for it.
    if (begun->requests.size() > 1 || begun->runs()) return false;
    entry.begun.erase(begun);
    where_.erase(found);
    forget_if_done(model);
    return true;
  }
  return false;
}

Scheduler::Request Scheduler::take(Entry& entry, RequestId id) {
  const auto found = entry.waiting.find(id);
  const Request request = found->second;
  entry.turns.erase({request.deadline, id});
  entry.bytes -= request.bytes;
  entry.waiting.erase(found);
  return request;
}

double Scheduler::remaining(const Entry& entry, const Begun& begun) const {
  if (begun.cut) return entry.left[begun.next_segment];
  if (begun.half) return entry.served.on_half;
  if (begun.requests.size() == 1) return entry.served.whole;
  return entry.served.batches.at(begun.requests.size());
}

double Scheduler::backlog() const {
  double work = 0;
  for (const auto& [number, entry] : models_) {
    work += entry.own * static_cast<double>(entry.waiting.size());
    for (const Begun& begun : entry.begun) work += remaining(entry, begun);
  }
  return work;
}

Scheduler::Turn Scheduler::turn_of(const Entry& entry, const Request& request, double left) const {
  const ServiceClass& service = entry.served.service;
  Turn turn{-service.priority, request.deadline, 0, request.id};
  if (request.deadline != kNever) return turn;
  if (options_.policy == ServingPolicy::normalised) turn.score = left * entry.own / service.weight;
  if (options_.policy == ServingPolicy::srpt) turn.score = left / service.weight;
  return turn;
}

// The turn of the request that would compute, or of one that waits behind it, if that is earlier.
std::optional<Scheduler::Turn> Scheduler::turn_of(const Entry& entry) const {
  std::optional<Turn> best;
  if (!entry.begun.empty() && !entry.begun.front().runs()) {
    const Begun& begun = entry.begun.front();
    for (const Request& request : begun.requests) {
      const Turn turn = turn_of(entry, request, remaining(entry, begun));
      best = best ? std::min(*best, turn) : turn;
    }
  }
  if (const auto turn = waiting_turn_of(entry, 0)) best = best ? std::min(*best, *turn) : turn;
  return best;
}

// Of those that have not begun.
std::optional<Scheduler::Turn> Scheduler::waiting_turn_of(const Entry& entry,
                                                          std::size_t place) const {
  if (place >= entry.turns.size()) return std::nullopt;
  const auto& [deadline, id] = *std::next(entry.turns.begin(), static_cast<std::ptrdiff_t>(place));
  return turn_of(entry, entry.waiting.at(id), entry.own);
}

const Scheduler::Request* Scheduler::oldest(const Entry& entry) const {
  const Request* oldest = entry.waiting.empty() ? nullptr : &entry.waiting.begin()->second;
  for (const Begun& begun : entry.begun) {
    for (const Request& request : begun.requests) {
      if (oldest == nullptr || request.id < oldest->id) oldest = &request;
    }
  }
  return oldest;
}

bool Scheduler::is_aged(const Entry& entry, const Request& request, double now) const {
  return now - request.arrival > options_.ageing * entry.served.whole;
}

std::optional<ModelNumber> Scheduler::oldest_aged(double now) const {
  std::optional<ModelNumber> found;
  RequestId first = 0;
  for (const auto& [model, entry] : models_) {
    const Request* request = oldest(entry);
    if (request == nullptr || !is_aged(entry, *request, now)) continue;
    if (found && request->id > first) continue;
    found = model;
    first = request->id;
  }
  return found;
}

// The earliest deadline of other models' requests.
double Scheduler::first_deadline_beside(const Entry& entry) const {
  double first = kNever;
  for (const auto& [number, other] : models_) {
    if (&other == &entry) continue;
    if (!other.turns.empty()) first = std::min(first, other.turns.begin()->first);
    for (const Begun& begun : other.begun) {
      for (const Request& request : begun.requests) first = std::min(first, request.deadline);
    }
  }
  return first;
}

// As many of those that wait as a batch makes cheaper for each, and late for nobody: the first of
// them is still in time, and all of them come before others with a deadline anyway.
std::size_t Scheduler::batch_size(const Entry& entry, double now) const {
  if (!in_segments() || entry.served.batches.empty()) return 1;
  const double beside = first_deadline_beside(entry);
  std::size_t best = 1;
  double each = entry.own;
  for (const auto& [size, time] : entry.served.batches) {
    if (size > entry.waiting.size() || time > options_.longest_batch) continue;
    if (time / static_cast<double>(size) >= kBatchGain * each) continue;
    const auto last = std::next(entry.turns.begin(), static_cast<std::ptrdiff_t>(size) - 1);
    if (now + time > entry.turns.begin()->first || last->first > beside) continue;
    best = size;
    each = time / static_cast<double>(size);
  }
  return best;
}

void Scheduler::begin(Entry& entry, double now) {
  const bool aged = is_aged(entry, entry.waiting.begin()->second, now);
  const std::size_t size = batch_size(entry, now);
  Begun begun{.requests = {}, .cut = size == 1 && runs_cut(entry)};
  for (std::size_t i = 0; i < size; ++i) {
    const RequestId id =
        aged && i == 0 ? entry.waiting.begin()->first : entry.turns.begin()->second;
    begun.requests.push_back(take(entry, id));
  }
  entry.begun.push_back(std::move(begun));
}

Step Scheduler::step_of(ModelNumber model, Begun& begun, double now) {
  const Entry& entry = models_.at(model);
  Step step{.model = model, .requests = {}, .half = begun.half};
  for (const Request& request : begun.requests) step.requests.push_back(request.id);
  step.expected = remaining(entry, begun);
  if (begun.cut) {
    step.segment = begun.next_segment;
    step.last = begun.next_segment + 1 == entry.served.segments.size();
    step.expected = entry.served.segments[begun.next_segment];
  }
  begun.running_since = now;
  begun.step = step.expected;
  ++running_;
  return step;
}

// By the order alone.
std::optional<ModelNumber> Scheduler::first_in_turn() const {
  std::optional<std::pair<Turn, ModelNumber>> best;
  for (const auto& [model, entry] : models_) {
    const std::optional<Turn> turn = turn_of(entry);
    if (turn && (!best || *turn < best->first)) best.emplace(*turn, model);
  }
  if (!best) return std::nullopt;
  return best->second;
}

std::optional<Step> Scheduler::next(double now) {
  if (options_.policy == ServingPolicy::together) return next_together(now);
  if (running_ > 1) return std::nullopt;
  aged_model_ = oldest_aged(now);
  if (!aged_model_) owed_ = 0;
  if (running_ == 1) return next_on_half(now);
  if (aged_model_ && owed_ >= 0) return begin_or_go_on(*aged_model_, now);
  const std::optional<ModelNumber> chosen = first_in_turn();
  if (!chosen) return std::nullopt;
  if (!aged_model_ && run_better_side_by_side(*chosen, now)) return begin_on_half(*chosen, 0, now);
  return begin_or_go_on(*chosen, now);
}

Step Scheduler::begin_or_go_on(ModelNumber model, double now) {
  Entry& entry = models_.at(model);
  if (entry.begun.empty()) begin(entry, now);
  return step_of(model, entry.begun.front(), now);
}

std::optional<Step> Scheduler::next_together(double now) {
  for (auto& [model, entry] : models_) {
    if (entry.waiting.empty() || entry.begun.size() >= options_.copies) continue;
    begin(entry, now);
    return step_of(model, entry.begun.back(), now);
  }
  return std::nullopt;
}

// What ageing is owed changes with the time that the step took.
void Scheduler::account(const Step& step, double taken) {
  if (!aged_model_ || step.half) return;
  owed_ += options_.share * taken;
  // What the order gives beside is no debt.
  if (step.model == *aged_model_) owed_ = std::max(owed_ - taken, (options_.share - 1) * taken);
}

Scheduler::Finished Scheduler::finish(const Step& step, double now) {
  Entry& entry = models_.at(step.model);
  const auto begun = std::ranges::find_if(entry.begun, [&](const Begun& each) {
    return each.requests.front().id == step.requests.front();
  });
  if (begun == entry.begun.end() || !begun->runs()) {
    throw std::logic_error("a step that does not run cannot end");
  }
  --running_;
  account(step, now - begun->running_since);
  begun->running_since = kNever;
  begun->step = 0;
  if (begun->cut) ++begun->next_segment;
  Finished finished;
  const bool dropped = std::ranges::all_of(begun->requests, &Request::cancelled);
  if (!step.last && !dropped) return finished;
  for (const Request& request : begun->requests) {
    (request.cancelled ? finished.cancelled : finished.completed).push_back(request.id);
    where_.erase(request.id);
  }
  entry.begun.erase(begun);
  forget_if_done(step.model);
  return finished;
}

}  // namespace placewright
