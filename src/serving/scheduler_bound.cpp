// The scheduler's part about how long an aged request can wait; the proof is in scheduler.h.

#include <algorithm>

#include "serving/scheduler.h"

namespace placewright {

double Scheduler::longest_service(const Entry& entry) const {
  double longest = std::max(entry.own, entry.served.whole);
  for (const auto& [size, time] : entry.served.batches) {
    if (time <= options_.longest_batch) longest = std::max(longest, time);
  }
  return longest;
}

double Scheduler::longest_step() const {
  double longest = 0;
  for (const auto& [number, entry] : models_) {
    const auto& segments = entry.served.segments;
    const bool in_steps = runs_cut(entry) && entry.served.batches.empty();
    longest =
        std::max(longest, in_steps ? *std::ranges::max_element(segments) : longest_service(entry));
  }
  return longest;
}

double Scheduler::longest_on_half() const {
  double longest = 0;
  for (const auto& [number, entry] : models_) longest = std::max(longest, entry.served.on_half);
  return longest;
}

std::optional<double> Scheduler::bound(RequestId id, double now) const {
  const auto found = where_.find(id);
  if (found == where_.end()) return std::nullopt;
  const Entry& own = models_.at(found->second);
  double arrival = now;
  if (const auto waits = own.waiting.find(id); waits != own.waiting.end()) {
    arrival = waits->second.arrival;
  } else {
    for (const Begun& begun : own.begun) {
      for (const Request& request : begun.requests) {
        if (request.id == id) arrival = request.arrival;
      }
    }
  }
  if (now - arrival <= options_.ageing * own.served.whole) return std::nullopt;
  double work = 0;
  for (const auto& [number, entry] : models_) {
    const auto before = std::distance(entry.waiting.begin(), entry.waiting.upper_bound(id));
    work += longest_service(entry) * static_cast<double>(before + 1);
  }
  return now + longest_on_half() + (work + longest_step()) / options_.share;
}

}  // namespace placewright
