#include "profiling/profile.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/import.h"
#include "backends/target_devices.h"
#include "formats/input_error.h"
#include "machine/target_cluster.h"
#include "problem/cost_source.h"
#include "problem/join.h"
#include "problem/stated_precision.h"
#include "profiling/cut_widths.h"
#include "profiling/op_times.h"
#include "profiling/whole_times.h"

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

// With several models in a problem, names lead back to the model.
void name_after_model(ProblemDraft& part) {
  const std::string prefix = part.models.front().name + "/";
  const auto rename = [&](auto& record) { record.name = prefix + record.name; };
  std::ranges::for_each(part.ops, rename);
  std::ranges::for_each(part.tensors, rename);
  std::ranges::for_each(part.shared_weights, rename);
}

std::string runs_text(const Measured& runs) {
  return fmt::format("median of {} {} runs ({} rejected), spread {:.1f} %", runs.kept,
                     runs.watched ? "undisturbed" : "unwatched", runs.rejected,
                     100 * runs.spread());
}

std::string loading_text(const std::string& model, const KindProfile& kind) {
  constexpr const char* kOne = "one factor for all ops";
  constexpr const char* kOwn = "a factor for each fused group";
  const Loading& loading = *kind.beside_busy_cores;
  return fmt::format(
      "{} on {}: {:.3f} times as long while the other cores work, {}; {}, off by {:.1f} % for the "
      "model in {} segment{} beside them ({} would be off by {:.1f} %)",
      model, kind.kind, loading.factor, runs_text(loading.latency), loading.by_op ? kOwn : kOne,
      100 * loading.error, loading.segments, loading.segments == 1 ? "" : "s",
      loading.by_op ? kOne : kOwn, 100 * loading.rejected);
}

class Profiler {
 public:
  explicit Profiler(const ProfileRequest& request)
      : runtime_(runtime_named(request.targets.front().backend)),
        request_(with_deadline(request)),
        cluster_(cluster_of_targets(request.targets, devices_of(request.targets))),
        first_(first_of_each_kind(cluster_)) {}

