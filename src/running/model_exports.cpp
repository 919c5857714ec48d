#include "running/model_exports.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "backends/affinity.h"
#include "backends/opened_models.h"
#include "formats/json_text.h"
#include "formats/plan_rows.h"
#include "formats/printable.h"
#include "running/plan_parts.h"

namespace placewright {
namespace {

using Json = nlohmann::ordered_json;

// "part-1.onnx"; with several models in a folder of its model.
std::string file_of(const Problem& problem, const std::vector<PlanPart>& parts,
                    std::size_t number) {
  std::string file = fmt::format("part-{}{}", number + 1, parts[number].ending);
  if (problem.model_count() == 1) return file;
  return fmt::format("{}/{}", file_name_of(problem.model(parts[number].model).name), file);
}

Json port_json(const PartPort& port) {
  return {{"tensor", port.tensor}, {"type", port.type.element}, {"shape", port.type.shape}};
}

// Which part runs where, in an order in which they can run, and which tensor goes where.
Json manifest_of(const Problem& problem, const Plan& plan, const std::vector<PlanPart>& parts) {
  Json document = {{"placewright", "parts"},    {"version", 1},
                   {"problem", problem.name()}, {"objective", name_of(problem.objective())},
                   {"value", plan.value},       {"unit", name_of(problem.unit())},
                   {"parts", Json::array()}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PlanPart& part = parts[i];
    Json entry = {{"file", file_of(problem, parts, i)},
                  {"model", problem.model(part.model).name},
                  {"devices", device_names(problem, part.devices)},
                  {"ops", part.ops},
                  {"inputs", Json::array()},
                  {"outputs", Json::array()}};
    for (const PartPort& input : part.inputs) {
      entry["inputs"].push_back(port_json(input));
      entry["inputs"].back()["from"] = input.from ? Json(*input.from + 1) : Json("model");
    }
    for (const PartPort& output : part.outputs) {
      entry["outputs"].push_back(port_json(output));
      Json to = Json::array();
      for (const std::size_t reader : output.to) to.push_back(reader + 1);
      entry["outputs"].back()["to"] = std::move(to);
      if (!output.model_output.empty()) {
        entry["outputs"].back()["model_output"] = output.model_output;
      }
    }
    document["parts"].push_back(std::move(entry));
  }
  return document;
}

// ONNX Runtime's name of a device: https://onnxruntime.ai, "session.layer_assignment_settings".
std::string designator_of(const std::string& device) {
  std::string name = device;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.starts_with("cpu")) return "cpu";
  const std::size_t digits = name.find_first_of("0123456789");
  const std::string number = digits == std::string::npos ? "0" : name.substr(digits);
  if (name.starts_with("cuda") || name.starts_with("gpu")) return "gpu:" + number;
  if (name.starts_with("npu")) return "npu";
  throw std::invalid_argument(
      fmt::format("cannot place ops on '{}': ONNX Runtime has cpu, cuda:N, gpu:N, npu", device));
}

}  // namespace

std::vector<ExportedFile> openvino_files(const Problem& problem, const Plan& plan,
                                         const std::string& path) {
  if (!path.ends_with(".xml")) throw std::invalid_argument("writes an IR and needs -o FILE.xml");
  if (problem.model_count() != 1) throw std::invalid_argument("takes a plan for one model");
  const auto models = models_of(problem);
  SerialisedModel model = models.front()->serialised();
  return {{path.substr(0, path.size() - 4) + ".bin", std::move(model.weights)},
          {path, std::move(model.graph)},
          {affinity_path(path), affinity_json(problem, plan)}};
}

std::vector<ExportedFile> part_files(const Problem& problem, const Plan& plan,
                                     const std::string& folder) {
  if (folder == "-") throw std::invalid_argument("writes several files and needs -o FOLDER");
  std::vector<PlanPart> parts = plan_parts(problem, plan, models_of(problem));
  const std::filesystem::path root(folder);
  std::vector<ExportedFile> files;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::filesystem::path file = root / file_of(problem, parts, i);
    if (parts[i].ending == ".xml") {
      files.push_back({std::filesystem::path(file).replace_extension(".bin").string(),
                       std::move(parts[i].file.weights)});
    }
    files.push_back({file.string(), std::move(parts[i].file.graph)});
  }
  files.push_back(
      {(root / "manifest.json").string(), json_text(manifest_of(problem, plan, parts), 1) + '\n'});
  return files;
}

std::vector<ExportedFile> onnxruntime_files(const Problem& problem, const Plan& plan,
                                            const std::string& path) {
  if (!path.ends_with(".onnx"))
    throw std::invalid_argument("writes a model and needs -o FILE.onnx");
  if (problem.model_count() != 1 || !problem.model(ModelId{0}).source ||
      !problem.model(ModelId{0}).source->path.ends_with(".onnx")) {
    throw std::invalid_argument("takes a plan for one model that came from an .onnx file");
  }
  const auto models = models_of(problem);
  const std::filesystem::path source = problem.model(ModelId{0}).source->path;
  const auto folder = [](const std::filesystem::path& file) {
    return std::filesystem::absolute(file).parent_path().lexically_normal();
  };
  std::set<std::string> rules;
  AnnotatedOnnx model =
      annotated_onnx(problem, plan, *models.front(), "layer_ann", [&](DeviceId device) {
        std::string designator = designator_of(problem.device(device).name);
        rules.insert(fmt::format("{0}(={0})", designator));
        return designator;
      });
  if (model.has_files_beside && folder(source) != folder(path)) {
    throw std::invalid_argument(fmt::format(
        "needs -o in {}, where the weights lie beside the model", folder(source).string()));
  }
  const Json settings = {
      {"session.layer_assignment_settings", fmt::format("{}", fmt::join(rules, "; "))}};
  return {{path, std::move(model.bytes)},
          {std::filesystem::path(path).replace_extension(".session.json").string(),
           json_text(settings, 1) + '\n'}};
}

}  // namespace placewright
