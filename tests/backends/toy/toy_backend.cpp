// A second backend, which proves that the interface means no particular one: an interpreter of a
// tiny graph language, on devices that OpenVINO has not.
//
//   toy:host  computes in host memory
//   toy:0     has memory of its own, and can tell that nobody else uses it
//   toy:1     has memory of its own too, cannot tell who uses it, and computes in f16
//
// Copies into and out of a memory of its own are slow. Work runs in a thread of the device, so that
// whoever does not wait for it reads the wrong time and the wrong outputs.
//
// A model is a text file (.toy), one node a line, all tensors vectors of f32:
//
//   input x 64          mix a x 32 7        a = W x, 32 numbers; W from the seed 7
//   relu b a            add c b a           scale d c 0.5
//   output d
//
// A relu that alone reads its input is fused with what makes it.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "backends/runtime.h"
#include "formats/input_error.h"

namespace placewright::toy {
namespace {

constexpr std::chrono::microseconds kCopyLatency{200};
constexpr double kCopyBandwidth = 1e6;  // bytes per ms

using Vector = std::vector<float>;

// Memory that only this file can look into.
class ToyBuffer final : public Buffer {
 public:
  ToyBuffer(std::string owner, std::size_t size)
      : space_{std::move(owner)}, size_(size), hidden_(size / sizeof(float)) {}

  [[nodiscard]] const MemorySpace& space() const override { return space_; }
  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const override { return {}; }
  [[nodiscard]] std::span<float> hidden() const { return hidden_; }

 private:
  MemorySpace space_;
  std::size_t size_;
  mutable Vector hidden_;
};

std::span<float> values_of(const Buffer& buffer) {
  if (const auto* own = dynamic_cast<const ToyBuffer*>(&buffer)) return own->hidden();
  return {reinterpret_cast<float*>(buffer.bytes().data()), buffer.size() / sizeof(float)};
}

std::vector<RuntimeDevice> toy_devices() {
  return {{.name = "toy:host", .full_name = "interpreter", .memory = 0, .space = {}},
          {.name = "toy:0", .full_name = "interpreter", .memory = 1e8, .space = {"toy:0"}},
          {.name = "toy:1", .full_name = "interpreter", .memory = 1e8, .space = {"toy:1"}}};
}

std::string memory_of(const std::string& device) {
  return device == "toy:host" ? std::string{} : device;
}

std::unique_ptr<Buffer> allocated(const std::string& device, std::size_t size) {
  if (memory_of(device).empty()) return std::make_unique<HostBuffer>(size);
  return std::make_unique<ToyBuffer>(memory_of(device), size);
}

struct Node {
  std::string type;  // mix, relu, add, scale
  std::vector<TensorKey> inputs;
  std::size_t size = 0;
  double number = 0;  // the factor, or the seed
};

// f16 has ten bits behind the leading one.
float rounded_to_half(float value) {
  int exponent = 0;
  const float fraction = std::frexp(value, &exponent);
  return std::ldexp(std::round(fraction * 2048) / 2048, exponent);
}

Vector computed(const Node& node, const std::vector<std::span<const float>>& inputs, bool half) {
  Vector result(node.size);
  std::uint32_t state = static_cast<std::uint32_t>(node.number) * 2654435761U + 1;
  for (std::size_t i = 0; i < node.size; ++i) {
    if (node.type == "mix") {
      float sum = 0;
      for (const float value : inputs[0]) {
        state = state * 1664525U + 1013904223U;
        sum += value * (static_cast<float>(state >> 8U) / static_cast<float>(1U << 23U) - 1);
      }
      result[i] = sum / std::sqrt(static_cast<float>(inputs[0].size()));
    } else if (node.type == "relu") {
      result[i] = std::max(0.0F, inputs[0][i]);
    } else if (node.type == "add") {
      result[i] = inputs[0][i] + inputs.back()[i];  // `add c a a` reads one tensor
    } else {
      result[i] = inputs[0][i] * static_cast<float>(node.number);
    }
    if (half) result[i] = rounded_to_half(result[i]);
  }
  return result;
}

// What the requests of a part share.
struct Program {
  std::string device;
  std::vector<std::size_t> ops;  // ascending
  std::vector<Node> nodes;       // by op
  std::vector<std::string> names;
  std::vector<TensorKey> inputs;
  std::vector<TensorKey> outputs;
  std::vector<std::size_t> output_sizes;  // bytes
  std::vector<std::size_t> carried_by;    // by op: the op that gives its executed node the name
  std::mutex mutex;
  std::map<std::size_t, double> milliseconds;  // by executed node, over all runs
  std::size_t runs = 0;
};

class ToyRequest final : public Request {
 public:
  explicit ToyRequest(std::shared_ptr<Program> program)
      : program_(std::move(program)), inputs_(program_->inputs.size(), nullptr) {
    for (const std::size_t size : program_->output_sizes) {
      outputs_.push_back(allocated(program_->device, size));
    }
  }
  ~ToyRequest() override {
    if (running_.valid()) running_.wait();
  }

