#include "serving/service_trace.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/json_text.h"

namespace placewright {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCores = 1;     // process of the timeline
constexpr int kRequests = 2;  // the same

double microseconds(double milliseconds) {
  return milliseconds * 1000;
}

Json named(int process, const std::string& name) {
  return {{"ph", "M"}, {"pid", process}, {"name", "process_name"}, {"args", {{"name", name}}}};
}

Json thread_named(int thread, const std::string& name) {
  return {{"ph", "M"},
          {"pid", kCores},
          {"tid", thread},
          {"name", "thread_name"},
          {"args", {{"name", name}}}};
}

// Steps on all cores stand on the first line, those on a half on one of their own.
Json event_of(const ServiceTrace::StepSpan& step) {
  const std::string name =
      step.segment ? fmt::format("{} segment {}", step.model, *step.segment) : step.model;
  return {{"ph", "X"},
          {"pid", kCores},
          {"tid", step.half ? 1 + *step.half : 0},
          {"name", name},
          {"ts", microseconds(step.begin)},
          {"dur", microseconds(step.end - step.begin)},
          {"args", {{"requests", step.requests}}}};
}

// Its wait and its computation, below each other.
void append_events(Json& events, const ServiceTrace::RequestSpan& request) {
  const auto add = [&](const char* phase, const std::string& name, double moment) {
    events.push_back({{"ph", phase},
                      {"pid", kRequests},
                      {"cat", request.model},
                      {"id", request.id},
                      {"name", name},
                      {"ts", microseconds(moment)},
                      {"args",
                       {{"request", request.id},
                        {"client_id", request.client_id},
                        {"answer", request.answer}}}});
  };
  add("b", request.model, request.arrival);
  add("b", "waits", request.arrival);
  add("e", "waits", request.begin);
  add("e", request.model, request.end);
}

}  // namespace

void ServiceTrace::add(StepSpan step) {
  const std::lock_guard lock(mutex_);
  steps_.push_back(std::move(step));
  if (steps_.size() > kKept) steps_.pop_front();
}

void ServiceTrace::add(RequestSpan request) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(std::move(request));
  if (requests_.size() > kKept) requests_.pop_front();
}

std::string ServiceTrace::text(const std::optional<std::string>& client_id) const {
  Json events = Json::array({named(kCores, "cores"), named(kRequests, "requests"),
                             thread_named(0, "all cores"), thread_named(1, "lower half"),
                             thread_named(2, "upper half")});
  const std::lock_guard lock(mutex_);
  std::set<RequestId> shown;
  for (const RequestSpan& request : requests_) {
    if (client_id && request.client_id != *client_id) continue;
    shown.insert(request.id);
    append_events(events, request);
  }
  for (const StepSpan& step : steps_) {
    const auto is_shown = [&](RequestId id) { return shown.contains(id); };
    if (client_id && std::ranges::none_of(step.requests, is_shown)) continue;
    events.push_back(event_of(step));
  }
  return json_text({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}, -1) + "\n";
}

}  // namespace placewright
