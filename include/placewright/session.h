// A model from its file to results, in code: measured, planned, loaded, and run on your own arrays.
//
//   using namespace placewright;
//   const Problem problem = measure({"model.onnx"}, {.devices = {"cpu:0", "cpu:1"}});
//   const PlanOutcome outcome = solve(problem, {.budget = {.seconds = 5}});
//   Session session(problem, outcome.answer.plan.value());
//   const NamedArrays outputs =
//       session.run({{"image", Array::of<float>({1, 3, 224, 224}, pixels)}});
//
// `measure` takes seconds to minutes; keep its problem with save_problem, or the plan with
// save_plan, and go on with `open_problem` and `open_session` next time. What executes the models
// is a plugin (OpenVINO), found beside the program or the shared object that contains this library,
// in ../lib/placewright from the program, where it was built, or where the environment variable
// PLACEWRIGHT_OPENVINO_PLUGIN says.
//
// Errors are exceptions as in placewright.h.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "placewright/formats/array.h"
#include "placewright/problem/plan.h"
#include "placewright/problem/precision.h"
#include "placewright/problem/problem.h"

namespace placewright {

// How to measure models on the devices of this machine.
struct MeasureRequest {
  // "cpu:0", "cpu:1-3", "GPU.0"; empty: nested sets of the cores
  std::vector<std::string> devices = {};
  std::vector<std::string> shapes = {};  // of open inputs: "image=1x3x224x224", "bert:ids=1x128"
  Precision precision = Precision::by_default;
  std::size_t repeat = 20;  // runs of each measurement that count
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& what)> progress = {};
};

// Models as a problem with measured costs, for `latency`, or `total-completion` of several. A
// measurement that other work disturbed says so in the draft's `origin`. Throws std::runtime_error
// for a file that cannot be read or when stopped, std::invalid_argument for a device that is not
// here.
Problem measure(const std::vector<std::string>& models, const MeasureRequest& request = {});

// An input or output of a model. With several models its name begins with the model's: "bert:ids".
struct ArrayType {
  std::string name;
  std::string element;  // "f32", "i64", …
  std::vector<std::size_t> shape;
};

// A plan that is compiled for its devices and runs when it is given inputs. One call at a time.
class Session {
 public:
  // The problem must name the files of its models, as those of `measure` do. Throws
  // std::runtime_error if they have changed or the plan breaks a rule, and std::invalid_argument if
  // a device is not here. The models compute in the precision that they were measured in, or in the
  // one given.
  Session(const Problem& problem, const Plan& plan, std::optional<Precision> precision = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Another plan of the same models for other shapes of their inputs. From then on a sample runs in
  // the first variant whose inputs have the shapes of its arrays. Each variant holds its own
  // weights. Throws as the constructor does, and std::invalid_argument if names or types of inputs
  // or outputs are others.
  void add_variant(const Problem& problem, const Plan& plan);

  // Of the plan that the session was made with.
  [[nodiscard]] const Problem& problem() const;
  [[nodiscard]] const Plan& plan() const;
  [[nodiscard]] const std::vector<ArrayType>& inputs() const;
  [[nodiscard]] const std::vector<ArrayType>& outputs() const;

  // One inference of every model. Numbers are converted to the input's type if none is out of
  // range, and a leading dimension of 1 may be missing. An input that is not given keeps its last
  // value; at first it is random. Throws std::invalid_argument for an input that does not exist or
  // does not fit (of several variants, any of them), std::runtime_error if a device fails.
  NamedArrays run(const NamedArrays& inputs);

  // Several samples, in order. Under a throughput plan they overlap, as in a pipeline.
  std::vector<NamedArrays> run_all(std::span<const NamedArrays> samples);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A session for the plan in a file that `placewright plan` or save_plan wrote.
Session open_session(const std::string& plan, std::optional<Precision> precision = {});

}  // namespace placewright
