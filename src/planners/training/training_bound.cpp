// What no training plan can beat (training_planner.h). For a micro-batch size b, with M
// micro-batches:
//
//   X   the least, over all ways to spread M passes of every layer over the pools, of the largest
//       GPU-seconds of a pool per GPU: some replica is busy for at least X;
//   F   the shortest slots that the stages beside that replica's can have. Such a stage has layers that
//       do not fit beside those of the busiest one, or, if all fit, the first or the last layer.
//
// A step takes at least X + F + the longest update of a layer; as one stage X + all updates + the
// all-reduce of two replicas, or everything on one group. Any plan is one of these.

#include <algorithm>
#include <vector>

#include "planners/training/partition_bound.h"
#include "planners/training/training_search.h"
#include "solvers/linear_program.h"

namespace placewright {
namespace {

using solvers::kUnbounded;

class StepBound {
 public:
  StepBound(const TrainingSearch& search, int micro_batch)
      : model_(search.model()),
        problem_(search.problem()),
        types_(search.group_types(micro_batch)),
        micro_batch_(micro_batch),
        micro_batches_(problem_.batch / micro_batch) {}

  double seconds() const {
    const std::size_t layers = problem_.layers();
    double longest_update = 0;
    for (std::size_t l = 0; l < layers; ++l) {
      longest_update = std::max(longest_update, least_update(l, l + 1));
    }
    const double busiest = spread_work(true);
    const double beside =
        std::max(least_beside(), std::min(least_compute(0, 1), least_compute(layers - 1, layers)));
    return std::min(busiest + beside + longest_update, one_stage(spread_work(false)));
  }

  // Of all passes, each on the cheapest group.
  double price() const {
    double price = 0;
    for (std::size_t l = 0; l < problem_.layers(); ++l) {
      price += micro_batches_ * least(l, l + 1, [&](const GroupType& type) {
                 return type.degree * kind(type).price / 3600 * compute(type, l, l + 1);
               });
    }
    return price;
  }

 private:
  const GpuKind& kind(const GroupType& type) const {
    return problem_.kinds[problem_.pools[type.pool].kind];
  }
  double compute(const GroupType& type, std::size_t first, std::size_t last) const {
    return model_.compute(problem_.pools[type.pool].kind, type.degree, micro_batch_, first, last);
  }

  // Of the groups whose memory holds these layers with one micro-batch in flight; infinite if none
  // does.
  template <class Cost>
  double least(std::size_t first, std::size_t last, Cost cost) const {
    double least = kInfinity;
    for (const GroupType& type : types_) {
      if (model_.memory(type.degree, micro_batch_, first, last, 1) <= kind(type).memory) {
        least = std::min(least, cost(type));
      }
    }
    return least;
  }
  double least_compute(std::size_t first, std::size_t last) const {
    return least(first, last, [&](const GroupType& type) { return compute(type, first, last); });
  }
  double least_update(std::size_t first, std::size_t last) const {
    return least(first, last, [&](const GroupType& type) {
      return model_.update(problem_.pools[type.pool].kind, type.degree, micro_batch_, first, last);
    });
  }

  // What each layer adds at least to the sends of its stage, where there are several stages: one
  // boundary of the fewest bytes at the best speed, shared by the most layers that fit such a
  // group.
  double send_of_layer(const GroupType& type) const {
    double bytes = kInfinity;
    for (const double output : problem_.sizes_of(type.degree)->outputs) {
      bytes = std::min(bytes, output * micro_batch_);
    }
    double speed = 0;
    for (const PoolLink& link : problem_.links) {
      if (link.from == type.pool || link.to == type.pool) {
        speed = std::max(speed, link.best / link.gpus);
      }
    }
    std::size_t most = 1;
    for (std::size_t first = 0, last = 0; first < problem_.layers(); ++first) {
      last = std::max(last, first);
      while (last < problem_.layers() &&
             model_.memory(type.degree, micro_batch_, first, last + 1, 1) <= kind(type).memory) {
        ++last;
      }
      most = std::max(most, last - first);
    }
    return speed > 0 ? 2 * bytes / speed / static_cast<double>(most) : 0;
  }

