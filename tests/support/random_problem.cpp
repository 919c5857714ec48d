#include "support/random_problem.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace placewright::testing {
namespace {

constexpr double kWholeBandwidth = 16;

class Builder {
 public:
  Builder(const RandomProblemOptions& options, std::uint64_t seed)
      : options_(options), random_(seed) {
    draft_.name = fmt::format("random-{}", seed);
    draft_.objective = options.objective;
    draft_.cluster.interconnect = options.interconnect;
    draft_.rules.congestion = options.congestion;
  }

  ProblemDraft build() {
    add_devices();
    if (options_.interconnect == InterconnectKind::links) add_links();
    add_models();
    add_ops();
    for (const ModelId model : ids<ModelId>(options_.models)) add_tensors(model);
    if (options_.training) add_colour_classes();
    if (options_.colocation) add_colocation();
    if (options_.pins) add_pins();
    if (options_.shared_weights) add_shared_weights();
    if (options_.binding_memory) bind_memory();
    if (options_.spaces || options_.one_space) join_spaces();
    if (options_.resources) add_resources();
    if (options_.cuts) add_cuts();
    return std::move(draft_);
  }

 private:
  double time(double least, double most) {
    if (options_.zero_times && random_.chance(0.2)) return 0;
    const double value = least + (most - least) * random_.unit();
    return options_.integer_times ? std::max(1.0, std::round(value)) : value;
  }

  // Whole times need whole multiples of the links' bandwidth.
  double bytes() {
    return options_.integer_times ? kWholeBandwidth * static_cast<double>(random_.between(1, 4))
                                  : static_cast<double>(random_.between(1, 64));
  }

  [[nodiscard]] bool through_host() const {
    return options_.interconnect == InterconnectKind::host;
  }

  [[nodiscard]] std::size_t host_device_count() const {
    if (!through_host()) return 0;
    if (options_.objective == Objective::call_latency) return 1;
    return std::max<std::size_t>(1, options_.devices / 3);
  }

  void add_devices();
  void add_links();
  void add_models();
  void add_ops();
  void add_tensors(ModelId model);
  std::vector<Tensor> tensors_from(OpId producer, const std::vector<OpId>& readers);
  void add_colour_classes();
  void add_colocation();
  void add_pins();
  void add_shared_weights();
  void bind_memory();
  void join_spaces();
  void join_links(const std::vector<DeviceId>& first_of);
  void add_resources();
  void add_cuts();
  [[nodiscard]] bool runs_on(OpId op, DeviceId device) const;
  [[nodiscard]] std::vector<DeviceId> common_devices(const std::vector<OpId>& ops) const;
  std::vector<OpId> pick_ops(std::size_t count);

