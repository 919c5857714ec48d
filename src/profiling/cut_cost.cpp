#include "profiling/cut_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include <fmt/format.h>

#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "machine/workers.h"

namespace placewright {
namespace {

constexpr std::uint64_t kSeed = 1;  // of the inputs

// Segments compiled for a target, each reading what those before it made.
class Chain {
 public:
  Chain(const NeuralModel& model, const std::vector<OpGroup>& segments, const Target& target,
        const Buffers& inputs) {
    std::map<TensorKey, std::pair<std::size_t, std::size_t>> made;  // segment, output
    for (const OpGroup& ops : segments) {
      CompiledPart& part = *parts_.emplace_back(model.compile(ops, compile_options(target)));
      Request& request = *requests_.emplace_back(part.request());
      for (std::size_t i = 0; i < part.inputs().size(); ++i) {
        const TensorKey& tensor = part.inputs()[i];
        if (tensor.is_model_input()) {
          request.bind_input(i, *inputs[tensor.port]);
          continue;
        }
        const auto& [segment, output] = made.at(tensor);
        Buffer& buffer = requests_[segment]->output(output);
        request.bind_input(i, buffer);
        ++transfers_;
        bytes_ += static_cast<double>(buffer.size());
      }
      for (std::size_t o = 0; o < part.outputs().size(); ++o) {
        made.try_emplace(part.outputs()[o], parts_.size() - 1, o);
      }
    }
  }

  void run() {
    for (const auto& request : requests_) request->run();
  }
  [[nodiscard]] std::size_t transfers() const { return transfers_; }
  [[nodiscard]] double bytes() const { return bytes_; }
  [[nodiscard]] std::size_t segments() const { return parts_.size(); }

 private:
  std::vector<std::unique_ptr<CompiledPart>> parts_;
  std::vector<std::unique_ptr<Request>> requests_;  // gone before the parts
  std::size_t transfers_ = 0;
  double bytes_ = 0;
};

double cost_per_transfer(const CutCost& cost) {
  double products = 0;
  double squares = 0;
  for (const CutTrial& trial : cost.trials) {
    const auto transfers = static_cast<double>(trial.transfers);
    products += transfers * (trial.time.median - cost.whole.median);
    squares += transfers * transfers;
  }
  return squares > 0 ? std::max(0.0, products / squares) : 0;
}

}  // namespace

std::string CutCost::doubt() const {
  if (const std::string doubt = doubt_of(whole); !doubt.empty()) return doubt;
  for (const CutTrial& trial : trials) {
    const std::string doubt = doubt_of(trial.time);
    if (!doubt.empty()) return fmt::format("with {} segments {}", trial.segments, doubt);
  }
  return {};
}

std::vector<OpGroup> equal_segments(const std::vector<OpGroup>& ordered,
                                    const std::vector<double>& op_times, std::size_t count) {
  const double total = std::accumulate(op_times.begin(), op_times.end(), 0.0);
  std::vector<OpGroup> segments;
  double done = 0;
  std::size_t last = count;  // no segment yet
  for (const OpGroup& group : ordered) {
    double time = 0;
    for (const std::size_t op : group) time += op_times[op];
    // By the middle of the group; without any time the groups would all be in the first segment.
    const double middle = total > 0 ? (done + time / 2) / total : 0;
    const std::size_t place =
        std::min(count - 1, static_cast<std::size_t>(middle * static_cast<double>(count)));
    if (place != last) segments.emplace_back();
    last = place;
    segments.back().insert(segments.back().end(), group.begin(), group.end());
    done += time;
  }
  for (OpGroup& segment : segments) std::sort(segment.begin(), segment.end());
  return segments;
}

std::vector<OpGroup> random_segments(const std::vector<OpGroup>& ordered, std::size_t count,
                                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::set<std::size_t> borders;
  while (borders.size() + 1 < std::min(count, ordered.size())) {
    borders.insert(1 + random() % (ordered.size() - 1));
  }
  std::vector<OpGroup> segments(1);
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    if (borders.contains(i)) segments.emplace_back();
    segments.back().insert(segments.back().end(), ordered[i].begin(), ordered[i].end());
  }
  for (OpGroup& segment : segments) std::sort(segment.begin(), segment.end());
  return segments;
}

