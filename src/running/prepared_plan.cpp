#include "running/prepared_plan.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <stdexcept>
#include <unordered_map>

#include <fmt/format.h>

#include "backends/opened_models.h"
#include "backends/target_devices.h"
#include "problem/exclusion.h"

namespace placewright {
PreparedPlan::PreparedPlan(const Problem& problem, const Plan& plan,
                           const std::vector<std::unique_ptr<NeuralModel>>& models, int slots,
                           std::uint64_t seed)
    : problem_(problem),
      models_(models),
      streams_(!plan.schedule),
      segments_(segments_of(problem, plan)) {
  find_targets();
  check_memory();
  number_ops();
  find_slots(slots);
  compile();
  make_inputs(seed);
  inputs_.resize(segments_.size());
  outputs_.resize(segments_.size());
  requests_.resize(segments_.size());
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    for (std::size_t slot = 0; slot < slots_; ++slot) bind(segment, slot);
  }
  add_workers();
  find_holders();
}

void PreparedPlan::find_targets() {
  std::vector<Target> used;
  for (const Segment& segment : segments_) {
    const BackendEntry& backend = backend_of(problem_.model(segment.model));
    for (const DeviceId id : segment.devices) {
      const auto [found, added] = targets_.emplace(id, target_named(problem_.device(id).name));
      if (added) used.push_back(found->second);
      if (found->second.backend == backend.name) continue;
      throw std::invalid_argument(
          fmt::format("the model '{}' is for {}, which does not run on '{}'",
                      problem_.model(segment.model).name, backend.title, name_of(found->second)));
    }
  }
  if (streams_ && segments_.size() == 1) joined_ = joined(used);
  const auto reason = obstacle(joined_ ? std::vector{*joined_} : used);
  if (reason) throw std::invalid_argument(*reason);
  for (const auto& [id, target] : targets_) described_.emplace(id, device_of(target));
}

void PreparedPlan::check_memory() const {
  // The model as read is in host memory, and the backend's own copy in its layouts on each device.
  std::map<std::string, double> needed;  // by owner of the memory
  double read = 0;
  for (const OpId op : problem_.ops()) read += problem_.memory(op);
  for (const SharedWeight& weight : problem_.draft().shared_weights) read += weight.bytes;
  for (const Segment& segment : segments_) {
    for (const DeviceId id : segment.devices) {
      if (joined_ && id != segment.devices.front()) continue;
      for (const OpId op : segment.ops) {
        needed[described_.at(id).space.owner] += problem_.memory(op);
      }
    }
  }
  needed[MemorySpace{}.owner] += read;
  for (const auto& [id, device] : described_) {
    const double available = device.space.is_host() ? available_memory() : device.memory;
    const double wanted = needed.at(device.space.owner);
    if (available <= 0 || wanted <= available) continue;
    throw RuntimeError(fmt::format(
        "too little memory for '{}': the models' weights take {:.0f} MB there{}, and {:.0f} MB are "
        "free",
        name_of(targets_.at(id)), wanted / 1e6,
        device.space.is_host() ? ", as read and as compiled" : "", available / 1e6));
  }
}

void PreparedPlan::number_ops() {
  number_.assign(problem_.op_count(), 0);
  std::vector<std::unordered_map<std::string_view, std::size_t>> by_name(models_.size());
  for (std::size_t model = 0; model < models_.size(); ++model) {
    const auto& ops = models_[model]->graph().ops;
    for (std::size_t i = 0; i < ops.size(); ++i) by_name[model].emplace(ops[i].name, i);
  }
  for (const OpId op : problem_.ops()) {
    number_[op] = by_name[problem_.op(op).model.index()].at(name_in_model(problem_, op));
  }
}

void PreparedPlan::find_slots(int wanted) {
  if (!streams_) return;
  for (const Segment& segment : segments_) round_ = std::lcm(round_, segment.devices.size());
  const std::size_t least = wanted > 0 ? static_cast<std::size_t>(wanted)
                                       : 2 * std::max<std::size_t>(segments_.size(), 1);
  // A slot always belongs to the same replica.
  slots_ = (std::max(least, round_) + round_ - 1) / round_ * round_;
}

void PreparedPlan::compile() {
  parts_.resize(segments_.size());
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    std::vector<std::size_t> ops;
    for (const OpId op : segment.ops) ops.push_back(number_[op]);
    const NeuralModel& model = *models_[segment.model.index()];
    if (joined_) {
      CompileOptions options = compile_options(*joined_);
      options.streams = static_cast<int>(segment.devices.size());
      parts_[i].push_back(model.compile(ops, options));
      continue;
    }
    for (const DeviceId id : segment.devices) {
      parts_[i].push_back(model.compile(ops, compile_options(targets_.at(id))));
    }
  }
}

void PreparedPlan::make_inputs(std::uint64_t seed) {
  model_inputs_.resize(models_.size());
  for (auto& slots : model_inputs_) slots.resize(slots_);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const std::size_t model = segments_[i].model.index();
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      const DeviceId reader = device(i, slot);
      Buffers& inputs = model_inputs_[model][slot][described_.at(reader).space.owner];
      if (!inputs.empty()) continue;
      inputs =
          seeded_inputs(models_[model]->graph(), seed_of_slot(seed, slot), targets_.at(reader));
    }
  }
}

