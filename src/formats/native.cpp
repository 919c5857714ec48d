// Our own problem format (described in problem_file.h).

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/file_schemas.h"
#include "formats/json_schema.h"
#include "formats/problem_formats.h"
#include "formats/problem_readers.h"
#include "formats/stated_rules.h"

namespace placewright {

// Times of an op: by kind, or in the order of the file's own kinds.
struct TimesByKind {};
// The same for what an op takes of its device's resources.
struct SharesByKind {};
// Times of a tensor: a list of rows.
struct TransferTable {};

template <>
inline constexpr auto kFields<ModelSource> =
    std::tuple{required("path", &ModelSource::path), optional("digest", &ModelSource::digest),
               optional("shapes", &ModelSource::shapes),
               optional("backend", &ModelSource::backend)
                   .says("The backend that reads and runs the model; absent: openvino")};

template <>
inline constexpr auto kFields<Model> =
    std::tuple{required("name", &Model::name).not_empty(), optional("arrival", &Model::arrival),
               optional("weight", &Model::weight), optional("deadline", &Model::deadline).or_null(),
               optional("source", &Model::source).says("The model file it was imported from")};

template <>
inline constexpr auto kFields<Op> = std::tuple{
    required("name", &Op::name).not_empty(),
    optional("type", &Op::type),
    optional("model", &Op::model),
    optional("memory", &Op::memory),
    optional("flops", &Op::flops).says("Estimated work; information only"),
    optional("spread", &Op::spread).says("Relative spread of the measured times; information only"),
    optional("backward", &Op::backward),
    optional("pin", &Op::pinned_to).says("The device on which the op must run").or_null(),
    required("time", &Op::time, TimesByKind{})
        .says("By kind, in the order of `kinds` or by name; null: not supported"),
    optional("share", &Op::share, SharesByKind{})
        .says("The share of its device's resources that the op takes, by kind; version 2")};

template <>
inline constexpr auto kFields<CutOverhead> =
    std::tuple{required("kind", &CutOverhead::kind), optional("send", &CutOverhead::send),
               optional("receive", &CutOverhead::receive)};

template <>
inline constexpr auto kFields<Tensor> =
    std::tuple{optional("name", &Tensor::name),
               optional("shape", &Tensor::shape).says("Information only"),
               required("from", &Tensor::producer)
                   .or_fail("the tensor has no producer: the key 'from' is missing"),
               required("to", &Tensor::consumers),
               optional("bytes", &Tensor::bytes),
               optional("time", &Tensor::host_time)
                   .says("Host interconnect: out of, and into, an accelerator"),
               optional("table", &Tensor::link_times, TransferTable{})
                   .says("Links: devices x devices, row = sender; null: no link"),
               optional("cuts", &Tensor::cuts)
                   .says("Cost of handing the tensor over, for a kind of device; replaces the "
                         "devices' overheads; version 2")};

template <>
inline constexpr auto kFields<SharedWeight> =
    std::tuple{optional("name", &SharedWeight::name), required("bytes", &SharedWeight::bytes),
               required("ops", &SharedWeight::ops)};

namespace {

// A problem file is these, the fields of a cluster, and those below.
constexpr auto kHeadFields =
    std::tuple{stated("name", &ProblemDraft::name), stated("unit", &ProblemDraft::unit),
               stated("objective", &ProblemDraft::objective),
               optional("rules", &ProblemDraft::rules)
                   .on_line()
                   .says("The variant of the rules; absent: the default (docs/semantics.md)")};

// A list with a line for each of its elements.
template <class Field>
constexpr Field rows(Field list) {
  return list.on_line().in(Lines::bracket_below);
}

constexpr auto kGraphFields = std::tuple{
    rows(stated("models", &ProblemDraft::models).where(R"({"minItems": 1})")),
    rows(required("ops", &ProblemDraft::ops)),
    rows(stated("tensors", &ProblemDraft::tensors)),
    rows(optional("colocate", &ProblemDraft::colocated).says("Ops that must share a device")),
    rows(optional("weights", &ProblemDraft::shared_weights)),
    rows(optional("origin", &ProblemDraft::origin)
             .says("Sentences that say where the numbers come from"))};

struct ProblemSchema : NameSchemas {
  using NameSchemas::schema;