  void bind_input(std::size_t input, Buffer& buffer) override {
    if (buffer.space().owner != memory_of(program_->device)) {
      throw RuntimeError(
          fmt::format("{} cannot read the memory of '{}'", program_->device, buffer.space().owner));
    }
    inputs_.at(input) = &buffer;
  }
  [[nodiscard]] Buffer& output(std::size_t output) override { return *outputs_.at(output); }

  void run() override {
    start();
    wait();
  }
  void start() override {
    stopping_ = false;
    running_ = std::async(std::launch::async, [this] { compute(); });
  }
  void wait() override { running_.get(); }
  void stop() override { stopping_ = true; }

  [[nodiscard]] std::vector<NodeTime> times() const override {
    const std::lock_guard lock(program_->mutex);
    std::vector<NodeTime> times;
    for (const auto& [op, total] : program_->milliseconds) {
      const double mean = total / static_cast<double>(program_->runs);
      times.push_back({program_->names[op], std::floor(mean * 1000) / 1000});
    }
    return times;
  }

 private:
  void compute() {
    std::map<TensorKey, Vector> made;
    const auto read = [&](const TensorKey& key) -> std::span<const float> {
      const auto found = made.find(key);
      if (found != made.end()) return found->second;
      const auto place = std::find(program_->inputs.begin(), program_->inputs.end(), key);
      return values_of(*inputs_[static_cast<std::size_t>(place - program_->inputs.begin())]);
    };
    const std::lock_guard lock(program_->mutex);
    for (const std::size_t op : program_->ops) {
      if (stopping_) throw RequestStopped("the interpreter was stopped");
      const auto begin = std::chrono::steady_clock::now();
      std::vector<std::span<const float>> inputs;
      for (const TensorKey& key : program_->nodes[op].inputs) inputs.push_back(read(key));
      made.emplace(TensorKey{op, 0},
                   computed(program_->nodes[op], inputs, program_->device == "toy:1"));
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - begin;
      program_->milliseconds[program_->carried_by[op]] += took.count();
    }
    ++program_->runs;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      std::ranges::copy(made.at(program_->outputs[i]), values_of(*outputs_[i]).begin());
    }
  }

  std::shared_ptr<Program> program_;
  std::vector<Buffer*> inputs_;
  std::vector<std::unique_ptr<Buffer>> outputs_;
  std::future<void> running_;
  std::atomic<bool> stopping_{false};
};

Precision precision_of(const std::string& device) {
  return device == "toy:1" ? Precision::f16 : Precision::f32;
}

class ToyPart final : public CompiledPart {
 public:
  explicit ToyPart(std::shared_ptr<Program> program) : program_(std::move(program)) {}

  [[nodiscard]] const std::vector<TensorKey>& inputs() const override { return program_->inputs; }
  [[nodiscard]] const std::vector<TensorKey>& outputs() const override { return program_->outputs; }
  [[nodiscard]] Precision precision() const override { return precision_of(program_->device); }
  [[nodiscard]] std::vector<ExecutedNode> executed() const override {
    std::map<std::size_t, ExecutedNode> nodes;
    for (const std::size_t op : program_->ops) {
      ExecutedNode& node = nodes[program_->carried_by[op]];
      node.name = program_->names[program_->carried_by[op]];
      node.type = program_->nodes[program_->carried_by[op]].type;
      node.originals.push_back(program_->names[op]);
      for (const TensorKey& key : program_->nodes[op].inputs) {
        if (!key.is_model_input() && program_->carried_by[key.op] != program_->carried_by[op]) {
          node.inputs.push_back(program_->names[program_->carried_by[key.op]]);
        }
      }
    }
    std::vector<ExecutedNode> list;
    for (auto& [op, node] : nodes) list.push_back(std::move(node));
    return list;
  }
  [[nodiscard]] std::unique_ptr<Request> request() override {
    return std::make_unique<ToyRequest>(program_);
  }