PreparedPlan::Origin PreparedPlan::origin_of(std::size_t segment, const TensorKey& tensor) const {
  for (const std::size_t producer : segments_[segment].inputs) {
    if (segments_[producer].model != segments_[segment].model) continue;
    const auto& made = parts_[producer].front()->outputs();
    const auto found = std::find(made.begin(), made.end(), tensor);
    if (found != made.end()) return {producer, static_cast<std::size_t>(found - made.begin())};
  }
  throw RuntimeError(fmt::format("no segment makes what {} reads", describe(segment, 0)));
}

void PreparedPlan::bind(std::size_t segment, std::size_t slot) {
  const std::size_t model = segments_[segment].model.index();
  const DeviceId reader = device(segment, slot);
  const std::string& memory = described_.at(reader).space.owner;
  auto& part = parts_[segment][slot % parts_[segment].size()];
  Request& request = *requests_[segment].emplace_back(part->request());
  const std::vector<TensorKey>& tensors = part->inputs();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].is_model_input()) {
      request.bind_input(i, *model_inputs_[model][slot].at(memory)[tensors[i].port]);
      continue;
    }
    const Origin origin = origin_of(segment, tensors[i]);
    if (described_.at(device(origin.segment, slot)).space.owner == memory) {
      request.bind_input(i, requests_[origin.segment][slot]->output(origin.output));
      connect(origin.segment, segment);
    } else {
      const std::size_t copy = copy_for(origin, reader, slot);
      request.bind_input(i, *copying_[copy][slot].destination);
      connect(origin.segment, segments_.size() + copy);
      connect(segments_.size() + copy, segment);
    }
  }
}

// The copy of a tensor into the memory of a reader, made ready in the slot. Readers with one memory
// share it.
std::size_t PreparedPlan::copy_for(const Origin& origin, DeviceId reader, std::size_t slot) {
  const DeviceId maker = device(origin.segment, slot);
  const auto [found, added] =
      copy_numbers_.emplace(CopyKey{origin.segment, origin.output, described_.at(maker).space.owner,
                                    described_.at(reader).space.owner},
                            copies_.size());
  Buffer& source = requests_[origin.segment][slot]->output(origin.output);
  if (added) {
    const std::size_t model = segments_[origin.segment].model.index();
    const TensorKey& tensor = parts_[origin.segment].front()->outputs()[origin.output];
    copies_.push_back({.producer = origin.segment,
                       .tensor = models_[model]->graph().ops[tensor.op].name,
                       .from = maker,
                       .to = reader,
                       .bytes = static_cast<double>(source.size())});
    copying_.emplace_back(slots_);
    inputs_.emplace_back();
    outputs_.emplace_back();
  }
  Copying& copying = copying_[found->second][slot];
  if (!copying.transfer) {
    const Target& to = targets_.at(reader);
    copying.destination = runtime_named(to.backend).allocate(to.device, source.size());
    copying.transfer =
        std::make_unique<BufferCopy>(targets_.at(maker), source, to, *copying.destination);
  }
  return found->second;
}

void PreparedPlan::connect(std::size_t from, std::size_t to) {
  if (std::find(inputs_[to].begin(), inputs_[to].end(), from) != inputs_[to].end()) return;
  inputs_[to].push_back(from);
  outputs_[from].push_back(to);
}

void PreparedPlan::add_workers() {
  if (joined_) {
    workers_.push_back({.target = {}, .devices = segments_.front().devices, .steps = {0}});
    return;
  }
  std::map<std::string, std::size_t> of_home;
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    for (const DeviceId id : segments_[segment].devices) {
      const Target& target = targets_.at(id);
      Target home = target;
      if (!home.cores.empty()) home.cores.resize(1);
      const auto [found, added] = of_home.emplace(name_of(home), workers_.size());
      if (added) workers_.push_back({.target = target, .devices = {}, .steps = {}});
      PlanWorker& worker = workers_[found->second];
      if (std::ranges::find(worker.devices, id) == worker.devices.end()) {
        worker.devices.push_back(id);
        std::vector<int> cores;
        std::ranges::set_union(worker.target.cores, target.cores, std::back_inserter(cores));
        worker.target.cores = std::move(cores);
      }
      if (worker.steps.empty() || worker.steps.back() != segment) worker.steps.push_back(segment);
    }
  }
  std::vector<std::size_t> order(copies_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // All workers keep to the order of the segments, so that none waits for one that waits for it.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return copies_[a].producer < copies_[b].producer;
  });
  std::map<std::pair<std::string, std::string>, std::size_t> of_memories;
  for (const std::size_t copy : order) {
    const auto [found, added] =
        of_memories.emplace(std::pair{described_.at(copies_[copy].from).space.owner,
                                      described_.at(copies_[copy].to).space.owner},
                            workers_.size());
    if (added) {
      workers_.push_back(
          {.target = {}, .devices = {copies_[copy].to}, .copies = true, .steps = {}});
    }
    workers_[found->second].steps.push_back(segments_.size() + copy);
  }
}

