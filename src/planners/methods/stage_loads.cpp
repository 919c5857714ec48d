#include "planners/methods/stage_loads.h"

#include <algorithm>

#include "evaluate/memory.h"

namespace placewright::throughput {

bool StageLoads::fits(std::size_t inner, std::size_t device_class) const {
  if (!allowed(inner, device_class)) return false;
  const double memory = model_.classes()[device_class].memory;
  if (memory == kInfinity) return true;
  return within_memory(stage_bytes(inner), memory);
}

double StageLoads::stage_bytes(std::size_t inner) const {
  double bytes = family_.bytes(outer_) - family_.bytes(inner);
  for (const StageModel::Weight& weight : model_.weights()) {
    const bool read = std::any_of(weight.blocks.begin(), weight.blocks.end(),
                                  [&](std::uint32_t block) { return inside(block, inner); });
    if (read) bytes += weight.bytes;
  }
  return bytes;
}

StageLoad StageLoads::load(std::size_t inner, std::size_t device_class, int replicas) {
  const DeviceClass& kind = model_.classes()[device_class];
  const double forward =
      family_.forward(outer_, device_class) - family_.forward(inner, device_class);
  const double backward =
      family_.backward(outer_, device_class) - family_.backward(inner, device_class);
  const double bytes = replicas > 1 ? stage_bytes(inner) : 0;
  if (kind.profile < 0) return model_.load(forward, backward, nullptr, bytes, replicas);
  const Transfers moved = transfers(inner, static_cast<std::size_t>(kind.profile));
  return model_.load(forward, backward, moved.data(), bytes, replicas);
}

double StageLoads::avoidable_transfers(double seconds) {
  const DeviceClass* core = nullptr;
  double cores = 0;
  for (const DeviceClass& device_class : model_.classes()) {
    if (device_class.profile >= 0) continue;
    if (core != nullptr) return kInfinity;  // cores of several kinds: not worked out
    core = &device_class;
    cores = static_cast<double>(device_class.devices.size());
  }
  if (core == nullptr) return 0;
  find_cut();
  movable_.clear();
  const auto outside = [&](std::uint32_t block) { return !family_.contains(outer_, block); };
  for (const std::uint32_t id : cut_) {
    const Net& net = model_.nets()[id];
    Transfers cost{};
    model_.charge(id, 0, outside, 1, cost.data());
    if (outside(net.producer)) {
      movable_.push_back({net.producer, cost[0], 0});
      continue;
    }
    const auto readers = static_cast<double>(
        std::count_if(net.readers.begin(), net.readers.end(),
                      [&](const NetReader& reader) { return outside(reader.block); }));
    for (const NetReader& reader : net.readers) {
      if (outside(reader.block)) movable_.push_back({reader.block, cost[0] / readers, 0});
    }
  }
  return knapsack(*core, cores * seconds);
}

void StageLoads::find_cut() {
  if (cut_known_) return;
  cut_.clear();
  family_.cut_nets(outer_, cut_);
  if (model_.component_count() == 1) prepare_cut();
  cut_known_ = true;
}

double StageLoads::knapsack(const DeviceClass& core, double capacity) {
  std::sort(movable_.begin(), movable_.end(),
            [](const Movable& a, const Movable& b) { return a.block < b.block; });
  std::size_t kept = 0;
  for (const Movable& item : movable_) {
    if (core.allowed[item.block] == 0) continue;
    if (kept > 0 && movable_[kept - 1].block == item.block) {
      movable_[kept - 1].saving += item.saving;
    } else {
      const double time = core.forward[item.block] + core.backward[item.block];
      movable_[kept++] = {item.block, item.saving, time};
    }
  }
  movable_.resize(kept);
  std::sort(movable_.begin(), movable_.end(), [](const Movable& a, const Movable& b) {
    return a.saving * b.time > b.saving * a.time;
  });
  double saved = 0;
  for (const Movable& item : movable_) {
    if (item.time >= capacity && item.time > 0) return saved + item.saving * capacity / item.time;
    saved += item.saving;
    capacity -= item.time;
  }
  return saved;
}

Transfers StageLoads::transfers(std::size_t inner, std::size_t profile) {
  if (model_.component_count() == 1) return {single_transfers(inner, profile)};
  find_cut();
  Transfers sum{};
  std::copy_n(family_.above(inner) + profile * kMostComponents, kMostComponents, sum.begin());
  const auto in_stage = [&](std::uint32_t block) { return inside(block, inner); };
  const auto in_rest = [&](std::uint32_t block) { return !family_.contains(inner, block); };
  for (const std::uint32_t net : cut_) {
    model_.charge(net, profile, in_stage, 1, sum.data());
    model_.charge(net, profile, in_rest, -1, sum.data());
  }
  return sum;
}

// The same for a single sum. Of a net that I cuts, with S = I \ J and R = all \ J:
//   made in I, not in J   S sends; R sends if J reads
//   made in J             S fetches if S reads; R fetches
//   made outside I        S fetches if S reads; R sends if J reads
double StageLoads::single_transfers(std::size_t inner, std::size_t profile) {
  find_cut();
  double sum = family_.above(inner)[profile];
  for (const CutNet& net : cut_nets_[profile]) {
    bool inner_reads = false;
    bool stage_reads = false;
    for (std::uint32_t i = net.readers_begin; i < net.readers_end; ++i) {
      (family_.contains(inner, cut_readers_[i]) ? inner_reads : stage_reads) = true;
    }
    if (!net.produced_inside) {
      sum += (stage_reads ? net.in : 0) - (inner_reads ? net.out : 0);
    } else if (family_.contains(inner, net.producer)) {
      sum += (stage_reads ? net.in : 0) - net.in;
    } else {
      sum += net.out - (inner_reads ? net.out : 0);
    }
  }
  return sum;
}

void StageLoads::prepare_cut() {
  cut_readers_.clear();
  for (std::vector<CutNet>& nets : cut_nets_) nets.clear();
  for (const std::uint32_t id : cut_) {
    const Net& record = model_.nets()[id];
    CutNet net;
    net.producer = record.producer;
    net.produced_inside = family_.contains(outer_, record.producer);
    net.readers_begin = static_cast<std::uint32_t>(cut_readers_.size());
    for (const NetReader& reader : record.readers) {
      if (family_.contains(outer_, reader.block)) cut_readers_.push_back(reader.block);
    }
    net.readers_end = static_cast<std::uint32_t>(cut_readers_.size());
    for (std::size_t profile = 0; profile < cut_nets_.size(); ++profile) {
      net.in = model_.cost(id, profile).all_in();
      net.out = model_.cost(id, profile).all_out();
      cut_nets_[profile].push_back(net);
    }
  }
}

}  // namespace placewright::throughput