  Schema schema(Identity<OpId> /*type*/) const { return common_schema("reference"); }
  Schema schema(Identity<ModelId> /*type*/) const { return common_schema("reference"); }
  // Before a cluster file is read a pin may name anything.
  Schema schema(Identity<DeviceId> /*type*/) const { return {{"type", "string"}}; }
  Schema schema(TimesByKind /*form*/) const {
    const Schema time = common_schema("amount_or_null");
    return {{"type", {"array", "object"}}, {"items", time}, {"additionalProperties", time}};
  }
  Schema schema(SharesByKind /*form*/) const {
    const Schema share = {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1}};
    return {{"type", {"array", "object"}}, {"items", share}, {"additionalProperties", share}};
  }
  Schema schema(TransferTable /*form*/) const {
    const Schema row = {{"type", "array"}, {"items", common_schema("amount_or_null")}};
    return {{"type", "array"}, {"items", row}};
  }
};

// The oldest version that can state the problem.
int version_of(const ProblemDraft& draft) {
  const Rules usual;
  const bool has_schedule =
      draft.rules.schedule != usual.schedule || draft.rules.micro_batches != usual.micro_batches;
  const bool has_sharing =
      std::ranges::any_of(draft.ops, [](const Op& op) { return !op.share.empty(); }) ||
      std::ranges::any_of(draft.tensors, [](const Tensor& tensor) { return !tensor.cuts.empty(); });
  return std::max({version_of(draft.cluster), has_schedule ? kVersionOfNodes : 1,
                   has_sharing ? kVersionOfSharing : 1});
}

class NativeReader {
 public:
  NativeReader(JsonValue root, bool cluster_follows)
      : root_(root), cluster_follows_(cluster_follows) {}

  UnknownKeys unknown;

  ProblemFile read(const std::string& name) {
    const int version = check_header(root_, "problem", kNewestVersion);
    static constexpr auto kKeys =
        keys_of(kHeaderFields, kHeadFields, kFields<Cluster>, kGraphFields);
    unknown.check(root_, kKeys);
    draft_.name = name;
    read_fields(root_, draft_, kHeadFields, *this);
    read_cluster_part();
    draft_.models = {{.name = draft_.name.empty() ? "model" : draft_.name, .deadline = {}}};
    read_fields(root_, draft_, kGraphFields, *this);
    // Kinds met late: the ops before them gave no time for them.
    for (Op& op : draft_.ops) {
      op.time.resize(draft_.cluster.kinds.size(), kUnsupported);
      if (!op.share.empty()) op.share.resize(draft_.cluster.kinds.size(), 1);
    }
    check_version(root_, version, version_of(draft_));

    ProblemFile file;
    file.draft = std::move(draft_);
    file.warnings = unknown.warnings();
    file.place_of = [origin = root_.file(), all = uniform_link_count_](DraftPart part,
                                                                       std::size_t index) {
      return place(origin, part, index, all);
    };
    return file;
  }

