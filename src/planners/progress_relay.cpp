#include "planners/progress_relay.h"

#include <utility>

namespace placewright {

void ProgressRelay::report(Progress progress) {
  if (in_owner_thread()) {
    deliver();
    observer_(progress);
    return;
  }
  const std::lock_guard guard(mutex_);
  waiting_.push_back(std::move(progress));
  waiting_any_.store(true, std::memory_order_relaxed);
}

void ProgressRelay::deliver() {
  if (!waiting_any_.load(std::memory_order_relaxed) || !in_owner_thread()) return;
  std::vector<Progress> arrived;
  {
    const std::lock_guard guard(mutex_);
    arrived.swap(waiting_);
    waiting_any_.store(false, std::memory_order_relaxed);
  }
  for (const Progress& progress : arrived) observer_(progress);
}

}  // namespace placewright
