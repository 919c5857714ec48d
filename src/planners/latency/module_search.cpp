#include "planners/latency/module_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "bounds/rounding.h"
#include "evaluate/rules/starts.h"
#include "evaluate/rules/transfers.h"

namespace placewright {
namespace {

constexpr std::uint8_t kNowhere = 255;
constexpr std::uint8_t kNotNeeded = 254;
constexpr double kNotThere = -1;
constexpr std::size_t kNow = 0;
constexpr std::size_t kDone = 1;

// Schedules this close to the best known one are not looked for (relative).
constexpr double kIndifference = 2e-7;
constexpr double kLayerBytes = 4e8;  // memory for one search

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

template <class Visit>
void for_each_device(DeviceMask set, const Visit& visit) {
  for (; set != 0; set &= set - 1) visit(std::countr_zero(set));
}

bool contains(std::uint64_t set, int member) {
  return (set >> member & 1U) != 0;
}

// When a device or port can be of use: not before `head`, nor in the last `tail` before the end.
struct Window {
  double head = kInfinity;
  double tail = kInfinity;

  void include(double ready, double rest) {
    head = std::min(head, ready);
    tail = std::min(tail, rest);
  }
};

// What a device or port has to do, and when it can.
struct Load {
  Window window;
  double work = 0;

  void add(double ready, double length, double rest) {
    if (length <= 0) return;
    window.include(ready, rest);
    work += length;
  }
  // The end of everything, where the device or port is free at `free`.
  [[nodiscard]] double end(double free, int lanes = 1) const {
    return work == 0 ? 0 : std::max(window.head, free) + work / lanes + window.tail;
  }
};

std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 32U;
  value *= 0xd6e8feb86659fd93U;
  value ^= value >> 32U;
  return value;
}

}  // namespace

// Partial schedules with the same number of items, without dominated ones.
class ModuleSearch::Layer {
 public:
  Layer(std::size_t time_count, std::size_t mark_count, std::size_t memory_at)
      : time_count_(time_count), mark_count_(mark_count), memory_at_(memory_at) {
    clear();
  }

  void clear() {
    nodes_.clear();
    times_.clear();
    marks_.clear();
    next_.clear();
    table_.assign(1024, kNone);
    least_dropped_ = kInfinity;
  }

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] const Node& node(std::size_t i) const { return nodes_[i]; }
  [[nodiscard]] const double* times(std::size_t i) const { return times_.data() + i * time_count_; }
  [[nodiscard]] const std::uint8_t* marks(std::size_t i) const {
    return marks_.data() + i * mark_count_;
  }
  [[nodiscard]] bool alive(std::size_t i) const { return nodes_[i].bound < kInfinity; }
  [[nodiscard]] double least_dropped() const { return least_dropped_; }

  // Whether a state of the layer dominates this one; notes its class in the node.
  [[nodiscard]] bool dominated(Node& node, const double* times, const std::uint8_t* marks,
                               std::span<const double> reach) const {
    node.key = key_of(node.done, marks);
    for (std::uint32_t i = table_[node.key & (table_.size() - 1)]; i != kNone; i = next_[i]) {
      if (alive(i) && same_class(i, node, marks) && dominates(this->times(i), times, reach)) {
        return true;
      }
    }
    return false;
  }

  // After `dominated` said no.
  void insert(const Node& node, const double* times, const std::uint8_t* marks,
              std::span<const double> reach) {
    std::uint32_t* link = &table_[node.key & (table_.size() - 1)];
    for (std::uint32_t i = *link; i != kNone; i = next_[i]) {
      if (alive(i) && same_class(i, node, marks) && dominates(times, this->times(i), reach)) {
        nodes_[i].bound = kInfinity;
      }
    }
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    next_.push_back(*link);
    *link = index;
    nodes_.push_back(node);
    times_.insert(times_.end(), times, times + time_count_);
    marks_.insert(marks_.end(), marks, marks + mark_count_);
    if (nodes_.size() > 2 * table_.size()) rehash(4 * table_.size());
  }

  // Keeps the most promising.
  void shrink(std::size_t width) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (alive(i)) order.push_back(i);
    }
    const auto more_promising = [&](std::uint32_t a, std::uint32_t b) {
      return nodes_[a].bound != nodes_[b].bound ? nodes_[a].bound < nodes_[b].bound : a < b;
    };
    if (order.size() > width) {
      std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(width),
                       order.end(), more_promising);
      for (std::size_t i = width; i < order.size(); ++i) {
        least_dropped_ = std::min(least_dropped_, nodes_[order[i]].bound);
      }
      order.resize(width);
      std::sort(order.begin(), order.end());
    }
    if (order.size() == nodes_.size()) return;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t from = order[i];
      if (from == i) continue;
      nodes_[i] = nodes_[from];
      std::copy_n(times_.data() + from * time_count_, time_count_, times_.data() + i * time_count_);
      std::copy_n(marks_.data() + from * mark_count_, mark_count_, marks_.data() + i * mark_count_);
    }
    nodes_.resize(order.size());
    times_.resize(order.size() * time_count_);
    marks_.resize(order.size() * mark_count_);
    rehash(table_.size());
  }

  [[nodiscard]] std::vector<Step> steps() const {
    std::vector<Step> steps;
    steps.reserve(nodes_.size());
    for (const Node& node : nodes_) steps.push_back({node.parent, node.item});
    return steps;
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  [[nodiscard]] std::uint64_t key_of(std::uint64_t done, const std::uint8_t* marks) const {
    std::uint64_t key = mix(done + 0x9e3779b97f4a7c15U);
    for (std::size_t i = 0; i < mark_count_; i += 8) {
      std::uint64_t chunk = 0;
      std::memcpy(&chunk, marks + i, std::min<std::size_t>(8, mark_count_ - i));
      key = mix(key ^ chunk);
    }
    return key;
  }
  [[nodiscard]] bool same_class(std::size_t i, const Node& node, const std::uint8_t* marks) const {
    return nodes_[i].key == node.key && nodes_[i].done == node.done &&
           std::memcmp(this->marks(i), marks, mark_count_) == 0;
  }
  // Nothing that `later` has yet to do can start before its present, so all times count as at least
  // that, less their reach.
  [[nodiscard]] bool dominates(const double* earlier, const double* later,
                               std::span<const double> reach) const {
    const double now = later[kNow];
    if (earlier[kNow] > now) return false;
    for (std::size_t i = kDone; i < memory_at_; ++i) {
      if (earlier[i] > later[i] && earlier[i] > now - reach[i]) return false;
    }
    for (std::size_t i = memory_at_; i < time_count_; ++i) {
      if (earlier[i] > later[i]) return false;
    }
    return true;
  }
  void rehash(std::size_t size) {
    table_.assign(size, kNone);
    next_.resize(nodes_.size());
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      std::uint32_t& link = table_[nodes_[i].key & (size - 1)];
      next_[i] = link;
      link = i;
    }
  }

  std::size_t time_count_;
  std::size_t mark_count_;
  std::size_t memory_at_;
  std::vector<Node> nodes_;
  std::vector<double> times_;
  std::vector<std::uint8_t> marks_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> table_;
  double least_dropped_ = kInfinity;
};

