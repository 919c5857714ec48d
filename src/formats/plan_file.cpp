#include "formats/plan_file.h"

#include <filesystem>
#include <limits>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/cluster_json.h"
#include "formats/file_schemas.h"
#include "formats/input_error.h"
#include "formats/json_schema.h"
#include "formats/other_plans.h"
#include "formats/problem_formats.h"
#include "formats/problem_readers.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  return !path.empty() && path != "-";
}

// A path that leads from the plan's folder to the file, so that both can be moved together.
std::string relative_to_plan(const std::string& path, const std::string& plan_path) {
  if (!is_file(path) || !is_file(plan_path)) return path;
  std::error_code unresolved;
  // Absolute first: of a relative path to a file that is not there yet nothing would be resolved.
  const fs::path plan = fs::absolute(plan_path, unresolved);
  if (unresolved) return path;
  const fs::path folder = fs::weakly_canonical(plan, unresolved).parent_path();
  if (unresolved) return path;
  const fs::path file = fs::weakly_canonical(path, unresolved);
  return unresolved ? path : file.lexically_proximate(folder).generic_string();
}

std::string resolved_from_plan(const std::string& path, const std::string& plan_path) {
  if (!is_file(path) || !is_file(plan_path) || fs::path(path).is_absolute()) return path;
  return (fs::path(plan_path).parent_path() / path).lexically_normal().string();
}

// A placement is an object from ops to devices, one to a line. Of a file without one nothing else
// of the plan is read.
struct PlacementForm {};
struct ScheduleForm {};
struct GroupsForm {};  // no op twice
struct ReferenceForm {};

// Written from the problem, which the file has to agree with.
struct RulesForm {};
struct ObjectiveForm {};
struct UnitForm {};

struct BoundForm {};  // null: infinite
struct GapForm {};
struct SecondsForm {};

// Of `in` the sender is host memory and of `out` the receiver, whatever the file says.
struct SenderForm {};
struct ReceiverForm {};

// A schedule as the file has it.
struct ScheduledOp {
  OpId op;
  DeviceId device;
  double start = 0;
  double end = 0;
};
struct ScheduleLists {
  std::vector<ScheduledOp> ops;
  std::vector<Transfer> transfers;
};

struct ClusterReference {
  std::string path;
  std::string digest;
};
struct ClusterForm {};

constexpr std::string_view kDigest = R"({"$ref": "common.json#/$defs/digest"})";
constexpr std::string_view kNotNegative = R"({"minimum": 0})";

}  // namespace

template <>
inline constexpr auto kFields<ClusterReference> =
    std::tuple{required("path", &ClusterReference::path),
               stated("digest", &ClusterReference::digest).where(kDigest)};

template <>
inline constexpr auto kFields<ProblemReference> = std::tuple{
    stated("path", &ProblemReference::path),
    stated("digest", &ProblemReference::digest).where(kDigest),
    optional("format", &ProblemReference::format).where(R"({"$ref": "common.json#/$defs/format"})"),
    optional("cluster", &ProblemReference::cluster_path, ClusterForm{}).on_line(),
    optional("embedded", Computed{})
        .says("The whole problem")
        .where(R"({"$ref": "problem.json"})")};

template <>
inline constexpr auto kFields<ScheduledOp> =
    std::tuple{required("op", &ScheduledOp::op), stated("device", &ScheduledOp::device),
               required("start", &ScheduledOp::start), required("end", &ScheduledOp::end)};

template <>
inline constexpr auto kFields<Transfer> =
    std::tuple{required("tensor", &Transfer::tensor),
               required("leg", &Transfer::leg),
               optional("from", &Transfer::from, SenderForm{}),
               optional("to", &Transfer::to, ReceiverForm{}),
               required("start", &Transfer::start),
               required("end", &Transfer::end)};

template <>
inline constexpr std::string_view kLaw<Transfer> = R"({"allOf": [
    {"if": {"properties": {"leg": {"const": "direct"}}}, "then": {"required": ["from", "to"]}},
    {"if": {"properties": {"leg": {"const": "out"}}}, "then": {"required": ["from"]}},
    {"if": {"properties": {"leg": {"const": "in"}}}, "then": {"required": ["to"]}}]})";

template <>
inline constexpr auto kFields<ScheduleLists> =
    std::tuple{required("ops", &ScheduleLists::ops).in(Lines::bracket_behind),
               stated("transfers", &ScheduleLists::transfers).on_line().in(Lines::bracket_behind)};

