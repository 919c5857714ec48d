// nodes: pipelines over machines, and inside each machine over its devices.
//
// For clusters in two levels: devices of one node are joined by one cost of links, devices of
// different nodes by another. A node has an interval of the order of blocks (coarsen/blocks.h), and
// its devices intervals of that, so slow links are crossed once between two nodes. With segments 0
// .. n, at whose borders the order may be cut,
//
//   inner(a, b, j, k) = min over i of max(inner(a, b, i, k - 1), load(a, b; i, j))     a <= i < j <= b
//   outer(b, c)       = min over a, type of node t of max(outer(a, c - t), inner(a, b, b, devices of t))
//
// where c counts the nodes of each type that are left and load(a, b; i, j) is that of the stage [i,
// j) in the node [a, b): compute, transfers from and to [a, b) by inner links and beyond by outer
// ones. A transfer to several later stages of a node counts once, so where tensors skip stages a
// value may be higher than the program says; what is handed out is the value of the plan. The plan
// is the best of this form along the one order where no tensor does that and no border was left
// out. The flat program may be better still: it may come back to a node. The certificate is that of
// the general bounds.
//
// Orders of more than kMostSegments blocks are cut at the least traffic within equal shares of
// work. O(segments^4 x devices of a node / 24) time for each type of node, O(segments^3) memory.
//
// Reference: J. Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
// Operators", NeurIPS 2020 (hierarchies of accelerators).

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "coarsen/blocks.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "planners/bound_of_problem.h"
#include "planners/throughput/throughput.h"
#include "problem/least_time.h"

namespace placewright {
namespace {

constexpr std::size_t kMostSegments = 96;
constexpr double kLeastShare = 1e-9;
constexpr std::size_t kMostCounts = 4096;  // ways to have used some nodes of each type

// --- the cluster

// Nodes with equally many devices of one kind, memory and node-inner links: no plan tells them
// apart.
struct NodeType {
  std::vector<std::vector<DeviceId>> nodes;

  [[nodiscard]] DeviceId model() const { return nodes.front().front(); }
  [[nodiscard]] std::size_t width() const { return nodes.front().size(); }
};

struct LinkCost {
  double latency = 0;
  double bandwidth = kInfinity;

