#include "placewright/session.h"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "backends/inputs.h"
#include "backends/model_files.h"
#include "backends/opened_models.h"
#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "placewright/placewright.h"
#include "profiling/profile.h"
#include "running/execution.h"

namespace placewright {
namespace {

void require_valid(const Problem& problem, const Plan& plan) {
  if (problem.objective() == Objective::call_latency) {
    throw std::runtime_error("plans for call-latency cannot be run");
  }
  const std::vector<Violation> violations = verify(problem, plan);
  if (violations.empty()) return;
  throw std::runtime_error(fmt::format("the plan is not valid: {}", violations.front().message));
}

std::vector<Target> targets_for(const std::vector<std::string>& devices, const std::string& model) {
  if (!devices.empty()) return targets_named(devices);
  const BackendEntry* reader = backend_reading(model);
  return all_targets(reader != nullptr ? *reader : backend_named(kDefaultBackend));
}

}  // namespace

Problem measure(const std::vector<std::string>& models, const MeasureRequest& request) {
  if (models.empty()) throw std::invalid_argument("there is no model to measure");
  ProfileRequest profiling;
  profiling.files = model_files(models, request.shapes);
  profiling.targets = targets_for(request.devices, models.front());
  profiling.measure.repeat = request.repeat;
  profiling.measure.stop = request.stop;
  profiling.measure.progress = request.progress;
  require_fixed_shapes(profiling.files);
  std::optional<Profile> profile = profile_models(profiling);
  if (!profile) throw std::runtime_error("interrupted while the models were measured");
  return Problem(std::move(profile->draft));
}

struct Session::State {
  State(const Problem& given_problem, Plan given_plan)
      : problem(given_problem.draft()), plan(std::move(given_plan)), names(model_names(problem)) {
    require_valid(problem, plan);
    models = models_of(problem);
    loaded.emplace(problem, plan, models);
    for (std::size_t model = 0; model < models.size(); ++model) describe(model);
  }

  void describe(std::size_t model) {
    const ModelGraph& graph = models[model]->graph();
    const auto named = [&](const std::string& name, const TensorType& type) {
      const std::string full = models.size() > 1 ? fmt::format("{}:{}", names[model], name) : name;
      return ArrayType{full, type.element, type.shape};
    };
    for (const GraphInput& input : graph.inputs) inputs.push_back(named(input.name, input.type));
    for (const GraphOutput& output : graph.outputs) {
      if (!output.tensor.is_model_input()) {
        outputs.push_back(named(output.name, type_of(graph, output.tensor)));
      }
    }
  }

  const Problem problem;
  const Plan plan;
  const std::vector<std::string> names;  // of the models
  std::vector<std::unique_ptr<NeuralModel>> models;
  std::optional<LoadedPlan> loaded;  // reads the members before it
  std::vector<ArrayType> inputs;
  std::vector<ArrayType> outputs;
};

Session::Session(const Problem& problem, const Plan& plan)
    : state_(std::make_unique<State>(problem, plan)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const Problem& Session::problem() const {
  return state_->problem;
}
const Plan& Session::plan() const {
  return state_->plan;
}
const std::vector<ArrayType>& Session::inputs() const {
  return state_->inputs;
}
const std::vector<ArrayType>& Session::outputs() const {
  return state_->outputs;
}

NamedArrays Session::run(const NamedArrays& inputs) {
  return std::move(run_all({&inputs, 1}).front());
}

std::vector<NamedArrays> Session::run_all(std::span<const NamedArrays> samples) {
  std::vector<std::vector<NamedArrays>> inputs;
  for (const NamedArrays& sample : samples) inputs.push_back(by_model(state_->names, sample));
  std::vector<NamedArrays> outputs;
  for (const std::vector<NamedArrays>& made : state_->loaded->run(inputs)) {
    outputs.push_back(with_model_names(state_->names, made));
  }
  return outputs;
}

Session open_session(const std::string& plan) {
  const OpenedPlan opened = open_plan(plan);
  return {opened.problem, opened.plan()};
}

}  // namespace placewright
