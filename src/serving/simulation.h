// What a server of some models will do under some load, from the code that it runs (scheduler.h)
// and the times that it measured, with a clock that only counts.
//
// Steps take the times of their models, and each request what receiving and answering costs beside
// (`overhead`); see simulated_service.h.
//
// O((requests + steps) models).

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "serving/scheduler.h"
#include "serving/simulated_service.h"

namespace placewright {

// Moments in milliseconds.
struct RequestArrival {
  double time = 0;
  ModelNumber model = 0;
  std::optional<double> deadline = {};
  std::optional<double> cancelled = {};
};

struct SimulatedRequest {
  RequestFate fate = RequestFate::complete;
  double end = 0;  // when it was answered, refused or left
};

struct ServiceSimulation {
  std::vector<SimulatedRequest> requests;  // by arrival
  double busy = 0;                         // milliseconds
  double duration = 0;                     // until the last request has ended
};

// Arrivals by time. Throws std::invalid_argument for a model that there is not.
ServiceSimulation simulate_service(std::span<const ServedModel> models,
                                   const SchedulerOptions& options,
                                   std::span<const RequestArrival> arrivals, double overhead = 0);

// `rates`: requests a second, by model; until there are `count` of them. Independent exponential
// gaps.
std::vector<RequestArrival> poisson_arrivals(std::span<const double> rates, std::size_t count,
                                             std::uint64_t seed);

// The share of the time that these requests keep the cores busy, if they all are served.
double load_of(std::span<const ServedModel> models, std::span<const RequestArrival> arrivals);

// The same arrivals, closer to each other or further apart, so that they make this load.
std::vector<RequestArrival> at_load(std::span<const ServedModel> models,
                                    std::vector<RequestArrival> arrivals, double load);

// What the requests of a model met with; latencies from arrival to answer, in milliseconds.
struct ServiceSummary {
  std::string model;
  std::size_t requests = 0;
  std::size_t answered = 0;
  std::size_t refused = 0;
  std::size_t cancelled = 0;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double normalised = 0;  // mean of latency / own time
  std::optional<double> in_time =
      {};  // the share of all requests that meet their deadline, where they have one
};

// By model, then of all of them under the name "all".
std::vector<ServiceSummary> summaries_of(std::span<const ServedModel> models,
                                         std::span<const RequestArrival> arrivals,
                                         const ServiceSimulation& simulation);

// The smallest value that at least this share of the values does not exceed; 0 of none. Sorts them.
double percentile(std::vector<double>& values, double share);

}  // namespace placewright