  const RandomProblemOptions& options_;
  RandomSource random_;
  ProblemDraft draft_;
  std::vector<std::vector<OpId>> forward_;   // by model, in an order that edges follow
  std::vector<std::vector<OpId>> backward_;  // by model; the i-th mirrors the i-th forward op
  std::vector<char> has_link_;               // devices x devices
};

void Builder::add_devices() {
  const std::size_t hosts = host_device_count();
  if (through_host()) {
    draft_.cluster.kinds = {{"accelerator", false}, {"cpu", true}};
  } else {
    // Fewer kinds than devices now and then, so that some devices are alike.
    const std::size_t kinds = random_.between(1, options_.devices);
    for (std::size_t i = 0; i < kinds; ++i)
      draft_.cluster.kinds.push_back({fmt::format("kind{}", i)});
  }
  const std::size_t accelerators = options_.devices - std::min(options_.devices, hosts);
  for (std::size_t i = 0; i < options_.devices; ++i) {
    Device device;
    const bool host = through_host() && i >= accelerators;
    if (host) {
      device.name = options_.objective == Objective::call_latency
                        ? "cpu"
                        : fmt::format("cpu{}", i - accelerators);
      device.kind = KindId{1};
    } else {
      device.name = fmt::format("{}{}", through_host() ? "acc" : "d", i);
      device.kind = KindId{through_host() ? 0 : i % draft_.cluster.kinds.size()};
    }
    if (options_.lanes) device.lanes = static_cast<int>(random_.between(1, 3));
    if (options_.overheads) {
      device.send_overhead = time(0.1, 2);
      device.receive_overhead = time(0.1, 2);
    }
    draft_.cluster.devices.push_back(device);
  }
}

void Builder::add_links() {
  const std::size_t count = options_.devices;
  has_link_.assign(count * count, 0);
  for (const DeviceId from : ids<DeviceId>(count)) {
    for (const DeviceId to : ids<DeviceId>(count)) {
      if (from == to || (options_.missing_links && random_.chance(0.2))) continue;
      has_link_[from.index() * count + to.index()] = 1;
      const double bandwidth = options_.integer_times ? kWholeBandwidth : 4 + 60 * random_.unit();
      draft_.cluster.links.push_back({from, to, time(0.1, 1), bandwidth});
    }
  }
}

void Builder::add_models() {
  for (std::size_t i = 0; i < options_.models; ++i) {
    Model model{.name = fmt::format("model{}", i), .arrival = 0, .weight = 1, .deadline = {}};
    if (options_.models > 1) {
      model.arrival = i == 0 ? 0 : time(0, 8);
      model.weight = static_cast<double>(random_.between(1, 3));
      if (random_.chance(0.3)) model.deadline = model.arrival + time(5, 30);
    }
    draft_.models.push_back(model);
  }
}

// The numbers of the ops are shuffled, so that they are no topological order.
void Builder::add_ops() {
  std::vector<OpId> shuffled;
  for (const OpId op : ids<OpId>(options_.ops)) shuffled.push_back(op);
  for (std::size_t i = shuffled.size(); i > 1; --i) {
    std::swap(shuffled[i - 1], shuffled[random_.below(i)]);
  }
  draft_.ops.resize(options_.ops);
  forward_.resize(options_.models);
  backward_.resize(options_.models);
  const std::size_t backward_count = options_.training ? options_.ops / 2 : 0;
  for (std::size_t i = 0; i < options_.ops; ++i) {
    const OpId id = shuffled[i];
    const bool is_backward = i >= options_.ops - backward_count;
    const std::size_t model =
        (is_backward ? i - (options_.ops - backward_count) : i) % options_.models;
    (is_backward ? backward_ : forward_)[model].push_back(id);
    Op& op = draft_.ops[id.index()];
    op.name = fmt::format("op{}", id.index());
    op.type = fmt::format("Type{}", random_.below(4));
    op.model = ModelId{model};
    op.memory = static_cast<double>(random_.below(20));
    op.backward = is_backward;
    for (std::size_t kind = 0; kind < draft_.cluster.kinds.size(); ++kind) {
      op.time.push_back(time(1, draft_.cluster.kinds[kind].on_host ? 20 : 10));
    }
    if (!options_.unsupported || draft_.cluster.kinds.size() < 2 || !random_.chance(0.3)) continue;
    // One kind stays, and it has a device.
    const std::size_t kept = draft_.cluster.devices[random_.below(options_.devices)].kind.index();
    for (std::size_t kind = 0; kind < draft_.cluster.kinds.size(); ++kind) {
      if (kind != kept && random_.chance(0.6)) op.time[kind] = kUnsupported;
    }
  }
}

// One or two tensors, each reader taking one of them or both.
std::vector<Tensor> Builder::tensors_from(OpId producer, const std::vector<OpId>& readers) {
  std::vector<Tensor> tensors(random_.chance(0.3) ? 2 : 1);
  for (Tensor& tensor : tensors) {
    tensor.producer = producer;
    tensor.bytes = bytes();
    if (through_host()) {
      tensor.host_time = time(0.2, 4);
    } else if (random_.chance(0.5)) {
      const std::size_t count = options_.devices;
      tensor.link_times.assign(count * count, 0);
      for (std::size_t pair = 0; pair < count * count; ++pair) {
        if (pair / count == pair % count) continue;
        tensor.link_times[pair] = has_link_[pair] != 0 ? time(0.2, 6) : kInfinity;
      }
    }
  }
  for (const OpId reader : readers) {
    const std::size_t chosen = random_.below(tensors.size());
    tensors[chosen].consumers.push_back(reader);
    if (tensors.size() > 1 && random_.chance(0.2)) tensors[1 - chosen].consumers.push_back(reader);
  }
  return tensors;
}

// Backward edges mirror the forward ones, and every backward op reads what its forward op made.
void Builder::add_tensors(ModelId model) {
  const std::vector<OpId>& forward = forward_[model.index()];
  const std::vector<OpId>& backward = backward_[model.index()];
  std::vector<std::vector<OpId>> forward_readers(forward.size());
  std::vector<std::vector<OpId>> backward_readers(backward.size());
  for (std::size_t from = 0; from < forward.size(); ++from) {
    for (std::size_t to = from + 1; to < forward.size(); ++to) {
      if (!random_.chance(options_.edge_probability)) continue;
      forward_readers[from].push_back(forward[to]);
      if (to < backward.size()) backward_readers[to].push_back(backward[from]);
    }
    if (from < backward.size()) forward_readers[from].push_back(backward[from]);
  }
  const auto append = [&](OpId producer, const std::vector<OpId>& readers) {
    for (Tensor& tensor : tensors_from(producer, readers)) {
      // A few tensors that nobody reads, as a model's outputs.
      if (tensor.consumers.empty() && !random_.chance(0.3)) continue;
      if (random_.chance(0.5)) tensor.name = fmt::format("t{}", draft_.tensors.size());
      draft_.tensors.push_back(std::move(tensor));
    }
  };
  for (std::size_t i = 0; i < forward.size(); ++i) append(forward[i], forward_readers[i]);
  for (std::size_t i = 0; i < backward.size(); ++i) append(backward[i], backward_readers[i]);
}

bool Builder::runs_on(OpId op, DeviceId device) const {
  const Op& record = draft_.ops[op.index()];
  return record.time[draft_.cluster.devices[device.index()].kind.index()] < kUnsupported;
}

std::vector<DeviceId> Builder::common_devices(const std::vector<OpId>& ops) const {
  std::vector<DeviceId> devices;
  for (const DeviceId device : ids<DeviceId>(options_.devices)) {
    if (std::all_of(ops.begin(), ops.end(), [&](OpId op) { return runs_on(op, device); })) {
      devices.push_back(device);
    }
  }
  return devices;
}

// A forward op and its backward op are one colour class; some backward ops stay orphans.
void Builder::add_colour_classes() {
  for (std::size_t model = 0; model < options_.models; ++model) {
    const std::size_t pairs = std::min(forward_[model].size(), backward_[model].size());
    for (std::size_t i = 0; i < pairs; ++i) {
      const std::vector<OpId> mates{forward_[model][i], backward_[model][i]};
      if (random_.chance(0.2) || common_devices(mates).empty()) continue;
      draft_.colocated.push_back(mates);
    }
  }
}

std::vector<OpId> Builder::pick_ops(std::size_t count) {
  std::vector<OpId> picked;
  while (picked.size() < std::min(count, options_.ops)) {
    const OpId op{random_.below(options_.ops)};
    if (std::find(picked.begin(), picked.end(), op) == picked.end()) picked.push_back(op);
  }
  return picked;
}

// Groups that overlap are one group to a Problem, so all must agree on a device together.
std::vector<OpId> closure(const ProblemDraft& draft, std::vector<OpId> ops) {
  for (std::size_t size = 0; size != ops.size();) {
    size = ops.size();
    for (const std::vector<OpId>& group : draft.colocated) {
      const bool meets = std::any_of(group.begin(), group.end(), [&](OpId op) {
        return std::find(ops.begin(), ops.end(), op) != ops.end();
      });
      if (!meets) continue;
      for (const OpId op : group) {
        if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(op);
      }
    }
  }
  return ops;
}

void Builder::add_colocation() {
  const std::size_t groups = random_.between(1, std::max<std::size_t>(1, options_.ops / 5));
  for (std::size_t i = 0; i < groups; ++i) {
    const std::vector<OpId> group = pick_ops(random_.between(2, 3));
    if (!common_devices(closure(draft_, group)).empty()) draft_.colocated.push_back(group);
  }
}

void Builder::add_pins() {
  for (const OpId op : ids<OpId>(options_.ops)) {
    if (!random_.chance(0.15)) continue;
    const std::vector<OpId> group = closure(draft_, {op});
    const bool taken = std::any_of(group.begin(), group.end(), [&](OpId other) {
      return draft_.ops[other.index()].pinned_to.valid();
    });
    const std::vector<DeviceId> devices = common_devices(group);
    if (taken || devices.empty()) continue;
    draft_.ops[op.index()].pinned_to = devices[random_.below(devices.size())];
  }
}

void Builder::add_shared_weights() {
  const std::size_t count = random_.between(1, 3);
  for (std::size_t i = 0; i < count; ++i) {
    draft_.shared_weights.push_back(
        {fmt::format("weight{}", i), bytes(), pick_ops(random_.between(2, 4))});
  }
}

// Together the devices have 1.2 to 1.8 times what is needed; each at least the largest op.
void Builder::bind_memory() {
  double total = 0;
  double largest = 0;
  for (const Op& op : draft_.ops) {
    total += op.memory;
    largest = std::max(largest, op.memory);
  }
  for (const SharedWeight& weight : draft_.shared_weights) total += weight.bytes;
  for (Device& device : draft_.cluster.devices) {
    const double share = total / static_cast<double>(options_.devices);
    device.memory = std::max(largest, std::ceil(share * (1.2 + 0.6 * random_.unit())));
  }
}

// Devices of like interconnect share a space now and then; links are those of a space's first
// device.
void Builder::join_spaces() {
  Cluster& cluster = draft_.cluster;
  const auto on_host = [&](DeviceId id) {
    return cluster.kinds[cluster.devices[id.index()].kind.index()].on_host;
  };
  std::vector<DeviceId> first_of;  // by device: the first of its space
  for (const DeviceId id : ids<DeviceId>(cluster.devices.size())) {
    first_of.push_back(id);
    if (id.index() == 0 || (!options_.one_space && !random_.chance(0.5))) continue;
    const DeviceId mate = first_of[options_.one_space ? 0 : random_.below(id.index())];
    if (on_host(mate) != on_host(id)) continue;
    first_of[id.index()] = mate;
    Device& first = cluster.devices[mate.index()];
    Device& device = cluster.devices[id.index()];
    if (!first.space.valid()) {
      first.space = SpaceId{cluster.spaces.size()};
      cluster.spaces.push_back({fmt::format("space{}", cluster.spaces.size()), first.memory});
      first.memory = kInfinity;
    }
    device.space = first.space;
    cluster.spaces[first.space.index()].memory += device.memory;
    device.memory = kInfinity;
  }
  if (!through_host()) join_links(first_of);
}

void Builder::join_links(const std::vector<DeviceId>& first_of) {
  const std::size_t count = options_.devices;
  std::vector<const Link*> link_of(count * count, nullptr);
  const std::vector<Link> links = std::exchange(draft_.cluster.links, {});
  for (const Link& link : links) link_of[link.from.index() * count + link.to.index()] = &link;
  const auto like = [&](std::size_t pair) {
    return first_of[pair / count].index() * count + first_of[pair % count].index();
  };
  for (std::size_t pair = 0; pair < count * count; ++pair) {
    if (like(pair) / count == like(pair) % count || link_of[like(pair)] == nullptr) continue;
    const Link& link = *link_of[like(pair)];
    draft_.cluster.links.push_back(
        {DeviceId{pair / count}, DeviceId{pair % count}, link.latency, link.bandwidth});
  }
  for (Tensor& tensor : draft_.tensors) {
    const std::vector<double> times = tensor.link_times;
    for (std::size_t pair = 0; pair < times.size(); ++pair) {
      tensor.link_times[pair] = times[like(pair)];
    }
  }
}

void Builder::add_resources() {
  Cluster& cluster = draft_.cluster;
  const std::size_t count = random_.between(1, 4);
  for (std::size_t i = 0; i < count; ++i) {
    const double capacity = random_.chance(0.5) ? 1 : static_cast<double>(random_.between(2, 4));
    cluster.resources.push_back({fmt::format("r{}", i), capacity});
  }
  for (Device& device : cluster.devices) {
    for (const ResourceId resource : ids<ResourceId>(count)) {
      if (!random_.chance(0.5)) continue;
      const auto capacity = static_cast<std::size_t>(cluster.resources[resource.index()].capacity);
      device.uses.push_back({resource, static_cast<double>(random_.between(1, capacity))});
    }
    if (!device.uses.empty()) device.lanes = 1;
  }
  for (Op& op : draft_.ops) {
    if (!random_.chance(0.4)) continue;
    for (std::size_t kind = 0; kind < cluster.kinds.size(); ++kind) {
      op.share.push_back(static_cast<double>(random_.between(1, 4)) / 4);
    }
  }
}

void Builder::add_cuts() {
  for (Tensor& tensor : draft_.tensors) {
    for (const KindId kind : ids<KindId>(draft_.cluster.kinds.size())) {
      if (random_.chance(0.3)) tensor.cuts.push_back({kind, time(0, 2), time(0, 2)});
    }
  }
}

}  // namespace

