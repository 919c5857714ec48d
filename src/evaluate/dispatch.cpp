#include <algorithm>
#include <map>
#include <queue>

#include "evaluate/activities.h"
#include "evaluate/resource_profile.h"
#include "evaluate/schedule.h"
#include "problem/lanes.h"

namespace placewright {
namespace {

// The clock only moves on, so lanes, resources and ports are counters here, not times: the rules of
// evaluate/rules/ at one moment (tests/evaluate/timers_test.cpp).
class Dispatcher {
 public:
  Dispatcher(const Problem& problem, const Placement& placement,
             const Table<OpId, double>& priority)
      : problem_(problem),
        placement_(placement),
        network_(problem, placement),
        urgency_(network_.size()),
        missing_(network_.predecessor_count),
        start_(network_.size(), 0),
        ready_ops_(problem.device_count(), Queue{MoreUrgent{&urgency_}}),
        free_lanes_(problem.device_count()),
        taken_(problem.resource_count(), 0),
        out_busy_(problem.space_count(), 0),
        in_busy_(problem.space_count(), 0),
        out_queues_(problem.space_count()),
        in_queues_(problem.space_count()) {
    for (const OpId op : problem.ops()) urgency_[network_.of(op)] = priority[op];
    // A transfer is as urgent as the most urgent activity behind it; `in` legs come after `out`s.
    for (std::size_t i = network_.size(); i-- > network_.op_count;) {
      double urgency = -kInfinity;
      for (const ActivityId next : network_.successors[ActivityId{i}]) {
        urgency = std::max(urgency, urgency_[next]);
      }
      urgency_[ActivityId{i}] = urgency;
    }
    for (const DeviceId device : problem.devices())
      free_lanes_[device] = useful_lanes(problem, device);
    make_queues();
  }

  Schedule run() {
    for (const ActivityId id : missing_.keys()) {
      if (missing_[id] == 0) become_ready(id, 0);
    }
    start_what_can(0);
    while (!events_.empty()) {
      const double now = events_.top().time;
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        if (event.released) {
          enqueue(event.activity, now);
        } else {
          finish(event.activity, now);
        }
      }
      start_what_can(now);
    }
    return collect();
  }

 private:
  struct MoreUrgent {
    const Table<ActivityId, double>* urgency;
    bool operator()(ActivityId a, ActivityId b) const {
      return (*urgency)[a] != (*urgency)[b] ? (*urgency)[a] < (*urgency)[b] : a > b;
    }
  };
  using Queue = std::priority_queue<ActivityId, std::vector<ActivityId>, MoreUrgent>;

  struct Event {
    double time;
    ActivityId activity;
    bool released;  // the model arrived; otherwise: the activity ended
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : activity > other.activity;
    }
  };

  // Transfers with the same ends wait in one queue. Only ends between which something moves have
  // one: pairs of spaces can be far more than transfers.
  void make_queues() {
    std::map<std::pair<SpaceId, SpaceId>, std::size_t> numbers;
    for (const Transfer& transfer : network_.transfers) {
      const SpaceId from = out_port(problem_, transfer);
      const SpaceId to = in_port(problem_, transfer);
      const auto [entry, is_new] = numbers.try_emplace({from, to}, numbers.size());
      queue_of_.push_back(entry->second);
      if (!is_new) continue;
      if (from.valid()) out_queues_[from].push_back(entry->second);
      if (to.valid()) in_queues_[to].push_back(entry->second);
    }
    waiting_.assign(numbers.size(), Queue{MoreUrgent{&urgency_}});
  }

  // The queues that wait for the ports of a transfer that has ended.
  void touch_queues_behind(const Transfer& transfer) {
    const auto touch = [&](const Table<SpaceId, std::vector<std::size_t>>& queues, SpaceId port) {
      if (!port.valid()) return;
      touched_.insert(touched_.end(), queues[port].begin(), queues[port].end());
    };
    touch(out_queues_, out_port(problem_, transfer));
    touch(in_queues_, in_port(problem_, transfer));
  }

  void become_ready(ActivityId id, double now) {
    if (network_.is_op(id)) {
      const double arrival = released(problem_, network_.op(id));
      if (arrival > now) {
        events_.push(Event{arrival, id, true});
        return;
      }
    }
    enqueue(id, now);
  }

  void enqueue(ActivityId id, double now) {
    const bool is_op = network_.is_op(id);
    const double length = network_.duration[id];
    if (is_op ? length == 0 : !occupies_ports(problem_, length)) {
      begin(id, now);
    } else if (is_op) {
      ready_ops_[placement_[network_.op(id)]].push(id);
    } else {
      const std::size_t queue = queue_of_[id.index() - network_.op_count];
      waiting_[queue].push(id);
      touched_.push_back(queue);
    }
  }

  void begin(ActivityId id, double now) {
    start_[id] = now;
    events_.push(Event{now + network_.duration[id], id, false});
  }

  void finish(ActivityId id, double now) {
    if (network_.duration[id] > 0) release(id);
    for (const ActivityId successor : network_.successors[id]) {
      if (--missing_[successor] == 0) become_ready(successor, now);
    }
  }

  void release(ActivityId id) {
    if (network_.is_op(id)) {
      ++free_lanes_[placement_[network_.op(id)]];
      take_resources(network_.op(id), -1);
    } else if (problem_.rules().congestion) {
      occupy(network_.transfer(id), 0);
      touch_queues_behind(network_.transfer(id));
    }
  }