  [[nodiscard]] double time(double bytes) const { return latency + bytes / bandwidth; }
  friend bool operator==(const LinkCost&, const LinkCost&) = default;
};

struct TwoLevels {
  std::vector<NodeType> types;
  LinkCost inside;
  LinkCost between;
};

// The two levels of a cluster, or why it does not have them.
struct Structure {
  TwoLevels levels;
  std::string fault;
};

std::map<std::string, std::vector<DeviceId>> devices_by_node(const Problem& problem) {
  std::map<std::string, std::vector<DeviceId>> nodes;
  for (const DeviceId device : problem.devices()) {
    nodes[problem.device(device).node].push_back(device);
  }
  return nodes;
}

// What joins each ordered pair; a later link replaces an earlier one.
std::vector<std::optional<LinkCost>> links_by_pair(const Problem& problem) {
  const std::size_t count = problem.device_count();
  std::vector<std::optional<LinkCost>> links(count * count);
  for (const Link& link : problem.draft().cluster.links) {
    links[link.from.index() * count + link.to.index()] = {link.latency, link.bandwidth};
  }
  return links;
}

std::string read_links(const Problem& problem, TwoLevels& levels) {
  const std::size_t count = problem.device_count();
  const auto links = links_by_pair(problem);
  std::optional<LinkCost> known[2];  // between nodes, inside them
  for (const DeviceId from : problem.devices()) {
    for (const DeviceId to : problem.devices()) {
      if (from == to) continue;
      const auto& link = links[from.index() * count + to.index()];
      auto& level = known[problem.device(from).node == problem.device(to).node ? 1 : 0];
      if (!level) level = link;
      if (!link || link != level) {
        return "it knows one cost of links inside nodes and one between them";
      }
    }
  }
  levels.between = known[0].value_or(LinkCost{});
  levels.inside = known[1].value_or(LinkCost{});
  return {};
}

std::string read_types(const Problem& problem, TwoLevels& levels) {
  for (const auto& [name, devices] : devices_by_node(problem)) {
    const Device& first = problem.device(devices.front());
    const auto like = [&](const Device& model) {
      return first.kind == model.kind && first.memory == model.memory;
    };
    for (const DeviceId device : devices) {
      if (like(problem.device(device))) continue;
      return fmt::format("the devices of node '{}' are not alike", name);
    }
    const auto type = std::ranges::find_if(levels.types, [&](const NodeType& known) {
      return known.width() == devices.size() && like(problem.device(known.model()));
    });
    if (type != levels.types.end()) {
      type->nodes.push_back(devices);
    } else {
      levels.types.push_back({{devices}});
    }
  }
  double counts = 1;
  for (const NodeType& type : levels.types) counts *= static_cast<double>(type.nodes.size() + 1);
  return counts > kMostCounts ? "it has too many nodes of different types" : "";
}

Structure structure_of(const Problem& problem) {
  Structure structure;
  structure.fault = read_links(problem, structure.levels);
  if (structure.fault.empty()) structure.fault = read_types(problem, structure.levels);
  return structure;
}

std::string refuses(const Problem& problem) {
  if (problem.interconnect() != InterconnectKind::links) return "it is for devices joined by links";
  const auto nodes = devices_by_node(problem);
  if (nodes.contains("")) return "it is for clusters whose devices all state their node";
  if (nodes.size() < 2) return "all devices are in one node";
  return structure_of(problem).fault;
}

// --- the order and its segments

// A tensor between segments: it costs `inner` within a node and `outer` between two.
struct Net {
  std::size_t producer = 0;
  std::vector<std::size_t> readers;  // ascending, without the producer
  double inner = 0;
  double outer = 0;
};

// Which blocks end a segment: all, or those with the least traffic behind them within equal shares
// of work.
std::vector<std::size_t> segment_ends(const std::vector<double>& work,
                                      const std::vector<double>& traffic) {
  std::vector<std::size_t> ends;
  const double share =
      std::accumulate(work.begin(), work.end(), 0.0) / static_cast<double>(kMostSegments);
  double done = 0;
  std::size_t best = 0;
  bool open = false;  // `best` is a border of the current share
  for (std::size_t block = 0; block < work.size(); ++block) {
    done += work[block];
    if (!open || traffic[block] <= traffic[best]) best = block;
    open = true;
    const bool full = done >= share * static_cast<double>(ends.size() + 1);
    if (work.size() > kMostSegments && !full) continue;
    ends.push_back(best + 1);
    open = best < block;
    if (open) best = block;
  }
  if (ends.empty() || ends.back() != work.size()) ends.push_back(work.size());
  return ends;
}

class Segments {
 public:
  Segments(const Problem& problem, const TwoLevels& levels) : blocks_(blocks_of(problem)) {
    // Shares are of times, and of blocks where times are 0.
    std::vector<double> work(blocks_.size(), kLeastShare);
    for (const OpId op : problem.ops()) {
      work[blocks_.block_of[op].index()] += least_time(problem, op);
    }
    ends_ = segment_ends(work, traffic(problem));
    segment_of_.resize(blocks_.size());
    std::size_t segment = 0;
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      if (block == ends_[segment]) ++segment;
      segment_of_[block] = segment;
    }
    for (const TensorId tensor : problem.tensors()) add_net(problem, levels, tensor);
  }

  [[nodiscard]] std::size_t count() const { return ends_.size(); }
  [[nodiscard]] const std::vector<Net>& nets() const { return nets_; }
  [[nodiscard]] std::size_t of(OpId op) const { return segment_of_[blocks_.block_of[op].index()]; }
  [[nodiscard]] std::vector<OpId> ops(std::size_t first, std::size_t end) const {
    std::vector<OpId> ops;
    for (std::size_t block = first == 0 ? 0 : ends_[first - 1]; block < ends_[end - 1]; ++block) {
      const auto own = blocks_.ops[BlockId{block}];
      ops.insert(ops.end(), own.begin(), own.end());
    }
    std::ranges::sort(ops);
    return ops;
  }