 private:
  std::shared_ptr<Program> program_;
};

class ToyModel final : public NeuralModel {
 public:
  ToyModel(const std::string& path, const Shapes& shapes, Precision precision)
      : precision_(precision) {
    std::ifstream file(path);
    if (!file) throw InputError(path, "", "there is no such file");
    if (!shapes.empty()) throw InputError(path, "", "its shapes are fixed");
    for (std::string line; std::getline(file, line);) read_line(line, path);
  }

  [[nodiscard]] const ModelGraph& graph() const override { return graph_; }

  [[nodiscard]] std::unique_ptr<CompiledPart> compile(
      std::span<const std::size_t> ops, const CompileOptions& options) const override {
    const Precision asked = options.precision.value_or(precision_);
    if (asked != Precision::by_default && asked != precision_of(options.device)) {
      throw RuntimeError(fmt::format("'{}' does not compute in {} here, only in: {}",
                                     options.device, name_of(asked),
                                     name_of(precision_of(options.device))));
    }
    auto program = std::make_shared<Program>();
    program->device = options.device;
    program->ops.assign(ops.begin(), ops.end());
    std::sort(program->ops.begin(), program->ops.end());
    program->nodes = nodes_;
    const std::set<std::size_t> chosen(ops.begin(), ops.end());
    std::set<TensorKey> outside;
    for (std::size_t op = 0; op < nodes_.size(); ++op) {
      program->names.push_back(graph_.ops[op].name);
      program->carried_by.push_back(fused_with(op, chosen));
      for (const TensorKey& key : nodes_[op].inputs) {
        const bool made_here = !key.is_model_input() && chosen.contains(key.op);
        if (chosen.contains(op) && !made_here) outside.insert(key);
      }
    }
    program->inputs.assign(outside.begin(), outside.end());
    for (const std::size_t op : program->ops) {
      if (!leaves(op, chosen)) continue;
      program->outputs.push_back({op, 0});
      program->output_sizes.push_back(nodes_[op].size * sizeof(float));
    }
    return std::make_unique<ToyPart>(std::move(program));
  }

  [[nodiscard]] std::vector<std::size_t> unsupported(const std::string&) const override {
    return {};
  }
  [[nodiscard]] SerialisedModel serialised() const override {
    throw RuntimeError("toy models are not written");
  }
  [[nodiscard]] SerialisedPart serialised_part(std::span<const std::size_t>) const override {
    throw RuntimeError("toy models are not written");
  }

 private:
  void read_line(const std::string& line, const std::string& path) {
    std::istringstream words(line);
    std::string type;
    std::string name;
    words >> type >> name;
    if (type == "input") {
      std::size_t size = 0;
      words >> size;
      tensors_[name] = {TensorKey::kModelInput, graph_.inputs.size()};
      graph_.inputs.push_back({name, vector_of(size)});
    } else if (type == "output") {
      graph_.outputs.push_back({name, tensors_.at(name)});
    } else if (type == "mix" || type == "relu" || type == "add" || type == "scale") {
      add_node(type, name, words);
    } else if (!type.empty()) {
      throw InputError(path, "", fmt::format("'{}' is no node", type));
    }
  }

  void add_node(const std::string& type, const std::string& name, std::istringstream& words) {
    Node node{.type = type, .inputs = {}};
    for (int i = 0; i < (type == "add" ? 2 : 1); ++i) {
      std::string input;
      words >> input;
      const TensorKey key = tensors_.at(input);
      if (node.inputs.empty() || node.inputs.back() != key) node.inputs.push_back(key);
    }
    const std::size_t read = size_of(node.inputs.front());
    node.size = read;
    if (type == "mix") words >> node.size >> node.number;
    if (type == "scale") words >> node.number;
    const std::size_t op = nodes_.size();
    if (type == "mix") {
      graph_.weights.push_back(
          {name + ".W", static_cast<double>(node.size * read * sizeof(float)), {op}});
    }
    graph_.ops.push_back({.name = name,
                          .type = type,
                          .inputs = node.inputs,
                          .outputs = {vector_of(node.size)},
                          .flops = static_cast<double>(2 * node.size * read)});
    tensors_[name] = {op, 0};
    nodes_.push_back(std::move(node));
  }

