// Schedules: every op and transfer has its times.

#include <algorithm>
#include <utility>
#include <vector>

#include "evaluate/cost_model.h"
#include "evaluate/schedule.h"

namespace placewright {
namespace {

// Times this close are the same moment: what ends then makes room for what starts.
constexpr double kMoment = 1e-9;

struct Change {
  double time;
  double bytes;
};

class ScheduleSimulation {
 public:
  ScheduleSimulation(const Problem& problem, const Plan& plan, Simulation& simulation)
      : problem_(problem),
        placement_(plan.placement),
        schedule_(*plan.schedule),
        simulation_(simulation),
        changes_(problem.space_count()),
        last_use_(problem.space_count(), 0) {}

  void run() {
    for (const OpId op : problem_.ops()) {
      DeviceSummary& device = simulation_.devices[placement_[op]];
      device.compute += schedule_.end[op] - schedule_.start[op];
      device.busy = device.compute;
      simulation_.end = std::max(simulation_.end, schedule_.end[op]);
    }
    for (const Transfer& transfer : schedule_.transfers) {
      simulation_.add(transfer);
      simulation_.end = std::max(simulation_.end, transfer.end);
    }
    hold_tensors();
    Table<SpaceId, Highest> highest(problem_.space_count());
    for (const SpaceId space : problem_.spaces()) {
      highest[space] = highest_level(changes_[space], kMoment * simulation_.end);
    }
    for (const DeviceId device : problem_.devices()) {
      DeviceSummary& summary = simulation_.devices[device];
      summary.idle = idle_time(simulation_.end * problem_.device(device).lanes, summary.busy);
      summary.peak = summary.resident + highest[problem_.space(device)].level;
      summary.peak_time = highest[problem_.space(device)].time;
    }
  }

 private:
  struct Highest {
    double level = 0;
    double time = 0;  // when it is first reached
  };

  [[nodiscard]] SpaceId space_of(OpId op) const { return problem_.space(placement_[op]); }

  void hold(DeviceId device, double start, double end, double bytes) {
    if (bytes == 0 || in_host_memory(problem_, device)) return;
    changes_[problem_.space(device)].push_back({start, bytes});
    changes_[problem_.space(device)].push_back({end, -bytes});
  }

  // The tensor's last use in each space that reads it, at least `least`.
  void find_last_uses(TensorId tensor, double least) {
    for (const OpId reader : problem_.consumers(tensor)) last_use_[space_of(reader)] = least;
    for (const OpId reader : problem_.consumers(tensor)) {
      double& last = last_use_[space_of(reader)];
      last = std::max(last, schedule_.end[reader]);
    }
  }

  void hold_tensors() {
    const auto transfers = transfers_by_tensor();
    for (const TensorId tensor : problem_.tensors()) {
      const OpId producer = problem_.producer(tensor);
      const DeviceId home = placement_[producer];
      last_use_[space_of(producer)] = schedule_.end[producer];
      find_last_uses(tensor, schedule_.end[producer]);
      double home_end = last_use_[space_of(producer)];
      for (const Transfer* transfer : transfers[tensor]) {
        if (transfer->from.valid()) home_end = std::max(home_end, transfer->end);
        if (!transfer->to.valid()) continue;
        const double last_use = last_use_[problem_.space(transfer->to)];
        hold(transfer->to, transfer->start, std::max(transfer->end, last_use),
             problem_.tensor(tensor).bytes);
      }
      hold(home, schedule_.start[producer], home_end, problem_.tensor(tensor).bytes);
    }
  }

  [[nodiscard]] Rows<TensorId, const Transfer*> transfers_by_tensor() const {
    std::vector<std::pair<TensorId, const Transfer*>> pairs;
    pairs.reserve(schedule_.transfers.size());
    for (const Transfer& transfer : schedule_.transfers) {
      pairs.emplace_back(transfer.tensor, &transfer);
    }
    return Rows<TensorId, const Transfer*>::from_pairs(problem_.tensor_count(), pairs);
  }

  static Highest highest_level(std::vector<Change>& changes, double moment) {
    for (Change& change : changes) {
      if (change.bytes < 0) change.time -= moment;
    }
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
    });
    double level = 0;
    Highest highest;
    for (const Change& change : changes) {
      level += change.bytes;
      if (level > highest.level) highest = {level, change.time};
    }
    return highest;
  }

  const Problem& problem_;
  const Placement& placement_;
  const Schedule& schedule_;
  Simulation& simulation_;
  Table<SpaceId, std::vector<Change>> changes_;
  Table<SpaceId, double> last_use_;
};

class ScheduleCosts final : public CostModel {
 public:
  [[nodiscard]] std::optional<Plan> plan_of(const Problem& problem,
                                            const Placement& placement) const override {
    const Table<OpId, double> ranks = upward_ranks(problem);
    ScheduleEvaluator evaluator(problem);
    Plan serial = schedule_plan(problem, placement,
                                evaluator.schedule(list_order(problem, ranks), placement));
    if (serial.value == kInfinity) return std::nullopt;
    Plan eager = schedule_plan(problem, placement, dispatch(problem, placement, ranks));
    return serial.value <= eager.value ? std::move(serial) : std::move(eager);
  }

  [[nodiscard]] std::optional<Plan> in_the_shape_of(const Plan& shape, const Problem& problem,
                                                    const Placement& placement) const override {
    if (!shape.schedule) return std::nullopt;
    return schedule_plan(problem, placement, retime(problem, placement, *shape.schedule));
  }

  void simulate(const Problem& problem, const Plan& plan, Simulation& simulation) const override {
    ScheduleSimulation(problem, plan, simulation).run();
  }

  [[nodiscard]] std::vector<Transfer> movements(const Problem&, const Plan& plan) const override {
    return plan.schedule->transfers;
  }
};

}  // namespace

const CostModel& schedule_costs() {
  static const ScheduleCosts costs;
  return costs;
}

}  // namespace placewright