ProblemDraft random_draft(const RandomProblemOptions& options, std::uint64_t seed) {
  return Builder(options, seed).build();
}

ProblemDraft core_set_draft(RandomProblemOptions options, std::uint64_t seed) {
  options.interconnect = InterconnectKind::links;
  options.unsupported = options.pins = options.lanes = options.missing_links = false;
  options.resources = options.spaces = options.cuts = options.overheads = false;
  ProblemDraft draft = random_draft(options, seed);
  RandomSource random(seed);
  Cluster cluster;
  cluster.spaces = {{"memory", kInfinity}};
  for (std::size_t core = 0; core < 4; ++core) {
    cluster.resources.push_back({fmt::format("core {}", core), 1});
  }
  for (std::size_t width = 1; width <= 4; width *= 2) {
    cluster.kinds.push_back({fmt::format("cpu-{}", width), false});
    for (std::size_t first = 0; first < 4; first += width) {
      Device device{.name = fmt::format("cpu:{}+{}", first, width),
                    .kind = KindId{cluster.kinds.size() - 1}};
      device.space = SpaceId{0};
      for (std::size_t core = first; core < first + width; ++core) {
        device.uses.push_back({ResourceId{core}, 1});
      }
      cluster.devices.push_back(std::move(device));
    }
  }
  draft.cluster = std::move(cluster);
  for (Op& op : draft.ops) {
    const double alone = op.time.front();
    const double speed_up = 1 + random.unit();
    op.time = {alone, alone / speed_up, alone / (speed_up * speed_up)};
  }
  for (Tensor& tensor : draft.tensors) {
    tensor.link_times.clear();
    for (std::size_t kind = 0; kind < 3; ++kind) {
      tensor.cuts.push_back({KindId{kind}, 0.1 * random.unit(), 0.1 * random.unit()});
    }
  }
  return draft;
}

}  // namespace placewright::testing
