// List scheduling: ops one after the other onto the schedule so far.
//
// earliest_end_plan     in a given order, each op on the device where it ends first, in gaps
//                       between earlier ops where it fits (HEFT's second half). With the time
//                       behind an op, the device where that ends first (PEFT).
// earliest_start_plan   again and again, of all ready ops and the devices that the choice offers,
//                       the pair with the earliest start; ties by upward rank, then by end (ETF). A
//                       rule may put off, or rule out, an op on a device. An op that it keeps off
//                       all devices goes wherever the choice allows.
//
// Starts hardly ever move forward in time while the schedule grows, so each ready op keeps its last
// known start in a heap and is looked at again only when it comes first, and probed only when its
// device would be free by then: a few probes per op and device instead of (ready ops x devices)
// each time.

#pragma once

#include <functional>
#include <optional>
#include <span>

#include "planners/methods/device_choice.h"
#include "planners/planner.h"
#include "problem/plan.h"

namespace placewright {

class StartRule {
 public:
  virtual ~StartRule() = default;
  // When the op may start on the device, seen that it could at `start`. kInfinity: not there.
  [[nodiscard]] virtual double allowed_start(OpId op, DeviceId device, double start) const = 0;
  virtual void placed(OpId op, DeviceId device, double end) = 0;
};

// All return nullopt at a dead end of the choice, or when asked to stop.
// `behind`: what follows an op at the least, by the kind of device that it is on; none: nothing.
using TimeBehind = std::function<std::span<const double>(OpId op)>;
std::optional<Plan> earliest_end_plan(const Problem& problem, std::span<const OpId> order,
                                      DeviceChoice& choice, Control& control,
                                      const TimeBehind& behind = {});
std::optional<Plan> earliest_start_plan(const Problem& problem, const Table<OpId, double>& ranks,
                                        DeviceChoice& choice, Control& control);
std::optional<Plan> earliest_start_plan(const Problem& problem, const Table<OpId, double>& ranks,
                                        DeviceChoice& choice, StartRule& rule, Control& control);

}  // namespace placewright
