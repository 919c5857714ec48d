#include "analysis/generate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "analysis/generated_cluster.h"
#include "analysis/graph_sketch.h"
#include "planners/random_numbers.h"

namespace placewright {
namespace {

// Times are drawn in nanoseconds and stated in milliseconds.
constexpr double kNanosecondsPerMillisecond = 1e6;
constexpr std::uint64_t kHostBandwidth = 8'000'000;  // bytes per millisecond

double milliseconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / kNanosecondsPerMillisecond;
}

[[noreturn]] void refuse(const std::string& sentence) {
  throw std::invalid_argument(sentence);
}

std::size_t whole_root(std::size_t number) {
  std::size_t root = 1;
  while ((root + 1) * (root + 1) <= number) ++root;
  return root;
}

struct OpCost {
  std::uint64_t nanoseconds;  // on a device of speed 1
  std::uint64_t weight_bytes;
  std::uint64_t output_bytes;
  std::uint64_t eighths;  // of a GPU, where devices are streams
};

void check_core_sets(const GenerateOptions& asked) {
  if (asked.sockets < 1) refuse("there is no socket: expected at least one");
  if (asked.sockets > 1 && asked.shared_cores == 0) {
    refuse("sockets are those of shared cores: give a number of shared cores");
  }
  if (asked.shared_cores % asked.sockets != 0) {
    refuse(fmt::format("{} cores make no {} sockets of equal size", asked.shared_cores,
                       asked.sockets));
  }
  if (asked.shared_cores == 0) return;
  if (asked.cores > 0) {
    refuse("sets of cores and single cores are two ways to use the same CPU: give one of them");
  }
  if (asked.sockets > 1 && asked.accelerators > 0) {
    refuse("accelerators exchange tensors through the memory of one socket, not of several");
  }
  if (record_of(asked.objective).one_host) {
    refuse(fmt::format("{} has one host device, which sets of cores are not",
                       name_of(asked.objective)));
  }
}

void check_cluster(const GenerateOptions& asked) {
  if (!has_host(asked) && (asked.devices < 1 || asked.kinds < 1)) {
    refuse("there is no device: expected at least one device and one kind");
  }
  check_core_sets(asked);
  if (asked.streams > 0 && asked.accelerators == 0 && asked.cores + asked.shared_cores > 0) {
    refuse("streams are those of accelerators: give a number of accelerators beside the cores");
  }
  if (record_of(asked.objective).one_host && !has_host(asked)) {
    refuse(fmt::format("{} needs a host interconnect: give a number of accelerators",
                       name_of(asked.objective)));
  }
}

class Generator {
 public:
  explicit Generator(const GenerateOptions& options) : options_(options), random_(options.seed) {
    check();
  }

  ProblemDraft build() {
    draft_.name = fmt::format("{}-{}-{}", name_of(options_.family), options_.ops, options_.seed);
    draft_.unit = TimeUnit::milliseconds;
    draft_.objective = options_.objective;
    draft_.rules = options_.rules;
    GeneratedCluster made = generate_cluster(options_, random_);
    draft_.cluster = std::move(made.cluster);
    kinds_ = std::move(made.kinds);
    for (std::size_t model = 0; model < options_.models; ++model) add_model(ModelId{model});
    limit_memory();
    return std::move(draft_);
  }

 private:
  void check() const;
  void add_model(ModelId model);
  std::vector<SketchOp> sketch(std::size_t ops);
  OpCost cost_of(const SketchOp& op);
  Op op_record(const std::string& name, std::string_view type, const OpCost& cost, bool backward,
               ModelId model);
  std::vector<double> times(std::string_view type, std::uint64_t nanoseconds);
  [[nodiscard]] std::vector<double> shares(std::uint64_t eighths) const;
  void add_tensor(std::size_t producer, std::vector<OpId> readers, std::uint64_t bytes);
  [[nodiscard]] std::vector<CutOverhead> cuts(std::uint64_t bytes) const;
  std::vector<double*> limited_memories();
  void limit_memory();

