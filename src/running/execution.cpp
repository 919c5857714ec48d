#include "running/execution.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include "backends/import.h"
#include "backends/inputs.h"
#include "backends/part_inputs.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "machine/workers.h"
#include "problem/time_unit.h"
#include "running/run_log.h"

namespace placewright {
namespace {

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
        streams_(!plan.schedule),
        unit_(milliseconds_in(problem.unit())),
        segments_(segments_of(problem, plan)) {
    find_devices(runtime);
    check_memory();
    number_ops();
    slots_ = streams_ ? slot_count() : 1;
    make_inputs();
    compile();
    bind();
    done_ = std::vector<std::vector<Word>>(segments_.size());
    for (auto& words : done_) words = std::vector<Word>(slots_);
  }

  RunResult run();

 private:
  struct alignas(64) Word {
    std::atomic<std::uint64_t> samples{0};
    Word() = default;
    Word(const Word&) : Word() {}  // for the vector; never copied in use
  };

  void find_devices(const Runtime& runtime);
  void check_memory() const;
  void number_ops();
  [[nodiscard]] std::size_t slot_count() const;
  void make_inputs();
  void compile();
  void bind();
  void bind(std::size_t segment, std::size_t slot);
  void run_segment(std::size_t segment, std::size_t worker, std::size_t sample, WorkerLog& log);
  void follow_schedule(std::size_t worker, std::size_t samples, Workers& workers, WorkerLog& log);
  void follow_pipeline(std::size_t worker, std::size_t samples, Workers& workers, WorkerLog& log);
  [[nodiscard]] bool runnable(std::size_t segment, std::size_t sample) const;
  [[nodiscard]] std::string describe(std::size_t segment, std::size_t worker) const;
  std::vector<WorkerLog> follow(std::size_t samples, bool& interrupted);
  [[nodiscard]] std::size_t samples_to_count(std::size_t warm_up, bool& interrupted);
  [[nodiscard]] OutputCheck check_outputs(std::size_t samples);

  const Problem& problem_;
  const std::vector<std::unique_ptr<NeuralModel>>& models_;
  const RunOptions& options_;
  bool streams_;  // a pipeline
  double unit_;   // of the problem, in milliseconds
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
      inputs_[model].push_back(seeded_inputs(models_[model]->graph(), options_.seed * 1000 + slot));
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

void Execution::run_segment(std::size_t segment, std::size_t worker, std::size_t sample,
                            WorkerLog& log) {
  const std::size_t slot = sample % slots_;
  const Clock::time_point start = Clock::now();
  try {
    requests_[segment][slot]->run();
  } catch (const std::exception& error) {
    throw RuntimeError(fmt::format("{} failed: {}", describe(segment, worker), error.what()));
  }
  const Clock::time_point end = Clock::now();
  done_[segment][slot].samples.store(sample + 1, std::memory_order_release);
  log.events.push_back({segment, devices_[worker], sample, milliseconds(start - origin_),
                        milliseconds(end - origin_)});
}

void Execution::follow_schedule(std::size_t worker, std::size_t samples, Workers& workers,
                                WorkerLog& log) {
  for (std::size_t sample = 0; sample < samples; ++sample) {
    if (!workers.meet(sample + 1)) return;
    const Clock::time_point begin = Clock::now();
    const LostTime lost(targets_[worker]);
    log.begin.push_back(milliseconds(begin - origin_));
    for (const std::size_t segment : work_[worker]) {
      for (const std::size_t producer : segments_[segment].inputs) {
        if (!workers.wait(done_[producer][0].samples, sample + 1)) return;
      }
      const double arrival = problem_.model(segments_[segment].model).arrival * unit_;
      Waiting waiting;
      while (milliseconds(Clock::now() - begin) < arrival && !workers.stopped()) waiting.pause();
      run_segment(segment, worker, sample, log);
    }
    // Waiting counts too: a worker waits at work, and one that was away comes late.
    log.lost[sample] = lost.so_far();
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
                                WorkerLog& log) {
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
    const LostTime lost(targets_[worker]);
    run_segment(own[chosen], worker, next[chosen], log);
    log.lost[next[chosen]] += lost.so_far();
    next[chosen] += stride[chosen];
    if (worker == 0) progress_.store(next[chosen], std::memory_order_relaxed);
  }
}

std::vector<WorkerLog> Execution::follow(std::size_t samples, bool& interrupted) {
  for (auto& words : done_) {
    for (Word& word : words) word.samples.store(0);
  }
  std::vector<WorkerLog> logs(targets_.size());
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
        if (streams_) {
          follow_pipeline(worker, samples, workers, logs[worker]);
        } else {
          follow_schedule(worker, samples, workers, logs[worker]);
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

RunResult Execution::run() {
  const std::size_t warm_up =
      std::max(static_cast<std::size_t>(std::max(options_.warm_up, 0)), streams_ ? slots_ : 0);
  bool interrupted = false;
  const std::size_t repeat = samples_to_count(warm_up, interrupted);
  const std::vector<WorkerLog> logs = follow(warm_up + repeat, interrupted);
  RunResult result = streams_ ? summarise_pipeline(problem_, segments_, logs, warm_up, slots_)
                              : summarise_schedule(problem_, segments_, logs, warm_up);
  result.interrupted = interrupted;
  const std::size_t complete = complete_samples(segments_, logs);
  if (options_.compare && complete > 0) result.outputs = check_outputs(complete);
  result.segments = std::move(segments_);
  return result;
}

// As many as asked for, or as fit into the time by the speed of the first few.
std::size_t Execution::samples_to_count(std::size_t warm_up, bool& interrupted) {
  const auto asked = static_cast<std::size_t>(std::max(options_.repeat, 1));
  if (options_.duration <= 0) return asked;
  constexpr std::size_t kFirst = 5;
  const Clock::time_point start = Clock::now();
  follow(warm_up + kFirst, interrupted);
  const double each = milliseconds(Clock::now() - start) / static_cast<double>(warm_up + kFirst);
  return std::max(kFirst,
                  static_cast<std::size_t>(options_.duration * 1000 / std::max(each, 1e-3)));
}

OutputCheck Execution::check_outputs(std::size_t samples) {
  OutputCheck check;
  check.compared = true;
  for (std::size_t model = 0; model < models_.size(); ++model) {
    const ModelGraph& graph = models_[model]->graph();
    const auto whole = models_[model]->compile_whole({});
    for (std::size_t slot = 0; slot < std::min(samples, slots_); ++slot) {
      const auto request = request_with(*whole, inputs_[model][slot]);
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
              difference(type_of(graph, output.tensor), expected,
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
  return Execution(problem, plan, models, runtime, options).run();
}

}  // namespace placewright
