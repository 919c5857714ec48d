#include "formats/trace_export.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/json_text.h"
#include "formats/plan_rows.h"
#include "problem/op_times.h"
#include "problem/pipeline_samples.h"
#include "problem/time_unit.h"

namespace placewright {
namespace {

using Json = nlohmann::ordered_json;

enum Group { kDevices = 1, kLinks = 2, kModels = 3, kMeasured = 4, kResources = 5 };

// Nanoseconds per unit of the problem.
double nanoseconds(TimeUnit unit) {
  return 1e6 * milliseconds_in(unit);
}

struct Slice {
  double start = 0;
  double end = 0;
  std::string name;
  const char* category;
  Json details = Json::object();
  std::vector<Slice> parts = {};  // nested in it, one after the other
};

// The slices of one device, direction or model; more than one track where they overlap.
class Tracks {
 public:
  void add(Slice slice) { slices_.push_back(std::move(slice)); }

  // By start; each slice goes to the first track that is free.
  [[nodiscard]] std::vector<std::vector<Slice>> split() {
    std::stable_sort(slices_.begin(), slices_.end(), [](const Slice& a, const Slice& b) {
      return std::pair(a.start, a.end) < std::pair(b.start, b.end);
    });
    double horizon = 0;
    for (const Slice& slice : slices_) horizon = std::max(horizon, slice.end);
    std::vector<std::vector<Slice>> tracks;
    for (Slice& slice : slices_) {
      const auto free = std::find_if(tracks.begin(), tracks.end(), [&](const auto& track) {
        return track.back().end <= slice.start + 1e-9 * horizon;
      });
      if (free == tracks.end()) {
        tracks.emplace_back().push_back(std::move(slice));
      } else {
        // Ends that agree up to rounding are one moment.
        slice.start = std::max(slice.start, free->back().end);
        slice.end = std::max(slice.end, slice.start);
        free->push_back(std::move(slice));
      }
    }
    return tracks;
  }

 private:
  std::vector<Slice> slices_;
};

class Trace {
 public:
  Trace(const Problem& problem, const Plan& plan, std::span<const MeasuredSlice> measured)
      : problem_(problem), plan_(plan), scale_(nanoseconds(problem.unit())) {
    if (measured.empty()) return;
    for (const DeviceId id : problem.devices()) {
      measured_.emplace_back(problem.device(id).name, Tracks{});
    }
    for (const MeasuredSlice& slice : measured) {
      measured_[slice.device.index()].second.add({slice.start, slice.end, slice.name, "measured"});
    }
  }

  Json run() {
    if (plan_.schedule) {
      add_schedule();
    } else if (record_of(problem_.objective()).form == PlanForm::calls) {
      add_calls();
    } else {
      add_pipeline();
    }
    write_group(kDevices, "devices", devices_);
    write_group(kLinks, "links", links_);
    write_group(kModels, "models", models_);
    write_group(kMeasured, "measured", measured_);
    write_group(kResources, "resources", resources_);
    return {{"displayTimeUnit", "ms"},
            {"otherData",
             {{"problem", problem_.name()},
              {"objective", name_of(problem_.objective())},
              {"value", fmt::format("{}", plan_.value)},
              {"unit", name_of(problem_.unit())}}},
            {"traceEvents", std::move(events_)}};
  }

 private:
  using NamedTracks = std::vector<std::pair<std::string, Tracks>>;

  Slice op_slice(OpId op, double start, double end) const {
    const Op& record = problem_.op(op);
    Json details = {{"device", problem_.device(plan_.placement[op]).name},
                    {"model", problem_.model(record.model).name},
                    {"resident bytes", record.memory}};
    if (!record.type.empty()) details["type"] = record.type;
    return {start, end, record.name, "op", std::move(details)};
  }