  const GenerateOptions& options_;
  RandomNumbers random_;
  ProblemDraft draft_;
  std::vector<GeneratedKind> kinds_;
  std::map<int, OpCost> role_costs_;
};

void Generator::check() const {
  const GenerateOptions& asked = options_;
  if (asked.ops < 1 || asked.ops > kMostGeneratedOps) {
    refuse(fmt::format("the number of ops is {}, expected 1 to {}", asked.ops, kMostGeneratedOps));
  }
  const std::size_t least = asked.training ? 2 : 1;
  if (asked.models < 1 || asked.ops / asked.models < least) {
    refuse(fmt::format("{} ops make no {} models of at least {} op(s) each", asked.ops,
                       asked.models, least));
  }
  check_cluster(asked);
  if (asked.family != GraphFamily::layered && (asked.edges > 0 || asked.layers > 0)) {
    refuse(
        fmt::format("the edges of a {} graph follow from its ops; layers and edges are chosen "
                    "for layered graphs only",
                    name_of(asked.family)));
  }
  const auto amount = [](const char* what, double value) {
    if (!(value >= 0) || !std::isfinite(value)) {
      refuse(
          fmt::format("the {} is {}, expected a finite number that is not negative", what, value));
    }
  };
  amount("density", asked.density);
  amount("memory pressure", asked.memory_pressure);
  amount("communication", asked.communication);
  amount("variation of op times", asked.variation);
  amount("share of unsupported ops", asked.unsupported);
  if (asked.variation > 1) refuse("op times vary by more than their mean");
  if (asked.communication > 1e6) refuse("the communication factor is above a million");
}

std::vector<SketchOp> Generator::sketch(std::size_t ops) {
  switch (options_.family) {
    case GraphFamily::chain:
      return chain_sketch(ops, random_);
    case GraphFamily::series_parallel:
      return series_parallel_sketch(ops, random_);
    case GraphFamily::transformer:
      return transformer_sketch(ops);
    case GraphFamily::encoder_decoder:
      return encoder_decoder_sketch(ops);
    case GraphFamily::inception:
      return inception_sketch(ops, random_);
    case GraphFamily::layered:
      break;
  }
  const std::size_t layers = options_.layers > 0 ? options_.layers : whole_root(ops);
  if (layers > ops) refuse(fmt::format("{} ops make no {} layers", ops, layers));
  const auto [least, most] = layered_edge_range(ops, layers);
  std::size_t edges = options_.edges / options_.models;
  if (options_.edges > 0 && (edges < least || edges > most)) {
    refuse(fmt::format("a layered graph of {} ops in {} layers has {} to {} edges, not {}", ops,
                       layers, least, most, edges));
  }
  if (options_.edges == 0) {
    const double wanted = options_.density * static_cast<double>(ops);
    edges = wanted < static_cast<double>(most) ? static_cast<std::size_t>(wanted) : most;
    edges = std::clamp(edges, least, most);
  }
  return layered_sketch(ops, {layers, edges}, random_);
}

OpCost Generator::cost_of(const SketchOp& op) {
  if (op.role >= 0) {
    if (const auto known = role_costs_.find(op.role); known != role_costs_.end()) {
      return known->second;
    }
  }
  const bool heavy = is_heavy(op.type);
  OpCost cost{};
  cost.nanoseconds = heavy ? random_.spread(200'000, 4) : random_.spread(20'000, 3);
  cost.weight_bytes = heavy && op.has_weights ? 1024 * random_.spread(256, 5) : 0;
  const std::uint64_t bytes = 1024 * random_.spread(64, 5);
  cost.output_bytes =
      static_cast<std::uint64_t>(static_cast<double>(bytes) * options_.communication);
  if (options_.streams > 0) cost.eighths = heavy ? random_.between(2, 8) : random_.between(1, 4);
  if (op.role >= 0) role_costs_.emplace(op.role, cost);
  return cost;
}

// The first kind, or that of a core of the host, runs every op, so that each has a device.
std::vector<double> Generator::times(std::string_view type, std::uint64_t nanoseconds) {
  std::vector<double> times;
  times.reserve(kinds_.size());
  const bool restricted = options_.unsupported > 0 && random_.chance(options_.unsupported);
  const std::size_t kept = has_host(options_) && options_.cores + options_.shared_cores > 0 ? 1 : 0;
  const auto most = static_cast<std::uint64_t>(1024 * options_.variation);
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    const Slowness& slowness = kinds_[kind].slowness;
    const std::uint64_t mean = nanoseconds * (is_heavy(type) ? slowness.heavy : slowness.light);
    // To whole tenths of a microsecond.
    const std::uint64_t exact = mean / 1024 * (1024 - most + random_.below(2 * most + 1)) / 1024;
    const bool runs = !restricted || kind == kept || random_.chance(0.5);
    times.push_back(runs ? milliseconds(exact / 100 * 100) : kUnsupported);
  }
  return times;
}

// Of what a device uses: streams take a part of their GPU, others all.
std::vector<double> Generator::shares(std::uint64_t eighths) const {
  if (options_.streams == 0) return {};
  std::vector<double> shares;
  for (const GeneratedKind& kind : kinds_) {
    shares.push_back(kind.stream ? static_cast<double>(eighths) / 8 : 1);
  }
  return shares;
}

Op Generator::op_record(const std::string& name, std::string_view type, const OpCost& cost,
                        bool backward, ModelId model) {
  Op op;
  op.name = options_.models > 1 ? fmt::format("m{}.{}", model.index(), name) : name;
  if (backward) op.name += ".grad";
  op.type = type;
  op.model = model;
  op.memory = backward ? 0 : static_cast<double>(cost.weight_bytes);
  op.backward = backward;
  // The backward pass computes gradients of the input and of the weights.
  op.time = times(type, backward ? 2 * cost.nanoseconds : cost.nanoseconds);
  op.share = shares(cost.eighths);
  return op;
}