  static ProfileRequest with_deadline(ProfileRequest request) {
    // The times of ops have the first half at most: there are two series on each kind, and those
    // beside it.
    constexpr double kShareOfASeries = 0.1;
    const double seconds = request.seconds * static_cast<double>(request.files.size());
    MeasureOptions& measure = request.measure;
    measure.seconds = std::min(measure.seconds, kShareOfASeries * request.seconds);
    measure.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(seconds));
    return request;
  }

  Profile run() {
    ProblemDraft& draft = profile_.draft;
    draft.unit = TimeUnit::milliseconds;
    draft.objective = request_.files.size() > 1 ? Objective::total_completion : Objective::latency;
    // Replicas on sets of cores have their weights in one memory.
    if (shares_cores()) draft.rules.max_replicas = static_cast<int>(cluster_.resources.size());
    draft.origin.push_back(fmt::format("measured by placewright profile with {} on {}",
                                       runtime_.version(), processor_name()));
    state_precision(draft, request_.files.front().precision);
    read_models();
    for (std::size_t kind = 0; kind < cluster_.kinds.size(); ++kind) measure_kind(kind);
    if (!request_.whole && !cuts_fit()) {
      request_.whole = true;
      profile_.notes.push_back(fmt::format(
          "{:.0f} seconds are too short to measure cuts: the models stay whole; --profile-time "
          "gives them longer",
          request_.seconds * static_cast<double>(request_.files.size())));
    }
    for (std::size_t file = 0; file < request_.files.size(); ++file) add_model(file);
    std::vector<std::string> names;
    for (const Model& model : draft.models) names.push_back(model.name);
    draft.name = fmt::format("{}", fmt::join(names, "+"));
    if (request_.whole) {
      draft.origin.emplace_back("models stay whole: what cuts and links cost was not measured");
    } else {
      add_links();
      if (shares_cores()) add_hand_overs();
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
  [[nodiscard]] bool several() const { return request_.files.size() > 1; }

  // Two models of one name would give two ops of one name.
  std::string unique_name(const std::string& path) {
    const std::string stem = model_name_of(path);
    std::string name = stem;
    for (int copy = 2; !names_.insert(name).second; ++copy) name = fmt::format("{}#{}", stem, copy);
    return name;
  }

  void read_models() {
    times_.resize(request_.files.size());
    for (const ModelFile& file : request_.files) {
      request_.measure.check();
      models_.push_back(read_model(runtime_, file));
      read_.push_back(models_.back().get());
      const ModelGraph& graph = models_.back()->graph();
      require_no_text_inputs(graph, file.path);
      ModelProfile& entry = profile_.models.emplace_back();
      entry.name = unique_name(file.path);
      entry.ops = graph.ops.size();
    }
  }

  // Whether a round of the trials of all cuts (cut_cost.h) may end in time, with what compiling
  // them takes.
  [[nodiscard]] bool cuts_fit() const {
    constexpr double kInferences = 30;
    constexpr double kCompiling = 1000;  // milliseconds
    double needed = 0;
    for (const ModelProfile& model : profile_.models) {
      for (const KindProfile& kind : model.kinds) {
        needed += kCompiling + kInferences * kind.latency.median;
      }
    }
    return needed < request_.measure.left();
  }

  // All models on one kind, so that the busy devices beside it are made ready once.
  void measure_kind(std::size_t kind) {
    const Target& target = target_of(kind);
    const bool complete = std::ranges::all_of(
        read_, [&](const NeuralModel* model) { return model->unsupported(target.device).empty(); });
    BusyDevices busy(read_, complete ? busy_beside(kind) : std::vector<Target>{}, request_.measure);
    for (std::size_t model = 0; model < models_.size(); ++model) {
      times_[model].push_back(measured_times(model, kind, busy));
    }
    if (!several() || !complete) return;
    request_.measure.tell(fmt::format("the models in turn on {}", name_of(target)));
    const std::vector<TurnTimes> turns = measure_turns(read_, target, busy, request_.measure);
    for (std::size_t model = 0; model < models_.size(); ++model) {
      ModelProfile& entry = profile_.models[model];
      entry.kinds[kind].in_turn = turns[model];
      doubt(fmt::format("{} in turn with the others on {}", entry.name, name_of(target)),
            turns[model].doubt());
    }
  }

  // The devices that work while this one does, as far as plans can be expected to use them.
  [[nodiscard]] std::vector<Target> busy_beside(std::size_t kind) const {
    if (target_of(kind).cores.empty() || !(shares_cores() || several())) return {};
    std::vector<Target> targets = side_by_side(request_.targets, first_[kind]);
    targets.erase(targets.begin());
    return targets;
  }

  void add_model(std::size_t number) {
    const ModelFile& file = request_.files[number];
    request_.measure.check();
    const NeuralModel& model = *models_[number];
    ModelProfile& entry = profile_.models[number];
    ProblemDraft part =
        draft_of(model.graph(), entry.name, source_of(file.path, file.shapes, request_.folder));

    std::vector<MeasuredOps>& times = times_[number];
    std::vector<std::vector<ExecutedNode>> executed;
    for (const MeasuredOps& kind : times) executed.push_back(kind.executed);
    const std::vector<OpGroup> groups = fused_groups(model.graph(), executed);
    for (std::size_t kind = 0; kind < cluster_.kinds.size(); ++kind) {
      add_times(model, entry, kind, groups, times[kind], part);
      gather_times(model.graph(), groups, times[kind]);
    }
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
      measure_cut_costs(model, entry, groups, times);
      add_cuts(model.graph(), entry, part);
    }
    if (several()) name_after_model(part);
    append_records(profile_.draft, std::move(part));
    state_origin(entry);
  }

  // Of the kind alone; what others do to it is noted.
  MeasuredOps measured_times(std::size_t number, std::size_t kind, BusyDevices& busy) {
    const NeuralModel& model = *models_[number];
    ModelProfile& entry = profile_.models[number];
    const Target& target = target_of(kind);
    request_.measure.tell(fmt::format("{}: {} ops on {}", entry.name, entry.ops, name_of(target)));
    const std::vector<std::size_t> unsupported = model.unsupported(target.device);
    KindProfile& found = entry.kinds.emplace_back();
    found.kind = cluster_.kinds[kind].name;
    found.device = name_of(target);
    found.unsupported = unsupported.size();
    LoadedOps times;
    times.alone.milliseconds.assign(entry.ops, 0);
    times.alone.spread = times.alone.milliseconds;
    const std::vector<std::size_t> ops = supported_ops(model.graph(), unsupported);
    if (!ops.empty()) times = measure_ops(model, ops, target, busy, request_.measure);
    const MeasuredOps& alone = times.alone;
    found.latency = alone.latency;
    found.precision = alone.precision;
    found.scale = alone.counted > 0 ? alone.latency.median / alone.counted : 1;
    for (const OpGroup& node : ops_of_nodes(model.graph(), alone.executed)) {
      if (!node.empty()) ++found.executed;
    }
    doubt(fmt::format("{} on {}", entry.name, found.device), doubt_of(alone.latency));
    if (times.loaded && !request_.measure.late()) {
      found.beside_busy_cores = measured_loading(model, times, target, busy);
      doubt(fmt::format("{} on {} beside busy cores", entry.name, found.device),
            found.beside_busy_cores->doubt());
    }
    return std::move(times.alone);
  }

  Loading measured_loading(const NeuralModel& model, const LoadedOps& times, const Target& target,
                           BusyDevices& busy) {
    request_.measure.tell(fmt::format("{} beside {} that are busy", name_of(target), busy.count()));
    const ModelGraph& graph = model.graph();
    return loading_of(
        {.model = model,
         .ordered = ordered_groups(graph, fused_groups(graph, {times.alone.executed})),
         .target = target,
         .whole = request_.whole,
         .options = request_.measure},
        times, busy);
  }

  void add_times(const NeuralModel& model, const ModelProfile& entry, std::size_t kind,
                 const std::vector<OpGroup>& groups, MeasuredOps times, ProblemDraft& part) {
    const KindProfile& found = entry.kinds[kind];
    const double turn = found.in_turn ? found.in_turn->factor() : 1;
    for (std::size_t op = 0; op < part.ops.size(); ++op) {
      times.milliseconds[op] *= turn;
      if (found.beside_busy_cores) times.milliseconds[op] *= found.beside_busy_cores->factors[op];
    }
    gather_times(model.graph(), groups, times);
    for (std::size_t op = 0; op < part.ops.size(); ++op) {
      part.ops[op].time.push_back(times.milliseconds[op]);
      part.ops[op].spread = std::max(part.ops[op].spread, times.spread[op]);
    }
    if (found.unsupported == 0) return;
    const std::vector<std::size_t> unsupported = model.unsupported(target_of(kind).device);
    for (const std::size_t op : unsupported) part.ops[op].time.back() = kUnsupported;
    profile_.notes.push_back(fmt::format("{}: {} does not support {} of {} ops, '{}' for one",
                                         entry.name, found.device, unsupported.size(),
                                         part.ops.size(), part.ops[unsupported.front()].name));
  }

  // Kinds of one device, or the sizes of sets of cores that take turns on the same ones.
  [[nodiscard]] std::vector<std::vector<std::size_t>> kinds_by_width(
      const ModelProfile& entry) const {
    std::vector<std::vector<std::size_t>> lists;
    std::vector<std::size_t> widths;
    for (std::size_t kind = 0; kind < entry.kinds.size(); ++kind) {
      if (entry.kinds[kind].unsupported > 0 || entry.ops < 2) continue;
      if (shares_cores() && !target_of(kind).cores.empty() && !target_of(kind).pinned) {
        widths.push_back(kind);
      } else {
        lists.push_back({kind});
      }
    }
    std::ranges::sort(widths, {}, [&](std::size_t kind) { return target_of(kind).cores.size(); });
    if (!widths.empty()) lists.push_back(std::move(widths));
    return lists;
  }

  void measure_cut_costs(const NeuralModel& model, ModelProfile& entry,
                         const std::vector<OpGroup>& groups,
                         const std::vector<MeasuredOps>& times) {
    const std::vector<OpGroup> ordered = ordered_groups(model.graph(), groups);
    for (const std::vector<std::size_t>& kinds : kinds_by_width(entry)) {
      const auto cutting = [&](std::size_t place) -> Cutting {
        const std::size_t kind = kinds[place];
        request_.measure.tell(fmt::format("{}: cuts on {}", entry.name, entry.kinds[kind].device));
        return {model, ordered, times[kind].milliseconds, target_of(kind), request_.measure};
      };
      std::vector<std::size_t> cores;
      for (const std::size_t kind : kinds) cores.push_back(target_of(kind).cores.size());
      std::vector<CutCost> costs = cuts_of_widths(
          cores, {.measure = [&](std::size_t place) { return measure_cuts(cutting(place)); },
                  .attempt =
                      [&](std::size_t place, GroupEntries supposed) {
                        return try_cuts(cutting(place), std::move(supposed));
                      }});
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        KindProfile& found = entry.kinds[kinds[i]];
        found.cut = std::move(costs[i]);
        const std::string why = found.cut.doubt();
        found.cuts_disturbed = !why.empty();
        doubt(fmt::format("cuts of {} on {}", entry.name, found.device), why);
      }
    }
  }

  void state_origin(const ModelProfile& entry) {
    auto& origin = profile_.draft.origin;
    origin.push_back(fmt::format(
        "{}: {} ops, {} after what the backend fused; the time of a fused group is at the "
        "last of its ops that all it hands on depends on",
        entry.name, entry.ops, entry.fused));
    for (const KindProfile& kind : entry.kinds) {
      origin.push_back(fmt::format(
          "{} on {}: {:.4g} ms in {} on {}, {}; op times are the backend's counters (whole "
          "microseconds), scaled by {:.3f} so that they sum up to it",
          entry.name, kind.kind, kind.latency.median, name_of(kind.precision), kind.device,
          runs_text(kind.latency), kind.scale));
      if (kind.beside_busy_cores) {
        origin.push_back(loading_text(entry.name, kind));
      }
      if (kind.in_turn) {
        origin.push_back(fmt::format(
            "{} on {}: {:.3f} times as long after another model as after itself, {}; "
            "one factor for all ops",
            entry.name, kind.kind, kind.in_turn->factor(), runs_text(kind.in_turn->first)));
      }
      if (kind.unsupported > 0) {
        origin.push_back(fmt::format("{} on {}: {} ops are not supported", entry.name, kind.kind,
                                     kind.unsupported));
      }
      if (kind.cut.trials.empty()) continue;
      origin.push_back(fmt::format(
          "cuts of {} on {}: {:.4g} ms in one piece, {}; a segment more costs {:.4g} ms and "
          "what the group that begins it takes longer by itself",
          entry.name, kind.kind, kind.cut.whole.median,
          kind.cut.apart
              ? fmt::format("{:.4g} ms with every fused group by itself", kind.cut.apart->median)
              : "costs interpolated between the smallest and the largest set",
          kind.cut.groups.call));
      for (const CutTrial& trial : kind.cut.trials) {
        origin.push_back(fmt::format(
            "{} on {} in {} segments with {} transfers of {:.0f} KiB: {:.4g} ms, by these "
            "costs {:.4g} ms, off by {:.1f} %",
            entry.name, kind.kind, trial.segments, trial.transfers, trial.bytes / 1024,
            trial.time.median, trial.predicted, 100 * trial.error()));
      }
    }
  }

  // What a cut costs each tensor on each kind.
  void add_cuts(const ModelGraph& graph, const ModelProfile& entry, ProblemDraft& part) {
    const bool measured = std::ranges::any_of(
        entry.kinds, [](const KindProfile& kind) { return !kind.cut.trials.empty(); });
    if (!measured) return;
    const std::vector<TensorKey> keys = tensors_of_draft(graph);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      for (std::size_t kind = 0; kind < entry.kinds.size(); ++kind) {
        part.tensors[i].cuts.push_back(cut_of(entry, kind, keys[i]));
      }
    }
  }

  // Where the trials were disturbed, the most of all kinds whose trials were not (of all kinds if
  // there are none).
  static CutOverhead cut_of(const ModelProfile& model, std::size_t kind, const TensorKey& tensor) {
    const bool some_undisturbed = std::ranges::any_of(
        model.kinds, [](const KindProfile& each) { return !each.cuts_disturbed; });
    CutOverhead most{KindId{kind}, 0, 0};
    for (std::size_t other = 0; other < model.kinds.size(); ++other) {
      const KindProfile& each = model.kinds[other];
      const bool own = other == kind && !each.cuts_disturbed;
      const bool instead =
          model.kinds[kind].cuts_disturbed && each.cuts_disturbed != some_undisturbed;
      if (!own && !instead) continue;
      most.send = std::max(most.send, each.cut.send());
      most.receive = std::max(most.receive, each.cut.receive(tensor));
    }
    return most;
  }

  // Between sets of cores nothing travels: who receives a tensor bears the hand-over, and slept
  // while others had its cores.
  void add_hand_overs() {
    const HandOver hand_over = hand_over_of_cores();
    const double wake_up = wake_up_of_cores();
    for (Tensor& tensor : profile_.draft.tensors) {
      for (CutOverhead& cut : tensor.cuts) {
        if (target_of(cut.kind.index()).cores.empty()) continue;  // tensors travel there, by links
        cut.receive += wake_up;
        if (hand_over.points.empty()) continue;
        cut.receive += hand_over.latency + tensor.bytes / hand_over.bandwidth;
      }
    }
  }

  // Of the smallest set, by the first one that has its cores and more; none: nothing.
  double wake_up_of_cores() {
    const auto narrow = [](const Target& target) {
      return target.cores.empty() ? SIZE_MAX : target.cores.size();
    };
    const Target& woken = *std::ranges::min_element(request_.targets, {}, narrow);
    const auto all = std::ranges::find_if(request_.targets, [&](const Target& target) {
      return target.cores.size() > woken.cores.size() && share_a_core(target, woken);
    });
    if (all == request_.targets.end()) return 0;
    const std::string what =
        fmt::format("a thread of {} that slept while {} computed", name_of(woken), name_of(*all));
    request_.measure.tell(what);
    const Measured time = measure_wake_up(*all, woken, request_.measure);
    doubt(what, doubt_of(time));
    profile_.draft.origin.push_back(
        fmt::format("{} runs {:.4g} ms later, {}", what, time.median, runs_text(time)));
    return time.median;
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
  ProfileRequest request_;
  Cluster cluster_;
  std::vector<std::size_t> first_;  // by kind, the device that is measured
  std::set<std::string> names_;
  std::vector<std::unique_ptr<NeuralModel>> models_;
  std::vector<const NeuralModel*> read_;         // the same
  std::vector<std::vector<MeasuredOps>> times_;  // by model, kind
  Profile profile_;
};

}  // namespace

double KindProfile::loaded() const {
  return (beside_busy_cores ? beside_busy_cores->factor : 1) * (in_turn ? in_turn->factor() : 1);
}

std::string KindProfile::doubt() const {
  std::string why = doubt_of(latency);
  if (why.empty() && beside_busy_cores) {
    why = beside_busy_cores->doubt();
    if (!why.empty()) why = "beside busy cores " + why;
  }
  if (why.empty() && in_turn) {
    why = in_turn->doubt();
    if (!why.empty()) why = "in turn " + why;
  }
  if (why.empty() && !cut.trials.empty()) why = cut.doubt();
  return why;
}

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
