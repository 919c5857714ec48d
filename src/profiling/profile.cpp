#include "profiling/profile.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/import.h"
#include "backends/target_devices.h"
#include "formats/input_error.h"
#include "machine/target_cluster.h"
#include "problem/cost_source.h"
#include "profiling/crowding.h"
#include "profiling/op_times.h"

namespace placewright {
namespace {

std::vector<std::size_t> supported_ops(const ModelGraph& graph,
                                       const std::vector<std::size_t>& unsupported) {
  const std::set<std::size_t> missing(unsupported.begin(), unsupported.end());
  std::vector<std::size_t> ops;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    if (!missing.contains(op)) ops.push_back(op);
  }
  return ops;
}

void require_no_text_inputs(const ModelGraph& graph, const std::string& path) {
  for (const GraphInput& input : graph.inputs) {
    if (input.type.kind != ElementKind::text) continue;
    throw InputError(path, "",
                     fmt::format("the input '{}' is text, which cannot be made up", input.name));
  }
}

// A model belongs to the backend that reads it, and runs on the devices of that backend alone.
void require_one_backend(const ProfileRequest& request) {
  const std::string& backend = request.targets.front().backend;
  for (const Target& target : request.targets) {
    if (target.backend == backend) continue;
    throw std::invalid_argument(fmt::format("'{}' and '{}' belong to different backends ({}, {})",
                                            name_of(request.targets.front()), name_of(target),
                                            backend, target.backend));
  }
  for (const ModelFile& file : request.files) {
    const BackendEntry* reader = backend_reading(file.path);
    if (reader == nullptr || reader->name == backend) continue;
    throw InputError(file.path, "",
                     fmt::format("is a model for {}, which does not run on '{}'", reader->title,
                                 name_of(request.targets.front())));
  }
}

// Adds a model to the problem; with several, names lead back to the model.
void append(ProblemDraft& draft, ProblemDraft part, bool several) {
  const std::size_t first_op = draft.ops.size();
  const ModelId model{draft.models.size()};
  const std::string prefix = several ? part.models.front().name + "/" : std::string{};
  const auto moved = [&](OpId op) { return OpId{first_op + op.index()}; };
  const auto move_all = [&](std::vector<OpId>& ops) {
    std::transform(ops.begin(), ops.end(), ops.begin(), moved);
  };
  draft.models.push_back(std::move(part.models.front()));
  for (Op& op : part.ops) {
    op.name = prefix + op.name;
    op.model = model;
    draft.ops.push_back(std::move(op));
  }
  for (Tensor& tensor : part.tensors) {
    tensor.name = prefix + tensor.name;
    tensor.producer = moved(tensor.producer);
    move_all(tensor.consumers);
    draft.tensors.push_back(std::move(tensor));
  }
  for (auto& group : part.colocated) {
    move_all(group);
    draft.colocated.push_back(std::move(group));
  }
  for (SharedWeight& weight : part.shared_weights) {
    weight.name = prefix + weight.name;
    move_all(weight.ops);
    draft.shared_weights.push_back(std::move(weight));
  }
}

std::string runs_text(const Measured& runs) {
  return fmt::format("median of {} {} runs ({} rejected), spread {:.1f} %", runs.kept,
                     runs.watched ? "undisturbed" : "unwatched", runs.rejected,
                     100 * runs.spread());
}

class Profiler {
 public:
  explicit Profiler(const ProfileRequest& request)
      : runtime_(runtime_named(request.targets.front().backend)),
        request_(request),
        cluster_(cluster_of_targets(request.targets, devices_of(request.targets))),
        first_(first_of_each_kind(cluster_)) {}

  Profile run() {
    ProblemDraft& draft = profile_.draft;
    draft.unit = TimeUnit::milliseconds;
    draft.objective = request_.files.size() > 1 ? Objective::total_completion : Objective::latency;
    // Replicas on sets of cores have their weights in one memory.
    if (shares_cores()) draft.rules.max_replicas = static_cast<int>(cluster_.resources.size());
    draft.origin.push_back(fmt::format("measured by placewright profile with {} on {}",
                                       runtime_.version(), processor_name()));
    for (std::size_t file = 0; file < request_.files.size(); ++file) add_model(file);
    std::vector<std::string> names;
    for (const Model& model : draft.models) names.push_back(model.name);
    draft.name = fmt::format("{}", fmt::join(names, "+"));
    if (request_.whole) {
      draft.origin.emplace_back("models stay whole: what cuts and links cost was not measured");
    } else {
      add_links();
      if (shares_cores()) {
        add_tensor_cuts();
      } else {
        add_cut_overheads();
      }
    }
    draft.cluster = cluster_;
    for (const std::string& doubt : profile_.doubts)
      draft.origin.push_back(std::string(kDisturbedOrigin) + doubt);
    return std::move(profile_);
  }