 private:
  // Bytes that cross the border behind each block.
  [[nodiscard]] std::vector<double> traffic(const Problem& problem) const {
    std::vector<double> change(blocks_.size() + 1, 0);
    for (const TensorId tensor : problem.tensors()) {
      std::size_t first = blocks_.block_of[problem.producer(tensor)].index();
      std::size_t last = first;
      for (const OpId reader : problem.consumers(tensor)) {
        first = std::min(first, blocks_.block_of[reader].index());
        last = std::max(last, blocks_.block_of[reader].index());
      }
      change[first] += problem.tensor(tensor).bytes;
      change[last] -= problem.tensor(tensor).bytes;
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    return change;
  }

  void add_net(const Problem& problem, const TwoLevels& levels, TensorId tensor) {
    Net net;
    net.producer = of(problem.producer(tensor));
    for (const OpId reader : problem.consumers(tensor)) {
      if (of(reader) != net.producer) net.readers.push_back(of(reader));
    }
    if (net.readers.empty()) return;
    std::ranges::sort(net.readers);
    const auto repeated = std::ranges::unique(net.readers);
    net.readers.erase(repeated.begin(), repeated.end());
    const double bytes = problem.tensor(tensor).bytes;
    net.inner = levels.inside.time(bytes);
    net.outer = levels.between.time(bytes);
    nets_.push_back(std::move(net));
  }

  Blocks blocks_;
  std::vector<std::size_t> ends_;  // of segments, in blocks
  std::vector<std::size_t> segment_of_;
  std::vector<Net> nets_;
};

// --- what a stage costs

// The traffic of stages [i, j) with the segments before i, where the node begins at a: sums of
// boxes of (a, i, j), entered at their corners.
class TrafficBefore {
 public:
  TrafficBefore(std::size_t count, const std::vector<Net>& nets)
      : side_(count + 2), sums_(side_ * side_ * side_, 0) {
    for (const Net& net : nets) {
      add_received(net);
      add_sent(net);
    }
    sum_up();
  }

  [[nodiscard]] double at(std::size_t a, std::size_t i, std::size_t j) const {
    return sums_[(a * side_ + i) * side_ + j];
  }

 private:
  // Both ends belong to the range.
  struct Range {
    std::size_t first;
    std::size_t last;
  };

  // Stages behind the producer with a reader: by its first reader r in the stage.
  void add_received(const Net& net) {
    std::size_t before = net.producer;
    for (const std::size_t reader : net.readers) {
      if (reader < net.producer) continue;
      const Range starts{before + 1, reader};
      add({0, net.producer}, starts, {reader + 1, side_ - 1}, net.inner);
      add({net.producer + 1, side_ - 1}, starts, {reader + 1, side_ - 1}, net.outer);
      before = reader;
    }
  }

  // Stages with the producer and readers before them: to those in the node, and to those before it.
  void add_sent(const Net& net) {
    const auto first_after = std::ranges::lower_bound(net.readers, net.producer);
    const auto earlier = static_cast<std::size_t>(first_after - net.readers.begin());
    if (earlier == 0) return;
    const Range ends{net.producer + 1, side_ - 1};
    for (std::size_t k = 0; k < earlier; ++k) {
      const std::size_t next = k + 1 < earlier ? net.readers[k + 1] : net.producer;
      add({0, net.readers[k]}, {net.readers[k] + 1, next}, ends, net.inner);
    }
    add({net.readers[0] + 1, side_ - 1}, {net.readers[0] + 1, net.producer}, ends, net.outer);
  }

  void add(Range a, Range i, Range j, double amount) {
    if (a.first > a.last || i.first > i.last || j.first > j.last) return;
    for (const auto& [x, sign_x] : corners(a)) {
      for (const auto& [y, sign_y] : corners(i)) {
        for (const auto& [z, sign_z] : corners(j)) {
          if (x >= side_ || y >= side_ || z >= side_) continue;
          sums_[(x * side_ + y) * side_ + z] += amount * sign_x * sign_y * sign_z;
        }
      }
    }
  }
  static std::array<std::pair<std::size_t, double>, 2> corners(Range range) {
    return {{{range.first, 1}, {range.last + 1, -1}}};
  }

  void sum_up() {
    const std::size_t steps[] = {1, side_, side_ * side_};
    for (const std::size_t step : steps) {
      for (std::size_t at = step; at < sums_.size(); ++at) {
        if (at / step % side_ != 0) sums_[at] += sums_[at - step];
      }
    }
  }

  std::size_t side_;
  std::vector<double> sums_;
};

// The order read from its end, so that what comes after a stage comes before it.
std::vector<Net> mirrored(std::vector<Net> nets, std::size_t count) {
  for (Net& net : nets) {
    net.producer = count - 1 - net.producer;
    for (std::size_t& reader : net.readers) reader = count - 1 - reader;
    std::ranges::reverse(net.readers);
  }
  return nets;
}

class StageCosts {
 public:
  StageCosts(const Problem& problem, const Segments& segments, const std::vector<NodeType>& types)
      : count_(segments.count()),
        mode_(problem.rules().transfers),
        before_(count_, segments.nets()),
        after_(count_, mirrored(segments.nets(), count_)),
        compute_(types.size(), std::vector<double>(count_ + 1, 0)),
        unsupported_(types.size(), std::vector<std::size_t>(count_ + 1, 0)),
        bytes_((count_ + 1) * (count_ + 1), 0) {
    for (const NodeType& type : types) memory_.push_back(problem.device(type.model()).memory);
    for (std::size_t type = 0; type < types.size(); ++type) {
      for (const OpId op : problem.ops()) {
        const double time = problem.time(op, types[type].model());
        const std::size_t at = segments.of(op) + 1;
        if (time == kUnsupported) {
          ++unsupported_[type][at];
        } else {
          compute_[type][at] += time;
        }
      }
      std::partial_sum(compute_[type].begin(), compute_[type].end(), compute_[type].begin());
      std::partial_sum(unsupported_[type].begin(), unsupported_[type].end(),
                       unsupported_[type].begin());
    }
    sum_bytes(problem, segments);
  }

