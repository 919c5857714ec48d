#include "planners/training/partition_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "solvers/linear_program.h"

namespace placewright {
namespace {

constexpr double kTolerance = 1e-9;
constexpr int kPrices = 40;  // vectors of prices for one range
constexpr double kHighestPrice = 100;
constexpr double kClose = 1e-3;  // of what is asked for: prices are not better by more
constexpr std::size_t kMostDepths = 12;
constexpr double kGradientBytes = 4;

// Of a range's curve a x^2 + b x + c for x from 0 to 10.
double highest(const PoolLink& link) {
  double most = link.c;
  constexpr double kEnd = 10;
  most = std::max(most, link.a * kEnd * kEnd + link.b * kEnd + link.c);
  const double top = link.a < 0 ? -link.b / (2 * link.a) : -1;
  if (top > 0 && top < kEnd) most = std::max(most, link.a * top * top + link.b * top + link.c);
  return std::min(most * 1e9, link.best);
}

// Of `count` replicas, from that of two.
double ring(double of_two, double count) {
  return count < 2 ? 0 : of_two * 2 * (count - 1) / count;
}

}  // namespace

PartitionBound::PartitionBound(const TrainingSearch& search, int micro_batch)
    : model_(search.model()),
      problem_(search.problem()),
      types_(search.group_types(micro_batch)),
      layers_(search.problem().layers()),
      micro_batch_(micro_batch),
      micro_batches_(search.problem().batch / micro_batch) {
  for (const NodePool& pool : problem_.pools) {
    gpus_.push_back(static_cast<double>(pool.gpus) * pool.count);
  }
  find_depths();
  if (feasible_) find_stages();
}

int PartitionBound::most_micro_batches(const GroupType& type, std::size_t first, std::size_t last,
                                       int depth) const {
  const double memory = problem_.kinds[problem_.pools[type.pool].kind].memory;
  int most = std::min(depth, micro_batches_);
  const auto fits = [&](int in_flight) {
    return model_.memory(type.degree, micro_batch_, first, last, in_flight) <= memory;
  };
  if (fits(most)) return micro_batches_;
  while (most > 0 && !fits(most)) --most;
  return most;
}

// Whether all groups together take all micro-batches of such a stage.
bool PartitionBound::can_hold(std::size_t first, std::size_t last, int depth) const {
  double most = 0;
  for (std::size_t p = 0; p < problem_.pools.size(); ++p) {
    double of_pool = 0;
    for (const GroupType& type : types_) {
      if (type.pool != p) continue;
      of_pool =
          std::max(of_pool, gpus_[p] / type.degree * most_micro_batches(type, first, last, depth));
    }
    most += of_pool;
  }
  return most >= micro_batches_ * (1 - kTolerance);
}

// From the last stage forward each holds as many layers as it can: fewer stages cover no more.
void PartitionBound::find_depths() {
  behind_.assign(layers_ + 1, 0);
  std::size_t last = layers_;
  for (int depth = 1; last > 0; ++depth) {
    std::size_t first = last;
    while (first > 0 && can_hold(first - 1, last, depth)) --first;
    if (first == last) return;
    for (std::size_t layer = first; layer < last; ++layer) behind_[layer] = depth;
    last = first;
  }
  feasible_ = true;
}

double PartitionBound::fastest(std::size_t pool, std::size_t other, int streams) const {
  double best = 0;
  for (const PoolLink& link : problem_.links) {
    const bool joins =
        (link.from == pool && link.to == other) || (link.from == other && link.to == pool);
    if (!joins) continue;
    best = std::max(best, std::min(1.0, static_cast<double>(streams) / link.gpus) * highest(link));
  }
  return best;
}

double PartitionBound::slot_of(const GroupType& type, std::size_t first, std::size_t last) const {
  const auto exchange = [&](std::size_t boundary) {
    double least = kInfinity;
    for (std::size_t p = 0; p < problem_.pools.size(); ++p) {
      least = std::min(least, model_.exchange(type.pool, p, type.degree, micro_batch_, boundary));
    }
    return least;
  };
  return model_.compute(problem_.pools[type.pool].kind, type.degree, micro_batch_, first, last) +
         (first > 0 ? exchange(first) : 0) + (last < layers_ ? exchange(last) : 0);
}

double PartitionBound::gradients(int degree, std::size_t first, std::size_t last) const {
  const LayerSizes& sizes = *problem_.sizes_of(degree);
  double parameters = 0;
  for (std::size_t l = first; l < last; ++l) parameters += sizes.parameters[l];
  return kGradientBytes * degree * parameters;
}

PartitionBound::Stage PartitionBound::stage_of(std::size_t first, std::size_t last) const {
  Stage stage{{}, kInfinity};
  const auto two = [&](const GroupType& type, std::size_t other) {
    const double speed = fastest(type.pool, other, type.degree);
    const double bytes = gradients(type.degree, first, last);
    if (bytes == 0) return 0.0;
    return speed > 0 ? bytes / speed / problem_.constants.all_reduce_efficiency : kInfinity;
  };
  for (const GroupType& type : types_) {
    if (most_micro_batches(type, first, last, behind_[last] + 1) == 0) continue;
    const std::size_t kind = problem_.pools[type.pool].kind;
    stage.choices.push_back({type, slot_of(type, first, last),
                             model_.update(kind, type.degree, micro_batch_, first, last),
                             two(type, type.pool)});
    for (std::size_t other = 0; other < problem_.pools.size(); ++other) {
      if (other != type.pool) {
        stage.exchange_across = std::min(stage.exchange_across, two(type, other));
      }
    }
  }
  return stage;
}

void PartitionBound::find_stages() {
  stages_.resize((layers_ + 1) * (layers_ + 1));
  for (std::size_t first = 0; first < layers_; ++first) {
    for (std::size_t last = first + 1; last <= layers_; ++last) {
      stages_[index(first, last)] = stage_of(first, last);
    }
  }
  // Where depth makes no difference to memory, one stands for all.
  const auto differs = [&](std::size_t first, std::size_t last) {
    return std::ranges::any_of(types_, [&](const GroupType& type) {
      return most_micro_batches(type, first, last, 1) !=
             most_micro_batches(type, first, last, static_cast<int>(layers_));
    });
  };
  for (std::size_t first = 0; first < layers_; ++first) {
    for (std::size_t last = first + 1; last <= layers_; ++last) {
      if (differs(first, last)) depths_ = std::min(kMostDepths, layers_);
    }
  }
  most_.resize(stages_.size() * depths_ * types_.size());
  for (std::size_t first = 0; first < layers_; ++first) {
    for (std::size_t last = first + 1; last <= layers_; ++last) {
      const std::size_t stage = index(first, last);
      const std::vector<Choice>& choices = stages_[stage].choices;
      for (std::size_t d = 0; d < depths_; ++d) {
        for (std::size_t c = 0; c < choices.size(); ++c) {
          most_[(stage * depths_ + d) * types_.size() + c] = most_micro_batches(
              choices[c].type, first, last, std::max(static_cast<int>(d), behind_[last]) + 1);
        }
      }
    }
  }
}

void PartitionBound::add_options(std::size_t stage, std::size_t depth, double steady, double tail,
                                 std::vector<Option>& options) const {
  struct Usable {
    const Choice* choice;
    double taken;  // micro-batches of a group
  };
  std::vector<Usable> usable;
  const std::vector<Choice>& choices = stages_[stage].choices;
  double update = kInfinity;
  double of_two = stages_[stage].exchange_across;
  double most = 0;
  for (std::size_t c = 0; c < choices.size(); ++c) {
    const double fits = most_[(stage * depths_ + depth) * types_.size() + c];
    if (fits == 0) continue;
    const double passes = choices[c].slot > 0
                              ? std::floor(1 + steady / choices[c].slot + kTolerance)
                              : static_cast<double>(micro_batches_);
    usable.push_back({&choices[c], std::min(passes, fits)});
    update = std::min(update, choices[c].update);
    of_two = std::min(of_two, choices[c].exchange_of_two);
    most = std::max(most, usable.back().taken);
  }
  const auto groups = [&](double taken) { return std::ceil(micro_batches_ / taken - kTolerance); };
  const bool may_mix =
      usable.size() > 1 && ring(of_two, std::max(2.0, groups(most))) + update <= tail + kTolerance;
  for (const Usable& one : usable) {
    const Choice& choice = *one.choice;
    const double count = groups(one.taken);
    const double gpus = count * choice.type.degree;
    const bool fits_tail = ring(choice.exchange_of_two, count) + choice.update <= tail + kTolerance;
    if (fits_tail && gpus <= gpus_[choice.type.pool] * (1 + kTolerance)) {
      options.push_back({choice.slot, choice.type.pool, gpus});
    }
    if (!may_mix) continue;
    double other = kInfinity;
    for (const Usable& next : usable) {
      if (next.choice != one.choice) other = std::min(other, next.choice->slot);
    }
    options.push_back({std::max(choice.slot, other), choice.type.pool,
                       micro_batches_ / one.taken * choice.type.degree});
  }
}

PartitionBound::Options PartitionBound::options_for(double steady, double tail) const {
  Options options;
  options.begin.reserve(depths_ * stages_.size() + 1);
  for (std::size_t depth = 0; depth < depths_; ++depth) {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      options.begin.push_back(options.all.size());
      if (stages_[stage].choices.empty()) continue;
      add_options(stage, depth, steady, tail, options.all);
    }
  }
  options.begin.push_back(options.all.size());
  return options;
}

