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

// Gives names that are taken new ones.
void rename(ProblemDraft& next, std::unordered_set<std::string>& models,
            std::unordered_set<std::string>& ops) {
  for (Model& model : next.models) {
    model.name = free_name(models, model.name);
    models.insert(model.name);
  }
  bool clash = false;
  for (const Op& op : next.ops) clash = clash || ops.contains(op.name);
  for (Op& op : next.ops) {
    if (clash) op.name = free_name(ops, next.models[op.model.index()].name + "/" + op.name);
    ops.insert(op.name);
  }
}

template <class Record>
void move_behind(std::vector<Record>& all, std::vector<Record>& part) {
  all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
}

}  // namespace

void append_records(ProblemDraft& all, ProblemDraft part) {
  const auto follow = [first = all.ops.size()](OpId& id) { id = OpId{id.index() + first}; };
  const auto all_follow = [&](std::vector<OpId>& ids) { std::ranges::for_each(ids, follow); };
  for (Op& op : part.ops) op.model = ModelId{op.model.index() + all.models.size()};
  for (Tensor& tensor : part.tensors) {
    follow(tensor.producer);
    all_follow(tensor.consumers);
  }
  std::ranges::for_each(part.colocated, all_follow);
  for (SharedWeight& weight : part.shared_weights) all_follow(weight.ops);
  move_behind(all.models, part.models);
  move_behind(all.ops, part.ops);
  move_behind(all.tensors, part.tensors);
  move_behind(all.colocated, part.colocated);
  move_behind(all.shared_weights, part.shared_weights);
}

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
    rename(drafts[i], models, ops);
    append_records(all, std::move(drafts[i]));
    all.name = name;
  }
  take_mean_costs(all, clusters);
  return all;
}

}  // namespace placewright
