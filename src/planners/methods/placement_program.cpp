#include "planners/methods/placement_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "coarsen/dominance.h"
#include "planners/methods/stage_model.h"

namespace placewright::throughput {

double estimated_rows(const Problem& problem) {
  const auto devices = static_cast<double>(problem.device_count());
  const auto edges = static_cast<double>(problem.edge_count());
  const bool host = problem.interconnect() == InterconnectKind::host;
  const double moves = host ? 2 * edges * devices : edges * devices * devices;
  const double order =
      problem.rules().contiguity == Contiguity::joint ? edges * devices * devices : 0;
  return static_cast<double>(problem.op_count()) + moves + order;
}

Blocks program_blocks(const Problem& problem) {
  if (problem.rules().contiguity != Contiguity::per_device) {
    return merge_dominated(problem, blocks_of(problem));
  }
  // Groups on a common cycle may still be apart under this rule.
  Blocks blocks;
  blocks.block_of = Table<OpId, BlockId>(problem.op_count());
  std::vector<std::pair<BlockId, OpId>> members;
  for (const OpId op : problem.ops()) {
    blocks.block_of[op] = BlockId{problem.group(op).index()};
    members.emplace_back(blocks.block_of[op], op);
  }
  blocks.ops = Rows<BlockId, OpId>::from_pairs(problem.group_count(), members);
  std::vector<std::pair<BlockId, BlockId>> edges;
  for (const auto& [from, to] : contiguity_edges(problem)) {
    edges.emplace_back(BlockId{from.index()}, BlockId{to.index()});
  }
  blocks.successors = Rows<BlockId, BlockId>::from_pairs(problem.group_count(), edges);
  return blocks;
}

PlacementProgram::PlacementProgram(const Problem& problem, double highest)
    : problem_(&problem),
      blocks_(program_blocks(problem)),
      phased_(problem.rules().training == TrainingMode::phased && problem.has_backward_ops()),
      highest_(highest),
      loads_(problem.device_count() * 2) {
  add_choices();
  add_memory();
  if (problem.rules().contiguity == Contiguity::joint) add_joint_order();
  if (problem.rules().contiguity == Contiguity::per_device) add_own_contiguity();
  add_nets();
  add_loads();
}

int PlacementProgram::add(int upper) {
  variables_.push_back({upper});
  return static_cast<int>(variables_.size() - 1);
}

void PlacementProgram::add_choices() {
  x_.assign(blocks_.size() * problem_->device_count(), -1);
  // Without an order of devices, the i-th of devices that are alike is not used before block i.
  Table<DeviceId, std::size_t> earliest(problem_->device_count(), 0);
  if (problem_->rules().contiguity != Contiguity::joint &&
      problem_->interconnect() == InterconnectKind::host) {
    for (const auto& alike : device_classes(*problem_)) {
      for (std::size_t i = 0; i < alike.size(); ++i) earliest[alike[i]] = i;
    }
  }
  for (const BlockId block : blocks_.keys()) {
    ProgramRow row;
    for (const DeviceId device : problem_->devices()) {
      const auto ops = blocks_.ops[block];
      const bool allowed = block.index() >= earliest[device] &&
                           std::all_of(ops.begin(), ops.end(),
                                       [&](OpId op) { return problem_->allowed(op, device); });
      if (!allowed) continue;
      x(block.index(), device) = add();
      row.terms.push_back({x(block.index(), device), 1});
      for (const OpId op : ops) {
        const double time = problem_->time(op, device);
        if (time == 0) continue;
        load(device, problem_->op(op).backward).compute.push_back({x(block.index(), device), time});
      }
    }
    row.lower = row.upper = 1;
    rows_.push_back(std::move(row));
  }
}

void PlacementProgram::add_memory() {
  for (const DeviceId device : problem_->devices()) {
    const double memory = problem_->device(device).memory;
    if (memory == kInfinity) continue;
    ProgramRow row;
    row.upper = memory;
    row.whole = false;
    row.bytes = true;
    std::vector<std::vector<int>> readers(problem_->shared_weight_count());
    for (const BlockId block : blocks_.keys()) {
      const int here = x(block.index(), device);
      if (here < 0) continue;
      double bytes = 0;
      for (const OpId op : blocks_.ops[block]) {
        bytes += problem_->memory(op);
        for (const WeightId weight : problem_->shared_weights(op)) {
          readers[weight.index()].push_back(here);
        }
      }
      if (bytes > 0) row.terms.push_back({here, bytes});
    }
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (readers[i].empty()) continue;
      const int held = add();
      for (const int reader : readers[i]) rows_.push_back({{{held, 1}, {reader, -1}}, 0});
      row.terms.push_back({held, problem_->shared_weight_bytes(WeightId{i})});
    }
    if (!row.terms.empty()) rows_.push_back(std::move(row));
  }
}

