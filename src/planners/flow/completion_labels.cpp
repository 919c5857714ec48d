#include "planners/flow/completion_labels.h"

#include <algorithm>
#include <bit>

#include "bounds/rounding.h"
#include "coarsen/cut_nodes.h"
#include "problem/lanes.h"
#include "problem/move_time.h"

namespace placewright {
namespace {

constexpr std::size_t kMostPrices = 8;
constexpr std::size_t kMostOrdered = 7;  // models whose order of completion is looked at

bool takes_time(const Problem& problem, TensorId tensor) {
  if (problem.consumers(tensor).empty()) return false;
  if (problem.interconnect() == InterconnectKind::host) return problem.host_time(tensor) > 0;
  for (const DeviceId from : problem.devices()) {
    for (const DeviceId to : problem.devices()) {
      if (problem.link_time(tensor, from, to) > 0) return true;
    }
  }
  return false;
}

bool transfers_take_time(const Problem& problem) {
  return std::ranges::any_of(problem.tensors(),
                             [&](TensorId tensor) { return takes_time(problem, tensor); });
}

// A single tensor waits for nothing, but where it leaves by one port for several devices. Over a
// host it leaves once, and enters each device by a port of its own.
bool transfers_may_meet(const Problem& problem) {
  std::size_t tensors = 0;
  bool to_several = false;
  for (const TensorId tensor : problem.tensors()) {
    if (!takes_time(problem, tensor)) continue;
    ++tensors;
    to_several = to_several || problem.consumers(tensor).size() > 1;
  }
  const bool by_links = problem.interconnect() == InterconnectKind::links;
  return tensors > 1 || (by_links && to_several && problem.device_count() > 2);
}

}  // namespace

std::string CompletionLabels::obstacle(const Problem& problem) {
  if (problem.rules().memory == MemoryModel::peak) return "peak memory is limited";
  if (!memory_cannot_bind(problem)) return "memory may bind";
  if (problem.rules().congestion && transfers_may_meet(problem)) {
    return "transfers wait for each other";
  }
  if (problem.group_count() < problem.op_count()) return "ops are colocated";
  if (problem.has_sharing()) return "devices share resources or memory";
  if (problem.has_overheads()) return "cuts cost device time";
  return {};
}

std::size_t CompletionLabels::HashWords::operator()(const Words& words) const noexcept {
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  for (const std::uint64_t word : words) {
    hash ^= word;
    hash *= 0xff51afd7ed558ccd;
    hash ^= hash >> 32U;
  }
  return static_cast<std::size_t>(hash);
}

CompletionLabels::CompletionLabels(const Problem& problem)
    : problem_(problem),
      words_((problem.op_count() + 63) / 64),
      copies_(transfers_take_time(problem) ? problem.device_count() : 1),
      may_raise_(true),
      lane_begin_(problem.device_count()),
      tail_(problem.op_count() * problem.device_count(), kInfinity) {
  for (const DeviceId device : problem.devices()) {
    lane_begin_[device] = lane_count_;
    lane_count_ += static_cast<std::size_t>(useful_lanes(problem, device));
  }
  const auto order = problem.topological_order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    for (const DeviceId device : problem.devices()) {
      if (!problem.allowed(*op, device)) continue;
      if (problem.time(*op, device) == 0) may_raise_ = false;
      double after = 0;
      for (const TensorId output : problem.outputs(*op)) {
        for (const OpId reader : problem.consumers(output)) {
          double least = kInfinity;
          for (const DeviceId to : problem.devices()) {
            least =
                std::min(least, move_time(problem_, output, device, to) +
                                    tail_[reader.index() * problem.device_count() + to.index()]);
          }
          after = std::max(after, least);
        }
      }
      tail_[op->index() * problem.device_count() + device.index()] =
          problem.time(*op, device) + after;
    }
  }
  works_ = priced_works(problem, Capacity::devices);
  if (works_.size() > kMostPrices) works_.resize(kMostPrices);
}

