#include "serving/simulated_service.h"

#include <algorithm>

namespace placewright {

// Milliseconds of its time that pass in one. Steps on halves have their cores for themselves.
double SimulatedService::pace(const RunningStep& running) const {
  return running.step.half ? 1 : 1 / static_cast<double>(running_.size());
}

std::optional<double> SimulatedService::earliest_end() const {
  std::optional<double> least;
  for (const RunningStep& running : running_) {
    const double end = now_ + running.left / pace(running);
    least = std::min(least.value_or(end), end);
  }
  return least;
}

void SimulatedService::pass(double moment) {
  for (RunningStep& running : running_) {
    running.left -= (moment - now_) * pace(running);
    busy_ += (moment - now_) / (running.step.half ? 2 : static_cast<double>(running_.size()));
  }
  now_ = moment;
}

void SimulatedService::end_step() {
  const auto first = std::ranges::min_element(running_, {}, &RunningStep::left);
  const Step step = std::move(first->step);
  running_.erase(first);
  const double way = scheduler_.model(step.model).way;
  const Scheduler::Finished finished = scheduler_.finish(step, now_);
  const auto tell = [&](const std::vector<RequestId>& requests, RequestFate fate) {
    for (const RequestId id : requests) ended_.push_back({id, step.model, fate, now_ + way});
  };
  tell(finished.completed, RequestFate::complete);
  tell(finished.cancelled, RequestFate::cancelled);
}

void SimulatedService::start_steps() {
  while (auto step = scheduler_.next(now_)) {
    const double each = overhead_ + scheduler_.model(step->model).front;
    const double beside = step->last ? each * static_cast<double>(step->requests.size()) : 0;
    const double time = step->expected + beside;
    running_.push_back({std::move(*step), time});
  }
}

void SimulatedService::advance(double moment) {
  for (auto end = earliest_end(); end && *end <= moment; end = earliest_end()) {
    pass(*end);
    end_step();
    start_steps();
  }
  pass(moment);
}

Admission SimulatedService::submit(const NewRequest& request, double moment) {
  advance(moment);
  Admission admission = scheduler_.submit(request, moment);
  start_steps();
  return admission;
}

void SimulatedService::cancel(RequestId request, double moment) {
  advance(moment);
  const std::optional<ModelNumber> model = scheduler_.model_of(request);
  if (!model || !scheduler_.cancel(request)) return;
  ended_.push_back({request, *model, RequestFate::cancelled, moment});
  start_steps();
}

void SimulatedService::finish() {
  for (auto end = earliest_end(); end; end = earliest_end()) advance(*end);
}

}  // namespace placewright