  void add_schedule() {
    add_device_tracks();
    for (const OpId op : problem_.ops()) {
      add_work(plan_.placement[op],
               op_slice(op, plan_.schedule->start[op], plan_.schedule->end[op]));
    }
    std::map<std::pair<DeviceId, DeviceId>, std::size_t> directions;
    for (const Transfer& transfer : plan_.schedule->transfers) {
      const auto [entry, is_new] =
          directions.try_emplace({transfer.from, transfer.to}, links_.size());
      if (is_new) {
        links_.emplace_back(fmt::format("{} > {}", place_name(problem_, transfer.from),
                                        place_name(problem_, transfer.to)),
                            Tracks{});
      }
      links_[entry->second].second.add({transfer.start,
                                        transfer.end,
                                        tensor_name(problem_, transfer.tensor),
                                        "transfer",
                                        {{"bytes", problem_.tensor(transfer.tensor).bytes}}});
    }
    add_models(op_times(problem_, plan_));
  }

  void add_calls() {
    add_device_tracks();
    const OpTimes times = op_times(problem_, plan_);
    for (const OpId op : problem_.ops()) {
      if (!problem_.on_host(plan_.placement[op])) continue;
      device(plan_.placement[op]).add(op_slice(op, times.start[op], times.end[op]));
    }
    std::size_t number = 0;
    for (const Call& call : plan_.calls) add_work(call.device, call_slice(call, ++number));
    add_models(times);
  }

  // In, ops, out: the parts fill the call exactly.
  Slice call_slice(const Call& call, std::size_t number) const {
    Slice slice{
        call.start, call.end, fmt::format("call {}", number), "call", {{"ops", call.ops.size()}}};
    Table<OpId, char> inside(problem_.op_count(), 0);
    for (const OpId op : call.ops) inside[op] = 1;
    double time = call.start;
    const auto add = [&](const std::string& name, const char* category, double length) {
      const double end = std::min(time + length, call.end);
      slice.parts.push_back({time, end, name, category});
      time = end;
    };
    for (const TensorId tensor : tensors_in(call, inside)) {
      add("in: " + tensor_name(problem_, tensor), "transfer",
          problem_.host_time(tensor) + problem_.receive_overhead(tensor, call.device));
    }
    for (const OpId op : problem_.topological_order()) {
      if (inside[op]) add(problem_.op(op).name, "op", problem_.time(op, call.device));
    }
    for (const OpId op : call.ops) {
      for (const TensorId tensor : problem_.outputs(op)) {
        const auto readers = problem_.consumers(tensor);
        if (std::all_of(readers.begin(), readers.end(), [&](OpId r) { return inside[r] != 0; })) {
          continue;
        }
        add("out: " + tensor_name(problem_, tensor), "transfer",
            problem_.host_time(tensor) + problem_.send_overhead(tensor, call.device));
      }
    }
    return slice;
  }

  [[nodiscard]] std::vector<TensorId> tensors_in(const Call& call,
                                                 const Table<OpId, char>& inside) const {
    std::vector<TensorId> tensors;
    for (const OpId op : call.ops) {
      for (const TensorId tensor : problem_.inputs(op)) {
        if (!inside[problem_.producer(tensor)]) tensors.push_back(tensor);
      }
    }
    std::sort(tensors.begin(), tensors.end());
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
    return tensors;
  }

  void add_pipeline() {
    add_device_tracks();
    for (const PipelineSample& sample : pipeline_samples(plan_, 0, plan_.stages.size() + 3)) {
      add_work(sample.device,
               {sample.start,
                sample.end,
                fmt::format("sample {}", sample.sample + 1),
                "stage",
                {{"stage", sample.stage + 1}, {"ops", plan_.stages[sample.stage].ops.size()}}});
    }
  }