ModuleSearch::ModuleSearch(const Module& module, int entry_device, int exit_device)
    : module_(module),
      entry_device_(entry_device),
      exit_device_(exit_device),
      allowed_(module.allowed),
      earliest_(module.op_count() * module.devices),
      feasible_(module.op_count()) {
  if (module.exit >= 0) allowed_[at(module.exit)] &= DeviceMask{1} << exit_device;
  if (module.entry_group >= 0) {
    for (std::size_t op = 0; op < module.op_count(); ++op) {
      if (module.group[op] == module.entry_group) allowed_[op] &= DeviceMask{1} << entry_device;
    }
  }
  if (module.exit >= 0 && module.group[at(module.exit)] >= 0) {
    for (std::size_t op = 0; op < module.op_count(); ++op) {
      if (module.group[op] == module.group[at(module.exit)]) {
        allowed_[op] &= DeviceMask{1} << exit_device;
      }
    }
  }
  for (const Module::TensorRecord& tensor : module.tensors) {
    std::uint64_t set = 0;
    for (const int consumer : tensor.consumers) set |= std::uint64_t{1} << consumer;
    consumer_sets_.push_back(set);
  }
  all_done_ =
      module.op_count() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << module.op_count()) - 1;
  lay_out();
  compute_tails();
  compute_speeds();
}

void ModuleSearch::compute_speeds() {
  std::vector<double> fastest(module_.devices, 0);
  std::vector<double> here(module_.devices, 0);
  for (std::size_t op = 0; op < module_.op_count(); ++op) {
    double least = kInfinity;
    for_each_device(allowed_[op], [&](int device) {
      least = std::min(least, module_.time(static_cast<int>(op), device));
    });
    for_each_device(allowed_[op], [&](int device) {
      fastest[at(device)] += least;
      here[at(device)] += module_.time(static_cast<int>(op), device);
    });
  }
  speeds_.assign(module_.devices, 1);
  for (std::size_t device = 0; device < module_.devices; ++device) {
    if (here[device] > 0) speeds_[device] = fastest[device] / here[device];
  }
}

