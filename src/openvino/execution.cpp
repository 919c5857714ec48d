#include "openvino/execution.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include "formats/input_error.h"
#include "formats/text_file.h"
#include "openvino/import.h"
#include "openvino/inputs.h"
#include "openvino/workers.h"

namespace placewright::openvino {
namespace {

// Stretches of a pipeline that count, or are left out, as a whole.
constexpr std::size_t kBlocks = 30;

// The name of an op in its model: problems of several models put the model's name before it.
std::string_view node_name(const Problem& problem, OpId op) {
  std::string_view name = problem.op(op).name;
  const std::string& model = problem.model(problem.op(op).model).name;
  if (problem.model_count() > 1 && name.starts_with(model) && name.size() > model.size() &&
      name[model.size()] == '/') {
    name.remove_prefix(model.size() + 1);
  }
  return name;
}

// Everything that a run needs, made before the first worker starts: OpenVINO spreads its threads by
// the processor mask that it sees when it compiles, so nothing may be bound yet.
class Execution {
 public:
  Execution(const Problem& problem, const Plan& plan,
            const std::vector<std::unique_ptr<NeuralModel>>& models, const Runtime& runtime,
            const RunOptions& options)
      : problem_(problem),
        models_(models),
        options_(options),
        segments_(segments_of(problem, plan)) {
    find_devices(runtime);
    check_memory();
    number_ops();
    const bool streams = !plan.schedule;
    slots_ = streams ? slot_count() : 1;
    make_inputs();
    compile();
    bind();
    done_ = std::vector<std::vector<Word>>(segments_.size());
    for (auto& words : done_) words = std::vector<Word>(slots_);
  }

  RunResult run_schedule();
  RunResult run_pipeline();

 private:
  struct alignas(64) Word {
    std::atomic<std::uint64_t> samples{0};
    Word() = default;
    Word(const Word&) : Word() {}  // for the vector; never copied in use
  };

  // What one worker saw.
  struct Log {
    std::vector<SegmentEvent> events;
    std::vector<double> begin;  // by sample: when the worker set out, since `origin_`
    std::vector<double> lost;   // by sample: time that the core gave to others
  };

  void find_devices(const Runtime& runtime);
  void check_memory() const;
  void number_ops();
  [[nodiscard]] std::size_t slot_count() const;
  void make_inputs();
  void compile();
  void bind();
  void bind(std::size_t segment, std::size_t slot);
  void run_segment(std::size_t segment, std::size_t worker, std::size_t sample, Log& log);
  void follow_schedule(std::size_t worker, std::size_t samples, Workers& workers, Log& log);
  void follow_pipeline(std::size_t worker, std::size_t samples, Workers& workers, Log& log);
  [[nodiscard]] bool runnable(std::size_t segment, std::size_t sample) const;
  [[nodiscard]] std::string describe(std::size_t segment, std::size_t worker) const;
  std::vector<Log> follow(std::size_t samples, bool schedule, bool& interrupted);
  [[nodiscard]] OutputCheck check_outputs(std::size_t samples);
  void summarise_segments(const std::vector<Log>& logs, std::size_t first,
                          const std::vector<char>& disturbed, RunResult& result) const;

