#include "formats/training_file.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/json_fields.h"
#include "formats/text_file.h"
#include "formats/training_constants.h"

namespace placewright {
namespace {

constexpr std::string_view kProblemKind = "training-problem";
constexpr std::string_view kPlanKind = "training-plan";
constexpr int kMost = 1'000'000;  // samples, nodes, GPUs of a node

struct KindForm {};  // a kind of GPU by its name
struct FromForm {};  // pools by their names
struct ToForm {};
struct PoolForm {};
struct CurveForm {};   // [a, b, c]
struct LayersForm {};  // [first, last]: last is not in the stage
struct GapForm {};

struct ClusterConstants {
  std::string name;
  std::vector<std::string> kinds;
  TrainingConstants constants;
};
struct ConstantsFile {
  std::vector<ClusterConstants> clusters;
};

}  // namespace

template <>
inline constexpr auto kFields<LayerSizes> = std::tuple{
    required("degree", &LayerSizes::degree), required("parameters", &LayerSizes::parameters),
    required("activations", &LayerSizes::activations), required("outputs", &LayerSizes::outputs)};

template <>
inline constexpr auto kFields<LayerTimes> = std::tuple{
    required("degree", &LayerTimes::degree), required("micro_batch", &LayerTimes::micro_batch),
    required("forward", &LayerTimes::forward), required("backward", &LayerTimes::backward),
    required("update", &LayerTimes::update)};

template <>
inline constexpr auto kFields<GpuKind> =
    std::tuple{required("name", &GpuKind::name), required("memory", &GpuKind::memory),
               optional("price", &GpuKind::price),
               required("times", &GpuKind::times).in(Lines::bracket_behind)};

template <>
inline constexpr auto kFields<NodePool> =
    std::tuple{required("kind", &NodePool::kind, KindForm{}), optional("zone", &NodePool::zone),
               required("gpus", &NodePool::gpus), required("count", &NodePool::count)};

template <>
inline constexpr auto kFields<PoolLink> =
    std::tuple{required("from", &PoolLink::from, FromForm{}),
               required("to", &PoolLink::to, ToForm{}), required("gpus", &PoolLink::gpus),
               required("curve", Computed{}, CurveForm{}), required("best", &PoolLink::best)};

template <>
inline constexpr auto kFields<TrainingConstants> =
    std::tuple{stated("hidden_launches", &TrainingConstants::hidden_launches),
               stated("all_reduce_efficiency", &TrainingConstants::all_reduce_efficiency),
               stated("bytes_per_parameter", &TrainingConstants::bytes_per_parameter),
               stated("activation_factor", &TrainingConstants::activation_factor),
               stated("framework", &TrainingConstants::framework),
               stated("framework_per_gpu", &TrainingConstants::framework_per_gpu)};

template <>
inline constexpr auto kFields<ClusterConstants> = std::tuple{
    optional("name", &ClusterConstants::name), required("kinds", &ClusterConstants::kinds),
    required("constants", &ClusterConstants::constants)};

template <>
inline constexpr auto kFields<TrainingProblem> =
    std::tuple{optional("name", &TrainingProblem::name).on_line(),
               stated("objective", &TrainingProblem::objective),
               required("batch", &TrainingProblem::batch),
               required("sizes", &TrainingProblem::sizes).on_line().in(Lines::bracket_behind),
               required("kinds", &TrainingProblem::kinds).on_line().in(Lines::bracket_behind),
               required("pools", &TrainingProblem::pools).on_line().in(Lines::bracket_behind),
               stated("links", &TrainingProblem::links).on_line().in(Lines::bracket_behind),
               stated("constants", &TrainingProblem::constants).on_line()};

template <>
inline constexpr auto kFields<StageReplica> = std::tuple{
    required("pool", &StageReplica::pool, PoolForm{}), required("degree", &StageReplica::degree),
    required("micro_batches", &StageReplica::micro_batches)};

template <>
inline constexpr auto kFields<TrainingStage> = std::tuple{
    required("layers", Computed{}, LayersForm{}), required("replicas", &TrainingStage::replicas)};

template <>
inline constexpr auto kFields<TrainingPlan> =
    std::tuple{required("micro_batch", &TrainingPlan::micro_batch).on_line(),
               required("stages", &TrainingPlan::stages).on_line().in(Lines::bracket_behind)};

namespace {

constexpr auto kConstantsFields = std::tuple{required("clusters", &ConstantsFile::clusters)};
constexpr auto kProblemField = std::tuple{required("problem", Computed{})};
constexpr auto kAnswerFields =
    std::tuple{optional("planner", &TrainingAnswer::planner).on_line(),
               required("value", &TrainingAnswer::value),
               optional("lower_bound", &TrainingAnswer::lower_bound),
               optional("bound_method", &TrainingAnswer::bound_method),
               optional("gap", Computed{}, GapForm{}),
               optional("seconds", &TrainingAnswer::seconds),
               optional("measured", &TrainingAnswer::measured),
               optional("measured_memory", &TrainingAnswer::measured_memory)};

struct TrainingReading {
  TrainingProblem* problem = nullptr;
  UnknownKeys unknown = {};

