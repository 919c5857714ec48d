#include "serving/simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>

namespace placewright {
namespace {

// When the request had to be answered, if anybody said so.
std::optional<double> deadline_of(const ServedModel& model, const RequestArrival& arrival) {
  if (arrival.deadline) return arrival.deadline;
  if (model.service.objective) return arrival.time + *model.service.objective;
  return std::nullopt;
}

struct Collected {
  ServiceSummary summary;
  std::vector<double> latencies;
  double normalised = 0;
  std::size_t deadlines = 0;
  std::size_t in_time = 0;

  void add(const ServedModel& model, const RequestArrival& arrival, const SimulatedRequest& met) {
    ++summary.requests;
    const std::optional<double> deadline = deadline_of(model, arrival);
    const bool left = met.fate == RequestFate::cancelled;  // and nobody waits for the answer
    deadlines += deadline && !left ? 1 : 0;
    summary.refused += met.fate == RequestFate::refused ? 1 : 0;
    summary.cancelled += left ? 1 : 0;
    if (met.fate != RequestFate::complete) return;
    ++summary.answered;
    latencies.push_back(met.end - arrival.time);
    normalised += latencies.back() / model.whole;
    in_time += deadline && met.end <= *deadline ? 1 : 0;
  }
  ServiceSummary finished(const std::string& name) {
    summary.model = name;
    const auto answered = static_cast<double>(std::max<std::size_t>(summary.answered, 1));
    for (const double latency : latencies) summary.mean += latency / answered;
    summary.p50 = percentile(latencies, 0.5);
    summary.p95 = percentile(latencies, 0.95);
    summary.p99 = percentile(latencies, 0.99);
    summary.normalised = normalised / answered;
    if (deadlines > 0) {
      summary.in_time = static_cast<double>(in_time) / static_cast<double>(deadlines);
    }
    return std::move(summary);
  }
};

}  // namespace

ServiceSimulation simulate_service(std::span<const ServedModel> models,
                                   const SchedulerOptions& options,
                                   std::span<const RequestArrival> arrivals, double overhead) {
  SimulatedService service(options, overhead);
  for (const ServedModel& model : models) service.add(model);
  ServiceSimulation result;
  result.requests.resize(arrivals.size());
  std::map<RequestId, std::size_t> arrival_of;
  std::multimap<double, RequestId> leaving;
  const auto settle = [&] {
    for (const SimulatedService::Ended& each : service.take_ended()) {
      const auto found = arrival_of.find(each.request);
      result.requests[found->second] = {each.fate, each.moment};
      arrival_of.erase(found);
    }
  };
  const auto leave_before = [&](double moment) {
    while (!leaving.empty() && leaving.begin()->first < moment) {
      service.cancel(leaving.begin()->second, leaving.begin()->first);
      leaving.erase(leaving.begin());
    }
  };
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const RequestArrival& arrival = arrivals[i];
    leave_before(arrival.time);
    const Admission admission =
        service.submit({.model = arrival.model, .deadline = arrival.deadline}, arrival.time);
    if (admission.request) {
      arrival_of.emplace(*admission.request, i);
      if (arrival.cancelled.value_or(-1) >= arrival.time) {
        leaving.emplace(*arrival.cancelled, *admission.request);
      }
    } else {
      result.requests[i] = {RequestFate::refused, arrival.time};
    }
    settle();
  }
  leave_before(std::numeric_limits<double>::infinity());
  service.finish();
  settle();
  result.busy = service.busy();
  result.duration = service.now();
  return result;
}

std::vector<RequestArrival> poisson_arrivals(std::span<const double> rates, std::size_t count,
                                             std::uint64_t seed) {
  double total = 0;
  for (const double rate : rates) total += rate;
  if (!(total > 0)) throw std::invalid_argument("there is no model with requests");
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap(total / 1000);
  std::discrete_distribution<std::size_t> which(rates.begin(), rates.end());
  std::vector<RequestArrival> arrivals(count);
  double now = 0;
  for (RequestArrival& arrival : arrivals) {
    now += gap(random);
    arrival = {now, which(random)};
  }
  return arrivals;
}

double load_of(std::span<const ServedModel> models, std::span<const RequestArrival> arrivals) {
  if (arrivals.empty() || !(arrivals.back().time > 0)) return 0;
  double work = 0;
  for (const RequestArrival& arrival : arrivals) work += models[arrival.model].whole;
  return work / arrivals.back().time;
}

std::vector<RequestArrival> at_load(std::span<const ServedModel> models,
                                    std::vector<RequestArrival> arrivals, double load) {
  const double now = load_of(models, arrivals);
  if (!(now > 0)) return arrivals;
  const double factor = now / load;
  for (RequestArrival& arrival : arrivals) {
    const double time = arrival.time * factor;
    // How long a client waits does not depend on how many others there are.
    if (arrival.deadline) *arrival.deadline += time - arrival.time;
    if (arrival.cancelled) *arrival.cancelled += time - arrival.time;
    arrival.time = time;
  }
  return arrivals;
}

std::vector<ServiceSummary> summaries_of(std::span<const ServedModel> models,
                                         std::span<const RequestArrival> arrivals,
                                         const ServiceSimulation& simulation) {
  std::vector<Collected> collected(models.size() + 1);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const ServedModel& model = models[arrivals[i].model];
    collected[arrivals[i].model].add(model, arrivals[i], simulation.requests[i]);
    collected.back().add(model, arrivals[i], simulation.requests[i]);
  }
  std::vector<ServiceSummary> summaries;
  for (std::size_t model = 0; model < models.size(); ++model) {
    summaries.push_back(collected[model].finished(models[model].name));
  }
  summaries.push_back(collected.back().finished("all"));
  return summaries;
}

double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace placewright
