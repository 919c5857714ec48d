// Earliest task first with a say: list scheduling in which a rule may put off, or rule out, an op
// on a device.
//
// Again and again, of all ready ops and the devices that the choice offers, the pair with the
// earliest start as the rule sees it; ties by upward rank, then by end. Without a rule this is ETF
// (baselines/etf.cpp). An op that the rule keeps off all devices goes wherever the choice allows.
// Each ready op keeps its last known start in a heap and is looked at again when it comes first: a
// few probes per op and device.

#pragma once

#include <optional>

#include "planners/device_choice.h"
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

// Nothing at a dead end of the choice, or when told to stop.
std::optional<Plan> earliest_start_plan(const Problem& problem, const Table<OpId, double>& ranks,
                                        DeviceChoice& choice, StartRule& rule, Control& control);

}  // namespace placewright