void ModuleSearch::lay_out() {
  std::size_t next = kDone + 1;
  const auto take = [&](std::size_t count) { return std::exchange(next, next + count); };
  for (std::size_t device = 0; device < module_.devices; ++device) {
    lanes_at_.push_back(take(at(module_.lanes[device])));
  }
  lanes_at_.push_back(next);
  const bool ports = module_.congestion;
  out_at_ = take(ports ? module_.devices : 0);
  in_at_ = take(ports ? module_.devices : 0);
  ends_at_ = take(module_.op_count());
  arrivals_at_ = take(ports ? module_.slot_count : 0);
  host_arrivals_at_ = take(ports && module_.host ? module_.tensors.size() : 0);
  memory_at_ = take(module_.with_memory ? module_.devices : 0);
  time_count_ = next;

  next = 0;
  take(module_.op_count());
  sent_at_ = take(ports ? module_.slot_count : 0);
  out_marks_at_ = take(ports && module_.host ? module_.tensors.size() : 0);
  groups_at_ = take(at(module_.group_count));
  mark_count_ = next;
  scratch_times_.resize(time_count_);
  scratch_marks_.resize(mark_count_);
  reach_.assign(time_count_, 0);
  for (std::size_t tensor = 0; tensor < module_.tensors.size(); ++tensor) {
    for (std::size_t from = 0; from < module_.devices; ++from) {
      double longest = 0;
      for (const int consumer : module_.tensors[tensor].consumers) {
        for_each_device(allowed_[at(consumer)], [&](int to) {
          const double length = module_.move(static_cast<int>(tensor), static_cast<int>(from), to);
          if (length < kInfinity) longest = std::max(longest, length);
        });
      }
      longest_moves_.push_back(longest);
    }
  }
}

void ModuleSearch::compute_tails() {
  const std::size_t devices = module_.devices;
  tails_.assign(module_.op_count() * devices, 0);
  for (std::size_t op = module_.op_count(); op-- > 0;) {
    for (std::size_t device = 0; device < devices; ++device) {
      double longest = 0;
      for (const int tensor : module_.outputs[op]) {
        for (const int consumer : module_.tensors[at(tensor)].consumers) {
          double least = kInfinity;
          for_each_device(allowed_[at(consumer)], [&](int to) {
            least = std::min(least, module_.move(tensor, static_cast<int>(device), to) +
                                        module_.time(consumer, to) +
                                        tails_[at(consumer) * devices + at(to)]);
          });
          longest = std::max(longest, least);
        }
      }
      tails_[op * devices + device] = longest;
    }
  }
}

void ModuleSearch::make_root(Node& node) {
  std::fill(scratch_times_.begin(), scratch_times_.end(), 0.0);
  std::fill(scratch_marks_.begin(), scratch_marks_.end(), std::uint8_t{0});
  std::fill_n(scratch_marks_.begin(), module_.op_count(), kNowhere);
  std::fill_n(scratch_marks_.begin() + static_cast<std::ptrdiff_t>(groups_at_), module_.group_count,
              kNowhere);
  node.done = 0;
  node.bound = bound(scratch_times_.data(), scratch_marks_.data(), 0);
}

double ModuleSearch::root_bound() {
  Node node;
  limit_ = kInfinity;
  make_root(node);
  return node.bound;
}

inline int ModuleSearch::producer_device(const std::uint8_t* marks, int tensor) const {
  const int producer = module_.tensors[at(tensor)].producer;
  return producer == Module::kEntry ? entry_device_ : marks[producer];
}

inline double ModuleSearch::producer_end(const double* times, int tensor) const {
  const int producer = module_.tensors[at(tensor)].producer;
  return producer == Module::kEntry ? 0 : times[ends_at_ + at(producer)];
}

inline bool ModuleSearch::producer_done(std::uint64_t done, int tensor) const {
  const int producer = module_.tensors[at(tensor)].producer;
  return producer == Module::kEntry || contains(done, producer);
}

inline bool ModuleSearch::is_sent(const std::uint8_t* marks, int tensor, int device) const {
  const Module::TensorRecord& record = module_.tensors[at(tensor)];
  const std::uint8_t* mark = marks + sent_at_ + record.slot;
  return record.single ? *mark == device + 1 : mark[device] != 0;
}

// When the tensor is on the device by what has been decided; kNotThere otherwise.
double ModuleSearch::presence(const double* times, const std::uint8_t* marks, int tensor,
                              int device) const {
  const int from = producer_device(marks, tensor);
  const double end = producer_end(times, tensor);
  const double length = module_.move(tensor, from, device);
  if (from == device || length == 0) return end;
  if (length == kInfinity) return kNotThere;
  if (!module_.congestion) return end + length;
  if (module_.host && module_.on_host[at(device)]) {
    const bool out = marks[out_marks_at_ + at(tensor)] != 0;
    return out ? times[host_arrivals_at_ + at(tensor)] : kNotThere;
  }
  if (!is_sent(marks, tensor, device)) return kNotThere;
  const Module::TensorRecord& record = module_.tensors[at(tensor)];
  return times[arrivals_at_ + at(record.slot) + (record.single ? 0 : at(device))];
}

