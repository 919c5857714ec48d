#include "placewright/session.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  if (!record_of(problem.objective()).runs) {
    throw std::runtime_error(
        fmt::format("plans for {} cannot be run", name_of(problem.objective())));
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

// A plan and what it takes to run it.
struct Variant {
  Variant(const Problem& given_problem, Plan given_plan, std::optional<Precision> precision)
      : problem(given_problem.draft()), plan(std::move(given_plan)), names(model_names(problem)) {
    require_valid(problem, plan);
    models = models_of(problem, precision);
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

  // Whether the given arrays have the shapes of its inputs; a leading dimension of 1 may be
  // missing.
  [[nodiscard]] bool has_shapes_of(const NamedArrays& sample) const {
    return std::ranges::all_of(sample, [&](const auto& given) {
      // The only input needs no name.
      const auto input = given.first.empty() && inputs.size() == 1
                             ? inputs.begin()
                             : std::ranges::find(inputs, given.first, &ArrayType::name);
      if (input == inputs.end()) return false;
      std::vector<std::size_t> shape = given.second.shape;
      if (shape.size() + 1 == input->shape.size()) shape.insert(shape.begin(), 1);
      return shape == input->shape;
    });
  }

  const Problem problem;
  const Plan plan;
  const std::vector<std::string> names;  // of the models
  std::vector<std::unique_ptr<NeuralModel>> models;
  std::optional<LoadedPlan> loaded;  // reads the members before it
  std::vector<ArrayType> inputs;
  std::vector<ArrayType> outputs;
};

bool differ_in_shapes_only(const std::vector<ArrayType>& some,
                           const std::vector<ArrayType>& others) {
  return std::ranges::equal(some, others, [](const ArrayType& a, const ArrayType& b) {
    return a.name == b.name && a.element == b.element;
  });
}

std::string shapes_text(const std::vector<ArrayType>& inputs) {
  std::vector<std::string> texts;
  for (const ArrayType& input : inputs) {
    texts.push_back(fmt::format("{}={}", input.name, fmt::join(input.shape, "x")));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

}  // namespace

struct Session::State {
  // The only one says itself what does not fit.
  Variant& for_sample(const NamedArrays& sample) {
    if (variants.size() == 1) return *variants.front();
    for (const auto& variant : variants) {
      if (variant->has_shapes_of(sample)) return *variant;
    }
    std::vector<std::string> known;
    for (const auto& variant : variants) known.push_back(shapes_text(variant->inputs));
    throw std::invalid_argument(fmt::format(
        "no variant takes inputs of these shapes; there are: {}", fmt::join(known, "; ")));
  }

  std::optional<Precision> precision;              // in place of the problems'
  std::vector<std::unique_ptr<Variant>> variants;  // at least one
};

Problem measure(const std::vector<std::string>& models, const MeasureRequest& request) {
  if (models.empty()) throw std::invalid_argument("there is no model to measure");
  ProfileRequest profiling;
  profiling.files = model_files(models, request.shapes, request.precision);
  profiling.targets = targets_for(request.devices, models.front());
  profiling.measure.repeat = request.repeat;
  profiling.measure.stop = request.stop;
  profiling.measure.progress = request.progress;
  require_fixed_shapes(profiling.files);
  std::optional<Profile> profile = profile_models(profiling);
  if (!profile) throw std::runtime_error("interrupted while the models were measured");
  return Problem(std::move(profile->draft));
}

Session::Session(const Problem& problem, const Plan& plan, std::optional<Precision> precision)
    : state_(std::make_unique<State>()) {
  state_->precision = precision;
  state_->variants.push_back(std::make_unique<Variant>(problem, plan, precision));
}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

void Session::add_variant(const Problem& problem, const Plan& plan) {
  auto variant = std::make_unique<Variant>(problem, plan, state_->precision);
  if (!differ_in_shapes_only(variant->inputs, inputs()) ||
      !differ_in_shapes_only(variant->outputs, outputs())) {
    throw std::invalid_argument("the variant has other inputs or outputs than the session");
  }
  state_->variants.push_back(std::move(variant));
}

const Problem& Session::problem() const {
  return state_->variants.front()->problem;
}
const Plan& Session::plan() const {
  return state_->variants.front()->plan;
}
const std::vector<ArrayType>& Session::inputs() const {
  return state_->variants.front()->inputs;
}
const std::vector<ArrayType>& Session::outputs() const {
  return state_->variants.front()->outputs;
}

NamedArrays Session::run(const NamedArrays& inputs) {
  return std::move(run_all({&inputs, 1}).front());
}

std::vector<NamedArrays> Session::run_all(std::span<const NamedArrays> samples) {
  std::vector<Variant*> chosen;
  for (const NamedArrays& sample : samples) chosen.push_back(&state_->for_sample(sample));
  std::vector<NamedArrays> outputs;
  // Those that follow each other in one variant overlap.
  for (std::size_t begin = 0; begin < samples.size();) {
    Variant& variant = *chosen[begin];
    std::vector<std::vector<NamedArrays>> inputs;
    for (; begin < samples.size() && chosen[begin] == &variant; ++begin) {
      inputs.push_back(by_model(variant.names, samples[begin]));
    }
    for (const std::vector<NamedArrays>& made : variant.loaded->run(inputs)) {
      outputs.push_back(with_model_names(variant.names, made));
    }
  }
  return outputs;
}

Session open_session(const std::string& plan, std::optional<Precision> precision) {
  const OpenedPlan opened = open_plan(plan);
  return {opened.problem, opened.plan(), precision};
}

}  // namespace placewright