  // Of the stage [i, j) in a node [a, b) of the type; infinite where it cannot be there.
  [[nodiscard]] double load(std::size_t type, std::size_t a, std::size_t b, std::size_t i,
                            std::size_t j) const {
    if (unsupported_[type][i] != unsupported_[type][j]) return kInfinity;
    if (!within_memory(bytes_[i * (count_ + 1) + j], memory_[type])) return kInfinity;
    const double compute = compute_[type][j] - compute_[type][i];
    const double traffic = before_.at(a, i, j) + after_.at(count_ - b, count_ - j, count_ - i);
    return mode_ == TransferMode::sequential ? compute + traffic : std::max(compute, traffic);
  }

 private:
  // Resident bytes of every interval; a shared weight counts from the first reader on.
  void sum_bytes(const Problem& problem, const Segments& segments) {
    std::vector<double> own(count_, 0);
    for (const OpId op : problem.ops()) own[segments.of(op)] += problem.memory(op);
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::size_t j = i; j < count_; ++j) {
        bytes_[i * (count_ + 1) + j + 1] = bytes_[i * (count_ + 1) + j] + own[j];
      }
    }
    std::vector<char> reads(count_);
    for (const SharedWeight& weight : problem.draft().shared_weights) {
      std::ranges::fill(reads, 0);
      for (const OpId op : weight.ops) reads[segments.of(op)] = 1;
      for (std::size_t i = 0; i < count_; ++i) {
        bool held = false;
        for (std::size_t j = i; j < count_; ++j) {
          held = held || reads[j] != 0;
          if (held) bytes_[i * (count_ + 1) + j + 1] += weight.bytes;
        }
      }
    }
  }

  std::size_t count_;
  TransferMode mode_;
  TrafficBefore before_;
  TrafficBefore after_;
  std::vector<std::vector<double>> compute_;  // by type, before each segment
  std::vector<std::vector<std::size_t>> unsupported_;
  std::vector<double> bytes_;  // by first and end
  std::vector<double> memory_;
};

// --- the two programs

// The best stages of a node [a, b): cell(j, k) is the least load of [a, j) on at most k devices.
class NodeProgram {
 public:
  NodeProgram(const StageCosts& costs, std::size_t type, std::size_t width)
      : costs_(costs), type_(type), width_(width) {}

  double solve(std::size_t a, std::size_t b) {
    a_ = a;
    cells_.assign((b - a + 1) * (width_ + 1), {});
    for (std::size_t k = 0; k <= width_; ++k) cells_[k].value = 0;
    for (std::size_t j = a + 1; j <= b; ++j) {
      for (std::size_t i = a; i < j; ++i) {
        const double load = costs_.load(type_, a, b, i, j);
        if (load == kInfinity) continue;
        for (std::size_t k = 1; k <= width_; ++k) {
          const double value = std::max(cell(i, k - 1).value, load);
          if (value < cell(j, k).value) cell(j, k) = {value, i};
        }
      }
    }
    return cell(b, width_).value;
  }

  // The borders of the stages of the last node solved, from a to b.
  [[nodiscard]] std::vector<std::size_t> borders(std::size_t b) {
    std::vector<std::size_t> borders = {b};
    for (std::size_t k = width_; borders.back() > a_; --k) {
      borders.push_back(cell(borders.back(), k).first);
    }
    std::ranges::reverse(borders);
    return borders;
  }

 private:
  struct Cell {
    double value = kInfinity;
    std::size_t first = 0;
  };
  Cell& cell(std::size_t j, std::size_t k) { return cells_[(j - a_) * (width_ + 1) + k]; }

  const StageCosts& costs_;
  std::size_t type_;
  std::size_t width_;
  std::size_t a_ = 0;
  std::vector<Cell> cells_;
};

class NodesProgram {
 public:
  NodesProgram(const Problem& problem, Control& control)
      : problem_(problem),
        control_(control),
        levels_(structure_of(problem).levels),
        segments_(problem, levels_),
        costs_(problem, segments_, levels_.types) {
    for (const NodeType& type : levels_.types) {
      strides_.push_back(counts_);
      counts_ *= type.nodes.size() + 1;
    }
  }