// The least sum of slots and priced GPUs; `gpus` becomes those of that partition. From the last
// stage forward, over the stages behind and the first layer.
double PartitionBound::priced(const Options& options, const std::vector<double>& prices,
                              std::vector<double>& gpus) const {
  struct Best {
    double value = kInfinity;
    std::size_t option = 0;
    std::size_t last = 0;
    std::size_t behind = 0;
  };
  std::vector<Best> best((depths_ + 1) * (layers_ + 1));
  const auto at = [&](std::size_t behind, std::size_t first) -> Best& {
    return best[behind * (layers_ + 1) + first];
  };
  at(0, layers_).value = 0;
  for (std::size_t last = layers_; last > 0; --last) {
    for (std::size_t behind = 0; behind <= depths_; ++behind) {
      const double before = at(behind, last).value;
      if (before == kInfinity) continue;
      const std::size_t depth = std::min(behind, depths_ - 1);
      const std::size_t next = std::min(behind + 1, depths_);
      for (std::size_t first = last; first-- > 0;) {
        const std::size_t stage = depth * stages_.size() + index(first, last);
        Best& here = at(next, first);
        for (std::size_t o = options.begin[stage]; o < options.begin[stage + 1]; ++o) {
          const Option& option = options.all[o];
          const double value = before + option.slot + prices[option.pool] * option.gpus;
          if (value < here.value) here = {value, o, last, behind};
        }
      }
    }
  }
  std::size_t behind = 0;
  for (std::size_t other = 1; other <= depths_; ++other) {
    if (at(other, 0).value < at(behind, 0).value) behind = other;
  }
  const double value = at(behind, 0).value;
  std::ranges::fill(gpus, 0);
  for (std::size_t first = 0; value < kInfinity && first < layers_;) {
    const Best& here = at(behind, first);
    gpus[options.all[here.option].pool] += options.all[here.option].gpus;
    first = here.last;
    behind = here.behind;
  }
  return value;
}

