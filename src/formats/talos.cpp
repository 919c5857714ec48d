// Talos's format: several models, each op with its time on one CPU and one GPU, transfers free.

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "formats/cluster_json.h"
#include "formats/problem_formats.h"
#include "formats/problem_readers.h"

namespace placewright {
namespace {

std::string lower_case(std::string text) {
  for (char& character : text) {
    if (character >= 'A' && character <= 'Z') character = static_cast<char>(character | 0x20);
  }
  return text;
}

// The kind of a device is its name in lower case: the key under which ops give their times.
void read_devices(ProblemDraft& draft, JsonValue root) {
  std::vector<std::string> names = {"CPU", "GPU"};
  if (const auto devices = root.find("devices")) {
    check_device_count(*devices);
    names.clear();
    for (const JsonValue name : devices->elements()) names.emplace_back(name.text());
  }
  for (const std::string& name : names) {
    draft.cluster.devices.push_back({.name = name, .kind = KindId{draft.cluster.kinds.size()}});
    draft.cluster.kinds.push_back({lower_case(name), false});
  }
  for (const DeviceId from : ids<DeviceId>(names.size())) {
    for (const DeviceId to : ids<DeviceId>(names.size())) {
      if (from != to) draft.cluster.links.push_back({.from = from, .to = to});
    }
  }
}

void read_unit(ProblemDraft& draft, JsonValue root) {
  if (const auto unit = root.find("unit")) draft.unit = unit->one_of<TimeUnit>();
}

Model read_model(JsonValue record, std::size_t number) {
  Model model;
  const auto name = record.find("name");
  model.name = name ? std::string(name->text()) : fmt::format("model{}", number + 1);
  if (const auto arrival = record.find("arrival")) model.arrival = arrival->amount();
  if (const auto weight = record.find("weight")) model.weight = weight->amount();
  const auto deadline = record.find("deadline");
  if (deadline && !deadline->is_null()) model.deadline = deadline->amount();
  return model;
}

// The ops of one model by id; ops without an id are known by their number in the model.
struct ModelOps {
  std::map<std::string, OpId> by_id;
  std::vector<OpId> in_order;

  [[nodiscard]] OpId op(JsonValue id) const {
    const auto found = by_id.find(id.id());
    if (found == by_id.end()) id.fail(fmt::format("no op of this model has the id {}", id.id()));
    return found->second;
  }
};

ModelOps read_ops(ProblemDraft& draft, JsonValue ops, ModelId model) {
  ModelOps result;
  for (const JsonValue record : ops.elements()) {
    Op op;
    op.model = model;
    const auto id = record.find("id");
    op.name = id ? id->id() : std::to_string(result.in_order.size());
    if (const auto type = record.find("type")) op.type = type->id();
    if (const auto memory = record.find("memory")) op.memory = memory->amount();
    for (const DeviceKind& kind : draft.cluster.kinds)
      op.time.push_back(time_or_null(record.at(kind.name)));
    const OpId number{draft.ops.size()};
    if (!result.by_id.emplace(op.name, number).second) {
      (id ? *id : record).fail(fmt::format("the id {} is taken already in this model", op.name));
    }
    result.in_order.push_back(number);
    draft.ops.push_back(std::move(op));
  }
  return result;
}

std::vector<std::pair<OpId, OpId>> read_edges(JsonValue model, const ModelOps& ops) {
  std::vector<std::pair<OpId, OpId>> edges;
  if (const auto pairs = model.find("edges")) {
    for (const JsonValue pair : pairs->elements()) {
      if (pair.elements().size() != 2) pair.fail("expected a pair of op ids");
      auto end = pair.elements().begin();
      const OpId from = ops.op(*end);
      const OpId to = ops.op(*++end);
      edges.emplace_back(from, to);
    }
    return edges;
  }
  // A model without edges is a chain.
  for (std::size_t i = 1; i < ops.in_order.size(); ++i) {
    edges.emplace_back(ops.in_order[i - 1], ops.in_order[i]);
  }
  return edges;
}

void add_tensors(ProblemDraft& draft, const std::vector<std::pair<OpId, OpId>>& edges) {
  std::map<OpId, std::size_t> tensor_of;
  std::set<std::pair<OpId, OpId>> seen;
  for (const auto& [from, to] : edges) {
    const auto [found, inserted] = tensor_of.emplace(from, draft.tensors.size());
    if (inserted) {
      Tensor tensor;
      tensor.producer = from;
      draft.tensors.push_back(std::move(tensor));
    }
    if (seen.emplace(from, to).second) draft.tensors[found->second].consumers.push_back(to);
  }
}

// An op keeps its id as its name where the ids tell all ops of all models apart; else, and where it
// has none, the model's name goes before.
void name_ops(ProblemDraft& draft, const std::vector<bool>& has_id) {
  std::set<std::string> seen;
  bool distinct = true;
  for (std::size_t i = 0; i < draft.ops.size(); ++i) {
    if (has_id[i]) distinct = seen.insert(draft.ops[i].name).second && distinct;
  }
  for (std::size_t i = 0; i < draft.ops.size(); ++i) {
    Op& op = draft.ops[i];
    if (has_id[i] && distinct) continue;
    op.name = fmt::format("{}/{}", draft.models[op.model.index()].name, op.name);
  }
}

ProblemFile read(JsonValue root, const std::string& name, bool /*cluster_follows*/) {
  ProblemFile file;
  ProblemDraft& draft = file.draft;
  draft.name = name;
  draft.objective = Objective::total_completion;
  draft.cluster.interconnect = InterconnectKind::links;
  read_unit(draft, root);
  read_devices(draft, root);

  std::vector<std::size_t> first_ops;  // by model
  std::vector<bool> has_id;
  for (const JsonValue record : root.at("models").elements()) {
    const ModelId model{draft.models.size()};
    draft.models.push_back(read_model(record, model.index()));
    first_ops.push_back(draft.ops.size());
    const JsonValue ops = record.at("ops");
    add_tensors(draft, read_edges(record, read_ops(draft, ops, model)));
    for (const JsonValue op : ops.elements()) has_id.push_back(op.find("id").has_value());
  }
  name_ops(draft, has_id);

  std::vector<std::size_t> producers;
  for (const Tensor& tensor : draft.tensors) producers.push_back(tensor.producer.index());
  file.place_of = [origin = root.file(), first_ops, producers](DraftPart part,
                                                               std::size_t index) -> Place {
    const auto model_of = [&](std::size_t op) {
      return static_cast<std::size_t>(std::upper_bound(first_ops.begin(), first_ops.end(), op) -
                                      first_ops.begin() - 1);
    };
    switch (part) {
      case DraftPart::kind:
      case DraftPart::device:
        return {origin, fmt::format("/devices/{}", index)};
      case DraftPart::model:
        return {origin, fmt::format("/models/{}", index)};
      case DraftPart::op: {
        const std::size_t model = model_of(index);
        return {origin, fmt::format("/models/{}/ops/{}", model, index - first_ops[model])};
      }
      case DraftPart::tensor:
        return {origin, fmt::format("/models/{}", model_of(producers.at(index)))};
      default:
        return {origin, ""};
    }
  };
  return file;
}

}  // namespace

ProblemFormat talos_format() {
  return {.name = "talos",
          .recognised_by = "'models'",
          .recognises = [](JsonValue root) { return root.find("models").has_value(); },
          .read = read};
}

}  // namespace placewright