  void read(JsonValue reference, OpId& op) {
    op = OpId{number_of(reference, numbered(ops_, draft_.ops), draft_.ops.size(), "op")};
  }
  void read(JsonValue reference, ModelId& model) {
    const auto& models = draft_.models;
    model = ModelId{number_of(reference, numbered(models_, models), models.size(), "model")};
  }
  void read(JsonValue name, DeviceId& device) {
    std::vector<Device>& devices = draft_.cluster.devices;
    const auto found = numbered(devices_, devices).find(std::string(name.text()));
    if (found != devices_.end()) {
      device = DeviceId{found->second};
      return;
    }
    if (own_cluster_) name.fail(fmt::format("no device is called '{}'", name.text()));
    // The cluster file will have a device of this name; until then a stand-in keeps it.
    device = DeviceId{devices.size()};
    devices_.emplace(name.text(), devices.size());
    devices.push_back({.name = std::string(name.text()), .kind = {}});
  }
  void read(JsonValue name, KindId& kind) { kind = KindId{kind_number(name.text(), name)}; }
  void read(TimesByKind, JsonValue times, Op& op) {
    read_by_kind(times, op, {"times", kUnsupported, time_or_null}, op.time);
  }
  void read(SharesByKind, JsonValue shares, Op& op) {
    const auto amount = [](JsonValue share) { return share.amount(); };
    read_by_kind(shares, op, {"shares", 1, amount}, op.share);
  }
  void read(TransferTable, JsonValue table, Tensor& tensor) {
    if (!own_cluster_) table.fail("a table of transfer times needs the file's own devices");
    tensor.link_times = transfer_table(table, draft_.cluster.devices.size());
  }

 private:
  // How the numbers of an op that go by kind are called and read, and what they are if left out.
  struct ByKind {
    std::string_view noun;
    double missing;
    double (*read)(JsonValue);
  };
  void read_by_kind(JsonValue json, const Op& op, const ByKind& how, std::vector<double>& numbers) {
    const std::vector<DeviceKind>& kinds = draft_.cluster.kinds;
    if (json.is_object()) {
      for (const auto& [kind, value] : json.members()) {
        const std::size_t number = kind_number(kind, value);
        numbers.resize(kinds.size(), how.missing);
        numbers[number] = how.read(value);
      }
      return;
    }
    if (!own_cluster_) {
      json.fail(fmt::format(
          "a list of {} needs the file's own kinds, expected an object by kind name", how.noun));
    }
    if (json.elements().size() != kinds.size()) {
      json.fail(fmt::format("op '{}' has {} {} for {} device kinds", op.name, json.size(), how.noun,
                            kinds.size()));
    }
    numbers.reserve(json.size());
    for (const JsonValue value : json.elements()) numbers.push_back(how.read(value));
  }