  const Problem& problem_;
  const std::vector<std::unique_ptr<NeuralModel>>& models_;
  const RunOptions& options_;
  std::vector<Segment> segments_;
  std::vector<DeviceId> devices_;               // that have something to do; by worker
  std::vector<Target> targets_;                 // by worker
  std::vector<std::vector<std::size_t>> work_;  // by worker: its segments, in order
  Table<OpId, std::size_t> number_;             // in the model's graph
  std::vector<std::size_t> segment_of_;         // by op
  std::size_t slots_ = 1;
  std::vector<std::vector<std::vector<Bytes>>> inputs_;            // by model, slot, input
  std::vector<std::vector<std::unique_ptr<CompiledPart>>> parts_;  // by segment, replica
  std::vector<std::vector<std::unique_ptr<Request>>> requests_;    // by segment, slot
  std::vector<std::vector<Word>> done_;                            // by segment, slot
  Clock::time_point origin_;
  std::atomic<std::uint64_t> progress_{0};
};

void Execution::find_devices(const Runtime& runtime) {
  std::vector<std::string> names;
  for (const RuntimeDevice& device : runtime.devices()) names.push_back(device.name);
  std::map<DeviceId, std::size_t> worker_of;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    for (const DeviceId device : segments_[i].devices) {
      const auto [found, added] = worker_of.emplace(device, devices_.size());
      if (added) {
        Target target = target_named(problem_.device(device).name);
        if (const auto reason = obstacle(target, names)) throw std::invalid_argument(*reason);
        devices_.push_back(device);
        targets_.push_back(std::move(target));
        work_.emplace_back();
      }
      work_[found->second].push_back(i);
    }
  }
  for (std::size_t a = 0; a < targets_.size(); ++a) {
    for (std::size_t b = a + 1; b < targets_.size(); ++b) {
      for (const int core : targets_[a].cores) {
        const auto& other = targets_[b].cores;
        if (std::find(other.begin(), other.end(), core) == other.end()) continue;
        throw std::invalid_argument(
            fmt::format("'{}' and '{}' are both used by the plan and share core {}",
                        name_of(targets_[a]), name_of(targets_[b]), core));
      }
    }
  }
}

void Execution::check_memory() const {
  double needed = 0;
  for (const OpId op : problem_.ops()) needed += problem_.memory(op);
  for (const SharedWeight& weight : problem_.draft().shared_weights) needed += weight.bytes;
  const double available = available_memory();
  // The model as read, and the backend's own copy in its layouts.
  if (available > 0 && 2 * needed > available) {
    throw RuntimeError(fmt::format(
        "too little memory: the models' weights take {:.0f} MB, twice while they are compiled, and "
        "{:.0f} MB are free",
        needed / 1e6, available / 1e6));
  }
}

void Execution::number_ops() {
  number_.assign(problem_.op_count(), 0);
  std::vector<std::unordered_map<std::string_view, std::size_t>> by_name(models_.size());
  for (std::size_t model = 0; model < models_.size(); ++model) {
    const auto& ops = models_[model]->graph().ops;
    for (std::size_t i = 0; i < ops.size(); ++i) by_name[model].emplace(ops[i].name, i);
  }
  segment_of_.assign(problem_.op_count(), 0);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    for (const OpId op : segments_[i].ops) {
      segment_of_[op.index()] = i;
      number_[op] = by_name[segments_[i].model.index()].at(node_name(problem_, op));
    }
  }
}

std::size_t Execution::slot_count() const {
  std::size_t replicas = 1;
  for (const Segment& segment : segments_) replicas = std::lcm(replicas, segment.devices.size());
  const std::size_t wanted =
      options_.slots > 0 ? static_cast<std::size_t>(options_.slots) : 2 * segments_.size();
  // A slot always belongs to the same replica.
  return (std::max(wanted, replicas) + replicas - 1) / replicas * replicas;
}

void Execution::make_inputs() {
  inputs_.resize(models_.size());
  for (std::size_t model = 0; model < models_.size(); ++model) {
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      std::vector<Bytes>& inputs = inputs_[model].emplace_back();
      for (const GraphInput& input : models_[model]->graph().inputs) {
        inputs.push_back(seeded_input(input, options_.seed * 1000 + slot));
      }
    }
  }
}

void Execution::compile() {
  parts_.resize(segments_.size());
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    std::vector<std::size_t> ops;
    for (const OpId op : segment.ops) ops.push_back(number_[op]);
    for (const DeviceId device : segment.devices) {
      const Target target = target_named(problem_.device(device).name);
      parts_[i].push_back(models_[segment.model.index()]->compile(
          ops, {.device = target.device, .threads = target.threads()}));
    }
  }
}

void Execution::bind() {
  requests_.resize(segments_.size());
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      requests_[i].push_back(parts_[i][slot % parts_[i].size()]->request());
      bind(i, slot);
    }
  }
}

void Execution::bind(std::size_t segment, std::size_t slot) {
  const std::size_t model = segments_[segment].model.index();
  const auto& keys = parts_[segment].front()->inputs();
  Request& request = *requests_[segment][slot];
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].is_model_input()) {
      request.bind_input(i, inputs_[model][slot][keys[i].port].data());
      continue;
    }
    for (const std::size_t producer : segments_[segment].inputs) {
      const auto& outputs = parts_[producer].front()->outputs();
      const auto found = std::find(outputs.begin(), outputs.end(), keys[i]);
      if (segments_[producer].model != segments_[segment].model || found == outputs.end()) continue;
      request.bind_input(i, *requests_[producer][slot],
                         static_cast<std::size_t>(found - outputs.begin()));
      break;
    }
  }
}