// When the tensor can be on the device at the earliest, all that is decided given.
double ModuleSearch::earliest_arrival(const double* times, const std::uint8_t* marks, int tensor,
                                      int device) const {
  const double present = presence(times, marks, tensor, device);
  if (present != kNotThere) return present;
  const int from = producer_device(marks, tensor);
  const double length = module_.move(tensor, from, device);
  if (length == kInfinity) return kInfinity;
  double start = std::max(producer_end(times, tensor), times[kNow]);
  if (!module_.host) {
    return std::max({start, times[out_at_ + at(from)], times[in_at_ + at(device)]}) + length;
  }
  const double leg = module_.host_times[at(tensor)];
  if (!module_.on_host[at(from)]) {
    const bool out = marks[out_marks_at_ + at(tensor)] != 0;
    start = out ? times[host_arrivals_at_ + at(tensor)]
                : std::max(start, times[out_at_ + at(from)]) + leg;
  }
  if (module_.on_host[at(device)]) return start;
  return std::max({start, times[kNow], times[in_at_ + at(device)]}) + leg;
}

DeviceMask ModuleSearch::domain(const double* times, const std::uint8_t* marks, int op) const {
  DeviceMask set = allowed_[at(op)];
  const int group = module_.group[at(op)];
  if (group >= 0 && marks[groups_at_ + at(group)] != kNowhere) {
    set &= DeviceMask{1} << marks[groups_at_ + at(group)];
  }
  if (module_.congestion) {
    for (const int tensor : module_.inputs[at(op)]) {
      const Module::TensorRecord& record = module_.tensors[at(tensor)];
      const std::uint8_t sent = marks[sent_at_ + at(record.slot)];
      if (record.single && sent != 0) set &= DeviceMask{1} << (sent - 1);
    }
  }
  if (module_.with_memory) {
    for_each_device(set, [&](int device) {
      const double used = times[memory_at_ + at(device)] + module_.memory[at(op)];
      if (used > module_.capacity[at(device)]) set &= ~(DeviceMask{1} << device);
    });
  }
  return set;
}

// When an op can have all it reads on a device at the earliest, all that is decided given.
double ModuleSearch::earliest_inputs(const double* times, const std::uint8_t* marks,
                                     std::uint64_t done, int op, int device) const {
  double start = std::max(times[kNow], module_.release[at(op)]);
  for (const int tensor : module_.inputs[at(op)]) {
    if (producer_done(done, tensor)) {
      start = std::max(start, earliest_arrival(times, marks, tensor, device));
      continue;
    }
    const int producer = module_.tensors[at(tensor)].producer;
    const double* const ends = &earliest_[at(producer) * module_.devices];
    double there = kInfinity;
    for_each_device(feasible_[at(producer)], [&](int from) {
      there = std::min(there, ends[from] + module_.move(tensor, from, device));
    });
    start = std::max(start, there);
  }
  return start;
}

// What the ops to come mean for the devices.
struct ModuleSearch::WorkToCome {
  std::array<Load, Module::kMaxDevices> forced;      // of ops that have one device left
  std::array<Window, Module::kMaxDevices> possible;  // of all ops that may come to the device
  double total = 0;                                  // least work, weighted by the devices' speeds
};

// The least end of everything, over the devices that keep it below the limit, as far as this op
// tells; notes those devices and the op's earliest ends there. kInfinity where no device does.
double ModuleSearch::bound_op(const double* times, const std::uint8_t* marks, std::uint64_t done,
                              int op, WorkToCome& work) {
  double* const earliest = &earliest_[at(op) * module_.devices];
  const double* const tails = &tails_[at(op) * module_.devices];
  DeviceMask feasible = 0;
  double least = kInfinity;
  double least_work = kInfinity;
  for_each_device(domain(times, marks, op), [&](int device) {
    double start = earliest_inputs(times, marks, done, op, device);
    const double length = module_.time(op, device);
    if (length > 0) start = std::max(start, times[lanes_at_[at(device)]]);
    const double total = start + length + tails[device];
    if (total >= limit_) return;
    feasible |= DeviceMask{1} << device;
    earliest[device] = start + length;
    least = std::min(least, total);
    least_work = std::min(least_work, speeds_[at(device)] * length);
    if (length > 0) work.possible[at(device)].include(start, tails[device]);
  });
  feasible_[at(op)] = feasible;
  if (feasible == 0) return kInfinity;
  work.total += least_work;
  if (std::has_single_bit(feasible)) {
    const int device = std::countr_zero(feasible);
    const double length = module_.time(op, device);
    work.forced[at(device)].add(earliest[device] - length, length, tails[device]);
  }
  return least;
}

