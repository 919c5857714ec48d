#include "serving/simulated_service.h"

#include <algorithm>

namespace placewright {

std::optional<double> SimulatedService::earliest_end() const {
  if (running_.empty()) return std::nullopt;
  const double least = std::ranges::min_element(running_, {}, &RunningStep::left)->left;
  return now_ + least * static_cast<double>(running_.size());
}

void SimulatedService::pass(double moment) {
  if (!running_.empty()) {
    const double each = (moment - now_) / static_cast<double>(running_.size());
    for (RunningStep& running : running_) running.left -= each;
    busy_ += moment - now_;
  }
  now_ = moment;
}

void SimulatedService::end_step() {
  const auto first = std::ranges::min_element(running_, {}, &RunningStep::left);
  const Step step = std::move(first->step);
  running_.erase(first);
  const Scheduler::Finished finished = scheduler_.finish(step, now_);
  const auto tell = [&](const std::vector<RequestId>& requests, RequestFate fate) {
    for (const RequestId id : requests) ended_.push_back({id, step.model, fate, now_});
  };
  tell(finished.completed, RequestFate::complete);
  tell(finished.cancelled, RequestFate::cancelled);
}

void SimulatedService::start_steps() {
  while (auto step = scheduler_.next(now_)) {
    const double beside = step->last ? overhead_ * static_cast<double>(step->requests.size()) : 0;
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