  // X, with sends where there are several stages; infinite if some layer fits nowhere.
  double spread_work(bool several_stages) const {
    std::vector<double> sends;
    for (const GroupType& type : types_) sends.push_back(several_stages ? send_of_layer(type) : 0);
    solvers::LinearProgram program;
    const int busiest = program.add_variable(0, kUnbounded, 1);
    std::vector<std::vector<solvers::LinearTerm>> loads(problem_.pools.size());
    for (std::size_t l = 0; l < problem_.layers(); ++l) {
      std::vector<solvers::LinearTerm> passes;
      for (std::size_t p = 0; p < problem_.pools.size(); ++p) {
        const double work = least(l, l + 1, [&](const GroupType& type) {
          const double send = sends[static_cast<std::size_t>(&type - types_.data())];
          return type.pool == p ? type.degree * (compute(type, l, l + 1) + send) : kInfinity;
        });
        if (work == kInfinity) continue;
        const int share = program.add_variable(0, 1, 0);
        passes.push_back({share, 1});
        loads[p].push_back({share, work * micro_batches_});
      }
      if (passes.empty()) return kInfinity;
      program.add_row(1, 1, passes);
    }
    for (std::size_t p = 0; p < problem_.pools.size(); ++p) {
      const NodePool& pool = problem_.pools[p];
      loads[p].push_back({busiest, -static_cast<double>(pool.gpus) * pool.count});
      program.add_row(-kUnbounded, 0, loads[p]);
    }
    // HiGHS solves to a tolerance of 1e-7; the bound stays below.
    constexpr double kRounding = 1e-6;
    const solvers::LinearResult result = program.solve();
    return result.status == solvers::LinearStatus::optimal ? result.objective * (1 - kRounding) : 0;
  }

  // F, where not all layers fit one group: the layers outside a window that fits, each at its best.
  double least_beside() const {
    const std::size_t layers = problem_.layers();
    std::vector<double> sums(layers + 1, 0);
    for (std::size_t l = 0; l < layers; ++l) sums[l + 1] = sums[l] + least_compute(l, l + 1);
    double inside = 0;
    for (std::size_t first = 0, last = 0; first < layers; ++first) {
      last = std::max(last, first);
      while (last < layers && least_compute(first, last + 1) < kInfinity) ++last;
      inside = std::max(inside, sums[last] - sums[first]);
    }
    return sums[layers] - inside;
  }

  double one_stage(double busiest) const {
    const std::size_t layers = problem_.layers();
    const double update = least_update(0, layers);
    if (update == kInfinity) return kInfinity;
    double speed = 0;
    for (const PoolLink& link : problem_.links) speed = std::max(speed, link.best);
    double gradients = kInfinity;  // of the degree with the fewest
    for (const LayerSizes& sizes : problem_.sizes) {
      double parameters = 0;
      for (const double number : sizes.parameters) parameters += number;
      gradients = std::min(gradients, 4 * sizes.degree * parameters);
    }
    const double reduction =
        speed > 0 ? gradients / speed / problem_.constants.all_reduce_efficiency : 0;
    const double alone = micro_batches_ * least_compute(0, layers);
    return std::min(alone, busiest + reduction) + update;
  }

  const StepModel& model_;
  const TrainingProblem& problem_;
  std::vector<GroupType> types_;
  int micro_batch_;
  int micro_batches_;
};

}  // namespace

double training_bound(const StepModel& model, double value, std::string& method,
                      const TrainingLimits& limits) {
  const TrainingSearch search(model, limits);
  const bool time = model.problem().objective == TrainingObjective::step_time;
  std::vector<double> simple;
  for (const int size : search.micro_batch_sizes()) {
    const StepBound of_size(search, size);
    simple.push_back(time ? of_size.seconds() : of_size.price());
  }
  const double least = simple.empty() ? kInfinity : *std::ranges::min_element(simple);
  method = time ? "work over all GPUs" : "work on the cheapest GPUs";
  if (!time || simple.empty()) return least;
  const double bound = partition_bound(search, simple, value);
  if (bound > least) method = "partitions of the layers";
  return std::max(bound, least);
}

}  // namespace placewright
