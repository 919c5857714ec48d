// Our own problem format, version 1 (described in problem_file.h).

#include <algorithm>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/problem_formats.h"
#include "formats/problem_readers.h"

namespace placewright {
namespace {

class NativeReader {
 public:
  NativeReader(JsonValue root, bool cluster_follows)
      : root_(root), cluster_follows_(cluster_follows) {}

  ProblemFile read(const std::string& name) {
    check_header(root_, "problem");
    unknown_.check(
        root_, {"placewright", "version", "name", "unit", "objective", "rules", "kinds", "devices",
                "interconnect", "models", "ops", "tensors", "colocate", "weights", "origin"});
    read_head(name);
    read_cluster_part();
    read_models();
    read_ops();
    read_tensors();
    read_groups();

    ProblemFile file;
    file.draft = std::move(draft_);
    file.warnings = unknown_.warnings();
    file.place_of = [origin = root_.file(), all = uniform_link_count_](DraftPart part,
                                                                       std::size_t index) {
      return place(origin, part, index, all);
    };
    return file;
  }

 private:
  static Place place(const std::string& file, DraftPart part, std::size_t index, std::size_t all) {
    const auto at = [&](std::string_view list) {
      return Place{file, fmt::format("/{}/{}", list, index)};
    };
    switch (part) {
      case DraftPart::kind:
        return at("kinds");
      case DraftPart::device:
        return at("devices");
      case DraftPart::link:
        if (index < all) return {file, "/interconnect/all"};
        return {file, fmt::format("/interconnect/links/{}", index - all)};
      case DraftPart::model:
        return at("models");
      case DraftPart::op:
        return at("ops");
      case DraftPart::tensor:
        return at("tensors");
      case DraftPart::colocation:
        return at("colocate");
      case DraftPart::shared_weight:
        return at("weights");
      case DraftPart::problem:
        break;
    }
    return {file, ""};
  }

  void read_head(const std::string& name) {
    const auto given = root_.find("name");
    draft_.name = given ? std::string(given->text()) : name;
    if (const auto unit = root_.find("unit")) {
      draft_.unit = unit->one_of<TimeUnit>();
    }
    if (const auto objective = root_.find("objective")) {
      draft_.objective = objective->one_of<Objective>();
    }
    if (const auto rules = root_.find("rules")) {
      draft_.rules = rules_from_json(*rules, unknown_).over(draft_.rules);
    }
  }

  void read_cluster_part() {
    const bool given = root_.find("kinds") || root_.find("devices") || root_.find("interconnect");
    if (!given && !cluster_follows_) {
      root_.fail(
          "has no devices: the keys 'kinds', 'devices' and 'interconnect' are missing, and no "
          "cluster file is given");
    }
    own_cluster_ = given;
    if (!given) return;
    Cluster& cluster = draft_.cluster;
    cluster = cluster_from_json(root_, unknown_);
    const std::size_t count = cluster.devices.size();
    if (root_.at("interconnect").find("all")) uniform_link_count_ = count * count - count;
    for (std::size_t i = 0; i < cluster.kinds.size(); ++i) {
      kinds_.emplace(cluster.kinds[i].name, i);
    }
    for (std::size_t i = 0; i < count; ++i) devices_.emplace(cluster.devices[i].name, i);
  }

  void read_models() {
    const auto models = root_.find("models");
    if (!models) {
      draft_.models.push_back(
          {.name = draft_.name.empty() ? "model" : draft_.name, .deadline = {}});
    } else {
      for (const JsonValue record : models->elements()) {
        unknown_.check(record, {"name", "arrival", "weight", "deadline", "source"});
        Model model;
        model.name = record.at("name").text();
        if (const auto arrival = record.find("arrival")) model.arrival = arrival->amount();
        if (const auto weight = record.find("weight")) model.weight = weight->amount();
        const auto deadline = record.find("deadline");
        if (deadline && !deadline->is_null()) model.deadline = deadline->amount();
        if (const auto source = record.find("source")) model.source = read_source(*source);
        draft_.models.push_back(std::move(model));
      }
    }
    for (std::size_t i = 0; i < draft_.models.size(); ++i) {
      models_.emplace(draft_.models[i].name, i);
    }
  }