void CompletionLabels::describe(const Words& done, Ideal& ideal) const {
  for (const TensorId tensor : problem_.tensors()) {
    if (!holds(done, problem_.producer(tensor))) continue;
    const auto readers = problem_.consumers(tensor);
    if (std::any_of(readers.begin(), readers.end(), [&](OpId op) { return !holds(done, op); })) {
      ideal.live.push_back(tensor);
    }
  }
  Table<ModelId, char> is_open(problem_.model_count(), 0);
  std::vector<Table<ModelId, double>> left(works_.size(),
                                           Table<ModelId, double>(problem_.model_count(), 0));
  for (const OpId op : problem_.ops()) {
    if (holds(done, op)) continue;
    const ModelId model = problem_.op(op).model;
    is_open[model] = 1;
    for (std::size_t i = 0; i < works_.size(); ++i) left[i][model] += works_[i].op[op];
    const auto before = problem_.predecessors(op);
    if (std::all_of(before.begin(), before.end(), [&](OpId other) { return holds(done, other); })) {
      ideal.ready.push_back(op);
    }
  }
  for (const ModelId model : problem_.models()) {
    if (is_open[model]) ideal.open.push_back(model);
  }
  for (std::size_t i = 0; i < works_.size(); ++i) {
    for (const ModelId model : ideal.open) ideal.left.push_back(left[i][model]);
  }
  for (std::size_t i = 0; i < ideal.live.size(); ++i) {
    for (const OpId reader : problem_.consumers(ideal.live[i])) {
      const bool is_ready = std::binary_search(ideal.ready.begin(), ideal.ready.end(), reader);
      if (!is_ready && !holds(done, reader)) ideal.reads.emplace_back(i, reader);
    }
  }
}

std::size_t CompletionLabels::position_of(const Ideal& ideal, OpId op) const {
  const auto found = std::lower_bound(ideal.open.begin(), ideal.open.end(), problem_.op(op).model);
  return static_cast<std::size_t>(found - ideal.open.begin());
}

double CompletionLabels::ready_at(const Ideal& ideal, const double* row, OpId op,
                                  DeviceId device) const {
  double ready = problem_.model(problem_.op(op).model).arrival;
  for (const TensorId input : problem_.inputs(op)) {
    const auto live = std::lower_bound(ideal.live.begin(), ideal.live.end(), input);
    const auto position = static_cast<std::size_t>(live - ideal.live.begin());
    ready = std::max(ready, arrived(row, position, device));
  }
  return ready;
}

void CompletionLabels::extend(const Ideal& from, const double* row, OpId op, DeviceId device,
                              const Ideal& to, std::vector<double>& made) const {
  made.assign(stride(to), 0);
  const double ready = ready_at(from, row, op, device);
  const double length = problem_.time(op, device);
  const std::size_t lane = lane_at(device);
  const double start = length > 0 ? std::max(ready, row[lane]) : ready;
  const double end = start + length;
  if (end == kInfinity) {
    made[0] = kInfinity;
    return;
  }
  std::copy(row, row + 1 + lane_count_, made.begin());
  if (length > 0) {
    made[lane] = end;
    const auto first = made.begin() + static_cast<std::ptrdiff_t>(lane);
    std::sort(first, first + useful_lanes(problem_, device));
  }
  std::size_t old = 0;
  for (std::size_t i = 0; i < to.live.size(); ++i) {
    const TensorId tensor = to.live[i];
    double* const times = made.data() + tensor_at(i);
    if (problem_.producer(tensor) == op) {
      times[0] = end;
      for (std::size_t j = 0; copies_ > 1 && j < copies_; ++j) {
        times[j] = end + move_time(problem_, tensor, device, DeviceId{j});
      }
      continue;
    }
    while (from.live[old] != tensor) ++old;
    std::copy_n(row + tensor_at(old), copies_, times);
  }
  const ModelId model = problem_.op(op).model;
  std::size_t position = 0;
  for (std::size_t i = 0; i < from.open.size(); ++i) {
    double far = row[model_at(from, i)];
    if (from.open[i] == model) far = std::max(far, end);
    if (position < to.open.size() && to.open[position] == from.open[i]) {
      made[model_at(to, position++)] = far;
    } else {
      const Model& record = problem_.model(from.open[i]);
      made[0] += record.weight * (far - record.arrival);
    }
  }
}

// Nothing starts before something is ready, nor a reader before its device has a free lane.
void CompletionLabels::raise(const Ideal& ideal, std::vector<double>& row) const {
  if (!may_raise_ || ideal.ready.empty()) return;
  double first = kInfinity;
  for (const OpId op : ideal.ready) {
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.allowed(op, device)) continue;
      first = std::min(first, ready_at(ideal, row.data(), op, device));
      if (copies_ == 1) break;  // the same on all
    }
  }
  for (std::size_t lane = 1; lane <= lane_count_; ++lane) row[lane] = std::max(row[lane], first);
  double earliest_lane = kInfinity;
  for (const DeviceId device : problem_.devices()) {
    earliest_lane = std::min(earliest_lane, row[lane_at(device)]);
  }
  for (std::size_t i = 0; i < ideal.live.size(); ++i) {
    for (std::size_t j = 0; j < copies_; ++j) {
      double& there = row[tensor_at(i) + j];
      there = std::max(there, copies_ == 1 ? earliest_lane : row[lane_at(DeviceId{j})]);
    }
  }
}