// All work must fit into what is left of the devices (bounds/segments.h): raises the end until it
// does. kInfinity where that takes it to the limit.
double ModuleSearch::raise_to_fit(const WorkToCome& work, double end) const {
  for (;;) {
    double room = 0;
    double speed = 0;
    for (std::size_t device = 0; device < module_.devices; ++device) {
      const double slack = end - work.possible[device].head - work.possible[device].tail;
      if (slack <= 0) continue;
      room += speeds_[device] * module_.lanes[device] * slack;
      speed += speeds_[device] * module_.lanes[device];
    }
    if (room >= safe_search(work.total)) return end;
    double next = speed > 0 ? end + (work.total - room) / speed : kInfinity;
    for (std::size_t device = 0; device < module_.devices; ++device) {
      const double opens = work.possible[device].head + work.possible[device].tail;
      if (opens >= end && opens < next) next = std::max(opens, loose_sum(end));
    }
    if (next >= limit_) return kInfinity;
    // What is missing can be too little, beside the end, to change it.
    if (next <= end) return end;
    end = next;
  }
}

double ModuleSearch::bound(const double* times, const std::uint8_t* marks, std::uint64_t done) {
  WorkToCome work;
  double highest = times[kDone];
  for (std::uint64_t left = all_done_ & ~done; left != 0; left &= left - 1) {
    const double end = bound_op(times, marks, done, std::countr_zero(left), work);
    if (end == kInfinity) return kInfinity;
    highest = std::max(highest, end);
  }
  for (std::size_t device = 0; device < module_.devices; ++device) {
    highest = std::max(highest, work.forced[device].end(0, module_.lanes[device]));
  }
  highest = raise_to_fit(work, highest);
  if (highest >= limit_) return kInfinity;
  if (module_.congestion) highest = std::max(highest, forced_ports(times, marks, done));
  return highest >= limit_ ? kInfinity : highest;
}

// A tensor whose producer and consumer have no device in common must be sent: the ports bear it.
double ModuleSearch::forced_ports(const double* times, const std::uint8_t* marks,
                                  std::uint64_t done) {
  const std::size_t devices = module_.devices;
  std::array<Load, Module::kMaxDevices> out;
  std::array<Load, Module::kMaxDevices> in;
  for (std::size_t t = 0; t < module_.tensors.size(); ++t) {
    const int tensor = static_cast<int>(t);
    const Module::TensorRecord& record = module_.tensors[t];
    if ((consumer_sets_[t] & ~done) == 0) continue;
    const bool produced = producer_done(done, tensor);
    const DeviceMask sources =
        produced ? DeviceMask{1} << producer_device(marks, tensor) : feasible_[at(record.producer)];
    const bool one_source = (sources & (sources - 1)) == 0;
    double ready = kInfinity;
    if (produced) {
      ready = std::max(producer_end(times, tensor), times[kNow]);
    } else {
      for_each_device(sources, [&](int from) {
        ready = std::min(ready, earliest_[at(record.producer) * devices + at(from)]);
      });
    }
    bool counted_out = false;
    DeviceMask counted_in = 0;
    for (const int consumer : record.consumers) {
      if (contains(done, consumer)) continue;
      const DeviceMask targets = feasible_[at(consumer)];
      if ((sources & targets) != 0) continue;
      const bool one_target = (targets & (targets - 1)) == 0;
      double out_least = kInfinity;
      double in_least = kInfinity;
      double before_in = kInfinity;
      double rest = kInfinity;
      double after_out = kInfinity;
      bool sent = false;
      for_each_device(targets, [&](int to) {
        if (produced && presence(times, marks, tensor, to) != kNotThere) sent = true;
        const double tail = module_.time(consumer, to) + tails_[at(consumer) * devices + at(to)];
        rest = std::min(rest, tail);
        for_each_device(sources, [&](int from) {
          const double out_length = module_.out_length(tensor, from, to);
          const double in_length = module_.in_length(tensor, from, to);
          out_least = std::min(out_least, out_length);
          in_least = std::min(in_least, in_length);
          before_in = std::min(before_in, module_.host ? out_length : 0);
          after_out = std::min(after_out, tail + (module_.host ? in_length : 0));
        });
      });
      if (sent) continue;
      const bool out_left = !(module_.host && produced && marks[out_marks_at_ + t] != 0);
      if (one_source && !counted_out && out_left) {
        out[at(std::countr_zero(sources))].add(ready, out_least, after_out);
        counted_out = true;
      }
      if (one_target && (counted_in & targets) == 0) {
        in[at(std::countr_zero(targets))].add(ready + (out_left ? before_in : 0), in_least, rest);
        counted_in |= targets;
      }
    }
  }
  double highest = 0;
  for (std::size_t device = 0; device < devices; ++device) {
    highest = std::max({highest, out[device].end(times[out_at_ + device]),
                        in[device].end(times[in_at_ + device])});
  }
  return highest;
}