 private:
  [[nodiscard]] const Target& target_of(std::size_t kind) const {
    return request_.targets[first_[kind]];
  }

  [[nodiscard]] bool shares_cores() const { return !cluster_.resources.empty(); }

  // Two models of one name would give two ops of one name.
  std::string unique_name(const std::string& path) {
    const std::string stem = model_name_of(path);
    std::string name = stem;
    for (int copy = 2; !names_.insert(name).second; ++copy) name = fmt::format("{}#{}", stem, copy);
    return name;
  }

  void add_model(std::size_t number) {
    const ModelFile& file = request_.files[number];
    request_.measure.check();
    const auto model = runtime_.read(file.path, shapes_named(file.shapes));
    require_no_text_inputs(model->graph(), file.path);
    const std::string name = unique_name(file.path);
    ProblemDraft part =
        draft_of(model->graph(), name, source_of(file.path, file.shapes, request_.folder));
    ModelProfile& entry = profile_.models.emplace_back();
    entry.name = name;
    entry.ops = part.ops.size();

    std::vector<std::vector<ExecutedNode>> executed;
    std::vector<MeasuredOps> times;
    for (std::size_t kind = 0; kind < cluster_.kinds.size(); ++kind) {
      times.push_back(add_kind(*model, entry, kind, part));
      executed.push_back(times.back().executed);
    }
    const std::vector<OpGroup> groups = fused_groups(model->graph(), executed);
    entry.fused = entry.ops;
    for (const OpGroup& group : groups) {
      entry.fused -= group.size() - 1;
      auto& together = part.colocated.emplace_back();
      for (const std::size_t op : group) together.emplace_back(op);
    }
    if (request_.whole) {
      part.colocated.assign(1, {});
      for (std::size_t op = 0; op < part.ops.size(); ++op) part.colocated[0].emplace_back(op);
    } else {
      measure_cut_costs(*model, entry, groups, times);
    }
    append(profile_.draft, std::move(part), request_.files.size() > 1);
    state_origin(entry);
  }

  MeasuredOps add_kind(const NeuralModel& model, ModelProfile& entry, std::size_t kind,
                       ProblemDraft& part) {
    const Target& target = target_of(kind);
    request_.measure.tell(fmt::format("{}: {} ops on {}", entry.name, entry.ops, name_of(target)));
    const std::vector<std::size_t> unsupported = model.unsupported(target.device);
    KindProfile& found = entry.kinds.emplace_back();
    found.kind = cluster_.kinds[kind].name;
    found.device = name_of(target);
    found.unsupported = unsupported.size();
    MeasuredOps times;
    times.milliseconds.assign(part.ops.size(), 0);
    times.spread = times.milliseconds;
    const std::vector<std::size_t> ops = supported_ops(model.graph(), unsupported);
    if (!ops.empty()) times = measure_ops(model, ops, target, request_.measure);
    found.latency = times.latency;
    found.scale = times.counted > 0 ? times.latency.median / times.counted : 1;
    for (const OpGroup& node : ops_of_nodes(model.graph(), times.executed)) {
      if (!node.empty()) ++found.executed;
    }
    found.beside_busy_cores = measured_beside_busy_cores(model, kind, times.latency);
    if (found.beside_busy_cores) {
      found.crowded = std::max(1.0, found.beside_busy_cores->median / times.latency.median);
    }
    for (std::size_t op = 0; op < part.ops.size(); ++op) {
      part.ops[op].time.push_back(times.milliseconds[op] * found.crowded);
      part.ops[op].spread = std::max(part.ops[op].spread, times.spread[op]);
    }
    for (const std::size_t op : unsupported) part.ops[op].time.back() = kUnsupported;
    if (!unsupported.empty()) {
      profile_.notes.push_back(fmt::format("{}: {} does not support {} of {} ops, '{}' for one",
                                           entry.name, found.device, unsupported.size(),
                                           part.ops.size(), part.ops[unsupported.front()].name));
    }
    doubt(fmt::format("{} on {}", entry.name, found.device), doubt_of(times.latency));
    return times;
  }

  std::optional<Measured> measured_beside_busy_cores(const NeuralModel& model, std::size_t kind,
                                                     const Measured& alone) {
    if (!shares_cores() || target_of(kind).cores.empty() || alone.median <= 0) return {};
    const std::vector<Target> targets = side_by_side(request_.targets, first_[kind]);
    if (targets.size() < 2) return {};
    request_.measure.tell(
        fmt::format("{} sets of {} side by side", targets.size(), cluster_.kinds[kind].name));
    const Measured crowded = measure_crowded(model, targets, request_.measure);
    doubt(fmt::format("{} beside busy cores", name_of(targets.front())), doubt_of(crowded));
    return crowded;
  }

