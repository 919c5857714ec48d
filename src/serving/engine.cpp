#include "serving/engine.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "backends/target_devices.h"

namespace placewright {

// Somebody else's bytes, as a buffer that a backend reads.
class LoadedModel::LentBuffer final : public Buffer {
 public:
  void lend(Bytes bytes) { bytes_ = bytes; }
  [[nodiscard]] const MemorySpace& space() const override { return host_; }
  [[nodiscard]] std::size_t size() const override { return bytes_.size(); }
  // Backends only read an input.
  [[nodiscard]] std::span<std::byte> bytes() const override {
    return {const_cast<std::byte*>(bytes_.data()), bytes_.size()};
  }

 private:
  Bytes bytes_;
  MemorySpace host_;
};

LoadedModel::LoadedModel(std::shared_ptr<const NeuralModel> model, const Target& target,
                         ModelCuts cuts)
    : model_(std::move(model)), cuts_(std::move(cuts)) {
  for (std::size_t i = 0; i < graph().inputs.size(); ++i) {
    inputs_.push_back(std::make_unique<LentBuffer>());
  }
  std::vector<std::size_t> all(graph().ops.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  whole_ = piece_of(all, target);
  for (const OpGroup& ops : cuts_.segments) {
    Piece piece = piece_of(ops, target);
    for (std::size_t i = 0; i < piece.part->inputs().size(); ++i) {
      const TensorKey& tensor = piece.part->inputs()[i];
      if (tensor.is_model_input()) continue;
      const Origin& origin = origin_.at(tensor);
      piece.request->bind_input(i, segments_[origin.piece].request->output(origin.output));
    }
    for (std::size_t o = 0; o < piece.part->outputs().size(); ++o) {
      origin_.try_emplace(piece.part->outputs()[o], Origin{segments_.size(), o});
    }
    segments_.push_back(std::move(piece));
  }
}

LoadedModel::~LoadedModel() = default;

LoadedModel::Piece LoadedModel::piece_of(std::span<const std::size_t> ops, const Target& target) {
  Piece piece;
  piece.part = model_->compile(ops, compile_options(target));
  piece.request = piece.part->request();
  for (std::size_t i = 0; i < piece.part->inputs().size(); ++i) {
    const TensorKey& tensor = piece.part->inputs()[i];
    if (tensor.is_model_input()) piece.inputs.emplace_back(i, tensor.port);
  }
  return piece;
}

void LoadedModel::bind(const std::vector<Bytes>& inputs, bool in_segments) {
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs_[i]->lend(inputs[i]);
  const auto bind_piece = [&](Piece& piece) {
    for (const auto& [own, of_model] : piece.inputs) {
      piece.request->bind_input(own, *inputs_[of_model]);
    }
  };
  if (!in_segments) return bind_piece(whole_);
  for (Piece& piece : segments_) bind_piece(piece);
}

void LoadedModel::run_whole() {
  whole_.request->run();
}

void LoadedModel::run_segment(std::size_t segment) {
  segments_[segment].request->run();
}

std::vector<LoadedModel::Bytes> LoadedModel::outputs(bool of_segments) {
  std::vector<Bytes> outputs;
  for (const GraphOutput& output : graph().outputs) {
    if (output.tensor.is_model_input()) {
      outputs.push_back(inputs_[output.tensor.port]->bytes());
    } else if (of_segments) {
      const Origin& origin = origin_.at(output.tensor);
      outputs.push_back(segments_[origin.piece].request->output(origin.output).bytes());
    } else {
      const auto& all = whole_.part->outputs();
      const auto place = std::ranges::find(all, output.tensor) - all.begin();
      outputs.push_back(whole_.request->output(static_cast<std::size_t>(place)).bytes());
    }
  }
  return outputs;
}

Engine::Engine(const SchedulerOptions& options)
    : options_(options), scheduler_(options), forecast_(options) {
  constexpr std::size_t kMostWorkers = 16;
  const std::size_t count = options.policy == ServingPolicy::together ? kMostWorkers : 1;
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
    settle(pending_.begin()->first, AnswerKind::cancelled, "the server ends", told);
  }
  tell(told);
}

ModelNumber Engine::add(std::shared_ptr<LoadedModel> model, const std::string& name,
                        const ServiceClass& service) {
  const std::lock_guard lock(mutex_);
  const ModelCuts& cuts = model->cuts();
  const ServedModel served{
      .name = name, .whole = cuts.whole, .segments = cuts.times, .batches = {}, .service = service};
  const ModelNumber number = scheduler_.add(served);
  models_.emplace(number, Entry{.model = std::move(model), .forecast = forecast_.add(served)});
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
      answer.message = "the server ends: it takes no requests any more";
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
  changed_.notify_one();
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
  answer.waited = (pending.begin < 0 ? moment : pending.begin) - pending.arrival;
  told.push_back({std::move(pending), std::move(answer)});
  ++untold_;
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

void Engine::run_step(const Step& step, std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<LoadedModel> model = models_.at(step.model).model;
  const RequestId id = step.requests.front();
  Pending& pending = pending_.at(id);
  const bool first = pending.begin < 0;
  if (first) pending.begin = now();
  const auto* inputs = first ? &pending.job.inputs : nullptr;
  running_ = scheduler_.model(step.model).name;
  const double begin = now();
  lock.unlock();
  const std::string failure = compute(*model, step, inputs);
  lock.lock();
  const double took = now() - begin;
  busy_ += took;
  models_.at(step.model).busy += took;
  running_.clear();
  std::vector<Told> told;
  if (failure.empty() && step.last) {
    settle(id, AnswerKind::done, "", told);
    if (!told.empty()) told.back().answer.outputs = model->outputs(step.segment.has_value());
  } else if (!failure.empty()) {
    settle(id, AnswerKind::failed, failure, told);
    scheduler_.cancel(id);
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

// What went wrong; empty: nothing.
std::string Engine::compute(LoadedModel& model, const Step& step,
                            const std::vector<LoadedModel::Bytes>* inputs) {
  try {
    if (inputs != nullptr) model.bind(*inputs, step.segment.has_value());
    if (step.segment) {
      model.run_segment(*step.segment);
    } else {
      model.run_whole();
    }
    return "";
  } catch (const std::exception& error) {
    return fmt::format("the model failed: {}", error.what());
  }
}

Engine::Snapshot Engine::snapshot() const {
  const std::lock_guard lock(mutex_);
  return {counts_, pending_.size(), scheduler_.backlog(), busy_ / 1000, running_};
}

Engine::ModelSnapshot Engine::snapshot(ModelNumber model) {
  const std::lock_guard lock(mutex_);
  const auto found = models_.find(model);
  if (found == models_.end()) return {};
  forecast_.advance(now());
  return {.waiting = scheduler_.waiting(model),
          .waiting_bytes = scheduler_.waiting_bytes(model),
          .busy_seconds = found->second.busy / 1000,
          .forecast = found->second.forecast};
}

}  // namespace placewright
