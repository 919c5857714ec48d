// TSAM: transient speed-up.
//
// Whenever a device is free and ops are ready, the pair of ready op and free device with the
// largest speed-up starts; of equal pairs the op that was ready first, then the first device. A
// device is never left idle while an op that it may run is ready, even where waiting for a faster
// one would pay. O(events x ready ops x devices).
//
// It looks at no later event, so it is an online rule as it stands: models that arrive later change
// nothing before their arrival. A baseline from the Talos paper.

#include <optional>

#include "planners/device_choice.h"
#include "planners/flow/event_run.h"
#include "planners/flow/speed_up.h"
#include "planners/published/published.h"
#include "planners/published/transient_rule.h"

namespace placewright {
namespace {

struct Pair {
  OpId op;
  DeviceId device;
  double speed_up = -1;
};

Pair largest_speed_up(const EventRun& run, const SpeedUps& speed_ups, DeviceChoice& choice) {
  Pair best;
  for (const OpId op : run.ready()) {
    for (const DeviceId device : choice.candidates(op)) {
      if (run.idle_lanes(device) == 0 || run.inputs_at(op, device) == kInfinity) continue;
      const double speed_up = speed_ups.of(op, device);
      if (speed_up > best.speed_up) best = {op, device, speed_up};
    }
  }
  return best;
}

}  // namespace

void start_largest_speed_ups(EventRun& run, const SpeedUps& speed_ups, DeviceChoice& choice) {
  while (true) {
    const Pair best = largest_speed_up(run, speed_ups, choice);
    if (!best.op.valid()) return;
    choice.take(best.op, best.device);
    run.start(best.op, best.device);
  }
}

namespace {

Answer plan(const Problem& problem, const Settings&, Control& control) {
  const SpeedUps speed_ups(problem);
  return construct(problem, control, [&](DeviceChoice& choice) -> std::optional<Plan> {
    EventRun run(problem);
    const auto rule = [&](EventRun& now) { start_largest_speed_ups(now, speed_ups, choice); };
    if (!run_events(run, rule, [&] { return control.should_stop(); })) return std::nullopt;
    return run.finish();
  });
}

}  // namespace

PlannerEntry tsam() {
  return PlannerEntry{.name = "tsam",
                      .summary = "the ready op and free device with the largest speed-up, at once",
                      .objectives = {Objective::total_completion},
                      .role = Role::published,
                      .knows_sharing = true,
                      .plan = plan};
}

}  // namespace placewright