  static Place place(const std::string& file, DraftPart part, std::size_t index, std::size_t all) {
    const auto at = [&](std::string_view list) {
      return Place{file, fmt::format("/{}/{}", list, index)};
    };
    switch (part) {
      case DraftPart::kind:
        return at("kinds");
      case DraftPart::resource:
        return at("resources");
      case DraftPart::space:
        return at("spaces");
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

  void read_cluster_part() {
    const bool given = root_.find("kinds") || root_.find("devices") || root_.find("interconnect");
    if (!given && !cluster_follows_) {
      root_.fail(
          "has no devices: the keys 'kinds', 'devices' and 'interconnect' are missing, and no "
          "cluster file is given");
    }
    own_cluster_ = given;
    if (!given) return;
    (void)root_.at("kinds");  // a cluster file may do without, a problem's times are by kind
    draft_.cluster = cluster_from_json(root_, unknown, draft_.unit);
    const auto listed = root_.at("interconnect").find("links");
    uniform_link_count_ = draft_.cluster.links.size() - (listed ? listed->size() : 0);
  }

  std::size_t kind_number(std::string_view kind, JsonValue place) {
    std::vector<DeviceKind>& kinds = draft_.cluster.kinds;
    const auto found = numbered(kinds_, kinds).find(std::string(kind));
    if (found != kinds_.end()) return found->second;
    if (own_cluster_) place.fail(fmt::format("no kind is called '{}'", kind));
    kinds_.emplace(kind, kinds.size());
    kinds.push_back({std::string(kind), false});
    return kinds.size() - 1;
  }

  // The numbers of records by name, made when the first is asked for: by then the list is read.
  template <class Numbers, class Record>
  static const Numbers& numbered(Numbers& numbers, const std::vector<Record>& records) {
    if (!numbers.empty()) return numbers;
    numbers.reserve(records.size());
    for (std::size_t i = 0; i < records.size(); ++i) numbers.emplace(records[i].name, i);
    return numbers;
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

  JsonValue root_;
  bool cluster_follows_;
  bool own_cluster_ = false;
  ProblemDraft draft_;
  std::unordered_map<std::string, std::size_t> kinds_;
  std::unordered_map<std::string, std::size_t> devices_;
  std::unordered_map<std::string, std::size_t> models_;
  std::unordered_map<std::string_view, std::size_t> ops_;  // names in draft_.ops
  std::size_t uniform_link_count_ = 0;
};

// What ids are called in a problem that is being written.
struct NativeWriting {
  const ProblemDraft& draft;

  void append(std::string& text, OpId op) const { append_quoted(text, draft.ops[op.index()].name); }
  void append(std::string& text, ModelId model) const {
    append_quoted(text, draft.models[model.index()].name);
  }
  void append(std::string& text, DeviceId device) const {
    append_quoted(text, draft.cluster.devices[device.index()].name);
  }
  void append(std::string& text, KindId kind) const {
    append_quoted(text, draft.cluster.kinds[kind.index()].name);
  }
  void append(TransferTable, std::string& text, const Tensor& tensor) const {
    const auto count = static_cast<std::ptrdiff_t>(draft.cluster.devices.size());
    std::vector<std::vector<double>> rows;
    for (std::ptrdiff_t from = 0; from < count; ++from) {
      const auto row = tensor.link_times.begin() + from * count;
      rows.emplace_back(row, row + count);
    }
    append_value(text, rows, *this);
  }
};

}  // namespace

ProblemFormat native_format() {
  return {
      .name = "placewright",
      .recognised_by = "'placewright'",
      .recognises = [](JsonValue root) { return root.find("placewright").has_value(); },
      .read = [](JsonValue root, const std::string& name,
                 bool cluster_follows) { return NativeReader(root, cluster_follows).read(name); }};
}

Schema problem_schema() {
  Schema schema = begun_schema("problem", "A problem file", "problem", kNewestVersion);
  add_fields<ProblemDraft>(schema, kHeadFields, ProblemSchema{});
  add_cluster_schema(schema);
  add_fields<ProblemDraft>(schema, kGraphFields, ProblemSchema{});
  // A cluster file may have these instead.
  std::erase_if(schema["required"].get_ref<Schema::array_t&>(),
                [](const Schema& key) { return key == "devices" || key == "interconnect"; });
  schema["dependentRequired"] = {{"kinds", {"devices", "interconnect"}},
                                 {"devices", {"kinds", "interconnect"}},
                                 {"interconnect", {"kinds", "devices"}}};
  schema["allOf"].push_back(Schema::parse(R"(
      {"description": "Shares and cuts need version 2 of a file",
       "if": {"properties": {"version": {"maximum": 1}}, "required": ["version"]},
       "then": {"properties": {
           "ops": {"items": {"properties": {"share": {"maxItems": 0, "maxProperties": 0}}}},
           "tensors": {"items": {"properties": {"cuts": {"maxItems": 0}}}}}}})"));
  schema["allOf"].push_back(Schema::parse(R"(
      {"description": "Schedules of pipelines need version 3",
       "if": {"properties": {"version": {"maximum": 2}}, "required": ["version"]},
       "then": {"properties": {"rules": {"properties":
           {"schedule": {"const": "1f1b"}, "micro_batches": {"const": 0}}}}}})"));
  return schema;
}

std::string write_problem(const ProblemDraft& draft) {
  const NativeWriting context{draft};
  std::string text = begun_file("problem", version_of(draft));
  text.reserve(128 * (draft.ops.size() + draft.tensors.size()) + 4096);
  append_fields(text, draft, kHeadFields, context);
  append_cluster(text, draft.cluster);
  append_fields(text, draft, kGraphFields, context);
  text += "}\n";
  return text;
}

}  // namespace placewright