template <>
inline constexpr auto kFields<Stage> =
    std::tuple{required("devices", &Stage::devices).where(R"({"minItems": 1})"),
               required("ops", &Stage::ops), stated("load", &Stage::load).or_null(),
               optional("offset", &Stage::offset)
                   .where(kNotNegative)
                   .says("The moment in each period from which the stage holds its resources; "
                         "phased: in the forward pass"),
               optional("backward_offset", &Stage::backward_offset)
                   .where(kNotNegative)
                   .says("Phased: the same in the backward pass")};

template <>
inline constexpr auto kFields<Call> =
    std::tuple{required("device", &Call::device), required("ops", &Call::ops),
               required("start", &Call::start), required("end", &Call::end)};

namespace {

constexpr auto kSummaryFields =
    std::tuple{stated("problem", &PlanFile::problem, ReferenceForm{}).on_line(),
               stated("rules", Computed{}, RulesForm{}).on_line(),
               stated("status", &PlanFile::status).on_line(),
               stated("objective", Computed{}, ObjectiveForm{}),
               stated("planner", &PlanFile::planner),
               optional("settings", &PlanFile::settings),
               stated("seed", &PlanFile::seed),
               stated(
                   "value", [](auto& file) -> auto& { return file.plan.value; })
                   .on_line()
                   .or_null(),
               stated(
                   "lower_bound", [](auto& file) -> auto& { return file.certificate.lower_bound; },
                   BoundForm{}),
               stated("gap", Computed{}, GapForm{}).or_null(),
               stated(
                   "bound_method", [](auto& file) -> auto& { return file.certificate.method; }),
               stated("unit", Computed{}, UnitForm{}).on_line(),
               stated("seconds", &PlanFile::seconds, SecondsForm{}),
               optional("reason", &PlanFile::reason).on_line(),
               stated("placement", Computed{}, PlacementForm{}).on_line().or_null()};

constexpr auto kPlanFields =
    std::tuple{optional("schedule", &Plan::schedule, ScheduleForm{}).on_line(),
               optional("stages", &Plan::stages).on_line().in(Lines::bracket_behind),
               optional("calls", &Plan::calls).on_line().in(Lines::bracket_behind),
               optional("groups", &Plan::groups, GroupsForm{})
                   .says("Ops that the planner looked at as one; an op is in one group at most")
                   .on_line()
                   .in(Lines::bracket_behind)};

struct PlanSchema : NameSchemas {
  using NameSchemas::schema;

  // Whether times are sensible is for the verifier to say.
  Schema schema(Identity<double> /*type*/) const { return {{"type", "number"}}; }
  Schema schema(Identity<OpId> /*type*/) const { return name(); }
  Schema schema(ReferenceForm /*form*/) const { return record_schema<ProblemReference>(*this); }
  Schema schema(ClusterForm /*form*/) const { return record_schema<ClusterReference>(*this); }
  Schema schema(RulesForm /*form*/) const { return record_schema<Rules>(NameSchemas{}); }
  Schema schema(ObjectiveForm /*form*/) const { return common_schema("objective"); }
  Schema schema(UnitForm /*form*/) const { return common_schema("unit"); }
  Schema schema(BoundForm /*form*/) const { return {{"type", {"number", "null"}}}; }
  Schema schema(GapForm /*form*/) const { return {{"type", "number"}}; }
  Schema schema(SecondsForm /*form*/) const { return common_schema("amount"); }
  Schema schema(SenderForm /*form*/) const { return name(); }
  Schema schema(ReceiverForm /*form*/) const { return name(); }
  Schema schema(ScheduleForm /*form*/) const { return record_schema<ScheduleLists>(*this); }
  Schema schema(PlacementForm /*form*/) const {
    return {{"type", "object"}, {"additionalProperties", name()}};
  }
  Schema schema(GroupsForm /*form*/) const {
    const Schema group = {{"type", "array"}, {"minItems", 1}, {"items", name()}};
    return {{"type", "array"}, {"items", group}};
  }
};

class PlanWriting {
 public:
  PlanWriting(const Problem& problem, const PlanWriteOptions& options)
      : problem_(problem), options_(options) {}

  void append(std::string& text, OpId op) const { append_quoted(text, problem_.op(op).name); }
  void append(std::string& text, DeviceId device) const {
    append_quoted(text, problem_.device(device).name);
  }
  void append(std::string& text, TensorId tensor) const { text += std::to_string(tensor.index()); }