  ModelSource read_source(JsonValue record) {
    unknown_.check(record, {"path", "digest", "shapes", "backend"});
    ModelSource source;
    source.path = record.at("path").text();
    if (const auto digest = record.find("digest")) source.digest = digest->text();
    if (const auto shapes = record.find("shapes")) {
      for (const JsonValue shape : shapes->elements()) source.shapes.emplace_back(shape.text());
    }
    if (const auto backend = record.find("backend")) source.backend = backend->text();
    return source;
  }

  void read_ops() {
    const JsonValue ops = root_.at("ops");
    draft_.ops.reserve(ops.elements().size());
    for (const JsonValue record : ops.elements()) read_op(record);
    // Kinds met late: the ops before them gave no time for them.
    for (Op& op : draft_.ops)
      op.time.resize(std::max(op.time.size(), draft_.cluster.kinds.size()), kUnsupported);
    ops_.reserve(draft_.ops.size());
    for (std::size_t i = 0; i < draft_.ops.size(); ++i) ops_.emplace(draft_.ops[i].name, i);
  }

  void read_op(JsonValue record) {
    Op& op = draft_.ops.emplace_back();
    std::optional<JsonValue> time;
    std::optional<JsonValue> name;
    for (const auto& [key, value] : record.members()) {
      if (key == "name") {
        name = value;
      } else if (key == "time") {
        time = value;
      } else if (key == "type") {
        op.type = value.text();
      } else if (key == "memory") {
        op.memory = value.amount();
      } else if (key == "model") {
        op.model = ModelId{number_of(value, models_, draft_.models.size(), "model")};
      } else if (key == "flops") {
        op.flops = value.amount();
      } else if (key == "spread") {
        op.spread = value.amount();
      } else if (key == "backward") {
        op.backward = value.flag();
      } else if (key == "pin") {
        if (!value.is_null()) op.pinned_to = pin(value);
      }
    }
    op.name = (name ? *name : record.at("name")).text();
    read_times(op, time ? *time : record.at("time"));
    unknown_.check(
        record, {"name", "type", "model", "memory", "flops", "spread", "backward", "pin", "time"});
  }

  void read_times(Op& op, JsonValue time) {
    if (time.is_object()) {
      op.time.assign(draft_.cluster.kinds.size(), kUnsupported);
      for (const auto& [kind, value] : time.members()) {
        const std::size_t number = kind_number(kind, value);
        op.time.resize(draft_.cluster.kinds.size(), kUnsupported);
        op.time[number] = time_or_null(value);
      }
      return;
    }
    if (!own_cluster_) {
      time.fail("a list of times needs the file's own kinds, expected an object by kind name");
    }
    if (time.elements().size() != draft_.cluster.kinds.size()) {
      time.fail(fmt::format("op '{}' has {} times for {} device kinds", op.name, time.size(),
                            draft_.cluster.kinds.size()));
    }
    op.time.reserve(time.size());
    for (const JsonValue value : time.elements()) op.time.push_back(time_or_null(value));
  }

  std::size_t kind_number(std::string_view kind, JsonValue place) {
    const auto found = kinds_.find(std::string(kind));
    if (found != kinds_.end()) return found->second;
    if (own_cluster_) place.fail(fmt::format("no kind is called '{}'", kind));
    const std::size_t number = draft_.cluster.kinds.size();
    draft_.cluster.kinds.push_back({std::string(kind), false});
    kinds_.emplace(kind, number);
    return number;
  }

  DeviceId pin(JsonValue name) {
    const auto found = devices_.find(std::string(name.text()));
    if (found != devices_.end()) return DeviceId{found->second};
    if (own_cluster_) name.fail(fmt::format("no device is called '{}'", name.text()));
    // The cluster file will have a device of this name; until then a stand-in keeps it.
    const std::size_t number = draft_.cluster.devices.size();
    draft_.cluster.devices.push_back({.name = std::string(name.text()), .kind = {}});
    devices_.emplace(name.text(), number);
    return DeviceId{number};
  }

