#include "formats/plan_file.h"

#include <filesystem>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/expert_split.h"
#include "formats/input_error.h"
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

class PlanWriter {
 public:
  PlanWriter(const Problem& problem, const PlanFile& file, const PlanWriteOptions& options)
      : problem_(problem), file_(file), options_(options) {}

  std::string write() {
    text_ = "{\"placewright\": \"plan\", \"version\": 1,\n";
    append_problem();
    append_summary();
    append_placement();
    if (file_.plan.schedule) append_schedule(*file_.plan.schedule);
    append_stages();
    append_calls();
    text_ += "\n}\n";
    return std::move(text_);
  }

 private:
  // `before`: everything up to the value, as ", \"key\": ".
  void append_text(std::string_view before, std::string_view value) {
    text_ += before;
    append_quoted(text_, value);
  }
  void append_value(std::string_view before, double value) {
    text_ += before;
    append_number(text_, value);
  }
  void append_op(std::string_view before, OpId op) { append_text(before, problem_.op(op).name); }
  void append_device(std::string_view before, DeviceId device) {
    append_text(before, problem_.device(device).name);
  }
  void append_ops(std::string_view before, const std::vector<OpId>& ops) {
    text_ += before;
    for (std::size_t i = 0; i < ops.size(); ++i) append_op(i == 0 ? "" : ", ", ops[i]);
    text_ += ']';
  }

  void append_problem() {
    const ProblemReference& reference = file_.problem;
    append_text("\"problem\": {\"path\": ", relative_to_plan(reference.path, options_.path));
    append_text(", \"digest\": ", reference.digest);
    if (!reference.format.empty()) append_text(", \"format\": ", reference.format);
    if (!reference.cluster_path.empty()) {
      append_text(",\n\"cluster\": {\"path\": ",
                  relative_to_plan(reference.cluster_path, options_.path));
      append_text(", \"digest\": ", reference.cluster_digest);
      text_ += '}';
    }
    if (options_.embed) {
      text_ += ",\n\"embedded\": ";
      text_ += write_problem(problem_.draft());
      text_.pop_back();  // its line end
    }
    text_ += "},\n";
    text_ += "\"rules\": ";
    append_record(text_, problem_.rules(), WritingContext{}, Written::all);
    text_ += ",\n";
  }

  void append_summary() {
    text_ += fmt::format("\"status\": \"{}\", \"objective\": \"{}\", \"planner\": ",
                         name_of(file_.status), name_of(problem_.objective()));
    append_quoted(text_, file_.planner);
    if (!file_.settings.empty()) {
      text_ += ", \"settings\": {";
      std::string_view comma;
      for (const auto& [key, value] : file_.settings) {
        append_text(comma, key);
        append_text(": ", value);
        comma = ", ";
      }
      text_ += '}';
    }
    text_ += fmt::format(", \"seed\": {},\n", file_.seed);
    const double value = file_.has_plan() ? file_.plan.value : kInfinity;
    append_value("\"value\": ", value);
    append_value(", \"lower_bound\": ", file_.certificate.lower_bound);
    append_value(", \"gap\": ",
                 value < kInfinity ? gap(value, file_.certificate.lower_bound) : kInfinity);
    append_text(", \"bound_method\": ", file_.certificate.method);
    append_text(",\n\"unit\": ", name_of(problem_.unit()));
    append_value(", \"seconds\": ", file_.seconds);
    if (!file_.reason.empty()) append_text(",\n\"reason\": ", file_.reason);
  }

  void append_placement() {
    text_ += ",\n\"placement\": {";
    for (const OpId op : file_.plan.placement.keys()) {
      append_op(op.index() == 0 ? "\n" : ",\n", op);
      append_device(": ", file_.plan.placement[op]);
    }
    text_ += '}';
  }

