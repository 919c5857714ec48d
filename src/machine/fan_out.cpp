#include "machine/fan_out.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

namespace placewright {
namespace {

// As many helpers as can be made, and at most `most`.
std::vector<std::jthread> start_helpers(std::size_t most, const ThreadFactory& make_thread,
                                        const std::function<void()>& body) {
  std::vector<std::jthread> helpers;
  try {
    while (helpers.size() < most) helpers.push_back(make_thread(body));
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return helpers;
}

}  // namespace

std::jthread start_thread(std::function<void()> body) {
  return std::jthread(std::move(body));
}

void FanOut::run(std::size_t count, const std::function<void(std::size_t)>& work) const {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take_numbers = [&] {
    try {
      for (std::size_t number = next++; number < count; number = next++) work(number);
    } catch (...) {
      next = count;
      const std::lock_guard guard(mutex);
      if (failure) return;
      failure = std::current_exception();
      if (on_failure) on_failure();
    }
  };
  constexpr std::size_t kMostForEachCore = 8;
  const std::size_t most =
      kMostForEachCore * std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
  const std::size_t wanted =
      std::min({static_cast<std::size_t>(std::max(threads, 1)), count, most});
  std::vector<std::jthread> helpers =
      start_helpers(wanted > 0 ? wanted - 1 : 0, make_thread, take_numbers);
  take_numbers();
  helpers.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace placewright