  [[nodiscard]] std::size_t pool_named(JsonValue name) const {
    for (std::size_t pool = 0; pool < problem->pools.size(); ++pool) {
      if (pool_name(*problem, pool) == name.text()) return pool;
    }
    name.fail(fmt::format("no pool is called '{}'", name.text()));
  }
  void read(KindForm, JsonValue name, NodePool& pool) const {
    const auto found = std::ranges::find(problem->kinds, name.text(), &GpuKind::name);
    if (found == problem->kinds.end()) {
      name.fail(fmt::format("no kind of GPU is called '{}'", name.text()));
    }
    pool.kind = static_cast<std::size_t>(found - problem->kinds.begin());
  }
  void read(FromForm, JsonValue name, PoolLink& link) const { link.from = pool_named(name); }
  void read(ToForm, JsonValue name, PoolLink& link) const { link.to = pool_named(name); }
  void read(PoolForm, JsonValue name, StageReplica& replica) const {
    replica.pool = pool_named(name);
  }
  void read(CurveForm, JsonValue curve, PoolLink& link) const {
    if (curve.elements().size() != 3) curve.fail("expected three numbers");
    auto number = curve.elements().begin();
    for (double* member : {&link.a, &link.b, &link.c}) {
      *member = (*number).number();
      ++number;
    }
  }
  void read(LayersForm, JsonValue layers, TrainingStage& stage) const {
    if (layers.elements().size() != 2) layers.fail("expected two numbers of layers");
    const auto most = static_cast<std::int64_t>(problem->layers());
    auto number = layers.elements().begin();
    stage.first = static_cast<std::size_t>((*number).integer(0, most));
    ++number;
    stage.last = static_cast<std::size_t>((*number).integer(0, most));
  }
  void read(GapForm, JsonValue gap, TrainingAnswer&) const { (void)gap.number(); }
};

struct TrainingWriting {
  const TrainingProblem& problem;