std::string Execution::describe(std::size_t segment, std::size_t worker) const {
  const Segment& what = segments_[segment];
  return fmt::format("segment {} ({} ops from '{}' to '{}' on {})", segment + 1, what.ops.size(),
                     problem_.op(what.ops.front()).name, problem_.op(what.ops.back()).name,
                     name_of(targets_[worker]));
}

void Execution::run_segment(std::size_t segment, std::size_t worker, std::size_t sample, Log& log) {
  const std::size_t slot = sample % slots_;
  const Clock::time_point start = Clock::now();
  const double processor = thread_time();
  try {
    requests_[segment][slot]->run();
  } catch (const std::exception& error) {
    throw RuntimeError(fmt::format("{} failed: {}", describe(segment, worker), error.what()));
  }
  const double used = thread_time() - processor;
  const Clock::time_point end = Clock::now();
  done_[segment][slot].samples.store(sample + 1, std::memory_order_release);
  // On several cores the others' share of the work is not this thread's.
  if (targets_[worker].cores.size() == 1) {
    log.lost[sample] += std::max(0.0, milliseconds(end - start) - used);
  }
  log.events.push_back({segment, devices_[worker], sample, milliseconds(start - origin_),
                        milliseconds(end - origin_)});
}

void Execution::follow_schedule(std::size_t worker, std::size_t samples, Workers& workers,
                                Log& log) {
  for (std::size_t sample = 0; sample < samples; ++sample) {
    if (!workers.meet(sample + 1)) return;
    const Clock::time_point begin = Clock::now();
    log.begin.push_back(milliseconds(begin - origin_));
    for (const std::size_t segment : work_[worker]) {
      for (const std::size_t producer : segments_[segment].inputs) {
        if (!workers.wait(done_[producer][0].samples, sample + 1)) return;
      }
      const double arrival = problem_.model(segments_[segment].model).arrival;
      Waiting waiting;
      while (milliseconds(Clock::now() - begin) < arrival && !workers.stopped()) waiting.pause();
      run_segment(segment, worker, sample, log);
    }
    if (worker == 0) progress_.store(sample + 1, std::memory_order_relaxed);
  }
}

bool Execution::runnable(std::size_t segment, std::size_t sample) const {
  const std::size_t slot = sample % slots_;
  for (const std::size_t producer : segments_[segment].inputs) {
    if (done_[producer][slot].samples.load(std::memory_order_acquire) != sample + 1) return false;
  }
  if (sample < slots_) return true;
  // The slot's memory is free when the sample before in it has been read.
  for (const std::size_t reader : segments_[segment].outputs) {
    if (done_[reader][slot].samples.load(std::memory_order_acquire) != sample + 1 - slots_) {
      return false;
    }
  }
  return done_[segment][slot].samples.load(std::memory_order_acquire) == sample + 1 - slots_;
}

void Execution::follow_pipeline(std::size_t worker, std::size_t samples, Workers& workers,
                                Log& log) {
  if (!workers.meet(1)) return;
  const std::vector<std::size_t>& own = work_[worker];
  std::vector<std::size_t> next(own.size(), 0);
  std::vector<std::size_t> stride(own.size(), 1);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto& devices = segments_[own[i]].devices;
    stride[i] = devices.size();
    next[i] = static_cast<std::size_t>(std::find(devices.begin(), devices.end(), devices_[worker]) -
                                       devices.begin());
  }
  Waiting waiting;
  while (!workers.stopped()) {
    std::size_t chosen = own.size();
    bool more = false;
    // Of the runnable ones the oldest sample, and of one sample the segment nearest to the end.
    for (std::size_t i = own.size(); i-- > 0;) {
      if (next[i] >= samples) continue;
      more = true;
      if (chosen < own.size() && next[i] >= next[chosen]) continue;
      if (runnable(own[i], next[i])) chosen = i;
    }
    if (!more) return;
    if (chosen == own.size()) {
      waiting.pause();
      continue;
    }
    waiting = {};
    run_segment(own[chosen], worker, next[chosen], log);
    next[chosen] += stride[chosen];
    if (worker == 0) progress_.store(next[chosen], std::memory_order_relaxed);
  }
}

