// One piece of work on several threads.
//
//   FanOut{.threads = 4}.run(points.size(), [&](std::size_t number) { plan(points[number]); });
//
// The numbers are handed out in order, each to whichever thread is free; the calling thread is one
// of them. There are never more threads than eight for each core: more bring nothing, and each
// takes memory that the work needs. Two things go wrong with threads, and neither may end the
// program:
//
//  * A thread cannot be made (a limit of the system, or no memory for its stack). The numbers then
//    go to the threads there are, at worst to the calling one alone.
//  * The work throws. No number is handed out any more, `on_failure` is called so that work in
//    progress can be told to stop, and `run` throws the first exception when all threads have
//    ended.

#pragma once

#include <cstddef>
#include <functional>
#include <thread>

namespace placewright {

// Starts a thread. Throws std::system_error or std::bad_alloc if it cannot be made.
using ThreadFactory = std::function<std::jthread(std::function<void()> body)>;
std::jthread start_thread(std::function<void()> body);

struct FanOut {
  int threads = 1;                        // at most, the calling one included
  std::function<void()> on_failure = {};  // must not throw; called once, in the thread that failed
  ThreadFactory make_thread = start_thread;

  // Calls `work` with 0 … count - 1.
  void run(std::size_t count, const std::function<void(std::size_t)>& work) const;
};

}  // namespace placewright