  void append(ReferenceForm, std::string& text, const PlanFile& file) const {
    ProblemReference reference = file.problem;
    reference.path = relative_to_plan(reference.path, options_.path);
    text += '{';
    append_fields(text, reference, kFields<ProblemReference>, *this);
    if (options_.embed) {
      text += ",\n\"embedded\": ";
      text += write_problem(problem_.draft());
      text.pop_back();  // its line end
    }
    text += '}';
  }
  void append(ClusterForm, std::string& text, const ProblemReference& reference) const {
    const std::string path = relative_to_plan(reference.cluster_path, options_.path);
    append_record(text, ClusterReference{path, reference.cluster_digest}, *this);
  }

  void append(RulesForm, std::string& text, const PlanFile&) const {
    append_record(text, problem_.rules(), *this, Written::all);
  }
  void append(ObjectiveForm, std::string& text, const PlanFile&) const {
    append_quoted(text, name_of(problem_.objective()));
  }
  void append(UnitForm, std::string& text, const PlanFile&) const {
    append_quoted(text, name_of(problem_.unit()));
  }
  void append(GapForm, std::string& text, const PlanFile& file) const {
    const bool known = file.has_plan() && file.plan.value < kInfinity;
    append_number(text, known ? gap(file.plan.value, file.certificate.lower_bound) : kInfinity);
  }
  void append(PlacementForm, std::string& text, const PlanFile& file) const {
    std::string_view before = "{\n";
    for (const OpId op : file.plan.placement.keys()) {
      text += before;
      append(text, op);
      text += ": ";
      append(text, file.plan.placement[op]);
      before = ",\n";
    }
    text += file.has_plan() ? "}" : "{}";
  }
  void append(ScheduleForm, std::string& text, const Plan& plan) const {
    ScheduleLists lists{{}, plan.schedule->transfers};
    for (const OpId op : plan.schedule->start.keys()) {
      const auto& [start, end, transfers] = *plan.schedule;
      lists.ops.push_back({op, plan.placement[op], start[op], end[op]});
    }
    append_record(text, lists, *this);
  }

 private:
  const Problem& problem_;
  const PlanWriteOptions& options_;
};

double number_or_infinity(JsonValue value) {
  return value.is_null() ? kInfinity : value.number();
}

struct ReferenceReading {
  UnknownKeys& unknown;

  void read(ClusterForm, JsonValue object, ProblemReference& reference) {
    ClusterReference cluster;
    read_record(object, cluster, *this);
    reference.cluster_path = std::move(cluster.path);
    reference.cluster_digest = std::move(cluster.digest);
  }
};

ProblemReference reference_from_json(JsonValue object, UnknownKeys& unknown) {
  ProblemReference reference;
  ReferenceReading context{unknown};
  read_record(object, reference, context);
  const auto format = object.find("format");
  if (format && find_problem_format(reference.format) == nullptr) {
    format->fail(fmt::format("no format is called '{}'", reference.format));
  }
  return reference;
}

class PlanReader {
 public:
  PlanReader(JsonValue root, const Problem& problem)
      : root_(root), problem_(problem), scheduled_(problem.op_count(), 0) {
    for (const DeviceId device : problem.devices()) {
      devices_.emplace(problem.device(device).name, device);
    }
  }

  UnknownKeys unknown;

  PlanFile read() {
    check_header(root_, "plan");
    static constexpr auto kKeys = keys_of(kHeaderFields, kSummaryFields, kPlanFields);
    unknown.check(root_, kKeys);
    PlanFile file;
    read_fields(root_, file, kSummaryFields, *this);
    if (file.has_plan() && !root_.find("status")) file.status = Status::feasible;
    if (file.has_plan()) {
      read_fields(root_, file.plan, kPlanFields, *this);
    } else if (file.status == Status::optimal || file.status == Status::feasible) {
      root_.fail(fmt::format("the status is {}, but there is no placement", name_of(file.status)));
    }
    file.warnings = unknown.warnings();
    return file;
  }

  // Whether times are sensible is for the verifier to say.
  void read(JsonValue json, double& number) { number = json.number(); }
  void read(JsonValue name, OpId& op) { op = op_named(name.text(), name); }
  void read(JsonValue name, DeviceId& device) {
    const auto found = devices_.find(name.text());
    if (found == devices_.end()) {
      name.fail(fmt::format("the problem has no device '{}'", name.text()));
    }
    device = found->second;
  }
  void read(JsonValue reference, TensorId& tensor) { tensor = tensor_of(reference); }