// What nobody will ask for again is forgotten, so that states that differ in it only are compared.
void ModuleSearch::retire(View view, std::uint64_t done, int tensor) const {
  const Module::TensorRecord& record = module_.tensors[at(tensor)];
  if ((consumer_sets_[at(tensor)] & ~done) != 0) return;
  if (module_.congestion) {
    const std::size_t slots = record.single ? 1 : module_.devices;
    std::fill_n(view.times + arrivals_at_ + record.slot, slots, 0.0);
    std::fill_n(view.marks + sent_at_ + record.slot, slots, std::uint8_t{0});
    if (module_.host) {
      view.times[host_arrivals_at_ + at(tensor)] = 0;
      view.marks[out_marks_at_ + at(tensor)] = 0;
    }
  }
  if (record.producer == Module::kEntry) return;
  for (const int sibling : module_.outputs[at(record.producer)]) {
    if ((consumer_sets_[at(sibling)] & ~done) != 0) return;
  }
  view.times[ends_at_ + at(record.producer)] = 0;
  view.marks[record.producer] = kNotNeeded;
}

double ModuleSearch::apply(const ModuleItem& item, View view, std::uint64_t& done) const {
  double* const times = view.times;
  std::uint8_t* const marks = view.marks;
  const int device = item.device;
  double start = times[kNow];
  if (item.kind == ModuleItem::Kind::op) {
    const int op = item.id;
    start = std::max(start, module_.release[at(op)]);
    for (const int tensor : module_.inputs[at(op)]) {
      start = std::max(start, presence(times, marks, tensor, device));
    }
    const double length = module_.time(op, device);
    if (length > 0) {
      double* const lanes = times + lanes_at_[at(device)];
      start = std::max(start, *lanes);
      take_first_lane(lanes, times + lanes_at_[at(device) + 1], start + length);
    }
    done |= std::uint64_t{1} << op;
    marks[op] = static_cast<std::uint8_t>(device);
    times[ends_at_ + at(op)] = start + length;
    if (module_.group[at(op)] >= 0) {
      marks[groups_at_ + at(module_.group[at(op)])] = static_cast<std::uint8_t>(device);
    }
    if (module_.with_memory) times[memory_at_ + at(device)] += module_.memory[at(op)];
    if (module_.outputs[at(op)].empty()) {
      times[kDone] = std::max(times[kDone], start + length);
      times[ends_at_ + at(op)] = 0;
      marks[op] = kNotNeeded;
    }
    for (const int tensor : module_.inputs[at(op)]) retire(view, done, tensor);
  } else if (item.kind == ModuleItem::Kind::out) {
    const int tensor = item.id;
    const int from = producer_device(marks, tensor);
    const double length = module_.host_times[at(tensor)];
    start = take_ports(std::max(start, producer_end(times, tensor)), length,
                       times + out_at_ + at(from), nullptr);
    times[host_arrivals_at_ + at(tensor)] = start + length;
    marks[out_marks_at_ + at(tensor)] = 1;
  } else {
    const int tensor = item.id;
    const int from = producer_device(marks, tensor);
    const bool after_out = module_.host && !module_.on_host[at(from)];
    start = std::max(
        start, after_out ? times[host_arrivals_at_ + at(tensor)] : producer_end(times, tensor));
    const double length =
        module_.host ? module_.host_times[at(tensor)] : module_.move(tensor, from, device);
    start = take_ports(start, length, module_.host ? nullptr : times + out_at_ + at(from),
                       times + in_at_ + at(device));
    const Module::TensorRecord& record = module_.tensors[at(tensor)];
    times[arrivals_at_ + at(record.slot) + (record.single ? 0 : at(device))] = start + length;
    marks[sent_at_ + at(record.slot) + (record.single ? 0 : at(device))] =
        record.single ? static_cast<std::uint8_t>(device + 1) : std::uint8_t{1};
  }
  times[kNow] = start;
  return start;
}