// Least squares of excess = fixed x transfers + per_byte x bytes with neither negative: where the
// free minimum has a negative one, the best of the two that leave one out.
void fit_by_byte(CutCost& cost) {
  double nn = 0;
  double nb = 0;
  double bb = 0;
  double ne = 0;
  double be = 0;
  for (const CutTrial& trial : cost.trials) {
    const auto n = static_cast<double>(trial.transfers);
    const double excess = trial.time.median - cost.whole.median;
    nn += n * n;
    nb += n * trial.bytes;
    bb += trial.bytes * trial.bytes;
    ne += n * excess;
    be += trial.bytes * excess;
  }
  const double alone = nn > 0 ? std::max(0.0, ne / nn) : 0;
  const double by_byte = bb > 0 ? std::max(0.0, be / bb) : 0;
  const double determinant = nn * bb - nb * nb;
  cost.fixed = determinant > 0 ? (ne * bb - be * nb) / determinant : alone;
  cost.per_byte = determinant > 0 ? (be * nn - ne * nb) / determinant : 0;
  if (cost.fixed < 0 || cost.per_byte < 0) {
    const bool constant = alone * ne >= by_byte * be;  // explains more of the squares
    cost.fixed = constant ? alone : 0;
    cost.per_byte = constant ? 0 : by_byte;
  }
  std::vector<double> errors;
  for (const CutTrial& trial : cost.trials) {
    const double excess = trial.time.median - cost.whole.median;
    const double fitted =
        cost.fixed * static_cast<double>(trial.transfers) + cost.per_byte * trial.bytes;
    if (excess > 0) errors.push_back(std::abs(fitted - excess) / excess);
  }
  std::ranges::sort(errors);
  cost.error = errors.empty() ? 0 : errors[errors.size() / 2];
}

CutCost measure_cuts(const NeuralModel& model, const std::vector<OpGroup>& ordered,
                     const std::vector<double>& op_times, const Target& target,
                     const MeasureOptions& options) {
  const Buffers inputs = seeded_inputs(model.graph(), kSeed, target);
  std::vector<std::unique_ptr<Chain>> chains;
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
    options.check();
    const std::vector<OpGroup> segments = equal_segments(ordered, op_times, count);
    if (!chains.empty() && segments.size() <= chains.back()->segments()) continue;
    chains.push_back(std::make_unique<Chain>(model, segments, target, inputs));
  }
  for (const std::size_t count : {std::size_t{3}, std::size_t{6}, std::size_t{12}}) {
    options.check();
    if (count > ordered.size()) break;
    chains.push_back(std::make_unique<Chain>(model, random_segments(ordered, count, kSeed + count),
                                             target, inputs));
  }
  std::vector<std::vector<TimedRun>> runs(chains.size());
  Workers workers({target});
  workers.run([&](std::size_t) {
    for (std::size_t i = 0; i < options.warm_up; ++i) {
      for (const auto& chain : chains) chain->run();
    }
    RunWatch watch(target);
    const Series series(options);
    while (series.goes_on(runs.front())) {
      for (std::size_t i = 0; i < chains.size(); ++i) {
        watch.begin();
        chains[i]->run();
        runs[i].push_back(watch.end());
      }
    }
  });
  CutCost cost;
  cost.whole = summary_of(runs.front());
  for (std::size_t i = 1; i < chains.size(); ++i) {
    cost.trials.push_back(
        {chains[i]->segments(), chains[i]->transfers(), chains[i]->bytes(), summary_of(runs[i])});
  }
  cost.per_transfer = cost_per_transfer(cost);
  fit_by_byte(cost);
  return cost;
}

}  // namespace placewright