// Of sets of cores: 0.05 ms and a pass over the tensor, half for who hands it out and half for who
// takes it in.
std::vector<CutOverhead> Generator::cuts(std::uint64_t bytes) const {
  std::vector<CutOverhead> cuts;
  const double half =
      milliseconds(25'000) + static_cast<double>(bytes) / static_cast<double>(kHostBandwidth) / 2;
  for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
    if (kinds_[kind].core_set) cuts.push_back({KindId{kind}, half, half});
  }
  return cuts;
}

void Generator::add_tensor(std::size_t producer, std::vector<OpId> readers, std::uint64_t bytes) {
  Tensor tensor;
  tensor.producer = OpId{producer};
  tensor.consumers = std::move(readers);
  tensor.bytes = static_cast<double>(bytes);
  tensor.cuts = cuts(bytes);
  if (has_host(options_)) {
    tensor.host_time = static_cast<double>(bytes) / static_cast<double>(kHostBandwidth);
  }
  draft_.tensors.push_back(std::move(tensor));
}

void Generator::add_model(ModelId model) {
  const std::size_t ops = (model.index() + 1) * options_.ops / options_.models -
                          model.index() * options_.ops / options_.models;
  const std::size_t backward = options_.training ? ops / 2 : 0;
  const std::vector<SketchOp> forward = sketch(ops - backward);
  const std::size_t base = draft_.ops.size();
  std::vector<OpCost> costs;
  costs.reserve(forward.size());

  draft_.models.push_back({.name = fmt::format("model{}", model.index()),
                           .arrival = milliseconds(1000 * model.index() * random_.spread(64, 4)),
                           .deadline = {}});
  for (const SketchOp& op : forward) {
    costs.push_back(cost_of(op));
    draft_.ops.push_back(op_record(op.name, op.type, costs.back(), false, model));
  }
  // Gradients in the order in which they are computed: the last op's comes first.
  const auto gradient_of = [&](std::size_t op) {
    return base + forward.size() + backward - 1 - op;
  };
  for (std::size_t i = backward; i-- > 0;) {
    draft_.ops.push_back(op_record(forward[i].name, forward[i].type, costs[i], true, model));
  }
  std::vector<std::vector<OpId>> gradient_readers(backward);
  for (std::size_t i = 0; i < forward.size(); ++i) {
    std::vector<OpId> readers;
    for (const std::uint32_t reader : forward[i].readers) readers.emplace_back(base + reader);
    if (i < backward) readers.emplace_back(gradient_of(i));
    for (const std::uint32_t reader : forward[i].readers) {
      if (reader < backward && i < backward) gradient_readers[reader].emplace_back(gradient_of(i));
    }
    // The last op of an odd number has no backward op: the gradients start from it.
    if (i >= backward) {
      for (std::size_t before = 0; before < backward; ++before) {
        const auto& others = forward[before].readers;
        if (std::find(others.begin(), others.end(), i) != others.end()) {
          readers.emplace_back(gradient_of(before));
        }
      }
    }
    if (!readers.empty()) add_tensor(base + i, std::move(readers), costs[i].output_bytes);
  }
  for (std::size_t i = backward; i-- > 0;) {
    if (!gradient_readers[i].empty()) {
      add_tensor(gradient_of(i), std::move(gradient_readers[i]), costs[i].output_bytes);
    }
    draft_.colocated.push_back({OpId{base + i}, OpId{gradient_of(i)}});
  }
}

// Of the spaces, and of the devices in none; host devices keep host memory, which is not limited.
std::vector<double*> Generator::limited_memories() {
  std::vector<double*> memories;
  std::vector<char> known(draft_.cluster.spaces.size(), 0);
  for (Device& device : draft_.cluster.devices) {
    if (draft_.cluster.kinds[device.kind.index()].on_host) continue;
    if (!device.space.valid()) {
      memories.push_back(&device.memory);
    } else if (std::exchange(known[device.space.index()], 1) == 0) {
      memories.push_back(&draft_.cluster.spaces[device.space.index()].memory);
    }
  }
  return memories;
}

// Unequal shares, one to two parts each.
void Generator::limit_memory() {
  if (options_.memory_pressure == 0) return;
  double weights = 0;
  for (const Op& op : draft_.ops) weights += op.memory;
  const std::vector<double*> memories = limited_memories();
  std::vector<double> parts;
  double all_parts = 0;
  for (std::size_t i = 0; i < memories.size(); ++i) {
    parts.push_back(static_cast<double>(random_.between(1024, 2048)));
    all_parts += parts.back();
  }
  const double total = weights / options_.memory_pressure;
  for (std::size_t i = 0; i < memories.size(); ++i) {
    *memories[i] = std::floor(total * parts[i] / all_parts);
  }
}

}  // namespace

ProblemDraft generate(const GenerateOptions& options) {
  return Generator(options).build();
}

}  // namespace placewright
