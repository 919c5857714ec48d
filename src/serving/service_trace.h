// What the cores computed of late, and for whom: a timeline that Perfetto and Chrome's tracing
// show.
//
// The last kKept steps and the last kKept requests are kept. To note one costs less than a
// microsecond.

#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "serving/scheduler.h"

namespace placewright {

class ServiceTrace {
 public:
  static constexpr std::size_t kKept = 2000;

  // Moments are milliseconds since the start of the service.
  struct StepSpan {
    std::string model;
    std::vector<RequestId> requests;
    std::optional<std::size_t> segment = {};
    std::optional<std::size_t> half = {};
    double begin = 0;
    double end = 0;
  };
  struct RequestSpan {
    RequestId id = 0;
    std::string model;
    std::string client_id;  // what the client calls the request; may be empty
    std::string answer;     // "done", "late", …
    double arrival = 0;
    double begin = 0;  // of its first step, or its end
    double end = 0;
  };

  void add(StepSpan step);
  void add(RequestSpan request);

  // JSON of trace events. With an id: of the requests that the client calls so.
  [[nodiscard]] std::string text(const std::optional<std::string>& client_id = {}) const;

 private:
  mutable std::mutex mutex_;
  std::deque<StepSpan> steps_;
  std::deque<RequestSpan> requests_;
};

}  // namespace placewright
