#include "serving/forecast.h"

namespace placewright {

void ServiceForecast::add(const ServedModel& model, std::shared_ptr<LatencyRecord> latency) {
  latencies_.emplace(service_.add(model), std::move(latency));
}

void ServiceForecast::remove(ModelNumber model) {
  service_.remove(model);
  // Its last requests count for nobody.
  latencies_.erase(model);
}

void ServiceForecast::submit(RequestId real, const NewRequest& request, double now) {
  const Admission admission = service_.submit(request, now);
  if (admission.request) {
    arrivals_.emplace(*admission.request, now);
    if (real != 0) numbers_.emplace(real, *admission.request);
  }
  record();
}

void ServiceForecast::cancel(RequestId real, double now) {
  const auto found = numbers_.find(real);
  if (found == numbers_.end()) return;
  service_.cancel(found->second, now);
  numbers_.erase(found);
  record();
}

void ServiceForecast::advance(double now) {
  service_.advance(now);
  record();
}

void ServiceForecast::record() {
  for (const SimulatedService::Ended& each : service_.take_ended()) {
    const auto arrival = arrivals_.extract(each.request);
    const auto latency = latencies_.find(each.model);
    if (each.fate != RequestFate::complete || latency == latencies_.end()) continue;
    latency->second->add(each.moment - arrival.mapped());
  }
}

}  // namespace placewright