  void append_schedule(const Schedule& schedule) {
    text_ += ",\n\"schedule\": {\"ops\": [";
    for (const OpId op : schedule.start.keys()) {
      append_op(op.index() == 0 ? "\n{\"op\": " : ",\n{\"op\": ", op);
      append_device(", \"device\": ", file_.plan.placement[op]);
      append_value(", \"start\": ", schedule.start[op]);
      append_value(", \"end\": ", schedule.end[op]);
      text_ += '}';
    }
    text_ += "],\n\"transfers\": [";
    std::string_view line = "\n";
    for (const Transfer& transfer : schedule.transfers) {
      text_ += fmt::format("{}{{\"tensor\": {}, \"leg\": \"{}\"", line, transfer.tensor.index(),
                           name_of(transfer.leg));
      if (transfer.from.valid()) append_device(", \"from\": ", transfer.from);
      if (transfer.to.valid()) append_device(", \"to\": ", transfer.to);
      append_value(", \"start\": ", transfer.start);
      append_value(", \"end\": ", transfer.end);
      text_ += '}';
      line = ",\n";
    }
    text_ += "]}";
  }

  void append_stages() {
    if (file_.plan.stages.empty()) return;
    std::string_view line = ",\n\"stages\": [\n";
    for (const Stage& stage : file_.plan.stages) {
      text_ += line;
      text_ += "{\"devices\": [";
      for (std::size_t i = 0; i < stage.devices.size(); ++i) {
        append_device(i == 0 ? "" : ", ", stage.devices[i]);
      }
      append_ops("], \"ops\": [", stage.ops);
      append_value(", \"load\": ", stage.load);
      text_ += '}';
      line = ",\n";
    }
    text_ += ']';
  }

  void append_calls() {
    if (file_.plan.calls.empty()) return;
    std::string_view line = ",\n\"calls\": [\n";
    for (const Call& call : file_.plan.calls) {
      text_ += line;
      append_device("{\"device\": ", call.device);
      append_ops(", \"ops\": [", call.ops);
      append_value(", \"start\": ", call.start);
      append_value(", \"end\": ", call.end);
      text_ += '}';
      line = ",\n";
    }
    text_ += ']';
  }

  const Problem& problem_;
  const PlanFile& file_;
  const PlanWriteOptions& options_;
  std::string text_;
};

double number_or_infinity(JsonValue value) {
  return value.is_null() ? kInfinity : value.number();
}

std::string text_or_empty(JsonValue object, std::string_view key) {
  const auto value = object.find(key);
  return value ? std::string(value->text()) : std::string{};
}

ProblemReference reference_from_json(JsonValue object) {
  ProblemReference reference;
  reference.path = text_or_empty(object, "path");
  reference.digest = text_or_empty(object, "digest");
  if (const auto format = object.find("format")) {
    reference.format = format->text();
    if (find_problem_format(reference.format) == nullptr) {
      format->fail(fmt::format("no format is called '{}'", reference.format));
    }
  }
  if (const auto cluster = object.find("cluster")) {
    reference.cluster_path = cluster->at("path").text();
    reference.cluster_digest = text_or_empty(*cluster, "digest");
  }
  return reference;
}

class PlanReader {
 public:
  PlanReader(JsonValue root, const Problem& problem) : root_(root), problem_(problem) {
    for (const DeviceId device : problem.devices()) {
      devices_.emplace(problem.device(device).name, device);
    }
  }

  PlanFile read() {
    check_header(root_, "plan");
    unknown_.check(root_, {"placewright", "version",   "problem",      "rules",  "status",
                           "objective",   "planner",   "settings",     "seed",   "value",
                           "lower_bound", "gap",       "bound_method", "unit",   "seconds",
                           "reason",      "placement", "schedule",     "stages", "calls"});
    if (const auto reference = root_.find("problem")) {
      unknown_.check(*reference, {"path", "digest", "format", "cluster", "embedded"});
      file_.problem = reference_from_json(*reference);
    }
    read_summary();
    read_placement();
    if (file_.has_plan()) read_details();
    file_.warnings = unknown_.warnings();
    return std::move(file_);
  }