  Answer run() {
    Answer answer;
    answer.certificate = bound_of_problem(problem_, control_);
    if (!solve_nodes()) {
      answer.reason = control_.stop_reason();
      return answer;
    }
    solve_order();
    if (cell(segments_.count(), counts_ - 1).value == kInfinity) {
      answer.reason = "no cut of the order into nodes and devices fits";
      return answer;
    }
    answer.plan = plan();
    control_.report(*answer.plan, answer.certificate.lower_bound);
    return answer;
  }

 private:
  struct Cell {
    double value = kInfinity;
    std::size_t first = 0;
    std::size_t type = 0;
  };
  [[nodiscard]] Cell& cell(std::size_t end, std::size_t used) {
    return cells_[end * counts_ + used];
  }
  [[nodiscard]] std::size_t count_of(std::size_t used, std::size_t type) const {
    return used / strides_[type] % (levels_.types[type].nodes.size() + 1);
  }
  [[nodiscard]] double& node_value(std::size_t type, std::size_t a, std::size_t b) {
    const std::size_t side = segments_.count() + 1;
    return node_values_[(type * side + a) * side + b];
  }

  // False if it was stopped.
  bool solve_nodes() {
    const std::size_t side = segments_.count() + 1;
    node_values_.assign(levels_.types.size() * side * side, kInfinity);
    std::uint64_t steps = 0;
    for (std::size_t type = 0; type < levels_.types.size(); ++type) {
      NodeProgram program(costs_, type, levels_.types[type].width());
      for (std::size_t a = 0; a < segments_.count(); ++a) {
        for (std::size_t b = a + 1; b <= segments_.count(); ++b) {
          if (control_.should_stop(++steps)) return false;
          node_value(type, a, b) = program.solve(a, b);
        }
      }
    }
    return true;
  }

  // cell(b, c): the first b segments on at most c nodes of each type.
  void solve_order() {
    cells_.assign((segments_.count() + 1) * counts_, {});
    for (std::size_t used = 0; used < counts_; ++used) cell(0, used).value = 0;
    for (std::size_t b = 1; b <= segments_.count(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        for (std::size_t type = 0; type < levels_.types.size(); ++type) {
          const double node = node_value(type, a, b);
          if (node == kInfinity) continue;
          for (std::size_t used = 0; used < counts_; ++used) {
            if (count_of(used, type) == 0) continue;
            const double value = std::max(cell(a, used - strides_[type]).value, node);
            if (value < cell(b, used).value) cell(b, used) = {value, a, type};
          }
        }
      }
    }
  }

  Plan plan() {
    std::vector<Stage> stages;
    std::vector<std::size_t> next(levels_.types.size(), 0);  // node of each type
    std::size_t used = counts_ - 1;
    for (std::size_t b = segments_.count(); b > 0;) {
      const Cell chosen = cell(b, used);
      const NodeType& type = levels_.types[chosen.type];
      const std::vector<DeviceId>& devices = type.nodes[next[chosen.type]++];
      NodeProgram program(costs_, chosen.type, type.width());
      program.solve(chosen.first, b);
      const std::vector<std::size_t> borders = program.borders(b);
      std::vector<Stage> own;
      for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
        own.push_back({{devices[i]}, segments_.ops(borders[i], borders[i + 1])});
      }
      stages.insert(stages.begin(), own.begin(), own.end());
      used -= strides_[chosen.type];
      b = chosen.first;
    }
    return pipeline_plan(problem_, std::move(stages));
  }

  const Problem& problem_;
  Control& control_;
  TwoLevels levels_;
  Segments segments_;
  StageCosts costs_;
  std::size_t counts_ = 1;
  std::vector<std::size_t> strides_;  // by type, in counts of nodes
  std::vector<double> node_values_;   // by type, a and b
  std::vector<Cell> cells_;
};

Answer plan(const Problem& problem, const Settings&, Control& control) {
  return NodesProgram(problem, control).run();
}

}  // namespace

PlannerEntry nodes() {
  return PlannerEntry{.name = "nodes",
                      .summary = "stages over machines, then inside each, along one order",
                      .objectives = {Objective::throughput},
                      .role = Role::own,
                      .knows = kCommonFeatures - Features{Feature::duplex, Feature::phased_training,
                                                          Feature::cut_overheads,
                                                          Feature::transfer_tables, Feature::pins},
                      .refuses = refuses,
                      .plan = plan};
}

}  // namespace placewright
