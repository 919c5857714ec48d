#include "cli/model_info.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "backends/registry.h"
#include "backends/usual_shapes.h"
#include "cli/table.h"
#include "cli/text.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DescribedModel {
  std::string name;
  std::string backend;
  ModelSignature signature;
  std::vector<UsualShape> usual;  // of inputs with an open shape
};

DescribedModel described(const ModelFile& file) {
  const BackendEntry& backend = *backend_reading(file.path);
  ModelSignature signature = signature_of(runtime_named(backend.name), file);
  std::vector<UsualShape> usual = usual_shapes(file.path, signature);
  return {model_name_of(file.path), backend.title, std::move(signature), std::move(usual)};
}

Json ports_json(const std::vector<PortSignature>& ports) {
  Json list = Json::array();
  for (const PortSignature& port : ports) {
    Json shape;  // null: any number of dimensions
    if (port.shape) {
      shape = Json::array();
      for (const long size : *port.shape) {
        shape.push_back(size == PortSignature::kOpen ? Json() : Json(size));
      }
    }
    list.push_back({{"name", port.name}, {"type", port.element}, {"shape", std::move(shape)}});
  }
  return list;
}

void print_text(const DescribedModel& model) {
  fmt::print("{}, read by {}\n\n", printable(model.name), model.backend);
  TextTable table({{""}, {"name"}, {"type"}, {"shape"}});
  const auto add = [&](const char* what, const std::vector<PortSignature>& ports) {
    for (const PortSignature& port : ports) {
      table.add({what, port.name, port.element, shape_text(port)});
    }
  };
  add("input", model.signature.inputs);
  add("output", model.signature.outputs);
  fmt::print("{}", table.text());
  const auto& inputs = model.signature.inputs;
  if (std::any_of(inputs.begin(), inputs.end(), [](const auto& port) { return port.is_open(); })) {
    std::vector<std::string> usual;
    for (const UsualShape& shape : model.usual) usual.push_back(shape.input + "=" + shape.shape);
    fmt::print("\n? is open: 'plan', 'profile' and 'import' {} --shape\n",
               usual.empty() ? std::string("need")
                             : fmt::format("take {} without",
                                           printable(fmt::format("{}", fmt::join(usual, ", ")))));
  }
}

}  // namespace

ExitCode model_info(const std::vector<ModelFile>& files, const OutputOptions& output) {
  Json document = {{"models", Json::array()}};
  for (const ModelFile& file : files) {
    const DescribedModel model = described(file);
    if (!output.json && !output.quiet) {
      print_text(model);
      continue;
    }
    document["models"].push_back({{"name", model.name},
                                  {"backend", model.backend},
                                  {"inputs", ports_json(model.signature.inputs)},
                                  {"outputs", ports_json(model.signature.outputs)}});
  }
  if (output.json) print_json(document);
  return ExitCode::success;
}

}  // namespace placewright::cli