// When the priced work of a set of open models can be done with the lanes as they are.
double CompletionLabels::set_complete(const Ideal& ideal, const double* row,
                                      std::size_t set) const {
  double latest = 0;
  for (std::size_t i = 0; i < works_.size(); ++i) {
    double work = 0;
    for (std::size_t left = set; left != 0; left &= left - 1) {
      work += ideal.left[i * ideal.open.size() + static_cast<std::size_t>(std::countr_zero(left))];
    }
    if (work <= 0) continue;  // it waits for no lane
    lanes_by_time_.clear();
    for (const DeviceId device : problem_.devices()) {
      const double price = works_[i].price[problem_.kind_of(device)];
      for (int j = 0; j < useful_lanes(problem_, device); ++j) {
        lanes_by_time_.emplace_back(row[lane_at(device) + static_cast<std::size_t>(j)], price);
      }
    }
    std::sort(lanes_by_time_.begin(), lanes_by_time_.end());
    double rate = 0;
    double clock = 0;
    for (std::size_t j = 0; j <= lanes_by_time_.size(); ++j) {
      const double until = j < lanes_by_time_.size() ? lanes_by_time_[j].first : kInfinity;
      if (rate > 0 && (until == kInfinity || rate * (until - clock) >= work)) {
        clock += work / rate;
        break;
      }
      work -= rate * (until - clock);
      clock = until;
      rate += lanes_by_time_[j].second;
    }
    latest = std::max(latest, safe_sum(clock));
  }
  return latest;
}

// A lower bound on the cost of all completions; models' rows are raised to their paths.
double CompletionLabels::bound(const Ideal& ideal, std::vector<double>& row) {
  const std::size_t open = ideal.open.size();
  const std::size_t devices = problem_.device_count();
  path_.assign(open, 0);
  for (std::size_t i = 0; i < open; ++i) path_[i] = row[model_at(ideal, i)];
  for (const OpId op : ideal.ready) {
    double least = kInfinity;
    for (const DeviceId device : problem_.devices()) {
      const double tail = tail_[op.index() * devices + device.index()];
      if (tail == kInfinity) continue;
      double start = ready_at(ideal, row.data(), op, device);
      if (may_raise_) start = std::max(start, row[lane_at(device)]);
      least = std::min(least, start + tail);
    }
    double& path = path_[position_of(ideal, op)];
    path = std::max(path, least);
  }
  for (const auto& [live, reader] : ideal.reads) {
    double least = kInfinity;
    for (const DeviceId device : problem_.devices()) {
      const double tail = tail_[reader.index() * devices + device.index()];
      if (tail < kInfinity) least = std::min(least, arrived(row.data(), live, device) + tail);
    }
    double& path = path_[position_of(ideal, reader)];
    path = std::max(path, least);
  }
  double sum = row[0];
  for (std::size_t i = 0; i < open; ++i) {
    row[model_at(ideal, i)] = path_[i];
    const Model& record = problem_.model(ideal.open[i]);
    sum += record.weight * (path_[i] - record.arrival);
  }
  if (open > kMostOrdered || open == 0) return sum;

  const std::size_t sets = std::size_t{1} << open;
  complete_.assign(sets, 0);
  total_.assign(sets, kInfinity);
  total_[0] = row[0];
  for (std::size_t set = 1; set < sets; ++set) {
    complete_[set] = set_complete(ideal, row.data(), set);
    for (std::size_t left = set; left != 0; left &= left - 1) {
      complete_[set] =
          std::max(complete_[set], path_[static_cast<std::size_t>(std::countr_zero(left))]);
    }
    for (std::size_t left = set; left != 0; left &= left - 1) {
      const auto last = static_cast<std::size_t>(std::countr_zero(left));
      const Model& record = problem_.model(ideal.open[last]);
      total_[set] = std::min(total_[set], total_[set ^ (std::size_t{1} << last)] +
                                              record.weight * (complete_[set] - record.arrival));
    }
  }
  return std::max(sum, total_.back());
}