  void append(KindForm, std::string& text, const NodePool& pool) const {
    append_quoted(text, problem.kinds[pool.kind].name);
  }
  void append(FromForm, std::string& text, const PoolLink& link) const {
    append_quoted(text, pool_name(problem, link.from));
  }
  void append(ToForm, std::string& text, const PoolLink& link) const {
    append_quoted(text, pool_name(problem, link.to));
  }
  void append(PoolForm, std::string& text, const StageReplica& replica) const {
    append_quoted(text, pool_name(problem, replica.pool));
  }
  void append(CurveForm, std::string& text, const PoolLink& link) const {
    append_value(text, std::vector{link.a, link.b, link.c}, *this);
  }
  void append(LayersForm, std::string& text, const TrainingStage& stage) const {
    text += fmt::format("[{}, {}]", stage.first, stage.last);
  }
  void append(GapForm, std::string& text, const TrainingAnswer& answer) const {
    append_number(text, answer.gap());
  }
};

void check_length(JsonValue record, std::string_view key, const std::vector<double>& values,
                  std::size_t layers) {
  if (values.size() == layers) return;
  record.at(key).fail(
      fmt::format("expected a number for each of the {} layers, found {}", layers, values.size()));
}

// A degree or a micro-batch size has one entry.
void check_sizes(JsonValue list, const TrainingProblem& problem) {
  if (problem.layers() == 0) list.fail("expected the sizes of at least one layer");
  std::set<int> degrees;
  auto record = list.elements().begin();
  for (const LayerSizes& entry : problem.sizes) {
    check_length(*record, "parameters", entry.parameters, problem.layers());
    check_length(*record, "activations", entry.activations, problem.layers());
    check_length(*record, "outputs", entry.outputs, problem.layers());
    if (!degrees.insert(entry.degree).second) {
      (*record).fail(fmt::format("degree {} twice", entry.degree));
    }
    ++record;
  }
}

void check_times(JsonValue list, const GpuKind& kind, const TrainingProblem& problem) {
  std::set<std::pair<int, int>> seen;
  auto record = list.elements().begin();
  for (const LayerTimes& entry : kind.times) {
    check_length(*record, "forward", entry.forward, problem.layers());
    check_length(*record, "backward", entry.backward, problem.layers());
    check_length(*record, "update", entry.update, problem.layers());
    if (problem.sizes_of(entry.degree) == nullptr) {
      (*record).fail(fmt::format("there are times for degree {}, but no sizes", entry.degree));
    }
    if (!seen.emplace(entry.degree, entry.micro_batch).second) {
      (*record).fail(
          fmt::format("degree {} with micro-batches of {} twice", entry.degree, entry.micro_batch));
    }
    ++record;
  }
}

void check_pools(JsonValue list, const TrainingProblem& problem) {
  if (problem.pools.empty()) list.fail("expected at least one pool of nodes");
  std::set<std::string> names;
  auto record = list.elements().begin();
  for (std::size_t pool = 0; pool < problem.pools.size(); ++pool, ++record) {
    (void)(*record).at("gpus").integer(1, kMost);
    (void)(*record).at("count").integer(1, kMost);
    if (!names.insert(pool_name(problem, pool)).second) {
      (*record).fail(fmt::format("pool '{}' twice", pool_name(problem, pool)));
    }
  }
}

void check_constants(JsonValue holder, const TrainingConstants& constants) {
  const auto object = holder.find("constants");
  if (!object) return;
  if (constants.hidden_launches > 1) object->at("hidden_launches").fail("expected at most 1");
  if (constants.all_reduce_efficiency <= 0) {
    object->at("all_reduce_efficiency").fail("expected more than 0");
  }
}

// The fields refer to what comes before them: kinds to sizes, pools to kinds, links to pools.
void read_problem_fields(JsonValue root, TrainingProblem& problem, TrainingReading& context) {
  context.problem = &problem;
  read_fields(root, problem, kFields<TrainingProblem>, context);
  (void)root.at("batch").integer(1, kMost);
  check_sizes(root.at("sizes"), problem);
  auto kind = root.at("kinds").elements().begin();
  for (const GpuKind& entry : problem.kinds) {
    check_times((*kind).at("times"), entry, problem);
    ++kind;
  }
  check_pools(root.at("pools"), problem);
  check_constants(root, problem.constants);
}

}  // namespace

bool is_training_file(std::string_view text, std::string_view kind) {
  constexpr std::string_view kKey = "\"placewright\"";
  for (std::size_t at = text.find(kKey); at != std::string_view::npos;
       at = text.find(kKey, at + 1)) {
    const std::size_t value = text.find_first_not_of(": \t\r\n", at + kKey.size());
    if (value != std::string_view::npos && text[value] == '"' &&
        text.substr(value + 1).starts_with(fmt::format("{}\"", kind))) {
      return true;
    }
  }
  return false;
}

TrainingFile read_training_problem(std::string_view text, const std::string& path) {
  const JsonDocument document(text, input_name(path));
  const JsonValue root = document.root();
  check_header(root, kProblemKind);
  TrainingFile file;
  TrainingReading context;
  static constexpr auto kKeys = keys_of(kHeaderFields, kFields<TrainingProblem>);
  context.unknown.check(root, kKeys);
  read_problem_fields(root, file.problem, context);
  file.warnings = context.unknown.warnings();
  return file;
}

TrainingFile read_training_plan(std::string_view text, const std::string& path) {
  const JsonDocument document(text, input_name(path));
  const JsonValue root = document.root();
  check_header(root, kPlanKind);
  TrainingFile file;
  TrainingReading context;
  static constexpr auto kKeys =
      keys_of(kHeaderFields, kProblemField, kAnswerFields, kFields<TrainingPlan>);
  context.unknown.check(root, kKeys);
  static constexpr auto kProblemKeys = keys_of(kFields<TrainingProblem>);
  context.unknown.check(root.at("problem"), kProblemKeys);
  read_problem_fields(root.at("problem"), file.problem, context);
  TrainingAnswer& answer = file.answer.emplace();
  read_fields(root, answer, kAnswerFields, context);
  read_fields(root, answer.plan, kFields<TrainingPlan>, context);
  if (answer.plan.stages.empty()) root.at("stages").fail("expected at least one stage");
  file.warnings = context.unknown.warnings();
  return file;
}

std::string write_training_problem(const TrainingProblem& problem) {
  std::string text = begun_file(std::string(kProblemKind));
  append_fields(text, problem, kFields<TrainingProblem>, TrainingWriting{problem});
  text += "\n}\n";
  return text;
}

std::string write_training_plan(const TrainingProblem& problem, const TrainingAnswer& answer) {
  const TrainingWriting context{problem};
  std::string text = begun_file(std::string(kPlanKind));
  append_fields(text, answer, kAnswerFields, context, Written::all);
  append_fields(text, answer.plan, kFields<TrainingPlan>, context);
  text += ",\n\"problem\": ";
  append_record(text, problem, context);
  text += "\n}\n";
  return text;
}

bool apply_constants(const std::string& path, TrainingProblem& problem) {
  const JsonDocument document(read_whole(path), input_name(path));
  check_header(document.root(), "training-constants");
  ConstantsFile file;
  ReadingContext context;
  read_fields(document.root(), file, kConstantsFields, context);
  auto place = document.root().at("clusters").elements().begin();
  for (const ClusterConstants& cluster : file.clusters) {
    check_constants(*place, cluster.constants);
    ++place;
    const bool has_all = std::ranges::all_of(problem.kinds, [&](const GpuKind& kind) {
      return std::ranges::find(cluster.kinds, kind.name) != cluster.kinds.end();
    });
    if (!has_all) continue;
    problem.constants = cluster.constants;
    return true;
  }
  return false;
}

}  // namespace placewright
