#include "serving/engine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace placewright {

namespace {

// What went wrong; empty: nothing.
std::string compute(LoadedModel& model, const Step& step,
                    const std::vector<const RequestInputs*>& inputs) {
  try {
    model.run(step, inputs);
    return "";
  } catch (const std::exception& error) {
    return fmt::format("the model failed: {}", error.what());
  }
}

}  // namespace

Engine::Engine(const SchedulerOptions& options)
    : options_(options), scheduler_(options), forecast_(options) {
  constexpr std::size_t kMostWorkers = 16;
  const std::size_t count = options.policy == ServingPolicy::together ? kMostWorkers : 2;
  for (std::size_t i = 0; i < count; ++i) workers_.emplace_back([this] { work(); });
}

Engine::~Engine() {
  std::vector<Told> told;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  workers_.clear();
  while (!pending_.empty()) {
    settle(pending_.begin()->first, AnswerKind::cancelled, "the server is stopping", told);
  }
  tell(told);
}

ModelNumber Engine::add(std::shared_ptr<LoadedModel> model, const std::string& name,
                        const ServiceClass& service, std::shared_ptr<LatencyRecord> forecast) {
  const std::lock_guard lock(mutex_);
  const ModelCuts& cuts = model->cuts();
  const ServedModel served{
      .name = name, .whole = cuts.whole, .segments = cuts.times, .batches = {}, .service = service};
  const ModelNumber number = scheduler_.add(served);
  forecast_.add(served, std::move(forecast));
  models_.emplace(number, Entry{.model = std::move(model), .name = name});
  return number;
}

void Engine::remove(ModelNumber model) {
  const std::lock_guard lock(mutex_);
  scheduler_.remove(model);
  forecast_.remove(model);
  let_go(model);
}

std::optional<RequestId> Engine::submit(InferenceJob job) {
  InferenceAnswer answer;
  {
    const std::lock_guard lock(mutex_);
    const double moment = now();
    if (draining_ || closed_) {
      answer.kind = AnswerKind::refused;
      answer.message = "the server is stopping and takes no more requests";
    } else if (job.deadline && *job.deadline <= 0) {
      answer.kind = AnswerKind::late;
      answer.message = "the deadline of the request has passed";
    } else {
      NewRequest request{.model = job.model};
      for (const auto& input : job.inputs) request.bytes += static_cast<double>(input.size());
      if (job.deadline) request.deadline = moment + *job.deadline;
      const Admission admission = scheduler_.submit(request, moment);
      forecast_.submit(admission.request.value_or(0), request, moment);
      if (admission.request) {
        accept(*admission.request, std::move(job), request.deadline, moment);
        return admission.request;
      }
      answer.kind = AnswerKind::refused;
      answer.message = admission.refusal->text;
      answer.retry_after = admission.refusal->retry_after;
    }
    ++(answer.kind == AnswerKind::late ? counts_.late : counts_.refused);
  }
  job.tell(answer);
  return std::nullopt;
}

void Engine::accept(RequestId id, InferenceJob job, std::optional<double> deadline, double moment) {
  ++counts_.accepted;
  if (deadline) expiring_.emplace(*deadline, id);
  pending_.emplace(
      id, Pending{.job = std::move(job), .arrival = moment, .expires = deadline.value_or(0)});
  // Else nobody could start it, and to wake a thread disturbs those that compute.
  const bool idle = running_.empty() || running_.begin()->second.half;
  if (idle || options_.policy == ServingPolicy::together) changed_.notify_one();
}

void Engine::cancel(RequestId request) {
  std::vector<Told> told;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(request);
    if (found == pending_.end() || !scheduler_.cancel(request)) return;
    let_go(found->second.job.model);
    settle(request, AnswerKind::cancelled, "the client has cancelled the request", told);
  }
  tell(told);
}

void Engine::drain() {
  std::unique_lock lock(mutex_);
  draining_ = true;
  changed_.wait(lock, [&] { return pending_.empty() && untold_ == 0; });
}

// The job leaves; its client is told once the lock is free.
void Engine::settle(RequestId id, AnswerKind kind, const std::string& message,
                    std::vector<Told>& told) {
  auto node = pending_.extract(id);
  if (node.empty()) return;
  std::uint64_t EngineCounts::*const counts[] = {&EngineCounts::completed, &EngineCounts::refused,
                                                 &EngineCounts::late, &EngineCounts::cancelled,
                                                 &EngineCounts::failed};
  ++(counts_.*counts[static_cast<std::size_t>(kind)]);
  Pending& pending = node.mapped();
  if (kind == AnswerKind::done) {
    forecast_.forget(id);
  } else {
    forecast_.cancel(id, now());
  }
  if (pending.expires > 0) expiring_.erase({pending.expires, id});
  const double moment = now();
  InferenceAnswer answer{.kind = kind, .message = message};
  answer.took = moment - pending.arrival;
  note(id, pending, kind, moment);
  answer.waited = (pending.begin < 0 ? moment : pending.begin) - pending.arrival;
  told.push_back({std::move(pending), std::move(answer)});
  ++untold_;
}