std::vector<Execution::Log> Execution::follow(std::size_t samples, bool schedule,
                                              bool& interrupted) {
  for (auto& words : done_) {
    for (Word& word : words) word.samples.store(0);
  }
  std::vector<Log> logs(targets_.size());
  for (std::size_t worker = 0; worker < logs.size(); ++worker) {
    logs[worker].lost.assign(samples, 0);
    logs[worker].events.reserve(samples * work_[worker].size());
    logs[worker].begin.reserve(samples);
  }
  Workers workers(targets_, options_.stop);
  origin_ = Clock::now();
  progress_.store(0);
  workers.run(
      [&](std::size_t worker) {
        if (schedule) {
          follow_schedule(worker, samples, workers, logs[worker]);
        } else {
          follow_pipeline(worker, samples, workers, logs[worker]);
        }
      },
      [&] {
        if (!options_.progress) return;
        options_.progress(static_cast<double>(progress_.load(std::memory_order_relaxed)) /
                          static_cast<double>(samples));
      });
  interrupted = workers.interrupted();
  return logs;
}

void Execution::summarise_segments(const std::vector<Log>& logs, std::size_t first,
                                   const std::vector<char>& disturbed, RunResult& result) const {
  std::vector<std::vector<double>> times(segments_.size());
  std::vector<int> rejected(segments_.size(), 0);
  result.busy.assign(problem_.device_count(), 0);
  std::size_t counted = 0;
  for (std::size_t i = first; i < disturbed.size(); ++i) counted += disturbed[i] ? 0 : 1;
  for (const Log& log : logs) {
    for (const SegmentEvent& event : log.events) {
      if (event.sample < first || event.sample >= disturbed.size()) continue;
      if (disturbed[event.sample]) {
        ++rejected[event.segment];
        continue;
      }
      times[event.segment].push_back(event.end - event.start);
      result.busy[event.device] += (event.end - event.start) / static_cast<double>(counted);
    }
  }
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    result.segment_times.push_back(measured(std::move(times[i]), rejected[i]));
  }
}

RunResult Execution::run_schedule() {
  RunResult result;
  const auto warm_up = static_cast<std::size_t>(std::max(options_.warm_up, 0));
  auto repeat = static_cast<std::size_t>(std::max(options_.repeat, 1));
  if (options_.duration > 0) {
    // As many as fit, by the time of the first few.
    const Clock::time_point start = Clock::now();
    constexpr std::size_t kFirst = 5;
    follow(kFirst, true, result.interrupted);
    const double each = milliseconds(Clock::now() - start) / kFirst;
    repeat = std::max<std::size_t>(
        kFirst, static_cast<std::size_t>(options_.duration * 1000 / std::max(each, 1e-3)));
  }
  const std::vector<Log> logs = follow(warm_up + repeat, true, result.interrupted);
  std::size_t complete = warm_up + repeat;
  for (std::size_t worker = 0; worker < logs.size(); ++worker) {
    complete = std::min(complete, logs[worker].events.size() / work_[worker].size());
  }
  const std::size_t first = std::min(warm_up, complete > 0 ? complete - 1 : 0);

  std::vector<double> begin(complete, 0);
  std::vector<std::vector<double>> ends(complete, std::vector<double>(problem_.model_count(), 0));
  for (std::size_t sample = 0; sample < complete; ++sample) {
    begin[sample] = logs.front().begin[sample];
    for (const Log& log : logs) begin[sample] = std::min(begin[sample], log.begin[sample]);
  }
  for (const Log& log : logs) {
    for (const SegmentEvent& event : log.events) {
      if (event.sample >= complete) continue;
      double& end = ends[event.sample][segments_[event.segment].model.index()];
      end = std::max(end, event.end - begin[event.sample]);
    }
  }
  const auto value_of = [&](std::size_t sample) {
    double value = 0;
    for (const ModelId model : problem_.models()) {
      const double end = std::max(ends[sample][model.index()], problem_.model(model).arrival);
      if (problem_.objective() == Objective::total_completion) {
        value += problem_.model(model).weight * (end - problem_.model(model).arrival);
      } else {
        value = std::max(value, end);
      }
    }
    return value;
  };
  std::vector<char> disturbed(complete, 0);
  std::vector<double> values;
  std::vector<std::pair<double, std::size_t>> by_value;
  int rejected = 0;
  for (std::size_t sample = first; sample < complete; ++sample) {
    const double latency = *std::max_element(ends[sample].begin(), ends[sample].end());
    for (const Log& log : logs) disturbed[sample] |= log.lost[sample] > kDisturbed * latency;
    if (disturbed[sample]) {
      ++rejected;
      continue;
    }
    values.push_back(value_of(sample));
    by_value.emplace_back(values.back(), sample);
  }
  for (const ModelId model : problem_.models()) {
    std::vector<double> times;
    for (const auto& [value, sample] : by_value) times.push_back(ends[sample][model.index()]);
    result.completions.push_back(measured(std::move(times), rejected));
  }
  result.value = measured(std::move(values), rejected);
  summarise_segments(logs, first, disturbed, result);
  if (!by_value.empty()) {
    const auto middle = by_value.begin() + static_cast<std::ptrdiff_t>(by_value.size() / 2);
    std::nth_element(by_value.begin(), middle, by_value.end());
    for (const Log& log : logs) {
      for (SegmentEvent event : log.events) {
        if (event.sample != middle->second) continue;
        event.start -= begin[event.sample];
        event.end -= begin[event.sample];
        result.events.push_back(event);
      }
    }
  }
  if (options_.compare && complete > 0) result.outputs = check_outputs(complete);
  result.segments = std::move(segments_);
  return result;
}