  template <class Numbers>
  std::size_t number_of(JsonValue reference, const Numbers& numbers, std::size_t count,
                        std::string_view noun) {
    if (reference.is_integer()) {
      const double number = reference.number();
      if (number >= 0 && number < static_cast<double>(count)) {
        return static_cast<std::size_t>(number);
      }
      reference.fail(fmt::format("there is no {} number {}, only {} of them", noun, number, count));
    }
    if (!reference.is_text())
      reference.fail(fmt::format("expected the name or number of a {}", noun));
    const auto found = numbers.find(typename Numbers::key_type(reference.text()));
    if (found == numbers.end()) {
      reference.fail(fmt::format("no {} is called '{}'", noun, reference.text()));
    }
    return found->second;
  }

  OpId op_of(JsonValue reference) {
    return OpId{number_of(reference, ops_, draft_.ops.size(), "op")};
  }

  std::vector<OpId> ops_of(JsonValue list) {
    std::vector<OpId> ops;
    ops.reserve(list.elements().size());
    for (const JsonValue reference : list.elements()) ops.push_back(op_of(reference));
    return ops;
  }

  void read_tensors() {
    const auto tensors = root_.find("tensors");
    if (!tensors) return;
    draft_.tensors.reserve(tensors->elements().size());
    for (const JsonValue record : tensors->elements()) {
      unknown_.check(record, {"name", "shape", "from", "to", "bytes", "time", "table"});
      Tensor& tensor = draft_.tensors.emplace_back();
      const auto from = record.find("from");
      if (!from) record.fail("the tensor has no producer: the key 'from' is missing");
      tensor.producer = op_of(*from);
      tensor.consumers = ops_of(record.at("to"));
      if (const auto name = record.find("name")) tensor.name = name->text();
      if (const auto shape = record.find("shape")) tensor.shape = shape->text();
      if (const auto bytes = record.find("bytes")) tensor.bytes = bytes->amount();
      if (const auto time = record.find("time")) tensor.host_time = time->amount();
      if (const auto table = record.find("table")) {
        if (!own_cluster_) table->fail("a table of transfer times needs the file's own devices");
        tensor.link_times = transfer_table(*table, draft_.cluster.devices.size());
      }
    }
  }

  void read_groups() {
    if (const auto groups = root_.find("colocate")) {
      for (const JsonValue group : groups->elements()) draft_.colocated.push_back(ops_of(group));
    }
    if (const auto origin = root_.find("origin")) {
      for (const JsonValue sentence : origin->elements()) {
        draft_.origin.emplace_back(sentence.text());
      }
    }
    const auto weights = root_.find("weights");
    if (!weights) return;
    for (const JsonValue record : weights->elements()) {
      unknown_.check(record, {"name", "bytes", "ops"});
      SharedWeight weight;
      if (const auto name = record.find("name")) weight.name = name->text();
      weight.bytes = record.at("bytes").amount();
      weight.ops = ops_of(record.at("ops"));
      draft_.shared_weights.push_back(std::move(weight));
    }
  }

  JsonValue root_;
  bool cluster_follows_;
  bool own_cluster_ = false;
  UnknownKeys unknown_;
  ProblemDraft draft_;
  std::unordered_map<std::string, std::size_t> kinds_;
  std::unordered_map<std::string, std::size_t> devices_;
  std::unordered_map<std::string, std::size_t> models_;
  std::unordered_map<std::string_view, std::size_t> ops_;  // names in draft_.ops
  std::size_t uniform_link_count_ = 0;
};

// Appends our own format.
class NativeWriter {
 public:
  explicit NativeWriter(const ProblemDraft& draft) : draft_(draft) {}