  void measure_cut_costs(const NeuralModel& model, ModelProfile& entry,
                         const std::vector<OpGroup>& groups,
                         const std::vector<MeasuredOps>& times) {
    const std::vector<OpGroup> ordered = ordered_groups(model.graph(), groups);
    for (std::size_t kind = 0; kind < entry.kinds.size(); ++kind) {
      KindProfile& found = entry.kinds[kind];
      if (found.unsupported > 0 || entry.ops < 2) continue;
      request_.measure.tell(fmt::format("{}: cuts on {}", entry.name, found.device));
      found.cut =
          measure_cuts(model, ordered, times[kind].milliseconds, target_of(kind), request_.measure);
      const std::string why = found.cut.doubt();
      found.cuts_disturbed = !why.empty();
      doubt(fmt::format("cuts of {} on {}", entry.name, found.device), why);
    }
  }

  void state_origin(const ModelProfile& entry) {
    auto& origin = profile_.draft.origin;
    origin.push_back(fmt::format(
        "{}: {} ops, {} after what the backend fused; a fused group's time is at its last op that "
        "reads from outside the group",
        entry.name, entry.ops, entry.fused));
    for (const KindProfile& kind : entry.kinds) {
      origin.push_back(
          fmt::format("{} on {}: {:.4g} ms on {}, {}; op times are the backend's counters (whole "
                      "microseconds), scaled by {:.3f} so that they sum up to it",
                      entry.name, kind.kind, kind.latency.median, kind.device,
                      runs_text(kind.latency), kind.scale));
      if (kind.beside_busy_cores) {
        origin.push_back(fmt::format(
            "{} on {}: {:.3f} times as long while the other cores work, {}; one factor for all "
            "ops, off by {:.1f} % as far as the deciles with and without them tell",
            entry.name, kind.kind, kind.crowded, runs_text(*kind.beside_busy_cores),
            100 * error_of_factor(kind.latency, *kind.beside_busy_cores)));
      }
      if (kind.unsupported > 0) {
        origin.push_back(fmt::format("{} on {}: {} ops are not supported", entry.name, kind.kind,
                                     kind.unsupported));
      }
      for (const CutTrial& trial : kind.cut.trials) {
        origin.push_back(fmt::format(
            "{} on {} in {} segments with {} transfers of {:.0f} KiB: {:.4g} ms, in one piece "
            "{:.4g} ms",
            entry.name, kind.kind, trial.segments, trial.transfers, trial.bytes / 1024,
            trial.time.median, kind.cut.whole.median));
      }
    }
  }

  // The cost of a cut on a kind: the mean over the models.
  void add_cut_overheads() {
    for (std::size_t kind = 0; kind < cluster_.kinds.size(); ++kind) {
      std::vector<double> costs;
      for (const ModelProfile& model : profile_.models) {
        const CutCost& cut = model.kinds[kind].cut;
        if (!cut.trials.empty()) costs.push_back(cut.per_transfer);
      }
      if (costs.empty()) continue;
      const double cost =
          std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size());
      for (Device& device : cluster_.devices) {
        if (device.kind.index() != kind) continue;
        device.send_overhead = cost / 2;
        device.receive_overhead = cost / 2;
      }
      profile_.draft.origin.push_back(
          fmt::format("cut overhead on {}: {:.4g} ms for each tensor that crosses a border, half "
                      "to the sender and half to the receiver",
                      cluster_.kinds[kind].name, cost));
    }
  }

  // What a cut costs each tensor on each kind: half to who sends, half to who receives, who also
  // bears the hand-over.
  void add_tensor_cuts() {
    const HandOver hand_over = hand_over_of_cores();
    for (Tensor& tensor : profile_.draft.tensors) {
      const std::size_t model = profile_.draft.ops[tensor.producer.index()].model.index();
      for (std::size_t kind = 0; kind < cluster_.kinds.size(); ++kind) {
        const double half = cut_cost(profile_.models[model], kind, tensor.bytes) / 2;
        const double moved =
            hand_over.points.empty() ? 0 : hand_over.latency + tensor.bytes / hand_over.bandwidth;
        tensor.cuts.push_back({KindId{kind}, half, half + moved});
      }
    }
    for (const ModelProfile& model : profile_.models) {
      for (const KindProfile& kind : model.kinds) {
        if (kind.cut.trials.empty()) continue;
        profile_.draft.origin.push_back(fmt::format(
            "cuts of {} on {}: {:.4g} ms and {:.4g} ms for each MiB of a tensor that crosses a "
            "border, off by {:.0f} % in the median",
            model.name, kind.kind, kind.cut.fixed, kind.cut.per_byte * 1024 * 1024,
            100 * kind.cut.error));
      }
    }
  }