RunResult Execution::run_pipeline() {
  RunResult result;
  const std::size_t warm_up =
      std::max(static_cast<std::size_t>(std::max(options_.warm_up, 0)), slots_);
  auto repeat = std::max(static_cast<std::size_t>(std::max(options_.repeat, 1)), kBlocks);
  if (options_.duration > 0) {
    const Clock::time_point start = Clock::now();
    follow(warm_up + kBlocks, false, result.interrupted);
    const double each = milliseconds(Clock::now() - start) / static_cast<double>(warm_up + kBlocks);
    repeat = std::max(kBlocks,
                      static_cast<std::size_t>(options_.duration * 1000 / std::max(each, 1e-3)));
  }
  const std::vector<Log> logs = follow(warm_up + repeat, false, result.interrupted);

  // When each sample was finished, and how much of its time each worker lost.
  std::vector<double> finished(warm_up + repeat, 0);
  std::vector<std::size_t> runs(warm_up + repeat, 0);
  for (const Log& log : logs) {
    for (const SegmentEvent& event : log.events) {
      finished[event.sample] = std::max(finished[event.sample], event.end);
      ++runs[event.sample];
    }
  }
  std::size_t complete = 0;
  while (complete < runs.size() && runs[complete] == segments_.size()) ++complete;
  const std::size_t first = std::min(warm_up, complete);
  const std::size_t block = std::max<std::size_t>(1, (complete - first) / kBlocks);
  std::vector<char> disturbed(complete, 0);
  std::vector<double> values;
  int rejected = 0;
  for (std::size_t begin = first; begin > 0 && begin + block <= complete; begin += block) {
    const double length = finished[begin + block - 1] - finished[begin - 1];
    bool lost = false;
    for (const Log& log : logs) {
      const auto from = log.lost.begin() + static_cast<std::ptrdiff_t>(begin);
      lost |= std::accumulate(from, from + static_cast<std::ptrdiff_t>(block), 0.0) >
              kDisturbed * length;
    }
    if (lost) {
      ++rejected;
      std::fill_n(disturbed.begin() + static_cast<std::ptrdiff_t>(begin), block, 1);
    } else {
      values.push_back(length / static_cast<double>(block));
    }
  }
  result.value = measured(std::move(values), rejected);
  summarise_segments(logs, first, disturbed, result);
  const std::size_t from = first + (complete - first) / 2;
  const std::size_t stretch = std::min(complete - from, std::max<std::size_t>(8, slots_));
  double origin = std::numeric_limits<double>::infinity();
  for (const Log& log : logs) {
    for (const SegmentEvent& event : log.events) {
      if (event.sample < from || event.sample >= from + stretch) continue;
      result.events.push_back(event);
      origin = std::min(origin, event.start);
    }
  }
  for (SegmentEvent& event : result.events) {
    event.start -= origin;
    event.end -= origin;
  }
  if (options_.compare && complete > 0) result.outputs = check_outputs(complete);
  result.segments = std::move(segments_);
  return result;
}