void ModuleSearch::expand(const Layer& layer, std::size_t index, Layer& next) {
  const double* const times = layer.times(index);
  const std::uint8_t* const marks = layer.marks(index);
  const std::uint64_t done = layer.node(index).done;
  for (std::uint64_t left = all_done_ & ~done; left != 0; left &= left - 1) {
    const int op = std::countr_zero(left);
    if ((module_.predecessors[at(op)] & ~done) != 0) continue;
    for_each_device(domain(times, marks, op), [&](int device) {
      for (const int tensor : module_.inputs[at(op)]) {
        if (presence(times, marks, tensor, device) == kNotThere) return;
      }
      offer(
          layer, index,
          {ModuleItem::Kind::op, static_cast<std::uint8_t>(device), static_cast<std::uint16_t>(op)},
          next);
    });
  }
  if (!module_.congestion) return;
  for (std::size_t t = 0; t < module_.tensors.size(); ++t) {
    const int tensor = static_cast<int>(t);
    if ((consumer_sets_[t] & ~done) == 0 || !producer_done(done, tensor)) continue;
    const int from = producer_device(marks, tensor);
    DeviceMask targets = 0;
    for (const int consumer : module_.tensors[t].consumers) {
      if (!contains(done, consumer)) targets |= domain(times, marks, consumer);
    }
    targets &= ~(DeviceMask{1} << from);
    if (module_.host && module_.host_times[t] == 0) continue;
    const bool out_needed =
        module_.host && !module_.on_host[at(from)] && marks[out_marks_at_ + t] == 0;
    if (out_needed) {
      if (targets == 0) continue;
      offer(layer, index, {ModuleItem::Kind::out, 0, static_cast<std::uint16_t>(t)}, next);
      continue;
    }
    for_each_device(targets, [&](int to) {
      if (module_.host && module_.on_host[at(to)]) return;
      const double length = module_.move(tensor, from, to);
      if (length == 0 || length == kInfinity || is_sent(marks, tensor, to)) return;
      offer(layer, index,
            {ModuleItem::Kind::send, static_cast<std::uint8_t>(to), static_cast<std::uint16_t>(t)},
            next);
    });
  }
}

void ModuleSearch::offer(const Layer& layer, std::size_t index, const ModuleItem& item,
                         Layer& next) {
  std::copy_n(layer.times(index), time_count_, scratch_times_.data());
  std::copy_n(layer.marks(index), mark_count_, scratch_marks_.data());
  Node node;
  node.done = layer.node(index).done;
  node.parent = static_cast<std::uint32_t>(index);
  node.item = item;
  const double start = apply(item, scratch(), node.done);
  if (item.kind == ModuleItem::Kind::op &&
      start + module_.time(item.id, item.device) +
              tails_[item.id * module_.devices + item.device] >=
          limit_) {
    return;
  }
  if (node.done == all_done_) {
    const double value = scratch_times_[kDone];
    if (value < limit_) {
      best_ = value;
      limit_ = value * (1 - kIndifference);
      goal_ = Step{node.parent, item};
      goal_layer_ = layer_number_;
    }
    return;
  }
  if (!module_.congestion) measure_reach(scratch_marks_.data(), node.done);
  if (next.dominated(node, scratch_times_.data(), scratch_marks_.data(), reach_)) return;
  node.bound = std::max(layer.node(index).bound,
                        bound(scratch_times_.data(), scratch_marks_.data(), node.done));
  if (node.bound >= limit_) return;
  next.insert(node, scratch_times_.data(), scratch_marks_.data(), reach_);
}

// Without congestion a transfer begins at its producer's end, which may lie in the past.
void ModuleSearch::measure_reach(const std::uint8_t* marks, std::uint64_t done) {
  for (std::uint64_t ops = done; ops != 0; ops &= ops - 1) {
    const int op = std::countr_zero(ops);
    if (marks[op] == kNotNeeded) continue;
    double longest = 0;
    for (const int tensor : module_.outputs[at(op)]) {
      if ((consumer_sets_[at(tensor)] & ~done) == 0) continue;
      longest = std::max(longest, longest_moves_[at(tensor) * module_.devices + marks[op]]);
    }
    reach_[ends_at_ + at(op)] = longest;
  }
}

ModuleResult ModuleSearch::run(const PassageGoal& goal, const PassageLimits& limits) {
  const std::size_t width = goal.width;
  ModuleResult result;
  std::uint64_t expanded = 0;
  limit_ = goal.cutoff * (1 - kIndifference);
  best_ = kInfinity;
  trace_.clear();
  Layer layer(time_count_, mark_count_, memory_at_);
  Layer next(time_count_, mark_count_, memory_at_);
  Node root;
  make_root(root);
  if (root.bound < limit_) {
    layer.insert(root, scratch_times_.data(), scratch_marks_.data(), reach_);
  }
  double dropped = kInfinity;
  bool stopped = false;
  for (layer_number_ = 0; layer.size() > 0 && !stopped; ++layer_number_) {
    trace_.push_back(layer.steps());
    next.clear();
    std::size_t i = 0;
    for (; i < layer.size(); ++i) {
      if (!layer.alive(i) || layer.node(i).bound >= limit_) continue;
      if (++expanded % 64 == 0 && limits.should_stop(64)) {
        stopped = true;
        break;
      }
      expand(layer, i, next);
      if (next.size() > 4 * width + 1024) next.shrink(width);
    }
    if (stopped) {
      for (; i < layer.size(); ++i) {
        if (layer.alive(i)) dropped = std::min(dropped, layer.node(i).bound);
      }
      for (i = 0; i < next.size(); ++i) {
        if (next.alive(i)) dropped = std::min(dropped, next.node(i).bound);
      }
    }
    next.shrink(width);
    dropped = std::min(dropped, next.least_dropped());
    std::swap(layer, next);
  }
  result.value = best_;
  result.complete = dropped >= limit_;
  result.lower_bound = std::min(limit_, dropped);
  if (best_ == kInfinity) return result;
  result.lower_bound = std::min(result.lower_bound, best_);
  result.items.push_back(goal_.item);
  std::uint32_t parent = goal_.parent;
  for (std::size_t number = goal_layer_; number > 0; --number) {
    const Step& step = trace_[number][parent];
    result.items.push_back(step.item);
    parent = step.parent;
  }
  std::reverse(result.items.begin(), result.items.end());
  return result;
}

