// Before which no op can start on a device, when too late an input must have been made there
// (forced_company.h). Once forwards, and once for the reversed graph.

#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "problem/problem.h"

namespace placewright {

// What a test of a value has found out so far: where each op may run, and which transfers are out
// of the question.
struct Surroundings {
  std::size_t devices = 0;
  std::vector<char> allowed;          // op x device
  std::vector<std::size_t> together;  // by op: the cluster that shares a device
  std::vector<char> apart;            // by edge: its ends are on different devices
  std::vector<DeviceId> like;         // by device: the first that differs in name only

  [[nodiscard]] bool may(OpId op, DeviceId device) const {
    return allowed[op.index() * devices + device.index()] != 0;
  }
};

// A tensor on its way to one reader, as it is or reversed.
struct Arc {
  OpId from;
  TensorId tensor;
  std::size_t edge;  // counted by tensor, then by reader
};

// How late the worst of the jobs is on a machine that may interrupt them; not positive: all are in
// time. Changes the order.
struct MachineJob {
  double release = 0;
  double length = 0;
  double deadline = 0;
};
double least_lateness(std::vector<MachineJob>& jobs);

enum class Direction { forward, backward };

class EarliestStarts {
 public:
  // Forward: starts count from 0, and models arrive. Backward: from the end of everything.
  EarliestStarts(const Problem& problem, Direction direction);

  // False when asked to stop.
  bool compute(const Surroundings& around, const std::function<bool()>& stop);

  // Infinite where the op may not run.
  [[nodiscard]] double start(OpId op, DeviceId device) const { return start_[at(op, device)]; }
  [[nodiscard]] const std::vector<double>& starts() const { return start_; }
  [[nodiscard]] double end(OpId op, DeviceId device) const {
    return start_[at(op, device)] + problem_.time(op, device);
  }

 private:
  [[nodiscard]] std::size_t at(OpId op, DeviceId device) const {
    return op.index() * devices_ + device.index();
  }
  [[nodiscard]] double move(TensorId tensor, DeviceId from, DeviceId to) const;
  void prepare_arrivals(OpId op, const Surroundings& around);
  [[nodiscard]] double start_by_paths(OpId op, DeviceId device, const Surroundings& around) const;
  [[nodiscard]] double raised(OpId op, DeviceId device, double start, const Surroundings& around);
  double gather(OpId op, DeviceId device, double start, const Surroundings& around);

  const Problem& problem_;
  Direction direction_;
  std::size_t devices_;
  std::vector<OpId> order_;
  std::vector<std::size_t> rank_;               // by op: its place in the order
  std::vector<std::vector<Arc>> inputs_;        // by op
  std::vector<std::vector<double>> elsewhere_;  // by op: arc x device, arrival from other devices
  std::vector<double> start_;                   // op x device

  // Of one question `raised`; marks are cleared behind it.
  std::vector<double> deadline_;     // by op; infinite: not forced
  std::vector<std::size_t> forced_;  // heap of ranks still to be looked at
  std::vector<OpId> taken_;
  std::vector<MachineJob> jobs_;
};

}  // namespace placewright
