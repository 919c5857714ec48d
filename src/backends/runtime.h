// What executes models: models as graphs, parts of them compiled for a device, and run.
//
// The program itself is not linked with any backend: whoever only plans pays neither its start-up
// nor its memory. `runtime_named` (registry.h) loads a backend's plugin when it is first asked for.
// The folders below this one are those plugins, the only code that sees their third party's
// headers; everything else is written against the interfaces below.
//
//   Runtime ── read ──► NeuralModel ── compile(ops, device) ──► CompiledPart ── request ──► Request
//
// A part is a set of ops of the model. What it reads from outside the set becomes an input, what is
// read outside (or is an output of the model) an output, in the order of `inputs()` and
// `outputs()`. Constants belong to the ops that read them and cross no border.
//
// Inputs and outputs of the model are laid out as the model says; what one part hands to another as
// the backend likes, in as many bytes, and the same for all parts of the model.
//
// Inputs and outputs are buffers in the memory space of the part's device. Where two parts have the
// same space one reads the other's output as it is; otherwise `Runtime::copy` comes between them. A
// call that starts work on a device returns when the device has finished it, so that a clock that
// is read before and after measures the work and not the queue.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/buffer.h"
#include "machine/disturbance.h"
#include "machine/targets.h"
#include "problem/precision.h"

namespace placewright {

// Changes with anything below that changes the meaning or the layout of a virtual call. A plugin
// states the number that it was built with, and the loader refuses another one before any call.
inline constexpr int kBackendInterface = 9;

// A backend is not there, or refused; one sentence.
class RuntimeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An inference was stopped before its end.
class RequestStopped : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// A tensor of the model: output `port` of op `op`, or input number `port` of the model.
struct TensorKey {
  static constexpr std::size_t kModelInput = static_cast<std::size_t>(-1);
  std::size_t op = kModelInput;
  std::size_t port = 0;

  [[nodiscard]] bool is_model_input() const { return op == kModelInput; }
  friend auto operator<=>(const TensorKey&, const TensorKey&) = default;
};

enum class ElementKind { real, integer, boolean, text };

struct TensorType {
  std::string element;  // "f32", "i64", …
  ElementKind kind = ElementKind::real;
  std::vector<std::size_t> shape;
  double bytes = 0;
};

struct Weight {
  std::string name;
  double bytes = 0;
  std::vector<std::size_t> ops;  // that read it
};

struct GraphOp {
  std::string name;  // unique
  std::string type;  // "Convolution", …
  std::vector<TensorKey> inputs;
  std::vector<TensorType> outputs;
  double flops = 0;  // estimated: multiply and add count as two
};

struct GraphInput {
  std::string name;
  TensorType type;
};

struct GraphOutput {
  std::string name;
  TensorKey tensor;
};

// A model without its constants: what does not depend on an input is folded into its readers.
struct ModelGraph {
  std::string name;
  std::vector<GraphInput> inputs;
  std::vector<GraphOp> ops;  // in topological order
  std::vector<GraphOutput> outputs;
  std::vector<Weight> weights;
  std::map<std::string, TensorKey> tensor_names;  // that the file has for tensors of inputs and ops
};

// What the backend made of the ops of a part: one entry for each node that it really executes.
struct ExecutedNode {
  std::string name;
  std::string type;                    // as the backend calls it: "Convolution", "Reorder", …
  std::vector<std::string> originals;  // names of the ops it stands for; empty: the backend's own
  std::vector<std::string> inputs;     // names of the executed nodes that it reads
  std::size_t elements = 0;            // of what it makes; 0: several results, or nobody says
};

struct NodeTime {
  std::string name;  // of the executed node
  double milliseconds = 0;
};

// How far apart two correct results of a model may be, relative to the largest value: some twenty
// roundings of the smaller types, whose sums are usually kept in f32, and f32's own with a margin
// for another order of summation.
constexpr double tolerance_of(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return 1e-5;
    case Precision::f16:
      return 1e-2;
    case Precision::by_default:  // any of them
    case Precision::bf16:
      return 8e-2;
  }
  return 0;
}

// What users ask a backend for when they leave it all else.
enum class Hint { latency, throughput };

struct CompileOptions {
  std::string device;     // as the backend calls it
  int threads = 1;        // cores: of one inference
  int streams = 1;        // cores: inferences at once
  bool pinned = false;    // cores: the backend binds its threads, to cores of its choice
  bool counters = false;  // measure each executed node
  std::optional<Precision> precision = {};  // in place of the model's
  // The backend chooses threads, streams and where they run, and is told nothing but this and the
  // precision.
  std::optional<Hint> hint = {};
};

// One inference of a part. Not for two threads at once, but for `stop`.
class Request {
 public:
  virtual ~Request() = default;

  // The input's memory from then on: a buffer in the part's space that stays alive.
  virtual void bind_input(std::size_t input, Buffer& buffer) = 0;
  // In the part's space; the same one after each run.
  [[nodiscard]] virtual Buffer& output(std::size_t output) = 0;