bool CompletionLabels::keep(Ideal& ideal, const std::vector<double>& row, double bound,
                            const Origin& origin) {
  const std::size_t width = row.size();
  const auto no_worse = [&](const double* a, const double* b) {
    for (std::size_t i = 0; i < width; ++i) {
      if (a[i] > b[i]) return false;
    }
    return true;
  };
  for (std::size_t i = 0; i < ideal.size(); ++i) {
    if (no_worse(ideal.rows.data() + i * width, row.data())) return false;
  }
  for (std::size_t i = 0; i < ideal.size();) {
    double* const other = ideal.rows.data() + i * width;
    if (!no_worse(row.data(), other)) {
      ++i;
      continue;
    }
    std::copy_n(ideal.rows.data() + (ideal.size() - 1) * width, width, other);
    ideal.bounds[i] = ideal.bounds.back();
    ideal.origins[i] = ideal.origins.back();
    ideal.bounds.pop_back();
    ideal.origins.pop_back();
    ideal.rows.resize(ideal.rows.size() - width);
  }
  ideal.rows.insert(ideal.rows.end(), row.begin(), row.end());
  ideal.bounds.push_back(bound);
  ideal.origins.push_back(static_cast<std::uint32_t>(origins_.size()));
  origins_.push_back(origin);
  return true;
}

void CompletionLabels::expand(const Words& done, const Ideal& ideal, Layer& next, double cutoff) {
  std::vector<double> made;
  const std::size_t width = stride(ideal);
  for (const OpId op : ideal.ready) {
    Words larger = done;
    larger[op.index() / 64] |= std::uint64_t{1} << (op.index() % 64);
    const auto [place, is_new] = next.try_emplace(larger);
    Ideal& target = place->second;
    if (is_new) describe(larger, target);
    for (std::size_t i = 0; i < ideal.size(); ++i) {
      for (const DeviceId device : problem_.devices()) {
        if (!problem_.allowed(op, device)) continue;
        extend(ideal, ideal.rows.data() + i * width, op, device, target, made);
        if (made[0] == kInfinity) continue;
        raise(target, made);
        const double least = std::max(bound(target, made), ideal.bounds[i]);
        if (least >= cutoff) continue;
        (void)keep(target, made, least,
                   {ideal.origins[i], static_cast<std::uint32_t>(op.index()),
                    static_cast<std::uint32_t>(device.index())});
      }
    }
    if (target.size() == 0 && is_new) next.erase(place);
  }
}

std::vector<CompletionLabels::Step> CompletionLabels::steps_to(std::uint32_t origin) const {
  std::vector<Step> steps;
  for (; origins_[origin].parent != origin; origin = origins_[origin].parent) {
    steps.push_back({OpId{origins_[origin].op}, DeviceId{origins_[origin].device}});
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

CompletionLabels::Result CompletionLabels::search(double cutoff, std::size_t label_limit,
                                                  const Stop& stop) {
  origins_.clear();
  Layer layer;
  {
    Ideal& none = layer[Words(words_, 0)];
    describe(Words(words_, 0), none);
    std::vector<double> row(stride(none), 0);
    for (const ModelId model : problem_.models()) {
      const auto found = std::find(none.open.begin(), none.open.end(), model);
      if (found == none.open.end()) continue;
      row[model_at(none, static_cast<std::size_t>(found - none.open.begin()))] =
          problem_.model(model).arrival;
    }
    raise(none, row);
    const double least = bound(none, row);
    if (least >= cutoff) return {true, cutoff, {}};
    (void)keep(none, row, least, {0, 0, 0});  // its own parent
  }
  double reached = 0;
  for (std::size_t size = 0; size < problem_.op_count(); ++size) {
    double least = kInfinity;
    for (const auto& [done, ideal] : layer) {
      for (const double value : ideal.bounds) least = std::min(least, value);
    }
    reached = std::max(reached, least);
    Layer next;
    for (const auto& [done, ideal] : layer) {
      if (origins_.size() > label_limit || stop(ideal.size())) return {false, reached, {}};
      expand(done, ideal, next, cutoff);
    }
    std::erase_if(next, [](const auto& entry) { return entry.second.size() == 0; });
    layer = std::move(next);
    if (layer.empty()) return {true, cutoff, {}};
  }
  const Ideal& all = layer.begin()->second;
  const auto best = std::min_element(all.bounds.begin(), all.bounds.end());
  return {true, *best, steps_to(all.origins[static_cast<std::size_t>(best - all.bounds.begin())])};
}

}  // namespace placewright
