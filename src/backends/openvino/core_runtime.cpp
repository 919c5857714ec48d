#include "backends/openvino/core_runtime.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <openvino/pass/constant_folding.hpp>
#include <openvino/pass/manager.hpp>

#include "backends/openvino/core_model.h"
#include "backends/openvino/stable_names.h"
#include "formats/input_error.h"

namespace placewright::openvino {
namespace {

// OpenVINO's messages span lines and begin with the place in its sources; the last line says what
// is wrong.
std::string sentence_of(const std::exception& error) {
  std::string text = error.what();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const auto line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

std::string shape_text(const ov::PartialShape& shape) {
  std::string text;
  for (const ov::Dimension& dimension : shape) {
    if (!text.empty()) text += 'x';
    text += dimension.is_static() ? fmt::format("{}", dimension.get_length()) : "?";
  }
  return text;
}

std::string port_name_of(const ov::Output<ov::Node>& port) {
  const auto& names = port.get_names();
  if (names.empty()) return port.get_node()->get_friendly_name();
  return *std::min_element(names.begin(), names.end());
}

PortSignature port_of(const ov::Output<ov::Node>& port) {
  PortSignature signature{
      .name = port_name_of(port), .element = port.get_element_type().get_type_name(), .shape = {}};
  const ov::PartialShape& shape = port.get_partial_shape();
  if (shape.rank().is_dynamic()) return signature;
  signature.shape.emplace();
  for (const ov::Dimension& dimension : shape) {
    signature.shape->push_back(dimension.is_static() ? dimension.get_length()
                                                     : PortSignature::kOpen);
  }
  return signature;
}

bool is_called(const ov::Output<ov::Node>& input, const std::string& name) {
  return input.get_names().contains(name) || input.get_node()->get_friendly_name() == name;
}

void reshape(ov::Model& model, const std::string& path, const Shapes& shapes) {
  if (shapes.empty()) return;
  std::map<ov::Output<ov::Node>, ov::PartialShape> wanted;
  for (const auto& [name, sizes] : shapes) {
    const auto inputs = model.inputs();
    const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const auto& input) {
      return name.empty() ? inputs.size() == 1 : is_called(input, name);
    });
    if (found == inputs.end()) {
      std::vector<std::string> names;
      for (const auto& input : inputs) names.push_back(port_name_of(input));
      throw InputError(
          path, "",
          name.empty()
              ? fmt::format("it has {} inputs: name the one that a shape is for ({})",
                            inputs.size(), fmt::join(names, ", "))
              : fmt::format("no input is called '{}', there is: {}", name, fmt::join(names, ", ")));
    }
    std::vector<ov::Dimension> dimensions(sizes.begin(), sizes.end());
    wanted[*found] = ov::PartialShape(std::move(dimensions));
  }
  try {
    model.reshape(wanted);
  } catch (const ov::Exception& error) {
    throw InputError(path, "", fmt::format("does not take these shapes: {}", sentence_of(error)));
  }
}

void require_static_shapes(ov::Model& model, const std::string& path) {
  for (const auto& input : model.inputs()) {
    if (input.get_partial_shape().is_static()) continue;
    throw InputError(path, "",
                     fmt::format("the shape of the input '{}' is open", port_name_of(input)));
  }
  for (const auto& node : model.get_ordered_ops()) {
    for (const auto& output : node->outputs()) {
      if (output.get_partial_shape().is_static()) continue;
      throw InputError(path, "",
                       fmt::format("the shape of what '{}' ({}) makes depends on the data: {}",
                                   node->get_friendly_name(), node->get_type_name(),
                                   shape_text(output.get_partial_shape())));
    }
  }
}

void require_no_state(const ov::Model& model, const std::string& path) {
  if (model.get_sinks().empty()) return;
  throw InputError(path, "",
                   fmt::format("keeps state between inferences ('{}'): such a model cannot be cut",
                               model.get_sinks().front()->get_friendly_name()));
}

// OpenVINO shows a file that one reader refuses to all others, and some of them print.
void require_signature(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending != ".xml" && ending != ".onnx") return;
  std::string head(1024, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  if (ending == ".xml" && head.find("<net") == std::string::npos) {
    throw InputError(path, "", "is not an OpenVINO model: it has no <net> element");
  }
  const bool text = std::all_of(head.begin(), head.end(), [](char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0 || (c >= ' ' && c <= '~');
  });
  if (ending == ".onnx" && text) throw InputError(path, "", "is not an ONNX model: it holds text");
}

// The model as the file has it, with the shapes asked for.
std::shared_ptr<ov::Model> declared(ov::Core& core, const std::string& path, const Shapes& shapes) {
  if (!std::filesystem::exists(path)) throw InputError(path, "", "there is no such file");
  require_signature(path);
  std::shared_ptr<ov::Model> model;
  try {
    model = core.read_model(path);
  } catch (const std::exception& error) {
    throw InputError(path, "", fmt::format("OpenVINO cannot read it: {}", sentence_of(error)));
  }
  reshape(*model, path, shapes);
  return model;
}

// The same with its constants folded, and only if it can be cut.
std::shared_ptr<ov::Model> opened(ov::Core& core, const std::string& path, const Shapes& shapes) {
  std::shared_ptr<ov::Model> model = declared(core, path, shapes);
  ov::pass::Manager passes;
  passes.register_pass<ov::pass::ConstantFolding>();
  passes.run_passes(model);
  require_no_state(*model, path);
  require_static_shapes(*model, path);
  return model;
}

}  // namespace

std::string CoreRuntime::version() const {
  return fmt::format("OpenVINO {}", ov::get_openvino_version().buildNumber);
}

std::vector<RuntimeDevice> CoreRuntime::devices() const {
  std::vector<RuntimeDevice> result;
  for (const std::string& name : core_.get_available_devices()) {
    RuntimeDevice device{.name = name, .full_name = {}, .space = {}};
    device.full_name = core_.get_property(name, ov::device::full_name);
    try {
      device.memory =
          static_cast<double>(core_.get_property(name, "GPU_DEVICE_TOTAL_MEM_SIZE").as<uint64_t>());
    } catch (const ov::Exception&) {
      device.memory = 0;  // only GPUs tell
    }
    result.push_back(std::move(device));
  }
  // Outputs are compared with the CPU's.
  std::stable_partition(result.begin(), result.end(),
                        [](const RuntimeDevice& device) { return device.name == "CPU"; });
  return result;
}

ModelSignature CoreRuntime::signature(const std::string& path, const Shapes& shapes) const {
  const std::shared_ptr<ov::Model> model = declared(core_, path, shapes);
  ModelSignature signature;
  for (const auto& input : model->inputs()) signature.inputs.push_back(port_of(input));
  for (const auto& output : model->outputs()) signature.outputs.push_back(port_of(output));
  return signature;
}

std::unique_ptr<NeuralModel> CoreRuntime::read(const std::string& path, const Shapes& shapes,
                                               Precision precision) const {
  const std::vector<std::string> first = names_of(*opened(core_, path, shapes));
  const std::shared_ptr<ov::Model> model = opened(core_, path, shapes);
  replace_made_up_names(*model, first);
  return std::make_unique<CoreModel>(core_, model, precision);
}

std::unique_ptr<Buffer> CoreRuntime::allocate(const std::string& /*device*/,
                                              std::size_t size) const {
  return std::make_unique<HostBuffer>(size);
}

void CoreRuntime::copy(const Buffer& from, Buffer& to) const {
  std::copy(from.bytes().begin(), from.bytes().end(), to.bytes().begin());
}

}  // namespace placewright::openvino
