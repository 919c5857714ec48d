#include "planners/methods/transient_rule.h"

#include <optional>

#include "planners/methods/transient_rule.h"

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

Answer largest_speed_ups_first(const Problem& problem, Control& control) {
  const SpeedUps speed_ups(problem);
  return construct(problem, control, [&](DeviceChoice& choice) -> std::optional<Plan> {
    EventRun run(problem);
    const auto rule = [&](EventRun& now) { start_largest_speed_ups(now, speed_ups, choice); };
    if (!run_events(run, rule, [&] { return control.should_stop(); })) return std::nullopt;
    return run.finish();
  });
}

}  // namespace placewright
