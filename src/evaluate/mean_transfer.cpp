#include "evaluate/mean_transfer.h"

namespace placewright {

Table<TensorId, double> mean_transfer_times(const Problem& problem) {
  const double pairs = static_cast<double>(problem.device_count() * problem.device_count());
  // Mean latency and inverse bandwidth over linked pairs serve every tensor without a table.
  double latency = 0;
  double inverse_bandwidth = 0;
  for (const Link& link : problem.draft().cluster.links) {
    latency += link.latency / pairs;
    inverse_bandwidth += 1 / link.bandwidth / pairs;
  }
  double accelerators = 0;
  for (const DeviceId device : problem.devices()) accelerators += problem.on_host(device) ? 0 : 1;
  const double accelerator_share = accelerators / static_cast<double>(problem.device_count());
  const auto mean_transfer = [&](TensorId id) {
    const Tensor& tensor = problem.tensor(id);
    if (problem.interconnect() == InterconnectKind::host) {
      return tensor.host_time * 2 * accelerator_share;
    }
    if (tensor.link_times.empty()) return latency + tensor.bytes * inverse_bandwidth;
    double sum = 0;
    for (const double time : tensor.link_times) sum += time < kInfinity ? time : 0;
    return sum / pairs;
  };

  Table<TensorId, double> times(problem.tensor_count());
  for (const TensorId tensor : problem.tensors()) times[tensor] = mean_transfer(tensor);
  return times;
}

}  // namespace placewright