// A worker keeps to the order of its own segments, so others need to wait for the last one only.
void PreparedPlan::find_holders() {
  holders_.resize(segments_.size());
  if (streams_) return;
  std::vector<std::size_t> worker_of(segments_.size());
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    if (workers_[worker].copies) continue;
    for (const std::size_t segment : workers_[worker].steps) worker_of[segment] = worker;
  }
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    std::set<std::size_t> found{worker_of[segment]};
    for (std::size_t before = segment; before-- > 0;) {
      if (found.contains(worker_of[before]) ||
          !exclude_each_other(problem_, device(before, 0), device(segment, 0))) {
        continue;
      }
      found.insert(worker_of[before]);
      holders_[segment].push_back(before);
    }
  }
}

std::unique_ptr<DisturbanceProbe> PreparedPlan::probe(const PlanWorker& worker,
                                                      DeviceId device) const {
  if (!joined_) return probe_of(targets_.at(device));
  return probe_of_streams(static_cast<int>(worker.devices.size()));
}

bool PreparedPlan::does(const PlanWorker& worker, std::size_t step, std::size_t slot) const {
  if (is_copy(step)) return needed(step, slot);
  return std::ranges::find(worker.devices, device(step, slot)) != worker.devices.end();
}

std::string PreparedPlan::describe(std::size_t step, std::size_t slot) const {
  if (is_copy(step)) {
    const TensorCopy& copy = copies_[step - segments_.size()];
    return fmt::format("the copy of '{}' from {} to {}", copy.tensor,
                       problem_.device(copy.from).name, problem_.device(copy.to).name);
  }
  const std::vector<OpId>& ops = segments_[step].ops;
  return fmt::format("segment {} ({} ops from '{}' to '{}' on {})", step + 1, ops.size(),
                     problem_.op(ops.front()).name, problem_.op(ops.back()).name,
                     problem_.device(device(step, slot)).name);
}

template <class Action>
void PreparedPlan::attempt(std::size_t step, std::size_t slot, const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    throw RuntimeError(fmt::format("{} failed: {}", describe(step, slot), error.what()));
  }
}

void PreparedPlan::run(std::size_t step, std::size_t slot) {
  attempt(step, slot, [&] {
    if (is_copy(step)) {
      copying_[step - segments_.size()][slot].transfer->run();
    } else {
      requests_[step][slot]->run();
    }
  });
}

void PreparedPlan::start(std::size_t slot) {
  attempt(0, slot, [&] { requests_[0][slot]->start(); });
}

void PreparedPlan::wait(std::size_t slot) {
  attempt(0, slot, [&] { requests_[0][slot]->wait(); });
}

void PreparedPlan::set_input(std::size_t model, const std::string& input, std::size_t slot,
                             const Array& array) {
  const auto& inputs = models_[model]->graph().inputs;
  const auto found = std::find_if(inputs.begin(), inputs.end(),
                                  [&](const GraphInput& each) { return each.name == input; });
  const auto port = static_cast<std::size_t>(found - inputs.begin());
  const HostBuffer values = host_buffer(array.bytes);
  for (auto& [memory, buffers] : model_inputs_[model][slot]) {
    const auto owner = std::find_if(described_.begin(), described_.end(), [&](const auto& each) {
      return each.second.space.owner == memory;
    });
    runtime_named(targets_.at(owner->first).backend).copy(values, *buffers[port]);
  }
}

NamedArrays PreparedPlan::outputs(std::size_t model, std::size_t slot) {
  NamedArrays arrays;
  const ModelGraph& graph = models_[model]->graph();
  for (const GraphOutput& each : graph.outputs) {
    if (each.tensor.is_model_input()) continue;
    const std::optional<HostBuffer> values = output(model, each.tensor, slot);
    if (!values) continue;
    const TensorType& type = type_of(graph, each.tensor);
    arrays[each.name] = {.element = type.element,
                         .shape = type.shape,
                         .bytes = {values->bytes().begin(), values->bytes().end()}};
  }
  return arrays;
}

double PreparedPlan::tolerance() const {
  double tolerance = 0;
  for (const auto& replicas : parts_) {
    for (const auto& part : replicas) {
      tolerance = std::max(tolerance, tolerance_of(part->precision()));
    }
  }
  return tolerance;
}

std::optional<HostBuffer> PreparedPlan::output(std::size_t model, const TensorKey& tensor,
                                               std::size_t slot) {
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].model.index() != model) continue;
    const auto& made = parts_[i].front()->outputs();
    const auto found = std::find(made.begin(), made.end(), tensor);
    if (found == made.end()) continue;
    return read_back(requests_[i][slot]->output(static_cast<std::size_t>(found - made.begin())),
                     targets_.at(device(i, slot)));
  }
  return std::nullopt;
}

}  // namespace placewright
