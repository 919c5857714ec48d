#include "backends/model_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/registry.h"
#include "backends/usual_shapes.h"
#include "formats/input_error.h"
#include "formats/onnx_weights.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;

std::vector<long> sizes_in(std::string_view text, std::string_view whole) {
  std::vector<long> sizes;
  while (true) {
    const std::string_view word = text.substr(0, text.find('x'));
    long size = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
    if (error != std::errc{} || end != word.data() + word.size() || size < 1) {
      throw std::invalid_argument(
          fmt::format("'{}' is not a shape: expected something like image=1x3x224x224", whole));
    }
    sizes.push_back(size);
    if (word.size() == text.size()) return sizes;
    text.remove_prefix(word.size() + 1);
  }
}

// The length of "MODEL:" at the begin of the text, if it names the model of this path; else 0.
// Input names may hold colons too ("image:0").
std::size_t prefix_for(const std::string& path, const std::string& text) {
  for (const std::string& name : {path, fs::path(path).filename().string(), model_name_of(path)}) {
    if (text.starts_with(name + ":")) return name.size() + 1;
  }
  return 0;
}

void require_safe_to_read(const std::string& path) {
  require_that_it_ends(path);
  // OpenVINO's own format is text, and names one file beside it.
  if (fs::path(path).extension() == ".xml" || !fs::is_regular_file(path)) return;
  require_weights_beside(path);
}

}  // namespace

bool PortSignature::is_open() const {
  return !shape || std::find(shape->begin(), shape->end(), kOpen) != shape->end();
}

std::string shape_text(const PortSignature& port) {
  if (!port.shape) return "any shape";
  if (port.shape->empty()) return "one value";
  std::vector<std::string> sizes;
  for (const long size : *port.shape) {
    sizes.push_back(size == PortSignature::kOpen ? "?" : fmt::format("{}", size));
  }
  return fmt::format("{}", fmt::join(sizes, "x"));
}

Shapes shapes_named(const std::vector<std::string>& texts) {
  Shapes shapes;
  for (const std::string& text : texts) {
    const auto equals = text.rfind('=');
    const bool named = equals != std::string::npos;
    const std::string name = named ? text.substr(0, equals) : std::string{};
    if (!shapes.emplace(name, sizes_in(std::string_view(text).substr(named ? equals + 1 : 0), text))
             .second) {
      throw std::invalid_argument(fmt::format("the shape of '{}' is given twice", name));
    }
  }
  return shapes;
}

std::vector<ModelFile> model_files(const std::vector<std::string>& paths,
                                   const std::vector<std::string>& shapes, Precision precision) {
  std::vector<ModelFile> files;
  for (const std::string& path : paths) files.push_back({path, {}, precision});
  for (const std::string& text : shapes) {
    bool used = false;
    for (ModelFile& file : files) {
      const std::size_t prefix = prefix_for(file.path, text);
      if (prefix == 0 && files.size() > 1) continue;
      file.shapes.push_back(text.substr(prefix));
      used = true;
    }
    if (used) continue;
    std::vector<std::string> names;
    for (const ModelFile& file : files) names.push_back(model_name_of(file.path));
    throw std::invalid_argument(
        fmt::format("'{}' does not say which model it is for; write {}:INPUT=SHAPE (the models "
                    "are: {})",
                    text, names.front(), fmt::join(names, ", ")));
  }
  for (const ModelFile& file : files) (void)shapes_named(file.shapes);
  return files;
}

std::unique_ptr<NeuralModel> read_model(const Runtime& runtime, const ModelFile& file) {
  require_safe_to_read(file.path);
  return runtime.read(file.path, shapes_named(file.shapes), file.precision);
}

ModelSignature signature_of(const Runtime& runtime, const ModelFile& file) {
  require_safe_to_read(file.path);
  return runtime.signature(file.path, shapes_named(file.shapes));
}

std::string fix_open_shapes(std::vector<ModelFile>& files) {
  std::vector<std::string> chosen;
  std::vector<std::string> flags;
  for (ModelFile& file : files) {
    const BackendEntry* reader = backend_reading(file.path);
    const Runtime& runtime = runtime_named(reader != nullptr ? reader->name : kDefaultBackend);
    const std::string model = files.size() > 1 ? model_name_of(file.path) + ":" : std::string{};
    const ModelSignature signature = signature_of(runtime, file);
    for (const UsualShape& usual : usual_shapes(file.path, signature)) {
      chosen.push_back(fmt::format("'{}{}' ({}) is taken as {}{}", model, usual.input,
                                   usual.declared, usual.shape,
                                   usual.stated ? " (the model states it)" : ""));
      flags.push_back(fmt::format("--shape '{}{}={}'", model, usual.input, usual.shape));
      file.shapes.push_back(fmt::format("{}={}", usual.input, usual.shape));
    }
  }
  if (chosen.empty()) return {};
  return fmt::format("open input shapes: {}; to choose others: {}", fmt::join(chosen, ", "),
                     fmt::join(flags, " "));
}

void require_fixed_shapes(const std::vector<ModelFile>& files) {
  for (const ModelFile& file : files) {
    const BackendEntry* reader = backend_reading(file.path);
    const Runtime& runtime = runtime_named(reader != nullptr ? reader->name : kDefaultBackend);
    for (const PortSignature& input : signature_of(runtime, file).inputs) {
      if (!input.is_open()) continue;
      throw InputError(file.path, "",
                       fmt::format("the shape of the input '{}' ({}) is open; give one, for "
                                   "example with --shape '{}=1x3x224x224'",
                                   input.name, shape_text(input), input.name));
    }
  }
}

std::string model_name_of(const std::string& path) {
  fs::path file = fs::path(path).lexically_normal();
  if (!file.has_filename()) file = file.parent_path();  // a folder, written with a slash
  const std::string stem = file.stem().string();
  return stem.empty() || stem == "." ? "model" : stem;
}

}  // namespace placewright