// Cutting planes (Kelley): the prices that are best for the partitions seen so far give the next
// one.
double PartitionBound::fill(double steady, double tail, double enough) const {
  const Options options = options_for(steady, tail);
  const std::size_t pools = gpus_.size();
  solvers::LinearProgram program;
  const int height = program.add_variable(-solvers::kUnbounded, enough, -1);
  std::vector<int> variables;
  for (const double gpus : gpus_) {
    variables.push_back(program.add_variable(0, kHighestPrice * enough / gpus, 0));
  }
  std::vector<double> prices(pools, 0);
  std::vector<double> gpus(pools, 0);
  double best = 0;
  for (int i = 0; i < kPrices; ++i) {
    double value = priced(options, prices, gpus);
    if (value == kInfinity) return kInfinity;
    double slots = value;
    std::vector<solvers::LinearTerm> terms = {{height, 1}};
    for (std::size_t p = 0; p < pools; ++p) {
      slots -= prices[p] * gpus[p];
      value -= prices[p] * gpus_[p];
      terms.push_back({variables[p], gpus_[p] - gpus[p]});
    }
    best = std::max(best, value);
    if (best >= enough) return best;
    program.add_row(-solvers::kUnbounded, slots, terms);
    const solvers::LinearResult result = program.solve();
    if (result.status != solvers::LinearStatus::optimal) return best;
    if (-result.objective <= best + kClose * enough) return best;
    for (std::size_t p = 0; p < pools; ++p) {
      prices[p] = std::max(0.0, result.values[static_cast<std::size_t>(variables[p])]);
    }
  }
  return best;
}