void Engine::note(RequestId id, const Pending& pending, AnswerKind kind, double moment) {
  const auto model = models_.find(pending.job.model);
  trace_.add({.id = id,
              .model = model == models_.end() ? "" : model->second.name,
              .client_id = pending.job.client_id,
              .answer = std::string(name_of(kind)),
              .arrival = pending.arrival,
              .begin = pending.begin < 0 ? moment : pending.begin,
              .end = moment});
}

// Requests that wait and whose answer nobody wants any more.
void Engine::expire(std::vector<Told>& told) {
  while (!expiring_.empty() && expiring_.begin()->first <= now()) {
    const RequestId id = expiring_.begin()->second;
    expiring_.erase(expiring_.begin());
    if (!pending_.contains(id) || pending_.at(id).begin >= 0) continue;
    if (scheduler_.cancel(id)) {
      settle(id, AnswerKind::late, "the deadline passed while the request waited", told);
    }
  }
}

void Engine::tell(std::vector<Told>& told) {
  for (const Told& each : told) each.pending.job.tell(each.answer);
  const std::lock_guard lock(mutex_);
  untold_ -= told.size();
  told.clear();
  if (draining_) changed_.notify_all();
}

void Engine::work() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    std::vector<Told> told;
    expire(told);
    if (!told.empty()) {
      lock.unlock();
      tell(told);
      lock.lock();
      continue;
    }
    if (const std::optional<Step> step = scheduler_.next(now())) {
      run_step(*step, lock);
    } else {
      changed_.wait(lock);
    }
  }
}

std::vector<const RequestInputs*> Engine::inputs_of(const Step& step) {
  std::vector<const RequestInputs*> inputs;
  const double moment = now();
  for (const RequestId id : step.requests) {
    Pending& pending = pending_.at(id);
    if (pending.begin >= 0) return {};
    pending.begin = moment;
    inputs.push_back(&pending.job.inputs);
  }
  return inputs;
}

void Engine::run_step(const Step& step, std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<LoadedModel> model = models_.at(step.model).model;
  const auto inputs = inputs_of(step);
  running_[step.requests.front()] = {scheduler_.model(step.model).name, step.half};
  // Another thread takes the other half.
  if (step.half) changed_.notify_all();
  const double begin = now();
  lock.unlock();
  const std::string failure = compute(*model, step, inputs);
  lock.lock();
  const double end = now();
  const double took = (end - begin) / (step.half ? 2 : 1);
  trace_.add(
      {scheduler_.model(step.model).name, step.requests, step.segment, step.half, begin, end});
  busy_ += took;
  models_.at(step.model).busy += took;
  running_.erase(step.requests.front());
  std::vector<Told> told;
  for (std::size_t place = 0; place < step.requests.size(); ++place) {
    const RequestId id = step.requests[place];
    if (!failure.empty()) {
      settle(id, AnswerKind::failed, failure, told);
      scheduler_.cancel(id);
    } else if (step.last && pending_.contains(id)) {
      settle(id, AnswerKind::done, "", told);
      told.back().answer.outputs = model->outputs(step, place);
    }
  }
  if (!told.empty()) {
    // The step counts as running until then, so that no other one writes to the outputs.
    lock.unlock();
    tell(told);
    lock.lock();
  }
  for (const RequestId each : scheduler_.finish(step, now()).cancelled) {
    settle(each, AnswerKind::cancelled, "the client has cancelled the request", told);
  }
  let_go(step.model);
  if (told.empty()) return;
  lock.unlock();
  tell(told);
  lock.lock();
}

void Engine::let_go(ModelNumber model) {
  if (!scheduler_.has(model)) models_.erase(model);
}

Engine::Snapshot Engine::snapshot() const {
  const std::lock_guard lock(mutex_);
  Snapshot snapshot{counts_, pending_.size(), scheduler_.backlog(), busy_ / 1000, {}};
  for (const auto& [id, running] : running_) snapshot.running.push_back(running);
  return snapshot;
}

Engine::ModelSnapshot Engine::snapshot(ModelNumber model) {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model);
  if (found == models_.end()) return {};
  forecast_.advance(now());
  return {.waiting = scheduler_.waiting(model),
          .waiting_bytes = scheduler_.waiting_bytes(model),
          .busy_seconds = found->second.busy / 1000};
}

}  // namespace placewright
