// What a server's requests should meet with: the same requests, as they come, in a simulated
// service beside it.
//
// Its latencies stand beside the measured ones. Where they differ, the cores did not compute as
// they did when the models were measured: something else uses them, or the processor is slower now.
// A request costs about as much as in the scheduler itself, some microseconds. Not for two threads
// at once.

#pragma once

#include <map>
#include <memory>

#include "serving/latency_record.h"
#include "serving/simulated_service.h"

namespace placewright {

class ServiceForecast {
 public:
  explicit ServiceForecast(const SchedulerOptions& options) : service_(options) {}

  // Models in the same order as the scheduler has them, so that they have the same numbers.
  // Its latencies go to the record.
  void add(const ServedModel& model, std::shared_ptr<LatencyRecord> latency);
  void remove(ModelNumber model);
  // `real`: the number that the request has in the service that is forecast; 0: it was refused.
  void submit(RequestId real, const NewRequest& request, double now);
  // Of a request that leaves before its answer.
  void cancel(RequestId real, double now);
  // Of a request that has been answered: nobody cancels it any more.
  void forget(RequestId real) { numbers_.erase(real); }
  void advance(double now);

 private:
  void record();

  SimulatedService service_;
  std::map<ModelNumber, std::shared_ptr<LatencyRecord>> latencies_;
  std::map<RequestId, double> arrivals_;    // of those that live in the simulated service
  std::map<RequestId, RequestId> numbers_;  // in the simulated service, by the real one
};

}  // namespace placewright
