#include "coarsen/repetition.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace placewright {
namespace {

constexpr std::size_t kLeastCount = 4;
constexpr std::size_t kFar =
    512;                         // places; what is read from further back may be made once for all
constexpr std::size_t kRow = 4;  // labels
constexpr std::size_t kPeriodsTried = 16;

using Label = std::size_t;

Label mixed(Label label, std::size_t value) {
  return (label ^ value) * 0x9E3779B97F4A7C15U + (label >> 29U);
}

Label label_of(const Problem& problem, OpId op) {
  const Op& record = problem.op(op);
  Label label = std::hash<std::string>{}(record.type);
  label = mixed(label, std::hash<double>{}(record.memory));
  for (const double time : record.time) label = mixed(label, time < kUnsupported ? 1 : 2);
  for (const TensorId output : problem.outputs(op)) {
    label = mixed(label, std::hash<double>{}(problem.tensor(output).bytes));
  }
  std::vector<std::size_t> distances;
  for (const OpId before : problem.predecessors(op)) {
    distances.push_back(
        std::min(kFar, problem.topological_rank(op) - problem.topological_rank(before)));
  }
  std::ranges::sort(distances);
  for (const std::size_t distance : distances) label = mixed(label, distance);
  return label;
}

// The distances at which a row of labels recurs, the most frequent first.
std::vector<std::size_t> likely_periods(const std::vector<Label>& labels) {
  std::unordered_map<Label, std::size_t> last;         // place of a row
  std::unordered_map<std::size_t, std::size_t> often;  // by distance
  for (std::size_t i = 0; i + kRow <= labels.size(); ++i) {
    Label row = 0;
    for (std::size_t j = 0; j < kRow; ++j) row = mixed(row, labels[i + j]);
    const auto [known, added] = last.try_emplace(row, i);
    if (!added) ++often[i - std::exchange(known->second, i)];
  }
  std::vector<std::size_t> periods;
  for (const auto& [period, number] : often) periods.push_back(period);
  std::ranges::sort(periods, [&](std::size_t a, std::size_t b) {
    return often[a] != often[b] ? often[a] > often[b] : a < b;
  });
  if (periods.size() > kPeriodsTried) periods.resize(kPeriodsTried);
  return periods;
}

Repetition longest_with(const std::vector<Label>& labels, std::size_t period) {
  Repetition longest{.period = period};
  for (std::size_t begin = 0, i = 0; i + period < labels.size(); ++i) {
    if (labels[i] != labels[i + period]) {
      begin = i + 1;
    } else if (const std::size_t count = (i + 1 - begin) / period + 1; count > longest.count) {
      longest.begin = begin;
      longest.count = count;
    }
  }
  return longest;
}

}  // namespace

std::optional<Repetition> longest_repetition(const Problem& problem) {
  std::vector<Label> labels;
  labels.reserve(problem.op_count());
  for (const OpId op : problem.topological_order()) labels.push_back(label_of(problem, op));
  std::optional<Repetition> best;
  for (const std::size_t period : likely_periods(labels)) {
    const Repetition found = longest_with(labels, period);
    if (found.count < kLeastCount) continue;
    const auto covered = [](const Repetition& one) { return one.period * one.count; };
    if (!best || covered(found) > covered(*best) ||
        (covered(found) == covered(*best) && found.period < best->period)) {
      best = found;
    }
  }
  return best;
}

}  // namespace placewright