  void read(ReferenceForm, JsonValue object, PlanFile& file) {
    file.problem = reference_from_json(object, unknown);
  }
  void read(ObjectiveForm, JsonValue objective, PlanFile&) {
    if (objective.one_of<Objective>() == problem_.objective()) return;
    objective.fail(fmt::format("the plan is for the objective {}, the problem for {}",
                               objective.text(), name_of(problem_.objective())));
  }
  void read(UnitForm, JsonValue unit, PlanFile&) { (void)unit.one_of<TimeUnit>(); }
  void read(BoundForm, JsonValue bound, PlanFile& file) {
    file.stated_bound = number_or_infinity(bound);
    file.certificate.lower_bound = *file.stated_bound;
  }
  void read(GapForm, JsonValue gap, PlanFile& file) { file.stated_gap = gap.number(); }
  void read(SecondsForm, JsonValue seconds, PlanFile& file) { file.seconds = seconds.amount(); }

  void read(PlacementForm, JsonValue object, PlanFile& file) {
    if (object.members().size() == 0) return;
    Placement placement(problem_.op_count());
    for (const auto& [name, device] : object.members()) {
      read(device, placement[op_named(name, device)]);
    }
    for (const OpId op : problem_.ops()) {
      if (placement[op].valid()) continue;
      object.fail(fmt::format("the op '{}' is placed nowhere", problem_.op(op).name));
    }
    file.plan.placement = std::move(placement);
  }

  void read(ScheduleForm, JsonValue object, Plan& plan) {
    placement_ = &plan.placement;
    ScheduleLists lists;
    read_record(object, lists, *this);
    for (const OpId op : problem_.ops()) {
      if (scheduled_[op]) continue;
      object.at("ops").fail(fmt::format("the op '{}' is not scheduled", problem_.op(op).name));
    }
    Schedule& schedule = plan.schedule.emplace();
    schedule.start.assign(problem_.op_count(), 0);
    schedule.end.assign(problem_.op_count(), 0);
    for (const ScheduledOp& row : lists.ops) {
      schedule.start[row.op] = row.start;
      schedule.end[row.op] = row.end;
    }
    schedule.transfers = std::move(lists.transfers);
  }
  void read(JsonValue record, ScheduledOp& row) {
    read_record(record, row, *this);
    const std::string& name = problem_.op(row.op).name;
    if (scheduled_[row.op]) record.fail(fmt::format("the op '{}' is scheduled twice", name));
    scheduled_[row.op] = 1;
    const DeviceId placed = (*placement_)[row.op];
    if (!row.device.valid() || row.device == placed) return;
    record.at("device").fail(fmt::format("the op '{}' is placed on '{}' but scheduled on '{}'",
                                         name, problem_.device(placed).name,
                                         problem_.device(row.device).name));
  }
  void read(JsonValue record, Transfer& transfer) {
    read_record(record, transfer, *this);
    if (transfer.leg != Leg::in) (void)record.at("from");
    if (transfer.leg != Leg::out) (void)record.at("to");
  }
  void read(SenderForm, JsonValue name, Transfer& transfer) {
    if (transfer.leg != Leg::in) read(name, transfer.from);
  }
  void read(ReceiverForm, JsonValue name, Transfer& transfer) {
    if (transfer.leg != Leg::out) read(name, transfer.to);
  }
  void read(JsonValue record, Stage& stage) {
    stage.load = kInfinity;  // unless it is stated
    read_record(record, stage, *this);
  }
  void read(GroupsForm, JsonValue lists, Plan& plan) {
    Table<OpId, char> grouped(problem_.op_count(), 0);
    for (const JsonValue list : lists.elements()) {
      std::vector<OpId>& group = plan.groups.emplace_back();
      for (const JsonValue name : list.elements()) {
        read(name, group.emplace_back());
        if (std::exchange(grouped[group.back()], 1) == 0) continue;
        name.fail(fmt::format("the op '{}' is in two groups", name.text()));
      }
      if (group.empty()) list.fail("a group needs at least one op");
    }
  }

 private:
  [[nodiscard]] OpId op_named(std::string_view name, JsonValue place) const {
    const auto found = problem_.find_op(name);
    if (!found) place.fail(fmt::format("the problem has no op '{}'", name));
    return *found;
  }

  TensorId tensor_of(JsonValue reference) {
    if (reference.is_text()) {
      if (tensors_.empty()) {
        for (const TensorId id : problem_.tensors()) tensors_.emplace(problem_.tensor(id).name, id);
      }
      const auto found = tensors_.find(reference.text());
      if (found != tensors_.end()) return found->second;
      reference.fail(fmt::format("the problem has no tensor '{}'", reference.text()));
    }
    const auto number = reference.integer(0, std::numeric_limits<std::uint32_t>::max());
    if (static_cast<std::size_t>(number) >= problem_.tensor_count()) {
      reference.fail(fmt::format("the problem has no tensor number {}, only {} of them", number,
                                 problem_.tensor_count()));
    }
    return TensorId{static_cast<std::size_t>(number)};
  }

