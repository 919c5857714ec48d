// Whether others used a device while something of ours ran on it.
//
// A probe belongs to one device and is used by the one thread that drives the device there. A set
// of cores has the probe below; any other device has the one that its backend provides. Where there
// is none nobody can tell, and a measurement says so (Measured::watched) instead of calling itself
// undisturbed.

#pragma once

#include <memory>
#include <vector>

namespace placewright {

class DisturbanceProbe {
 public:
  virtual ~DisturbanceProbe() = default;

  virtual void begin() = 0;
  // Milliseconds since `begin` that the device gave to others.
  [[nodiscard]] virtual double lost() const = 0;
};

// The calling thread must be bound to the cores.
//
// On a single core the loss is what the clock went on beyond the thread's processor time. On
// several cores waiting for the others is part of the work, so each time that the system took the
// core away from the thread counts as a usual time slice, but as no more than half of the period:
// another core went on. All of the time is lost if the thread was on a core that is not its own.
std::unique_ptr<DisturbanceProbe> probe_of_cores(std::vector<int> cores);

}  // namespace placewright
