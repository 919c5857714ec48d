#include "support/throughput_problem.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "evaluate/contiguity.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "planners/methods/stage_model.h"
#include "support/random_problem.h"

namespace placewright::testing {
namespace {

class Enumeration {
 public:
  explicit Enumeration(const Problem& problem)
      : problem_(problem),
        placement_(problem.op_count()),
        classes_(throughput::device_classes(problem)),
        used_(classes_.size(), 0) {}

  std::optional<double> run() {
    extend(0);
    if (best_ == kInfinity) return std::nullopt;
    return best_;
  }

 private:
  void extend(std::size_t index) {
    if (index == problem_.group_count()) {
      if (memory_fits(problem_, placement_) && contiguous(problem_, placement_)) look();
      return;
    }
    const GroupId group{index};
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const std::size_t tried = std::min(used_[c] + 1, classes_[c].size());
      for (std::size_t i = 0; i < tried; ++i) {
        const DeviceId device = classes_[c][i];
        if (!problem_.group_allowed(group, device)) continue;
        const bool opened = i == used_[c];
        if (opened) ++used_[c];
        for (const OpId op : problem_.group_ops(group)) placement_[op] = device;
        extend(index + 1);
        if (opened) --used_[c];
      }
    }
  }

  void look() {
    if (problem_.rules().max_replicas == 1) {
      best_ = std::min(best_, pipeline_value(problem_, placement_));
      return;
    }
    std::vector<Stage> stages = stages_of(problem_, placement_);
    replicate(stages, 0);
  }

  // Every idle device joins a stage of its kind, or stays idle.
  void replicate(std::vector<Stage>& stages, std::size_t index) {
    if (index == problem_.device_count()) {
      for (const Stage& stage : stages) {
        double bytes = 0;
        for (const OpId op : stage.ops) bytes += problem_.memory(op);
        for (const DeviceId device : stage.devices) {
          if (!within_memory(bytes, problem_.device(device).memory)) return;
          for (const OpId op : stage.ops) {
            if (!problem_.allowed(op, device)) return;
          }
        }
      }
      best_ = std::min(best_, pipeline_value(problem_, stages));
      return;
    }
    const DeviceId device{index};
    replicate(stages, index + 1);
    for (const Stage& stage : stages) {
      if (stage.devices.front() == device) return;
    }
    for (Stage& stage : stages) {
      if (problem_.kind_of(stage.devices.front()) != problem_.kind_of(device)) continue;
      if (stage.devices.size() >= static_cast<std::size_t>(problem_.rules().max_replicas)) continue;
      stage.devices.push_back(device);
      replicate(stages, index + 1);
      stage.devices.pop_back();
    }
  }

  const Problem& problem_;
  Placement placement_;
  std::vector<std::vector<DeviceId>> classes_;
  std::vector<std::size_t> used_;
  double best_ = kInfinity;
};

}  // namespace

ProblemDraft random_pipeline(const RandomPipelineOptions& options, std::uint64_t seed) {
  RandomSource random(seed * 7919 + 17);
  RandomProblemOptions base;
  base.objective = Objective::throughput;
  base.interconnect = InterconnectKind::host;
  base.ops = options.ops;
  base.devices = options.accelerators + options.cores;
  base.edge_probability = 0.15 + 0.35 * random.unit();
  base.unsupported = random.chance(0.3);
  base.colocation = random.chance(0.4);
  base.training = random.chance(0.4);
  base.zero_times = random.chance(0.5);
  base.shared_weights = random.chance(0.15);
  base.overheads = random.chance(0.15);
  base.cuts = seed % 2 == 0;
  ProblemDraft draft = random_draft(base, seed);

  // Cores where the options say, and sometimes a second kind of accelerator.
  const bool two_kinds = options.accelerators > 1 && random.chance(0.25);
  if (two_kinds) {
    draft.cluster.kinds.push_back({"slow", false});
    for (Op& op : draft.ops) op.time.push_back(op.time[0] * (1 + random.unit()));
    for (Tensor& tensor : draft.tensors) {
      const auto known = std::ranges::find(tensor.cuts, KindId{0}, &CutOverhead::kind);
      if (known != tensor.cuts.end()) {
        tensor.cuts.push_back({KindId{2}, known->receive, 2 * known->send});
      }
    }
  }
  const bool alike = random.chance(0.8);
  for (std::size_t i = 0; i < draft.cluster.devices.size(); ++i) {
    Device& device = draft.cluster.devices[i];
    const bool core = i >= options.accelerators;
    device.name = core ? fmt::format("cpu{}", i) : fmt::format("acc{}", i);
    device.kind = KindId{core ? 1U : two_kinds && i % 2 == 1 ? 2U : 0U};
    if (i > 0 && alike) {
      device.send_overhead = draft.cluster.devices[0].send_overhead;
      device.receive_overhead = draft.cluster.devices[0].receive_overhead;
    }
  }
  if (random.chance(0.35)) {
    double bytes = 0;
    for (const Op& op : draft.ops) bytes += op.memory;
    const double share = bytes / static_cast<double>(options.accelerators);
    const double memory = share * (0.7 + 0.9 * random.unit());
    for (std::size_t i = 0; i < options.accelerators; ++i) draft.cluster.devices[i].memory = memory;
    if (random.chance(0.3)) draft.cluster.devices[0].memory *= 1.5;
    if (random.chance(0.4)) {
      for (std::size_t i = options.accelerators; i < draft.cluster.devices.size(); ++i) {
        draft.cluster.devices[i].memory = memory * random.unit();
      }
    }
  }
  if (random.chance(0.2)) {
    draft.ops[random.below(draft.ops.size())].pinned_to =
        DeviceId{random.below(draft.cluster.devices.size())};
  }
  draft.rules.contiguity = options.contiguity;
  const std::size_t mode = random.below(4);
  draft.rules.transfers = mode == 2   ? TransferMode::overlapped
                          : mode == 3 ? TransferMode::duplex
                                      : TransferMode::sequential;
  if (random.chance(0.4)) draft.rules.training = TrainingMode::phased;
  return draft;
}

std::optional<double> least_pipeline_value(const Problem& problem) {
  return Enumeration(problem).run();
}

}  // namespace placewright::testing
