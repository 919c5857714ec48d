#include "problem/join.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>

namespace placewright {
namespace {

// Without what a profile measures anew each time.
Cluster described(Cluster cluster) {
  for (Device& device : cluster.devices) device.send_overhead = device.receive_overhead = 0;
  for (Link& link : cluster.links) {
    link.latency = 0;
    link.bandwidth = kInfinity;
  }
  return cluster;
}

void require_same_machine(const ProblemDraft& first, const ProblemDraft& other) {
  const std::string who = "'" + other.name + "' cannot join '" + first.name + "': ";
  if (first.unit != other.unit) throw std::invalid_argument(who + "its times have another unit");
  if (described(first.cluster) != described(other.cluster)) {
    throw std::invalid_argument(who + "it has other devices");
  }
}

// The mean of one cost over all clusters, which have the same devices and links.
template <class Cost>
double mean(const std::vector<Cluster>& clusters, Cost cost) {
  double sum = 0;
  for (const Cluster& cluster : clusters) sum += cost(cluster);
  return sum / static_cast<double>(clusters.size());
}

Cluster with_mean_costs(const std::vector<Cluster>& clusters) {
  Cluster cluster = clusters.front();
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    Device& device = cluster.devices[i];
    device.send_overhead =
        mean(clusters, [&](const Cluster& c) { return c.devices[i].send_overhead; });
    device.receive_overhead =
        mean(clusters, [&](const Cluster& c) { return c.devices[i].receive_overhead; });
  }
  for (std::size_t i = 0; i < cluster.links.size(); ++i) {
    Link& link = cluster.links[i];
    link.latency = mean(clusters, [&](const Cluster& c) { return c.links[i].latency; });
    link.bandwidth = 1 / mean(clusters, [&](const Cluster& c) { return 1 / c.links[i].bandwidth; });
  }
  return cluster;
}

// Problems that state the same costs keep them to the last bit.
void take_mean_costs(ProblemDraft& all, const std::vector<Cluster>& clusters) {
  const auto same = [&](const Cluster& cluster) { return cluster == clusters.front(); };
  if (std::all_of(clusters.begin(), clusters.end(), same)) return;
  all.cluster = with_mean_costs(clusters);
  all.origin.push_back("overheads of devices and costs of links: the means of what the " +
                       std::to_string(clusters.size()) + " joined problems state");
}

std::string free_name(const std::unordered_set<std::string>& taken, const std::string& name) {
  if (!taken.contains(name)) return name;
  for (int number = 2;; ++number) {
    std::string numbered = name + " " + std::to_string(number);
    if (!taken.contains(numbered)) return numbered;
  }
}

// Ids of a draft that follows others.
struct Offsets {
  std::size_t model;
  std::size_t op;

  void shift(OpId& id) const { id = OpId{id.index() + op}; }
  void shift(std::vector<OpId>& ids) const {
    for (OpId& id : ids) shift(id);
  }
};

void append(ProblemDraft& all, ProblemDraft next, std::unordered_set<std::string>& models,
            std::unordered_set<std::string>& ops) {
  const Offsets offsets{all.models.size(), all.ops.size()};
  for (Model& model : next.models) {
    model.name = free_name(models, model.name);
    models.insert(model.name);
  }
  bool clash = false;
  for (const Op& op : next.ops) clash = clash || ops.contains(op.name);
  for (Op& op : next.ops) {
    if (clash) op.name = free_name(ops, next.models[op.model.index()].name + "/" + op.name);
    ops.insert(op.name);
    op.model = ModelId{op.model.index() + offsets.model};
    all.ops.push_back(std::move(op));
  }
  for (Tensor& tensor : next.tensors) {
    offsets.shift(tensor.producer);
    offsets.shift(tensor.consumers);
    all.tensors.push_back(std::move(tensor));
  }
  for (auto& group : next.colocated) {
    offsets.shift(group);
    all.colocated.push_back(std::move(group));
  }
  for (SharedWeight& weight : next.shared_weights) {
    offsets.shift(weight.ops);
    all.shared_weights.push_back(std::move(weight));
  }
  all.models.insert(all.models.end(), std::make_move_iterator(next.models.begin()),
                    std::make_move_iterator(next.models.end()));
}

}  // namespace

ProblemDraft joined(std::vector<ProblemDraft> drafts) {
  if (drafts.empty()) throw std::invalid_argument("there is nothing to join");
  ProblemDraft all = std::move(drafts.front());
  std::unordered_set<std::string> models;
  std::unordered_set<std::string> ops;
  for (const Model& model : all.models) models.insert(model.name);
  for (const Op& op : all.ops) ops.insert(op.name);
  std::vector<Cluster> clusters{all.cluster};
  for (std::size_t i = 1; i < drafts.size(); ++i) {
    require_same_machine(all, drafts[i]);
    clusters.push_back(drafts[i].cluster);
    all.origin.insert(all.origin.end(), drafts[i].origin.begin(), drafts[i].origin.end());
    const std::string name = all.name + "+" + drafts[i].name;
    append(all, std::move(drafts[i]), models, ops);
    all.name = name;
  }
  take_mean_costs(all, clusters);
  return all;
}

}  // namespace placewright