void PlacementProgram::add_joint_order() {
  const std::size_t count = problem_->device_count();
  std::vector<int> place(count);
  for (int& variable : place) variable = add(static_cast<int>(count) - 1);
  if (problem_->interconnect() == InterconnectKind::host) {
    for (const auto& alike : device_classes(*problem_)) {
      for (std::size_t i = 1; i < alike.size(); ++i) {
        rows_.push_back({{{place[alike[i].index()], 1}, {place[alike[i - 1].index()], -1}}, 1});
      }
    }
  }
  std::vector<int> before(count * count, -1);
  const auto span = static_cast<double>(count);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a == b) continue;
      before[a * count + b] = add();
      // before: place(b) >= place(a) + 1
      rows_.push_back({{{place[b], 1}, {place[a], -1}, {before[a * count + b], -span}}, 1 - span});
    }
  }
  for (const BlockId from : blocks_.keys()) {
    for (const BlockId to : blocks_.successors[from]) {
      for (const DeviceId a : problem_->devices()) {
        for (const DeviceId b : problem_->devices()) {
          const int here = x(from.index(), a);
          const int there = x(to.index(), b);
          if (a == b || here < 0 || there < 0) continue;
          rows_.push_back(
              {{{before[a.index() * count + b.index()], 1}, {here, -1}, {there, -1}}, -1});
        }
      }
    }
  }
}