OutputCheck Execution::check_outputs(std::size_t samples) {
  OutputCheck check;
  check.compared = true;
  for (std::size_t model = 0; model < models_.size(); ++model) {
    const ModelGraph& graph = models_[model]->graph();
    const auto whole = models_[model]->compile_whole({});
    for (std::size_t slot = 0; slot < std::min(samples, slots_); ++slot) {
      const auto request = whole->request();
      for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        request->bind_input(i, inputs_[model][slot][i].data());
      }
      request->run();
      for (const GraphOutput& output : graph.outputs) {
        if (output.tensor.is_model_input()) continue;
        const auto& keys = whole->outputs();
        const auto expected = request->output(static_cast<std::size_t>(
            std::find(keys.begin(), keys.end(), output.tensor) - keys.begin()));
        for (std::size_t i = 0; i < segments_.size(); ++i) {
          if (segments_[i].model.index() != model) continue;
          const auto& own = parts_[i].front()->outputs();
          const auto found = std::find(own.begin(), own.end(), output.tensor);
          if (found == own.end()) continue;
          const double apart =
              difference(graph.ops[output.tensor.op].outputs[output.tensor.port], expected,
                         requests_[i][slot]->output(static_cast<std::size_t>(found - own.begin())));
          if (apart > check.largest_difference) {
            check.largest_difference = apart;
            check.worst_output = output.name;
          }
        }
      }
    }
  }
  return check;
}

}  // namespace

Measured measured(std::vector<double> kept, int rejected) {
  Measured result;
  result.kept = static_cast<int>(kept.size());
  result.rejected = rejected;
  if (kept.empty()) return result;
  std::sort(kept.begin(), kept.end());
  const auto quantile = [&](double share) {
    return kept[static_cast<std::size_t>(share * static_cast<double>(kept.size() - 1) + 0.5)];
  };
  result.median = quantile(0.5);
  result.low = quantile(0.1);
  result.high = quantile(0.9);
  return result;
}

std::vector<std::unique_ptr<NeuralModel>> models_of(const Problem& problem,
                                                    const Runtime& runtime) {
  std::vector<std::unique_ptr<NeuralModel>> models;
  for (const ModelId id : problem.models()) {
    const Model& model = problem.model(id);
    if (!model.source) {
      throw InputError(problem.name(), "",
                       fmt::format("the problem does not say which file the model '{}' is in: only "
                                   "problems made by 'placewright profile' or 'import' can be run",
                                   model.name));
    }
    const std::string& path = model.source->path;
    if (!model.source->digest.empty() && digest_of(read_whole(path)) != model.source->digest) {
      throw InputError(path, "", "has changed since the problem was made: profile it again");
    }
    models.push_back(runtime.read(path, shapes_named(model.source->shapes)));
    std::unordered_map<std::string_view, std::size_t> names;
    for (const GraphOp& op : models.back()->graph().ops) names.emplace(op.name, names.size());
    std::size_t count = 0;
    for (const OpId op : problem.ops()) {
      if (problem.op(op).model != id) continue;
      ++count;
      if (names.contains(node_name(problem, op))) continue;
      throw InputError(path, "", fmt::format("has no op '{}'", problem.op(op).name));
    }
    if (count != names.size()) {
      throw InputError(path, "", fmt::format("has {} ops, the problem {}", names.size(), count));
    }
  }
  return models;
}

RunResult run_plan(const Problem& problem, const Plan& plan,
                   const std::vector<std::unique_ptr<NeuralModel>>& models, const Runtime& runtime,
                   const RunOptions& options) {
  Execution execution(problem, plan, models, runtime, options);
  return plan.schedule ? execution.run_schedule() : execution.run_pipeline();
}

}  // namespace placewright::openvino