ModuleItems ModuleSearch::items_of(
    const Plan& plan, const Table<TensorId, std::vector<const Transfer*>>& transfers) const {
  struct Timed {
    double start;
    std::size_t rank;
    ModuleItem item;
  };
  std::vector<Timed> timed;
  for (std::size_t op = 0; op < module_.op_count(); ++op) {
    const auto device = static_cast<std::uint8_t>(plan.placement[module_.ops[op]].index());
    timed.push_back({plan.schedule->start[module_.ops[op]],
                     2 * op + 1,
                     {ModuleItem::Kind::op, device, static_cast<std::uint16_t>(op)}});
  }
  for (std::size_t t = 0; t < module_.tensors.size() && module_.congestion; ++t) {
    const int producer = module_.tensors[t].producer;
    const std::size_t rank = producer == Module::kEntry ? 0 : 2 * at(producer) + 2;
    for (const Transfer* transfer : transfers[module_.tensors[t].id]) {
      if (transfer->end == transfer->start) continue;
      const bool out = transfer->leg == Leg::out;
      timed.push_back({transfer->start,
                       rank,
                       {out ? ModuleItem::Kind::out : ModuleItem::Kind::send,
                        out ? std::uint8_t{0} : static_cast<std::uint8_t>(transfer->to.index()),
                        static_cast<std::uint16_t>(t)}});
    }
  }
  std::sort(timed.begin(), timed.end(), [](const Timed& a, const Timed& b) {
    return a.start != b.start ? a.start < b.start : a.rank < b.rank;
  });
  ModuleItems items;
  for (const Timed& entry : timed) items.push_back(entry.item);
  return items;
}

double ModuleSearch::value_of(const ModuleItems& items) {
  Node root;
  make_root(root);
  std::uint64_t done = 0;
  double last = 0;
  for (const ModuleItem& item : items) {
    const double start = apply(item, scratch(), done);
    if (item.kind == ModuleItem::Kind::op) {
      last = std::max(last, start + module_.time(item.id, item.device));
    }
  }
  return last;
}

double ModuleSearch::replay(const ModuleItems& items, double origin, Plan& plan) {
  Node root;
  make_root(root);
  std::uint64_t done = 0;
  std::vector<int> placed(module_.op_count(), -1);
  double last = 0;
  for (const ModuleItem& item : items) {
    const auto from_of = [&](int tensor) {
      const int producer = module_.tensors[at(tensor)].producer;
      return DeviceId{at(producer == Module::kEntry ? entry_device_ : placed[at(producer)])};
    };
    const double start = origin + apply(item, scratch(), done);
    if (item.kind == ModuleItem::Kind::op) {
      const OpId op = module_.ops[item.id];
      placed[item.id] = item.device;
      plan.placement[op] = DeviceId{item.device};
      plan.schedule->start[op] = start;
      plan.schedule->end[op] = start + module_.time(item.id, item.device);
      last = std::max(last, plan.schedule->end[op]);
    } else {
      const bool host = module_.host;
      const bool out = item.kind == ModuleItem::Kind::out;
      Transfer transfer;
      transfer.tensor = module_.tensors[item.id].id;
      transfer.leg = !host ? Leg::direct : out ? Leg::out : Leg::in;
      if (!host || out) transfer.from = from_of(item.id);
      if (!out) transfer.to = DeviceId{item.device};
      transfer.start = start;
      transfer.end = start;
      plan.schedule->transfers.push_back(transfer);
    }
  }
  return last;
}

std::size_t CompiledModule::widest() const {
  const double state_bytes =
      40 + 8.0 * static_cast<double>(2 * module_.op_count() + module_.slot_count + 16);
  return static_cast<std::size_t>(kLayerBytes / state_bytes / 8);
}

std::unique_ptr<PassageSearch> CompiledModule::search(std::size_t entry, std::size_t exit) const {
  return std::make_unique<ModuleSearch>(module_, module_.has_entry ? static_cast<int>(entry) : -1,
                                        module_.exit >= 0 ? static_cast<int>(exit) : -1);
}

}  // namespace placewright
