#include "planners/methods/stage_model.h"

#include <algorithm>
#include <cmath>

#include "bounds/rounding.h"
#include "evaluate/pipeline.h"
#include "problem/exclusion.h"

namespace placewright::throughput {
namespace {

constexpr int kPriceSteps = 100;
constexpr double kWorkScale = 0x1p50;

constexpr double kSecondsPerProfile = 3e-7;  // of an op on a device

// What the work of resources stands on: each op keeps all of some of them.
bool all_take_whole_resources(const Problem& problem) {
  return ops_take_whole_resources(problem) &&
         std::ranges::none_of(problem.devices(),
                              [&](DeviceId device) { return problem.uses(device).empty(); });
}

}  // namespace

double seconds_of_stage_model(const Problem& problem) {
  return kSecondsPerProfile * static_cast<double>(problem.op_count() * problem.device_count());
}

std::vector<std::vector<DeviceId>> device_classes(const Problem& problem) {
  Table<DeviceId, char> pinned(problem.device_count(), 0);
  for (const OpId op : problem.ops()) {
    if (problem.op(op).pinned_to.valid()) pinned[problem.op(op).pinned_to] = 1;
  }
  std::vector<std::vector<DeviceId>> classes;
  for (const DeviceId device : problem.devices()) {
    const Device& record = problem.device(device);
    const auto alike = [&](const std::vector<DeviceId>& known) {
      const Device& model = problem.device(known.front());
      return !pinned[device] && !pinned[known.front()] && record.kind == model.kind &&
             record.memory == model.memory && record.send_overhead == model.send_overhead &&
             record.receive_overhead == model.receive_overhead;
    };
    const auto found = std::find_if(classes.begin(), classes.end(), alike);
    if (found != classes.end()) {
      found->push_back(device);
    } else {
      classes.push_back({device});
    }
  }
  return classes;
}

StageModel::StageModel(const Problem& problem, Blocks blocks)
    : problem_(&problem), blocks_(std::move(blocks)), mode_(problem.rules().transfers) {
  const Rules& rules = problem.rules();
  phased_ = rules.training == TrainingMode::phased && problem.has_backward_ops();
  components_ = mode_ == TransferMode::sequential && !phased_ ? 1 : kMostComponents;
  max_replicas_ = std::max(1, rules.max_replicas);
  if (problem.has_backward_ops() && rules.replica_bandwidth > 0) {
    exchange_per_byte_ = 1 / rules.replica_bandwidth;
  }
  build_classes();
  build_nets();
  build_profiles();
  build_memory();
  build_work();
}

void StageModel::build_classes() {
  for (std::vector<DeviceId>& alike : device_classes(*problem_)) {
    DeviceClass made;
    made.devices = std::move(alike);
    const DeviceId device = made.devices.front();
    made.memory = problem_->device(device).memory;
    made.forward.assign(blocks_.size(), 0);
    made.backward.assign(blocks_.size(), 0);
    made.allowed.assign(blocks_.size(), 1);
    for (const BlockId block : blocks_.keys()) {
      for (const OpId op : blocks_.ops[block]) {
        if (!problem_->allowed(op, device)) {
          made.allowed[block.index()] = 0;
          break;
        }
        (problem_->op(op).backward ? made.backward : made.forward)[block.index()] +=
            problem_->time(op, device);
      }
      if (made.allowed[block.index()] != 0) continue;
      made.forward[block.index()] = made.backward[block.index()] = 0;
    }
    classes_.push_back(std::move(made));
  }
}

void StageModel::build_nets() {
  std::vector<std::pair<BlockId, std::uint32_t>> members;
  std::vector<NetReader> readers;
  const bool overheads = problem_->has_overheads();
  const bool host = problem_->interconnect() == InterconnectKind::host;
  for (const TensorId tensor : problem_->tensors()) {
    if (host && problem_->host_time(tensor) == 0 && !overheads) continue;
    const OpId producer = problem_->producer(tensor);
    const BlockId home = blocks_.block_of[producer];
    readers.clear();
    for (const OpId consumer : problem_->consumers(tensor)) {
      const BlockId block = blocks_.block_of[consumer];
      if (block == home) continue;
      const bool backward = problem_->op(consumer).backward;
      readers.push_back({static_cast<std::uint32_t>(block.index()), !backward, backward});
    }
    if (readers.empty()) continue;
    std::sort(readers.begin(), readers.end(),
              [](const NetReader& a, const NetReader& b) { return a.block < b.block; });
    Net net;
    net.producer = static_cast<std::uint32_t>(home.index());
    net.backward = problem_->op(producer).backward;
    for (const NetReader& reader : readers) {
      if (!net.readers.empty() && net.readers.back().block == reader.block) {
        net.readers.back().forward |= reader.forward;
        net.readers.back().backward |= reader.backward;
      } else {
        net.readers.push_back(reader);
      }
    }
    // A block of the producer's own that reads the tensor keeps an in-transfer away, never an out.
    net.first_block = std::min(net.producer, net.readers.front().block);
    net.last_block = std::max(net.producer, net.readers.back().block);
    const auto id = static_cast<std::uint32_t>(nets_.size());
    members.emplace_back(home, id);
    for (const NetReader& reader : net.readers) members.emplace_back(BlockId{reader.block}, id);
    nets_.push_back(std::move(net));
    net_tensors_.push_back(tensor);
  }
  nets_of_ = Rows<BlockId, std::uint32_t>::from_pairs(blocks_.size(), members);
}

bool StageModel::links_are_uniform() const {
  for (std::size_t i = 0; i < nets_.size(); ++i) {
    if (nets_[i].readers.size() > 1) return false;
    double time = -1;
    for (const DeviceId from : problem_->devices()) {
      for (const DeviceId to : problem_->devices()) {
        if (from == to) continue;
        const double here = problem_->link_time(net_tensors_[i], from, to);
        if (time >= 0 && here != time) return false;
        time = here;
      }
    }
    if (time == kInfinity) return false;
  }
  return true;
}

StageModel::Profile StageModel::profile_of(const DeviceClass& device_class) const {
  Profile profile;
  profile.reserve(nets_.size());
  const DeviceId first = device_class.devices.front();
  for (const TensorId tensor : net_tensors_) {
    NetCost& cost = profile.emplace_back();
    cost.receive = problem_->receive_overhead(tensor, first);
    cost.send = problem_->send_overhead(tensor, first);
    if (one_space()) continue;  // nothing travels
    if (problem_->interconnect() == InterconnectKind::host) {
      cost.in = cost.out = problem_->host_time(tensor);
      continue;
    }
    double in = kInfinity;
    double out = kInfinity;
    for (const DeviceId device : device_class.devices) {
      for (const DeviceId other : problem_->devices()) {
        if (other == device) continue;
        in = std::min(in, problem_->link_time(tensor, other, device));
        out = std::min(out, problem_->link_time(tensor, device, other));
      }
    }
    // A finite stand-in for "never": sums stay free of infinity minus infinity.
    const double never = 1e3 * (1 + most_value_);
    cost.in = std::min(in, never);
    cost.out = std::min(out, never);
  }
  return profile;
}

void StageModel::build_profiles() {
  if (problem_->interconnect() == InterconnectKind::links) {
    exact_ = one_space() || links_are_uniform();
  }
  double longest_compute = 0;
  for (const OpId op : problem_->ops()) {
    double longest = 0;
    for (const double time : problem_->op(op).time) {
      if (time < kUnsupported) longest = std::max(longest, time);
    }
    longest_compute += longest;
  }
  most_value_ = longest_compute;
  double transfers = 0;
  double overheads = 0;
  for (const TensorId tensor : net_tensors_) {
    double longest = 0;
    if (problem_->interconnect() == InterconnectKind::host) {
      longest = problem_->host_time(tensor);
    } else {
      for (const DeviceId from : problem_->devices()) {
        for (const DeviceId to : problem_->devices()) {
          const double time = problem_->link_time(tensor, from, to);
          if (time < kInfinity) longest += time;
        }
      }
    }
    transfers += longest;
    double largest = 0;
    for (const DeviceClass& device_class : classes_) {
      const DeviceId device = device_class.devices.front();
      largest = std::max(largest, problem_->send_overhead(tensor, device) +
                                      problem_->receive_overhead(tensor, device));
    }
    overheads += largest;
  }
  most_value_ += 2 * transfers + overheads * static_cast<double>(classes_.size());

  for (DeviceClass& device_class : classes_) {
    if (problem_->interconnect() == InterconnectKind::host && !one_space() &&
        problem_->on_host(device_class.devices.front())) {
      continue;
    }
    Profile profile = profile_of(device_class);
    const auto known = std::find(profiles_.begin(), profiles_.end(), profile);
    device_class.profile = static_cast<int>(known - profiles_.begin());
    if (known == profiles_.end()) profiles_.push_back(std::move(profile));
  }
}

void StageModel::build_memory() {
  bytes_.assign(blocks_.size(), 0);
  std::vector<std::vector<std::uint32_t>> readers(problem_->shared_weight_count());
  double all = 0;
  for (const BlockId block : blocks_.keys()) {
    for (const OpId op : blocks_.ops[block]) {
      bytes_[block.index()] += problem_->memory(op);
      for (const WeightId weight : problem_->shared_weights(op)) {
        auto& known = readers[weight.index()];
        const auto id = static_cast<std::uint32_t>(block.index());
        if (known.empty() || known.back() != id) known.push_back(id);
      }
    }
    all += bytes_[block.index()];
  }
  for (std::size_t i = 0; i < readers.size(); ++i) {
    if (readers[i].empty()) continue;
    const double size = problem_->shared_weight_bytes(WeightId{i});
    weights_.push_back({size, std::move(readers[i])});
    all += size;
  }
  if (max_replicas_ > 1) most_value_ += all * exchange_per_byte_;
}

bool StageModel::one_space() const {
  return problem_->space_count() == 1;
}

double StageModel::width(const DeviceClass& device_class) const {
  const std::size_t resources = problem_->uses(device_class.devices.front()).size();
  return static_cast<double>(std::max<std::size_t>(resources, 1));
}

double StageModel::total_rate() const {
  double total = 0;
  if (problem_->resource_count() > 0 && !all_take_whole_resources(*problem_)) return kInfinity;
  if (problem_->resource_count() > 0) {
    for (const DeviceClass& device_class : classes_) {
      total = std::max(total, device_class.rate / width(device_class));
    }
    return total * static_cast<double>(problem_->resource_count());
  }
  for (const DeviceClass& device_class : classes_) {
    total += device_class.rate * static_cast<double>(device_class.devices.size());
  }
  return total;
}

// Prices y on the time of classes: w(v) = min over classes of y(c) time(v, c). Raising the price of
// a class that the cheapest assignment overloads raises total w / sum of devices x y, the work
// bound. Where classes share resources, the price of a class is what its devices take of them.
void StageModel::build_work() {
  const std::size_t count = classes_.size();
  const auto time = [&](std::size_t c, std::size_t v) {
    return classes_[c].forward[v] + classes_[c].backward[v];
  };
  std::vector<double> price(count, 1);
  std::vector<double> best_price = price;
  double best = -1;
  double longest_block = 0;
  for (std::size_t v = 0; v < blocks_.size(); ++v) {
    double least = kInfinity;
    for (std::size_t c = 0; c < count; ++c) {
      if (classes_[c].allowed[v] == 0) continue;
      least = std::min(least, time(c, v) / max_replicas_);
    }
    if (least < kInfinity) longest_block = std::max(longest_block, least);
  }
  const bool shared = problem_->resource_count() > 0;
  if (shared) {
    for (std::size_t c = 0; c < count; ++c) best_price[c] = width(classes_[c]);
  }
  const int steps = shared ? 0 : count == 1 ? 1 : kPriceSteps;
  for (int step = 1; step <= steps; ++step) {
    std::vector<double> load(count, 0);
    double total = 0;
    double capacity = 0;
    for (std::size_t v = 0; v < blocks_.size(); ++v) {
      double least = kInfinity;
      std::size_t where = count;
      for (std::size_t c = 0; c < count; ++c) {
        if (classes_[c].allowed[v] == 0 || price[c] * time(c, v) >= least) continue;
        least = price[c] * time(c, v);
        where = c;
      }
      if (where == count) continue;
      total += least;
      load[where] += time(where, v);
    }
    double mean = 0;
    for (std::size_t c = 0; c < count; ++c) {
      const auto devices = static_cast<double>(classes_[c].devices.size());
      capacity += price[c] * devices;
      load[c] /= devices;
      mean += load[c] / static_cast<double>(count);
    }
    if (total / capacity > best) {
      best = total / capacity;
      best_price = price;
    }
    if (mean == 0) break;
    for (std::size_t c = 0; c < count; ++c) {
      price[c] *= std::exp(std::clamp((load[c] / mean - 1) / step, -0.7, 0.7));
    }
  }

  std::vector<double> weight(blocks_.size(), 0);
  double total = 0;
  for (std::size_t v = 0; v < blocks_.size(); ++v) {
    double least = kInfinity;
    for (std::size_t c = 0; c < count; ++c) {
      if (classes_[c].allowed[v] != 0) least = std::min(least, best_price[c] * time(c, v));
    }
    weight[v] = least < kInfinity ? least : 0;
    total += weight[v];
  }
  work_.assign(blocks_.size(), 0);
  for (std::size_t v = 0; v < blocks_.size(); ++v) {
    if (total > 0) work_[v] = static_cast<std::int64_t>(weight[v] / total * kWorkScale);
    total_work_ += work_[v];
    for (DeviceClass& device_class : classes_) {
      if (device_class.allowed[v] == 0 || work_[v] == 0) continue;
      const double own = device_class.forward[v] + device_class.backward[v];
      device_class.rate = std::max(device_class.rate, static_cast<double>(work_[v]) / own);
    }
  }
  const double rate = total_rate();
  const double spread = rate > 0 ? static_cast<double>(total_work_) / rate : 0;
  work_bound_ = safe_sum(std::max(spread, longest_block));
}

StageLoad StageModel::load(double forward, double backward, const double* transfers, double bytes,
                           int replicas) const {
  const auto share = static_cast<double>(replicas);
  const double exchange = replicas > 1 ? (share - 1) / share * bytes * exchange_per_byte_ : 0;
  if (components_ == 1) {
    const double moved = transfers != nullptr ? transfers[0] : 0;
    return {(forward + backward + moved) / share + exchange, 0};
  }
  static constexpr Transfers kNothing{};
  const double* t = transfers != nullptr ? transfers : kNothing.data();
  const auto busy = [&](double compute, double in, double out) {
    return PassLoad{compute, in, out}.load(mode_);
  };
  if (!phased_) {
    const double both = busy(forward + backward + t[0] + t[3], t[1] + t[4], t[2] + t[5]);
    return {both / share + exchange, 0};
  }
  return {busy(forward + t[0], t[1], t[2]) / share,
          busy(backward + t[3], t[4], t[5]) / share + exchange};
}

}  // namespace placewright::throughput
