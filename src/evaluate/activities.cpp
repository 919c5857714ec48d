#include "evaluate/activities.h"

#include <utility>

#include "evaluate/rules/durations.h"
#include "evaluate/rules/transfers.h"

namespace placewright {
namespace {

using Edges = std::vector<std::pair<ActivityId, ActivityId>>;

// Appends the transfers of one tensor and the edges producer -> transfers -> consumers.
class TensorRoutes {
 public:
  TensorRoutes(const Problem& problem, const Placement& placement, ActivityNetwork& network,
               Edges& edges)
      : problem_(problem),
        placement_(placement),
        network_(network),
        edges_(edges),
        route_(problem.space_count()) {}

  void add(TensorId tensor) {
    const OpId producer = problem_.producer(tensor);
    const DeviceId from = placement_[producer];
    const ActivityId source{producer.index()};
    ActivityId out;
    for (const OpId consumer : problem_.consumers(tensor)) {
      const DeviceId to = placement_[consumer];
      ActivityId via = source;
      if (!problem_.same_space(from, to)) {
        ActivityId& known = route_[problem_.space(to)];
        if (!known.valid()) {
          known = along_route(problem_, tensor, from, to, source,
                              [&](const Hop& hop, ActivityId after) {
                                if (hop.leg == Leg::out && out.valid()) return out;
                                const ActivityId id = append(tensor, hop, after);
                                if (hop.leg == Leg::out) out = id;
                                return id;
                              });
        }
        via = known;
      }
      edges_.emplace_back(via, ActivityId{consumer.index()});
    }
    for (const OpId consumer : problem_.consumers(tensor)) {
      route_[problem_.space(placement_[consumer])] = ActivityId{};
    }
  }

 private:
  ActivityId append(TensorId tensor, const Hop& hop, ActivityId after) {
    DeviceId to = hop.to;
    if (to.valid() && problem_.has_shared_spaces()) {
      to = receiving_device(problem_, placement_, tensor, problem_.space(to));
    }
    const ActivityId id{network_.op_count + network_.transfers.size()};
    network_.transfers.push_back(Transfer{tensor, hop.leg, hop.from, to, 0, 0});
    network_.duration.push_back(hop.length);
    edges_.emplace_back(after, id);
    return id;
  }

  const Problem& problem_;
  const Placement& placement_;
  ActivityNetwork& network_;
  Edges& edges_;
  Table<SpaceId, ActivityId> route_;  // how the tensor at hand reaches a space
};

}  // namespace

ActivityNetwork::ActivityNetwork(const Problem& problem, const Placement& placement)
    : op_count(problem.op_count()) {
  const Table<OpId, double> durations = op_durations(problem, placement);
  duration = Table<ActivityId, double>{std::vector<double>(durations.begin(), durations.end())};
  Edges edges;
  TensorRoutes routes(problem, placement, *this, edges);
  for (const TensorId tensor : problem.tensors()) routes.add(tensor);
  successors = Rows<ActivityId, ActivityId>::from_pairs(size(), edges);
  predecessor_count.assign(size(), 0);
  for (const auto& edge : edges) ++predecessor_count[edge.second];
}

}  // namespace placewright