 private:
  OpId op(JsonValue name) const {
    const auto found = problem_.find_op(name.text());
    if (!found) name.fail(fmt::format("the problem has no op '{}'", name.text()));
    return *found;
  }

  DeviceId device(JsonValue name) const {
    const auto found = devices_.find(name.text());
    if (found == devices_.end()) {
      name.fail(fmt::format("the problem has no device '{}'", name.text()));
    }
    return found->second;
  }

  std::vector<OpId> ops(JsonValue list) const {
    std::vector<OpId> result;
    for (const JsonValue name : list.elements()) result.push_back(op(name));
    return result;
  }

  TensorId tensor(JsonValue reference) {
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

  void read_summary() {
    file_.status = root_.at("status").one_of<Status>();
    const JsonValue objective = root_.at("objective");
    if (objective.one_of<Objective>() != problem_.objective()) {
      objective.fail(fmt::format("the plan is for the objective {}, the problem for {}",
                                 objective.text(), name_of(problem_.objective())));
    }
    file_.planner = text_or_empty(root_, "planner");
    if (const auto settings = root_.find("settings")) {
      for (const auto& [key, value] : settings->members()) {
        file_.settings.insert_or_assign(std::string(key), std::string(value.text()));
      }
    }
    if (const auto seed = root_.find("seed")) {
      file_.seed = seed->natural();
    }
    if (const auto seconds = root_.find("seconds")) file_.seconds = seconds->amount();
    file_.reason = text_or_empty(root_, "reason");
    read_statement();
    if (const auto value = root_.find("value")) file_.plan.value = number_or_infinity(*value);
    if (const auto method = root_.find("bound_method")) file_.certificate.method = method->text();
  }

  void read_statement() {
    if (const auto bound = root_.find("lower_bound")) {
      file_.stated_bound = number_or_infinity(*bound);
      file_.certificate.lower_bound = *file_.stated_bound;
    }
    const auto gap = root_.find("gap");
    if (gap && !gap->is_null()) file_.stated_gap = gap->number();
    if (const auto unit = root_.find("unit")) (void)unit->one_of<TimeUnit>();
  }

  void read_placement() {
    const auto placement = root_.find("placement");
    const bool there_is_one = placement && !placement->is_null() && placement->members().size() > 0;
    const bool promised = file_.status == Status::optimal || file_.status == Status::feasible;
    if (!there_is_one) {
      if (promised)
        root_.fail(
            fmt::format("the status is {}, but there is no placement", name_of(file_.status)));
      return;
    }
    Placement result(problem_.op_count());
    for (const auto& [name, place] : placement->members()) {
      const auto op = problem_.find_op(name);
      if (!op) place.fail(fmt::format("the problem has no op '{}'", name));
      result[*op] = device(place);
    }
    for (const OpId op : problem_.ops()) {
      if (!result[op].valid()) {
        placement->fail(fmt::format("the op '{}' is placed nowhere", problem_.op(op).name));
      }
    }
    file_.plan.placement = std::move(result);
  }

  void read_details() {
    if (const auto schedule = root_.find("schedule")) read_schedule(*schedule);
    if (const auto stages = root_.find("stages")) read_stages(*stages);
    if (const auto calls = root_.find("calls")) read_calls(*calls);
  }

  void read_schedule(JsonValue object) {
    unknown_.check(object, {"ops", "transfers"});
    Schedule schedule;
    schedule.start.assign(problem_.op_count(), 0);
    schedule.end.assign(problem_.op_count(), 0);
    Table<OpId, char> scheduled(problem_.op_count(), 0);
    for (const JsonValue record : object.at("ops").elements()) {
      unknown_.check(record, {"op", "device", "start", "end"});
      const OpId id = op(record.at("op"));
      if (scheduled[id])
        record.fail(fmt::format("the op '{}' is scheduled twice", problem_.op(id).name));
      scheduled[id] = 1;
      const auto where = record.find("device");
      if (where && device(*where) != file_.plan.placement[id]) {
        where->fail(fmt::format("the op '{}' is placed on '{}' but scheduled on '{}'",
                                problem_.op(id).name,
                                problem_.device(file_.plan.placement[id]).name, where->text()));
      }
      schedule.start[id] = record.at("start").number();
      schedule.end[id] = record.at("end").number();
    }
    for (const OpId id : problem_.ops()) {
      if (scheduled[id]) continue;
      object.at("ops").fail(fmt::format("the op '{}' is not scheduled", problem_.op(id).name));
    }
    if (const auto transfers = object.find("transfers")) {
      for (const JsonValue record : transfers->elements()) {
        schedule.transfers.push_back(transfer(record));
      }
    }
    file_.plan.schedule = std::move(schedule);
  }

  Transfer transfer(JsonValue record) {
    unknown_.check(record, {"tensor", "leg", "from", "to", "start", "end"});
    Transfer result;
    result.tensor = tensor(record.at("tensor"));
    result.leg = record.at("leg").one_of<Leg>();
    if (result.leg != Leg::in) result.from = device(record.at("from"));
    if (result.leg != Leg::out) result.to = device(record.at("to"));
    result.start = record.at("start").number();
    result.end = record.at("end").number();
    return result;
  }

  void read_stages(JsonValue list) {
    for (const JsonValue record : list.elements()) {
      unknown_.check(record, {"devices", "ops", "load"});
      Stage stage;
      for (const JsonValue name : record.at("devices").elements()) {
        stage.devices.push_back(device(name));
      }
      stage.ops = ops(record.at("ops"));
      const auto load = record.find("load");
      stage.load = load ? number_or_infinity(*load) : kInfinity;
      file_.plan.stages.push_back(std::move(stage));
    }
  }

  void read_calls(JsonValue list) {
    for (const JsonValue record : list.elements()) {
      unknown_.check(record, {"device", "ops", "start", "end"});
      Call call;
      call.device = device(record.at("device"));
      call.ops = ops(record.at("ops"));
      call.start = record.at("start").number();
      call.end = record.at("end").number();
      file_.plan.calls.push_back(std::move(call));
    }
  }

  JsonValue root_;
  const Problem& problem_;
  PlanFile file_;
  UnknownKeys unknown_;
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

std::string write_plan(const Problem& problem, const PlanFile& file,
                       const PlanWriteOptions& options) {
  return PlanWriter(problem, file, options).write();
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
  ReadOptions options = given;
  if (options.format.empty()) options.format = reference.problem.format;
  if (!options.objective) options.objective = reference.objective;
  if (options.cluster.empty()) options.cluster = reference.problem.cluster_path;
  ProblemFile file = read_problem(path, options);
  file.draft.rules = reference.rules.over(file.draft.rules);
  return file;
}

PlanDocument::PlanDocument(std::string_view text, std::string path)
    : path_(std::move(path)), document_(text, input_name(path_)) {
  const JsonValue root = document_.root();
  if (!root.find("placewright") && !root.find("fpgas")) {
    root.fail(
        "is no plan: expected the key 'placewright' (our own format) or 'fpgas' (an expert "
        "split)");
  }
}

bool PlanDocument::is_expert_split() const {
  return !document_.root().find("placewright");
}

PlanReference PlanDocument::reference() const {
  if (is_expert_split()) return {};
  const JsonValue root = document_.root();
  check_header(root, "plan");
  PlanReference reference;
  reference.objective = root.at("objective").one_of<Objective>();
  if (const auto rules = root.find("rules")) reference.rules = StatedRules(*rules);
  if (const auto problem = root.find("problem")) {
    reference.problem = reference_from_json(*problem);
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
  return is_expert_split() ? plan_of_split(root, problem, op_ids)
                           : PlanReader(root, problem).read();
}

}  // namespace placewright