  JsonValue root_;
  const Problem& problem_;
  const Placement* placement_ = nullptr;  // of the plan that is being read
  Table<OpId, char> scheduled_;
  std::unordered_map<std::string_view, DeviceId> devices_;
  std::unordered_map<std::string_view, TensorId> tensors_;
};

ProblemFile embedded_problem(JsonValue object, const std::string& digest) {
  ProblemFile file = native_format().read(object, "problem", false);
  file.file = object.file();
  file.digest = digest;
  file.place_of = [places = std::move(file.place_of), prefix = object.pointer()](
                      DraftPart part, std::size_t index) {
    Place place = places(part, index);
    place.pointer = prefix + place.pointer;
    return place;
  };
  return file;
}

}  // namespace
Schema plan_schema() {
  Schema schema = begun_schema("plan", "A plan file", "plan");
  add_fields<PlanFile>(schema, kSummaryFields, PlanSchema{});
  add_fields<Plan>(schema, kPlanFields, PlanSchema{});
  return described(std::move(schema), "", R"({
      "if": {"properties": {"status": {"enum": ["optimal", "feasible"]}}},
      "then": {"required": ["placement"],
               "properties": {"placement": {"type": "object", "minProperties": 1}}}})");
}

std::string write_plan(const Problem& problem, const PlanFile& file,
                       const PlanWriteOptions& options) {
  const PlanWriting context(problem, options);
  std::string text = begun_file("plan");
  append_fields(text, file, kSummaryFields, context);
  append_fields(text, file.plan, kPlanFields, context);
  text += "\n}\n";
  return text;
}

ProblemFile problem_of_plan(PlanReference reference, const std::string& plan_path,
                            const std::optional<std::string>& problem_path,
                            const ReadOptions& given) {
  if (reference.embedded && !problem_path) {
    ProblemFile file = std::move(*reference.embedded);
    file.draft.rules = reference.rules.over(file.draft.rules);
    return file;
  }
  const std::string path = problem_path.value_or(reference.problem.path);
  if (path.empty() || (path == "-" && !problem_path)) {
    throw InputError(input_name(plan_path), "",
                     "does not say in which file its problem is; give the problem's file as well");
  }
  if (!problem_path) require_that_it_ends(path);
  ReadOptions options = given;
  if (options.format.empty()) options.format = reference.problem.format;
  if (!options.objective) options.objective = reference.objective;
  if (options.cluster.empty()) {
    options.cluster = reference.problem.cluster_path;
    require_that_it_ends(options.cluster);
  }
  ProblemFile file = read_problem(path, options);
  file.draft.rules = reference.rules.over(file.draft.rules);
  return file;
}

PlanDocument::PlanDocument(std::string_view text, std::string path)
    : path_(std::move(path)), document_(text, input_name(path_)) {
  const JsonValue root = document_.root();
  if (root.find("placewright") || other_plan_format(root) != nullptr) return;
  std::vector<std::string> keys;
  for (const OtherPlanFormat& format : other_plan_formats()) {
    keys.push_back(fmt::format("{} ({})", format.recognised_by, format.name));
  }
  root.fail(fmt::format("is not a plan: expected the key 'placewright' (our own format), or {}",
                        fmt::join(keys, ", or ")));
}

bool PlanDocument::is_ours() const {
  return document_.root().find("placewright").has_value();
}

PlanReference PlanDocument::reference() const {
  if (!is_ours()) return {};
  const JsonValue root = document_.root();
  check_header(root, "plan");
  PlanReference reference;
  if (const auto objective = root.find("objective")) {
    reference.objective = objective->one_of<Objective>();
  }
  if (const auto rules = root.find("rules")) reference.rules = StatedRules(*rules);
  if (const auto problem = root.find("problem")) {
    UnknownKeys unknown;  // for the reader of the plan to tell
    reference.problem = reference_from_json(*problem, unknown);
    if (const auto embedded = problem->find("embedded")) {
      reference.embedded = embedded_problem(*embedded, reference.problem.digest);
    }
  }
  reference.problem.path = resolved_from_plan(reference.problem.path, path_);
  reference.problem.cluster_path = resolved_from_plan(reference.problem.cluster_path, path_);
  return reference;
}

PlanFile PlanDocument::read(const Problem& problem, std::span<const std::string> op_ids) const {
  const JsonValue root = document_.root();
  return is_ours() ? PlanReader(root, problem).read()
                   : other_plan_format(root)->read(root, problem, op_ids);
}

}  // namespace placewright