  virtual void run() = 0;  // in this thread if the part has one stream
  virtual void start() = 0;
  virtual void wait() = 0;
  // For any thread: what runs ends at the next op, and `run` or `wait` throws RequestStopped; the
  // outputs then mean nothing until the next run. Nothing happens where nothing runs, or where the
  // backend cannot: then it runs on to its end.
  virtual void stop() {}

  // The mean over all runs of the part since it was compiled, whichever request ran, cut to whole
  // microseconds; needs CompileOptions::counters.
  [[nodiscard]] virtual std::vector<NodeTime> times() const = 0;
};

class CompiledPart {
 public:
  virtual ~CompiledPart() = default;

  [[nodiscard]] virtual const std::vector<TensorKey>& inputs() const = 0;
  [[nodiscard]] virtual const std::vector<TensorKey>& outputs() const = 0;
  // What it really computes in: never `by_default`.
  [[nodiscard]] virtual Precision precision() const = 0;
  // Inferences at once that the backend advises.
  [[nodiscard]] virtual std::size_t advised_requests() const { return 1; }
  [[nodiscard]] virtual std::vector<ExecutedNode> executed() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Request> request() = 0;
};

// A model as two files: its graph, and the weights beside it (OpenVINO: .xml and .bin).
struct SerialisedModel {
  std::string graph;
  std::string weights;
};

// A set of ops as a model of its own.
struct SerialisedPart {
  SerialisedModel model;
  std::vector<TensorKey> inputs;   // in the order of its inputs, which are called name_of_tensor
  std::vector<TensorKey> outputs;  // the same
};

class NeuralModel {
 public:
  virtual ~NeuralModel() = default;

  [[nodiscard]] virtual const ModelGraph& graph() const = 0;

  // `ops` are numbers in graph().ops; all of them: the model as it is. In the precision that the
  // model was read for. Throws RuntimeError, also for a precision that the device does not have.
  [[nodiscard]] virtual std::unique_ptr<CompiledPart> compile(
      std::span<const std::size_t> ops, const CompileOptions& options) const = 0;
  [[nodiscard]] std::unique_ptr<CompiledPart> compile_whole(const CompileOptions& options) const;

  // The ops that the device cannot run.
  [[nodiscard]] virtual std::vector<std::size_t> unsupported(const std::string& device) const = 0;

  // The model in the backend's own format. Throws RuntimeError if it has none.
  [[nodiscard]] virtual SerialisedModel serialised() const = 0;
  // The same of some ops.
  [[nodiscard]] virtual SerialisedPart serialised_part(std::span<const std::size_t> ops) const = 0;
};

// What a tensor is called where parts of a model exchange it: the model's input, or "OP:PORT".
inline std::string name_of_tensor(const ModelGraph& graph, const TensorKey& tensor) {
  return tensor.is_model_input() ? graph.inputs[tensor.port].name
                                 : graph.ops[tensor.op].name + ":" + std::to_string(tensor.port);
}

// An input or output as the file declares it.
struct PortSignature {
  static constexpr long kOpen = -1;
  std::string name;
  std::string element;                     // "f32", "i64", …
  std::optional<std::vector<long>> shape;  // kOpen: any size; nullopt: any number of dimensions

  [[nodiscard]] bool is_open() const;
};

// What a model takes and gives.
struct ModelSignature {
  std::vector<PortSignature> inputs;
  std::vector<PortSignature> outputs;
};

// "1x?x8"; "any shape", "one value".
std::string shape_text(const PortSignature& port);

// The shape of each input, by name; the name "" is the only input. A dimension of -1 is refused.
using Shapes = std::map<std::string, std::vector<long>>;

class Runtime {
 public:
  virtual ~Runtime() = default;

  [[nodiscard]] virtual std::string version() const = 0;
  // The first one computes what outputs are compared with.
  [[nodiscard]] virtual std::vector<RuntimeDevice> devices() const = 0;

  // Whatever is open may stay so. Throws InputError for a file that is no model.
  [[nodiscard]] virtual ModelSignature signature(const std::string& path,
                                                 const Shapes& shapes = {}) const = 0;

  // A model file of any kind that the backend reads; its parts compute in the precision. Throws
  // InputError for a file that is none, and for shapes that stay open.
  [[nodiscard]] virtual std::unique_ptr<NeuralModel> read(
      const std::string& path, const Shapes& shapes = {},
      Precision precision = Precision::by_default) const = 0;

  // Zeros in the memory space of the device.
  [[nodiscard]] virtual std::unique_ptr<Buffer> allocate(const std::string& device,
                                                         std::size_t size) const = 0;
  // All bytes, from buffers of one size; each is in host memory or in a space of this backend.
  virtual void copy(const Buffer& from, Buffer& to) const = 0;

  // Nullptr: the device cannot tell whether others use it. Core sets have a probe already.
  [[nodiscard]] virtual std::unique_ptr<DisturbanceProbe> probe(
      const std::string& device) const = 0;
};

}  // namespace placewright