// Nodes are forward ops; edges of orphans between groups stand for edges between all their forward
// ops, and an orphan is a node of its own.
void PlacementProgram::add_own_contiguity() {
  Table<GroupId, char> orphan(problem_->group_count(), 1);
  for (const OpId op : problem_->ops()) {
    if (!problem_->op(op).backward) orphan[problem_->group(op)] = 0;
  }
  std::vector<BlockId> node_block;
  std::vector<int> node_of(problem_->op_count(), -1);
  std::vector<std::vector<int>> group_nodes(problem_->group_count());
  const auto add_node = [&](GroupId group) {
    node_block.push_back(BlockId{group.index()});
    group_nodes[group.index()].push_back(static_cast<int>(node_block.size() - 1));
    return static_cast<int>(node_block.size() - 1);
  };
  for (const OpId op : problem_->topological_order()) {
    if (!problem_->op(op).backward) node_of[op.index()] = add_node(problem_->group(op));
  }
  for (const GroupId group : problem_->groups()) {
    if (orphan[group]) add_node(group);
  }
  std::vector<std::pair<int, int>> edges;
  for (const OpId op : problem_->ops()) {
    for (const OpId next : problem_->successors(op)) {
      const bool backward = problem_->op(op).backward;
      if (problem_->op(next).backward != backward) continue;
      const GroupId a = problem_->group(op);
      const GroupId b = problem_->group(next);
      if (!backward) {
        edges.emplace_back(node_of[op.index()], node_of[next.index()]);
      } else if (a != b && (orphan[a] || orphan[b])) {
        for (const int from : group_nodes[b.index()]) {
          for (const int to : group_nodes[a.index()]) edges.emplace_back(from, to);
        }
      }
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  for (const DeviceId device : problem_->devices()) {
    std::vector<int> z(node_block.size());
    for (std::size_t node = 0; node < z.size(); ++node) {
      z[node] = add();
      const int here = x(node_block[node].index(), device);
      if (here >= 0) rows_.push_back({{{z[node], 1}, {here, -1}}, 0});
    }
    for (const auto& [from, to] : edges) {
      const auto u = static_cast<std::size_t>(from);
      const auto v = static_cast<std::size_t>(to);
      rows_.push_back({{{z[u], 1}, {z[v], -1}}, 0});
      ProgramRow row;
      row.terms = {{z[v], 1}};
      row.upper = 1;
      if (const int there = x(node_block[v].index(), device); there >= 0) {
        row.terms.push_back({there, -1});
      }
      if (const int here = x(node_block[u].index(), device); here >= 0) {
        row.terms.push_back({here, 1});
      }
      rows_.push_back(std::move(row));
    }
  }
}

void PlacementProgram::add_nets() {
  for (const TensorId tensor : problem_->tensors()) {
    if (problem_->interconnect() == InterconnectKind::host) {
      add_host_net(tensor);
    } else {
      add_link_net(tensor);
    }
  }
}

void PlacementProgram::add_host_net(TensorId tensor) {
  const OpId maker = problem_->producer(tensor);
  const std::size_t home = blocks_.block_of[maker].index();
  const bool backward = problem_->op(maker).backward;
  const double time = problem_->host_time(tensor);
  std::vector<std::pair<std::size_t, bool>> readers;  // block, of the producer's pass
  for (const OpId op : problem_->consumers(tensor)) {
    const std::size_t block = blocks_.block_of[op].index();
    if (block != home) readers.emplace_back(block, problem_->op(op).backward == backward);
  }
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  if (readers.empty()) return;
  for (const DeviceId device : problem_->devices()) {
    if (problem_->on_host(device)) continue;
    const double send = problem_->send_overhead(tensor, device);
    const double receive = problem_->receive_overhead(tensor, device);
    if (time == 0 && send == 0 && receive == 0) continue;
    const int made_here = x(home, device);
    if (made_here >= 0) {
      const int out = add();
      load(device, backward).out.push_back({out, time});
      if (send > 0) load(device, backward).compute.push_back({out, send});
      for (const auto& reader : readers) {
        const int read_here = x(reader.first, device);
        ProgramRow row{{{out, 1}, {made_here, -1}}, 0};
        if (read_here >= 0) row.terms.push_back({read_here, 1});
        rows_.push_back(std::move(row));
      }
    }
    // Fetched in the producer's pass where that pass reads it here, else in the other.
    int in[2] = {-1, -1};
    ProgramRow reason;  // the fetch in the producer's pass needs a reader of that pass
    reason.upper = 0;
    for (const bool same_pass : {true, false}) {
      for (const auto& [block, is_same] : readers) {
        const int read_here = x(block, device);
        if (is_same != same_pass || read_here < 0) continue;
        int& fetch = in[same_pass || !phased_ ? 0 : 1];
        if (fetch < 0) {
          fetch = add();
          const bool in_backward = same_pass == backward;
          Load& target = load(device, in_backward);
          target.in.push_back({fetch, time});
          if (receive > 0) target.compute.push_back({fetch, receive});
        }
        ProgramRow row{{{fetch, 1}, {read_here, -1}}, 0};
        if (made_here >= 0) row.terms.push_back({made_here, 1});
        if (!same_pass && phased_ && in[0] >= 0) row.terms.push_back({in[0], 1});
        rows_.push_back(std::move(row));
        if (same_pass) reason.terms.push_back({read_here, -1});
      }
    }
    if (phased_ && in[0] >= 0 && in[1] >= 0) {
      reason.terms.push_back({in[0], 1});
      rows_.push_back(std::move(reason));
    }
  }
}

void PlacementProgram::add_link_net(TensorId tensor) {
  const OpId maker = problem_->producer(tensor);
  const std::size_t home = blocks_.block_of[maker].index();
  const bool backward = problem_->op(maker).backward;
  for (const DeviceId a : problem_->devices()) {
    if (x(home, a) < 0) continue;
    for (const DeviceId b : problem_->devices()) {
      if (a == b) continue;
      const double time = problem_->link_time(tensor, a, b);
      const double send = problem_->send_overhead(tensor, a);
      const double receive = problem_->receive_overhead(tensor, b);
      int move[2] = {-1, -1};
      ProgramRow reason;
      reason.upper = 0;
      for (const bool same_pass : {true, false}) {
        for (const OpId op : problem_->consumers(tensor)) {
          const std::size_t block = blocks_.block_of[op].index();
          const int read_there = x(block, b);
          if ((problem_->op(op).backward == backward) != same_pass) continue;
          if (block == home || read_there < 0) continue;
          if (time == kInfinity) {
            rows_.push_back({{{x(home, a), 1}, {read_there, 1}}, -kInfinity, 1});
            continue;
          }
          if (time == 0 && send == 0 && receive == 0) continue;
          int& moved = move[same_pass || !phased_ ? 0 : 1];
          if (moved < 0) {
            moved = add();
            load(a, backward).out.push_back({moved, time});
            Load& target = load(b, same_pass == backward);
            target.in.push_back({moved, time});
            if (send > 0) load(a, backward).compute.push_back({moved, send});
            if (receive > 0) target.compute.push_back({moved, receive});
          }
          ProgramRow row{{{moved, 1}, {x(home, a), -1}, {read_there, -1}}, -1};
          if (!same_pass && phased_ && move[0] >= 0) row.terms.push_back({move[0], 1});
          rows_.push_back(std::move(row));
          if (same_pass) reason.terms.push_back({read_there, -1});
        }
      }
      if (phased_ && move[0] >= 0 && move[1] >= 0) {
        reason.terms.push_back({move[0], 1});
        rows_.push_back(std::move(reason));
      }
    }
  }
}

void PlacementProgram::add_loads() {
  objective_ = {add(0)};
  if (phased_) objective_.push_back(add(0));
  for (const DeviceId device : problem_->devices()) {
    for (std::size_t pass = 0; pass < objective_.size(); ++pass) {
      const Load& parts = loads_[device.index() * 2 + pass];
      const auto limit = [&](std::initializer_list<const std::vector<ProgramTerm>*> sums) {
        ProgramRow row;
        row.whole = false;
        row.upper = 0;
        row.terms.push_back({objective_[pass], -1});
        for (const auto* sum : sums) row.terms.insert(row.terms.end(), sum->begin(), sum->end());
        if (row.terms.size() > 1) rows_.push_back(std::move(row));
      };
      switch (problem_->rules().transfers) {
        case TransferMode::sequential:
          limit({&parts.compute, &parts.in, &parts.out});
          break;
        case TransferMode::overlapped:
          limit({&parts.compute});
          limit({&parts.in, &parts.out});
          break;
        case TransferMode::duplex:
          limit({&parts.compute});
          limit({&parts.in});
          limit({&parts.out});
          break;
      }
    }
  }
}

std::optional<Placement> PlacementProgram::placement(const std::vector<double>& values) const {
  Placement placement(problem_->op_count());
  for (const BlockId block : blocks_.keys()) {
    for (const DeviceId device : problem_->devices()) {
      const int here = x(block.index(), device);
      if (here < 0 || values[static_cast<std::size_t>(here)] < 0.5) continue;
      for (const OpId op : blocks_.ops[block]) placement[op] = device;
    }
    if (!placement[blocks_.ops[block].front()].valid()) return std::nullopt;
  }
  return placement;
}

std::optional<std::vector<double>> PlacementProgram::start(const Placement& placement) const {
  // Among like devices the first to get a block is the first of them.
  Table<DeviceId, DeviceId> renamed(problem_->device_count());
  for (const DeviceId device : problem_->devices()) renamed[device] = device;
  if (problem_->rules().contiguity != Contiguity::joint &&
      problem_->interconnect() == InterconnectKind::host) {
    for (const auto& alike : device_classes(*problem_)) {
      for (const DeviceId device : alike) renamed[device] = DeviceId{};
      std::size_t next = 0;
      for (const BlockId block : blocks_.keys()) {
        const DeviceId device = placement[blocks_.ops[block].front()];
        if (std::find(alike.begin(), alike.end(), device) == alike.end()) continue;
        if (!renamed[device].valid()) renamed[device] = alike[next++];
      }
    }
  }
  std::vector<double> values(variables_.size(), std::numeric_limits<double>::quiet_NaN());
  for (const BlockId block : blocks_.keys()) {
    const auto ops = blocks_.ops[block];
    const DeviceId where = renamed[placement[ops.front()]];
    for (const OpId op : ops) {
      if (placement[op] != placement[ops.front()]) return std::nullopt;
    }
    for (const DeviceId device : problem_->devices()) {
      const int here = x(block.index(), device);
      if (here < 0 && device == where) return std::nullopt;
      if (here >= 0) values[static_cast<std::size_t>(here)] = device == where ? 1 : 0;
    }
  }
  return values;
}

}  // namespace placewright::throughput