  void occupy(const Transfer& transfer, char busy) {
    const SpaceId out = out_port(problem_, transfer);
    const SpaceId in = in_port(problem_, transfer);
    if (out.valid()) out_busy_[out] = busy;
    if (in.valid()) in_busy_[in] = busy;
  }

  void start_what_can(double now) {
    if (problem_.resource_count() > 0) {
      start_sharing_ops(now);
    } else {
      for (const DeviceId device : problem_.devices()) {
        while (free_lanes_[device] > 0 && !ready_ops_[device].empty()) start_next_op(device, now);
      }
    }
    start_transfers(now);
  }

  void start_next_op(DeviceId device, double now) {
    Queue& queue = ready_ops_[device];
    --free_lanes_[device];
    take_resources(network_.op(queue.top()), 1);
    begin(queue.top(), now);
    queue.pop();
  }

  // Devices that share resources are served in the order of their most urgent ops; one that does
  // not fit now does not keep back the less urgent.
  void start_sharing_ops(double now) {
    const MoreUrgent less_urgent{&urgency_};
    candidates_.clear();
    for (const DeviceId device : problem_.devices()) {
      if (free_lanes_[device] > 0 && !ready_ops_[device].empty()) candidates_.push_back(device);
    }
    std::sort(candidates_.begin(), candidates_.end(), [&](DeviceId a, DeviceId b) {
      return less_urgent(ready_ops_[b].top(), ready_ops_[a].top());
    });
    for (const DeviceId device : candidates_) {
      while (free_lanes_[device] > 0 && !ready_ops_[device].empty() &&
             resources_allow(network_.op(ready_ops_[device].top()))) {
        start_next_op(device, now);
      }
    }
  }

  [[nodiscard]] bool resources_allow(OpId op) const {
    const auto uses = problem_.uses(placement_[op]);
    return std::all_of(uses.begin(), uses.end(), [&](const ResourceUse& use) {
      const double capacity = problem_.resource(use.resource).capacity;
      return taken_[use.resource] + problem_.share(op, placement_[op]) * use.amount <=
             capacity * (1 + kCapacityTolerance);
    });
  }

  void take_resources(OpId op, int sign) {
    for (const ResourceUse& use : problem_.uses(placement_[op])) {
      taken_[use.resource] += sign * problem_.share(op, placement_[op]) * use.amount;
    }
  }

  [[nodiscard]] bool ports_free(const Transfer& transfer) const {
    const SpaceId out = out_port(problem_, transfer);
    const SpaceId in = in_port(problem_, transfer);
    return (!out.valid() || !out_busy_[out]) && (!in.valid() || !in_busy_[in]);
  }

  // The most urgent first. Whatever could start at the last event has started, so only queues with
  // a new transfer or a freed port are looked at; after a start the ports of its queue are taken.
  void start_transfers(double now) {
    std::erase_if(touched_, [&](std::size_t queue) {
      return waiting_[queue].empty() || !ports_free(network_.transfer(waiting_[queue].top()));
    });
    const MoreUrgent less_urgent{&urgency_};
    std::sort(touched_.begin(), touched_.end(), [&](std::size_t a, std::size_t b) {
      return less_urgent(waiting_[b].top(), waiting_[a].top());
    });
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const std::size_t queue : touched_) {
      const ActivityId id = waiting_[queue].top();
      if (!ports_free(network_.transfer(id))) continue;
      occupy(network_.transfer(id), 1);
      begin(id, now);
      waiting_[queue].pop();
    }
    touched_.clear();
  }

  Schedule collect() const {
    Schedule schedule;
    schedule.start.assign(problem_.op_count(), 0);
    schedule.end.assign(problem_.op_count(), 0);
    for (const OpId op : problem_.ops()) {
      schedule.start[op] = start_[network_.of(op)];
      schedule.end[op] = schedule.start[op] + network_.duration[network_.of(op)];
    }
    schedule.transfers = network_.transfers;
    for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
      const ActivityId id{network_.op_count + i};
      schedule.transfers[i].start = start_[id];
      schedule.transfers[i].end = start_[id] + network_.duration[id];
    }
    return schedule;
  }

  const Problem& problem_;
  const Placement& placement_;
  ActivityNetwork network_;
  Table<ActivityId, double> urgency_;
  Table<ActivityId, std::uint32_t> missing_;
  Table<ActivityId, double> start_;
  std::priority_queue<Event> events_;
  Table<DeviceId, Queue> ready_ops_;
  Table<DeviceId, int> free_lanes_;
  Table<ResourceId, double> taken_;
  std::vector<DeviceId> candidates_;
  Table<SpaceId, char> out_busy_;
  Table<SpaceId, char> in_busy_;
  Table<SpaceId, std::vector<std::size_t>> out_queues_;  // for the port of the space
  Table<SpaceId, std::vector<std::size_t>> in_queues_;
  std::vector<std::size_t> queue_of_;  // by transfer
  std::vector<Queue> waiting_;         // by queue
  std::vector<std::size_t> touched_;   // queues in which a transfer may now be able to start
};

}  // namespace

Schedule dispatch(const Problem& problem, const Placement& placement,
                  const Table<OpId, double>& priority) {
  return Dispatcher(problem, placement, priority).run();
}

}  // namespace placewright