  std::string write() {
    text_.reserve(128 * (draft_.ops.size() + draft_.tensors.size()) + 4096);
    text_ += "{\"placewright\": \"problem\", \"version\": 1, \"name\": ";
    append_quoted(text_, draft_.name);
    text_ += fmt::format(", \"unit\": \"{}\", \"objective\": \"{}\",\n", name_of(draft_.unit),
                         name_of(draft_.objective));
    const std::string rules = rules_to_json(draft_.rules, WrittenRules::unusual);
    if (rules != "{}") text_ += fmt::format("\"rules\": {},\n", rules);
    append_cluster(text_, draft_.cluster);
    append_list("models", draft_.models, [this](const Model& model) { append(model); });
    append_list("ops", draft_.ops, [this](const Op& op) { append(op); });
    append_list("tensors", draft_.tensors, [this](const Tensor& tensor) { append(tensor); });
    if (!draft_.colocated.empty()) {
      append_list("colocate", draft_.colocated, [this](const auto& group) { append_ops(group); });
    }
    if (!draft_.shared_weights.empty()) {
      append_list("weights", draft_.shared_weights,
                  [this](const SharedWeight& weight) { append(weight); });
    }
    if (!draft_.origin.empty()) {
      append_list("origin", draft_.origin,
                  [this](const std::string& sentence) { append_quoted(text_, sentence); });
    }
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  template <class Record, class Append>
  void append_list(std::string_view key, const std::vector<Record>& records, Append append_record) {
    text_ += fmt::format(",\n\"{}\": [", key);
    bool first = true;
    for (const Record& record : records) {
      text_ += first ? "\n" : ",\n";
      first = false;
      append_record(record);
    }
    text_ += "\n]";
  }

  void append_text(std::string_view key, const std::string& value) {
    text_ += key;
    append_quoted(text_, value);
  }

  void append_unless(std::string_view key, double value, double standard) {
    if (value == standard) return;
    text_ += key;
    append_number(text_, value);
  }

  void append_ops(const std::vector<OpId>& ops) {
    text_ += '[';
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (i > 0) text_ += ", ";
      append_quoted(text_, draft_.ops[ops[i].index()].name);
    }
    text_ += ']';
  }

  void append_numbers(const double* numbers, std::size_t count) {
    text_ += '[';
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) text_ += ", ";
      append_number(text_, numbers[i]);
    }
    text_ += ']';
  }

  void append(const Model& model) {
    append_text("{\"name\": ", model.name);
    append_unless(", \"arrival\": ", model.arrival, 0);
    append_unless(", \"weight\": ", model.weight, 1);
    if (model.deadline) append_unless(", \"deadline\": ", *model.deadline, kInfinity);
    if (model.source) append(*model.source);
    text_ += '}';
  }

  void append(const ModelSource& source) {
    append_text(", \"source\": {\"path\": ", source.path);
    if (!source.digest.empty()) append_text(", \"digest\": ", source.digest);
    if (!source.shapes.empty()) {
      text_ += ", \"shapes\": [";
      for (std::size_t i = 0; i < source.shapes.size(); ++i) {
        append_text(i > 0 ? ", " : "", source.shapes[i]);
      }
      text_ += ']';
    }
    if (!source.backend.empty()) append_text(", \"backend\": ", source.backend);
    text_ += '}';
  }

  void append(const Op& op) {
    append_text("{\"name\": ", op.name);
    if (!op.type.empty()) append_text(", \"type\": ", op.type);
    if (op.model != ModelId{0}) append_text(", \"model\": ", draft_.models[op.model.index()].name);
    append_unless(", \"memory\": ", op.memory, 0);
    append_unless(", \"flops\": ", op.flops, 0);
    append_unless(", \"spread\": ", op.spread, 0);
    if (op.backward) text_ += ", \"backward\": true";
    if (op.pinned_to.valid()) {
      append_text(", \"pin\": ", draft_.cluster.devices[op.pinned_to.index()].name);
    }
    text_ += ", \"time\": ";
    append_numbers(op.time.data(), op.time.size());
    text_ += '}';
  }