  static TensorType vector_of(std::size_t size) {
    return {.element = "f32",
            .kind = ElementKind::real,
            .shape = {size},
            .bytes = static_cast<double>(size * sizeof(float))};
  }
  [[nodiscard]] std::size_t size_of(const TensorKey& key) const {
    return key.is_model_input() ? graph_.inputs[key.port].type.shape.front() : nodes_[key.op].size;
  }
  [[nodiscard]] std::vector<std::size_t> readers_of(std::size_t op) const {
    std::vector<std::size_t> readers;
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      const auto& inputs = nodes_[other].inputs;
      if (std::find(inputs.begin(), inputs.end(), TensorKey{op, 0}) != inputs.end()) {
        readers.push_back(other);
      }
    }
    return readers;
  }
  [[nodiscard]] bool is_output(std::size_t op) const {
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                       [&](const GraphOutput& output) { return output.tensor.op == op; });
  }
  [[nodiscard]] bool leaves(std::size_t op, const std::set<std::size_t>& chosen) const {
    const auto readers = readers_of(op);
    return is_output(op) || std::any_of(readers.begin(), readers.end(), [&](std::size_t reader) {
             return !chosen.contains(reader);
           });
  }
  [[nodiscard]] std::size_t fused_with(std::size_t op, const std::set<std::size_t>& chosen) const {
    const TensorKey& input = nodes_[op].inputs.front();
    const bool fuses = nodes_[op].type == "relu" && !input.is_model_input() &&
                       chosen.contains(input.op) && !is_output(input.op) &&
                       readers_of(input.op).size() == 1;
    return fuses ? fused_with(input.op, chosen) : op;
  }

  ModelGraph graph_;
  std::vector<Node> nodes_;                   // by op
  std::map<std::string, TensorKey> tensors_;  // by name
  Precision precision_;
};

// Nobody else uses the device.
class QuietProbe final : public DisturbanceProbe {
 public:
  void begin() override {}
  [[nodiscard]] double lost() const override { return 0; }
};

class ToyRuntime final : public Runtime {
 public:
  [[nodiscard]] std::string version() const override { return "toy 1"; }
  [[nodiscard]] std::vector<RuntimeDevice> devices() const override { return toy_devices(); }
  [[nodiscard]] ModelSignature signature(const std::string& path,
                                         const Shapes& shapes) const override {
    const ToyModel model(path, shapes, Precision::by_default);
    ModelSignature signature;
    const auto port = [](const std::string& name, const TensorType& type) {
      return PortSignature{name, type.element,
                           std::vector<long>(type.shape.begin(), type.shape.end())};
    };
    for (const GraphInput& input : model.graph().inputs) {
      signature.inputs.push_back(port(input.name, input.type));
    }
    for (const GraphOutput& output : model.graph().outputs) {
      const TensorType& type = model.graph().ops[output.tensor.op].outputs[output.tensor.port];
      signature.outputs.push_back(port(output.name, type));
    }
    return signature;
  }
  [[nodiscard]] std::unique_ptr<NeuralModel> read(const std::string& path, const Shapes& shapes,
                                                  Precision precision) const override {
    return std::make_unique<ToyModel>(path, shapes, precision);
  }
  [[nodiscard]] std::unique_ptr<Buffer> allocate(const std::string& device,
                                                 std::size_t size) const override {
    return allocated(device, size);
  }
  void copy(const Buffer& from, Buffer& to) const override {
    if (!from.space().is_host() || !to.space().is_host()) {
      const std::chrono::duration<double, std::milli> transfer(static_cast<double>(from.size()) /
                                                               kCopyBandwidth);
      std::this_thread::sleep_for(kCopyLatency + transfer);
    }
    std::ranges::copy(values_of(from), values_of(to).begin());
  }
  [[nodiscard]] std::unique_ptr<DisturbanceProbe> probe(const std::string& device) const override {
    if (device == "toy:1") return nullptr;
    return std::make_unique<QuietProbe>();
  }
};

}  // namespace
}  // namespace placewright::toy

extern "C" int placewright_backend_interface() {
  return TOY_INTERFACE;
}

extern "C" const placewright::Runtime* placewright_backend() {
  static const placewright::toy::ToyRuntime runtime;
  return &runtime;
}