  // As the fit says, and its error beyond it: a plan must not be cut for a gain that may not be
  // there. Where the trials were disturbed, the most of all kinds whose trials were not (of all
  // kinds if there are none).
  static double cut_cost(const ModelProfile& model, std::size_t kind, double bytes) {
    const auto cost = [&](const KindProfile& each) {
      return each.cut.of(bytes) * (1 + each.cut.error);
    };
    const auto most_of = [&](bool undisturbed) {
      double most = 0;
      for (const KindProfile& each : model.kinds) {
        if (!undisturbed || !each.cuts_disturbed) most = std::max(most, cost(each));
      }
      return most;
    };
    if (!model.kinds[kind].cuts_disturbed) return cost(model.kinds[kind]);
    const double most = most_of(true);
    return most > 0 ? most : most_of(false);
  }

  // Between the first two sets that have no core in common; none: without points.
  HandOver hand_over_of_cores() {
    for (std::size_t from = 0; from < request_.targets.size(); ++from) {
      if (request_.targets[from].cores.empty()) continue;
      const std::vector<Target> apart = side_by_side(request_.targets, from);
      if (apart.size() < 2) continue;
      request_.measure.tell(
          fmt::format("hand-over from {} to {}", name_of(apart[0]), name_of(apart[1])));
      HandOver cost = measure_hand_over(apart[0], apart[1], request_.measure);
      profile_.draft.origin.push_back(fmt::format(
          "hand-over from {} to {}: {:.4g} ms + bytes / ({:.4g} bytes per ms), off by {:.0f} %",
          name_of(apart[0]), name_of(apart[1]), cost.latency, cost.bandwidth, 100 * cost.error));
      doubt(fmt::format("hand-over from {} to {}", name_of(apart[0]), name_of(apart[1])),
            cost.doubt());
      return cost;
    }
    return {};
  }

  void add_links() {
    std::map<std::pair<std::size_t, std::size_t>, HandOver> costs;  // by pair of kinds
    for (Link& link : cluster_.links) {
      const std::size_t from = cluster_.devices[link.from.index()].kind.index();
      const std::size_t to = cluster_.devices[link.to.index()].kind.index();
      auto found = costs.find({from, to});
      if (found == costs.end()) {
        found = costs.emplace(std::pair{from, to}, measured_link(link, from, to)).first;
      }
      link.latency = found->second.latency;
      link.bandwidth = found->second.bandwidth;
    }
  }

  HandOver measured_link(const Link& link, std::size_t from, std::size_t to) {
    const Target& sender = request_.targets[link.from.index()];
    const Target& receiver = request_.targets[link.to.index()];
    request_.measure.tell(
        fmt::format("hand-over from {} to {}", name_of(sender), name_of(receiver)));
    HandOver cost = measure_hand_over(sender, receiver, request_.measure);
    const std::string& from_kind = cluster_.kinds[from].name;
    const std::string& to_kind = cluster_.kinds[to].name;
    profile_.draft.origin.push_back(fmt::format(
        "links {} to {}: hand-over from {} to {} of {} sizes up to {:.0f} KiB, {} of {} kept, "
        "fitted as {:.4g} ms + bytes / ({:.4g} bytes per ms), off by {:.0f} % in the median",
        from_kind, to_kind, name_of(sender), name_of(receiver), cost.points.size(),
        cost.points.back().bytes / 1024, cost.kept, cost.kept + cost.rejected, cost.latency,
        cost.bandwidth, 100 * cost.error));
    doubt(fmt::format("hand-over from {} to {}", name_of(sender), name_of(receiver)), cost.doubt());
    profile_.links.push_back({from_kind, to_kind, cost});
    return cost;
  }

  void doubt(const std::string& what, const std::string& why) {
    if (!why.empty()) profile_.doubts.push_back(fmt::format("{}: {}", what, why));
  }

  const Runtime& runtime_;
  const ProfileRequest& request_;
  Cluster cluster_;
  std::vector<std::size_t> first_;  // by kind, the device that is measured
  std::set<std::string> names_;
  Profile profile_;
};

}  // namespace

std::optional<Profile> profile_models(const ProfileRequest& request) {
  require_one_backend(request);
  require_fixed_shapes(request.files);
  try {
    return Profiler(request).run();
  } catch (const Stopped&) {
    return std::nullopt;
  }
}

}  // namespace placewright