  void append(const Tensor& tensor) {
    text_ += '{';
    if (!tensor.name.empty()) {
      append_text("\"name\": ", tensor.name);
      text_ += ", ";
    }
    if (!tensor.shape.empty()) {
      append_text("\"shape\": ", tensor.shape);
      text_ += ", ";
    }
    append_text("\"from\": ", draft_.ops[tensor.producer.index()].name);
    text_ += ", \"to\": ";
    append_ops(tensor.consumers);
    append_unless(", \"bytes\": ", tensor.bytes, 0);
    append_unless(", \"time\": ", tensor.host_time, 0);
    if (!tensor.link_times.empty()) {
      const std::size_t count = draft_.cluster.devices.size();
      text_ += ", \"table\": [";
      for (std::size_t from = 0; from < count; ++from) {
        if (from > 0) text_ += ", ";
        append_numbers(tensor.link_times.data() + from * count, count);
      }
      text_ += ']';
    }
    text_ += '}';
  }

  void append(const SharedWeight& weight) {
    text_ += '{';
    if (!weight.name.empty()) {
      append_text("\"name\": ", weight.name);
      text_ += ", ";
    }
    text_ += "\"bytes\": ";
    append_number(text_, weight.bytes);
    text_ += ", \"ops\": ";
    append_ops(weight.ops);
    text_ += '}';
  }

  const ProblemDraft& draft_;
  std::string text_;
};

}  // namespace

StatedRules rules_from_json(JsonValue object, UnknownKeys& unknown) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  unknown.check(object, {"contiguity", "transfers", "training", "memory", "congestion",
                         "calls_per_device", "max_replicas", "replica_bandwidth"});
  StatedRules rules;
  if (const auto value = object.find("contiguity")) {
    rules.contiguity = value->one_of<Contiguity>();
  }
  if (const auto value = object.find("transfers")) {
    rules.transfers = value->one_of<TransferMode>();
  }
  if (const auto value = object.find("training")) {
    rules.training = value->one_of<TrainingMode>();
  }
  if (const auto value = object.find("memory")) {
    rules.memory = value->one_of<MemoryModel>();
  }
  if (const auto value = object.find("congestion")) rules.congestion = value->flag();
  if (const auto value = object.find("calls_per_device")) {
    rules.calls_per_device = static_cast<int>(value->integer(1, kMost));
  }
  if (const auto value = object.find("max_replicas")) {
    rules.max_replicas = static_cast<int>(value->integer(1, kMost));
  }
  if (const auto value = object.find("replica_bandwidth")) {
    rules.replica_bandwidth = value->amount();
  }
  return rules;
}

std::string rules_to_json(const Rules& rules, WrittenRules which) {
  const Rules usual;
  std::string text;
  const auto append = [&](std::string_view key, auto value, auto usual_value, std::string written) {
    if (which == WrittenRules::unusual && value == usual_value) return;
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", key, written);
  };
  const auto append_name = [&](std::string_view key, auto value, auto usual_value) {
    append(key, value, usual_value, fmt::format("\"{}\"", name_of(value)));
  };
  append_name("contiguity", rules.contiguity, usual.contiguity);
  append_name("transfers", rules.transfers, usual.transfers);
  append_name("training", rules.training, usual.training);
  append_name("memory", rules.memory, usual.memory);
  append("congestion", rules.congestion, usual.congestion, rules.congestion ? "true" : "false");
  append("calls_per_device", rules.calls_per_device, usual.calls_per_device,
         std::to_string(rules.calls_per_device));
  append("max_replicas", rules.max_replicas, usual.max_replicas,
         std::to_string(rules.max_replicas));
  std::string bandwidth;
  append_number(bandwidth, rules.replica_bandwidth);
  append("replica_bandwidth", rules.replica_bandwidth, usual.replica_bandwidth, bandwidth);
  return fmt::format("{{{}}}", text);
}

ProblemFormat native_format() {
  return {
      .name = "placewright",
      .recognised_by = "'placewright'",
      .recognises = [](JsonValue root) { return root.find("placewright").has_value(); },
      .read = [](JsonValue root, const std::string& name,
                 bool cluster_follows) { return NativeReader(root, cluster_follows).read(name); }};
}

std::string write_problem(const ProblemDraft& draft) {
  return NativeWriter(draft).write();
}

}  // namespace placewright