namespace {

constexpr int kRanges = 600;
constexpr double kNarrow = 1e-3;  // of the value: a range that is not worth splitting

// Plans whose T and A are in these ranges, with micro-batches of one size.
struct Range {
  double bound = 0;
  std::size_t size = 0;
  double steady_from = 0;
  double steady_to = 0;
  double tail_from = 0;
  double tail_to = 0;

  friend bool operator<(const Range& one, const Range& other) { return one.bound > other.bound; }
};

}  // namespace

double partition_bound(const TrainingSearch& search, const std::vector<double>& simple,
                       double value) {
  std::vector<PartitionBound> bounds;
  std::priority_queue<Range> open;
  const double end = value < kInfinity ? value : 0;
  for (const int size : search.micro_batch_sizes()) {
    const PartitionBound& bound = bounds.emplace_back(search, size);
    const std::size_t index = bounds.size() - 1;
    if (bound.feasible()) open.push({simple[index], index, 0, end, 0, end});
  }
  if (open.empty()) return kInfinity;
  if (value == kInfinity) return open.top().bound;
  for (int step = 0; step < kRanges && !open.empty() && !search.should_stop(); ++step) {
    const Range range = open.top();
    const double width =
        std::max(range.steady_to - range.steady_from, range.tail_to - range.tail_from);
    if (range.bound >= value * (1 - kTolerance) || width < kNarrow * value) break;
    open.pop();
    // The longer side: a range is as good as its lower ends.
    const bool by_steady = range.steady_to - range.steady_from >= range.tail_to - range.tail_from;
    const double middle = by_steady ? (range.steady_from + range.steady_to) / 2
                                    : (range.tail_from + range.tail_to) / 2;
    for (const bool upper : {false, true}) {
      Range part = range;
      double& from = by_steady ? part.steady_from : part.tail_from;
      double& to = by_steady ? part.steady_to : part.tail_to;
      (upper ? from : to) = middle;
      const double ends = part.steady_from + part.tail_from;
      if (ends >= value) continue;
      const double fill = bounds[part.size].fill(part.steady_to, part.tail_to, value - ends);
      part.bound = std::max(part.bound, ends + fill);
      if (part.bound < value) open.push(part);
    }
  }
  return open.empty() ? value : std::min(value, open.top().bound);
}

}  // namespace placewright
