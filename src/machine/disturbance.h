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
// several cores waiting for the others is part of the work, so what counts is the time for which
// threads of this process were ready to run and had no core, the threads that help a backend as
// well, but no more than half of the period: another core went on. These are the threads that there
// are when the probe is made. All of the time is lost if the calling thread was on a core that is
// not its own.
std::unique_ptr<DisturbanceProbe> probe_of_cores(std::vector<int> cores);

// For a number of inferences at once that threads of a backend carry out, whose cores nobody chose:
// the calling thread waits for them and may be anywhere. The loss is the time for which threads of
// this process were ready to run and had no core, shared by the streams.
std::unique_ptr<DisturbanceProbe> probe_of_streams(int streams);

// For whatever the threads of this process do that there are now, all of them together; the calling
// thread only looks after them, and whether it waits does not matter.
std::unique_ptr<DisturbanceProbe> probe_of_other_threads();

}  // namespace placewright