  // From arrival to completion, and in it the time until the first op starts.
  void add_models(const OpTimes& times) {
    for (const ModelId model : problem_.models()) {
      models_.emplace_back(problem_.model(model).name, Tracks{});
    }
    Table<ModelId, double> first(problem_.model_count(), kInfinity);
    Table<ModelId, double> last(problem_.model_count(), 0);
    for (const OpId op : problem_.ops()) {
      const ModelId model = problem_.op(op).model;
      first[model] = std::min(first[model], times.start[op]);
      last[model] = std::max(last[model], times.end[op]);
    }
    for (const ModelId model : problem_.models()) {
      if (first[model] == kInfinity) continue;
      const double arrival = plan_.schedule ? problem_.model(model).arrival : 0;
      Slice slice{arrival, last[model], problem_.model(model).name, "model"};
      if (first[model] > arrival) {
        slice.parts.push_back({arrival, first[model], "waiting", "model"});
      }
      slice.parts.push_back({std::max(arrival, first[model]), last[model], "running", "model"});
      models_[model.index()].second.add(std::move(slice));
    }
  }

  void add_device_tracks() {
    for (const DeviceId id : problem_.devices()) {
      devices_.emplace_back(problem_.device(id).name, Tracks{});
    }
    for (const ResourceId id : problem_.resources()) {
      resources_.emplace_back(problem_.resource(id).name, Tracks{});
    }
  }
  // What a device does; the resources that it uses are held as long.
  void add_work(DeviceId id, Slice slice) {
    for (const ResourceUse& use : problem_.uses(id)) {
      resources_[use.resource.index()].second.add(
          {slice.start, slice.end, slice.name, "resource", {{"device", problem_.device(id).name}}});
    }
    device(id).add(std::move(slice));
  }
  Tracks& device(DeviceId id) { return devices_[id.index()].second; }

  void write_group(int group, const char* name, NamedTracks& named) {
    if (named.empty()) return;
    write_name("process_name", group, 0, name);
    events_.push_back({{"ph", "M"},
                       {"pid", group},
                       {"tid", 0},
                       {"name", "process_sort_index"},
                       {"args", {{"sort_index", group}}}});
    int number = 0;
    for (auto& [title, tracks] : named) {
      std::vector<std::vector<Slice>> split = tracks.split();
      if (split.empty()) split.emplace_back();
      for (std::size_t i = 0; i < split.size(); ++i) {
        // Thread numbers are unique over all groups: some viewers know tracks by these alone.
        const int track = group * 1000000 + ++number;
        write_name("thread_name", group, track,
                   split.size() == 1 ? title : fmt::format("{} ({})", title, i + 1));
        for (const Slice& slice : split[i]) write_slice(group, track, slice);
      }
    }
  }

  void write_name(const char* what, int group, int track, const std::string& name) {
    events_.push_back(
        {{"ph", "M"}, {"pid", group}, {"tid", track}, {"name", what}, {"args", {{"name", name}}}});
  }

  void write_slice(int group, int track, const Slice& slice) {
    const auto start = moment(slice.start);
    const auto end = moment(slice.end);
    Json event = {{"ph", "X"},
                  {"pid", group},
                  {"tid", track},
                  {"name", slice.name.empty() ? "-" : slice.name},
                  {"cat", slice.category},
                  {"ts", microseconds(start)},
                  {"dur", microseconds(end - start)}};
    if (!slice.details.empty()) event["args"] = slice.details;
    events_.push_back(std::move(event));
    for (const Slice& part : slice.parts) write_slice(group, track, part);
  }

  [[nodiscard]] std::int64_t moment(double time) const { return std::llround(time * scale_); }

  // The format counts in microseconds; thousandths keep the nanoseconds.
  static double microseconds(std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1000;
  }

  const Problem& problem_;
  const Plan& plan_;
  double scale_;
  NamedTracks devices_;
  NamedTracks links_;
  NamedTracks models_;
  NamedTracks measured_;
  NamedTracks resources_;
  Json events_ = Json::array();
};

}  // namespace

std::string trace_json(const Problem& problem, const Plan& plan,
                       std::span<const MeasuredSlice> measured) {
  return json_text(Trace(problem, plan, measured).run(), 1) + '\n';
}

}  // namespace placewright
