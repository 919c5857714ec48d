#include "formats/onnx_weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include <fmt/format.h>
#include <protozero/exception.hpp>

#include "formats/input_error.h"
#include "formats/onnx_fields.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;
using namespace onnx;

enum class Message { model, training, function, graph, node, attribute, sparse, tensor };

// A field of a message that is a message itself.
struct Inner {
  Message outer;
  protozero::pbf_tag_type field;
  Message inner;
};

// All ways to a tensor.
constexpr std::array kInner = {
    Inner{Message::model, kGraph, Message::graph},
    Inner{Message::model, kTraining, Message::training},
    Inner{Message::model, kFunction, Message::function},
    Inner{Message::training, kInitialization, Message::graph},
    Inner{Message::training, kAlgorithm, Message::graph},
    Inner{Message::function, kFunctionNode, Message::node},
    Inner{Message::function, kFunctionAttribute, Message::attribute},
    Inner{Message::graph, kNode, Message::node},
    Inner{Message::graph, kInitializer, Message::tensor},
    Inner{Message::graph, kSparseInitializer, Message::sparse},
    Inner{Message::node, kAttribute, Message::attribute},
    Inner{Message::attribute, kConstant, Message::tensor},
    Inner{Message::attribute, kConstants, Message::tensor},
    Inner{Message::attribute, kSubGraph, Message::graph},
    Inner{Message::attribute, kSubGraphs, Message::graph},
    Inner{Message::attribute, kSparseConstant, Message::sparse},
    Inner{Message::attribute, kSparseConstants, Message::sparse},
    Inner{Message::sparse, kSparseValues, Message::tensor},
    Inner{Message::sparse, kSparseIndices, Message::tensor},
};

// Protobuf itself reads no deeper.
constexpr int kDeepest = 100;

bool lies_in(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
         folder.end();
}

fs::path weights_file(const std::string& model, const std::string& location) {
  const fs::path named(location);
  std::error_code failed;
  const fs::path folder = fs::absolute(model, failed).parent_path();
  const fs::path file = fs::weakly_canonical(folder / named, failed);
  const bool inside = !named.empty() && named.is_relative() &&
                      std::ranges::find(named, fs::path("..")) == named.end() &&
                      (lies_in(file, fs::weakly_canonical(folder, failed)) ||
                       lies_in(file, fs::weakly_canonical(model, failed).parent_path()));
  // Runtimes take a location that begins with a star for an address in memory.
  if (!inside || location.starts_with('*')) {
    throw InputError(
        model, "",
        fmt::format("its weights lie in '{}', expected a file in the model's folder", location));
  }
  if (!fs::is_regular_file(file, failed)) {
    throw InputError(model, "", fmt::format("its weights in '{}' cannot be read", file.string()));
  }
  return file;
}

// Also those of a tensor whose data the file holds after all: a reader may see it otherwise.
void require_beside(std::string_view tensor, const std::string& model) {
  for (const Field& field : fields_of(tensor)) {
    if (field.number == kExternalData && text_in(field.value, kKey) == "location") {
      (void)weights_file(model, text_in(field.value, kValue));
    }
  }
}

void require_all_beside(Message kind, std::string_view message, const std::string& model,
                        int depth) {
  if (kind == Message::tensor) return require_beside(message, model);
  if (depth == kDeepest) {
    throw InputError(model, "", fmt::format("is nested deeper than {} levels", kDeepest));
  }
  for (const Field& field : fields_of(message)) {
    for (const Inner& way : kInner) {
      if (way.outer != kind || way.field != field.number) continue;
      require_all_beside(way.inner, field.value, model, depth + 1);
    }
  }
}

std::size_t number_in(const std::map<std::string, std::string>& entries, const std::string& key) {
  std::size_t number = 0;
  const auto found = entries.find(key);
  if (found == entries.end()) return number;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  return number;
}

}  // namespace

std::string external_values(std::string_view tensor, const std::string& model) {
  std::map<std::string, std::string> entries;
  for (const Field& field : fields_of(tensor)) {
    if (field.number == kExternalData) {
      entries[text_in(field.value, kKey)] = text_in(field.value, kValue);
    }
  }
  const fs::path path = weights_file(model, entries["location"]);
  std::error_code failed;
  const std::size_t size = fs::file_size(path, failed);
  const std::size_t offset = number_in(entries, "offset");
  const bool whole = !entries.contains("length");
  const std::size_t length = whole ? size - std::min(offset, size) : number_in(entries, "length");
  std::ifstream file(path, std::ios::binary);
  std::string values;
  if (!failed && offset <= size && length <= size - offset) {
    values.resize(length);
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(values.data(), static_cast<std::streamsize>(length));
  }
  if (failed || !file || values.size() != length) {
    throw InputError(model, "", fmt::format("its weights in '{}' cannot be read", path.string()));
  }
  return values;
}

void require_weights_beside(const std::string& model) {
  const std::string bytes = read_whole(model, kLargestOnnxFile);
  try {
    require_all_beside(Message::model, bytes, model, 0);
  } catch (const protozero::exception&) {
    return;  // for its reader to complain about
  }
}

}  // namespace placewright
