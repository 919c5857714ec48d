#include "formats/onnx_model.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>

#include "formats/input_error.h"
#include "formats/onnx_fields.h"
#include "formats/onnx_weights.h"
#include "formats/text_file.h"

namespace placewright {
namespace {

using namespace onnx;

constexpr int kWholeNumbers = 7;  // TensorProto.INT64

struct Element {
  std::string_view name;
  int number;
};
constexpr std::array kElements = {
    Element{"f32", 1},     Element{"u8", 2},    Element{"i8", 3},   Element{"u16", 4},
    Element{"i16", 5},     Element{"i32", 6},   Element{"i64", 7},  Element{"string", 8},
    Element{"boolean", 9}, Element{"f16", 10},  Element{"f64", 11}, Element{"u32", 12},
    Element{"u64", 13},    Element{"bf16", 16},
};

void add_outer_reads(std::string_view graph, std::vector<std::string>& reads);

// What a node reads, with what the sub-graphs of its attributes take from around them.
void add_reads(std::string_view node, std::vector<std::string>& reads) {
  for (const Field& field : fields_of(node)) {
    if (field.number == kReads && !field.value.empty()) reads.emplace_back(field.value);
    if (field.number != kAttribute) continue;
    for (const Field& part : fields_of(field.value)) {
      if (part.number == kSubGraph || part.number == kSubGraphs) add_outer_reads(part.value, reads);
    }
  }
}

void add_outer_reads(std::string_view graph, std::vector<std::string>& reads) {
  std::vector<std::string> inner;
  std::set<std::string> made;
  for (const Field& field : fields_of(graph)) {
    if (field.number == kNode) {
      add_reads(field.value, inner);
      for (const Field& part : fields_of(field.value)) {
        if (part.number == kMakes) made.emplace(part.value);
      }
    } else if (field.number == kInitializer) {
      made.insert(text_in(field.value, kTensorName));
    } else if (field.number == kInput) {
      made.insert(text_in(field.value, kValueName));
    } else if (field.number == kOutput) {
      inner.push_back(text_in(field.value, kValueName));
    }
  }
  for (std::string& name : inner) {
    if (!made.contains(name)) reads.push_back(std::move(name));
  }
}

OnnxNode node_of(std::string_view message) {
  OnnxNode node{.type = text_in(message, kType), .reads = {}, .makes = {}, .bytes = message};
  add_reads(message, node.reads);
  for (const Field& field : fields_of(message)) {
    if (field.number == kMakes && !field.value.empty()) node.makes.emplace_back(field.value);
  }
  return node;
}

std::string value_message(const OnnxPort& port, const std::string& model) {
  const auto* element = std::find_if(kElements.begin(), kElements.end(),
                                     [&](const Element& e) { return e.name == port.element; });
  if (element == kElements.end()) {
    throw InputError(model, "",
                     fmt::format("cannot be cut at '{}': ONNX has no elements of the type {}",
                                 port.name, port.element));
  }
  std::string text;
  protozero::pbf_writer value(text);
  value.add_string(kValueName, port.name);
  protozero::pbf_writer type(value, kValueType);
  protozero::pbf_writer tensor(type, kTensorType);
  tensor.add_int32(kElementType, element->number);
  protozero::pbf_writer shape(tensor, kShape);
  for (const std::size_t size : port.shape) {
    protozero::pbf_writer dimension(shape, kDimension);
    dimension.add_int64(kDimensionValue, static_cast<std::int64_t>(size));
  }
  shape.commit();
  tensor.commit();
  type.commit();
  return text;
}

std::string vector_message(const std::string& name, const std::vector<long>& numbers) {
  std::string values;
  for (const long number : numbers) {
    for (unsigned byte = 0; byte < 8; ++byte) {
      values += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * byte) & 0xffU);
    }
  }
  std::string text;
  protozero::pbf_writer tensor(text);
  tensor.add_int64(kDimensions, static_cast<std::int64_t>(numbers.size()));
  tensor.add_int32(kDataType, kWholeNumbers);
  tensor.add_string(kTensorName, name);
  tensor.add_bytes(kRawData, values);
  return text;
}

}  // namespace

OnnxModel::OnnxModel(const std::string& path)
    : path_(path), bytes_(read_whole(path, kLargestOnnxFile)) {
  try {
    for (const Field& field : fields_of(bytes_)) {
      if (field.number == kGraph) {
        graph_ = field.value;
        read_graph(field.value);
      } else {
        other_fields_.push_back(field.bytes);
      }
    }
  } catch (const protozero::exception& error) {
    throw InputError(path, "", fmt::format("is not an ONNX model: {}", error.what()));
  }
}

void OnnxModel::read_graph(std::string_view graph) {
  for (const Field& field : fields_of(graph)) {
    switch (field.number) {
      case kNode:
        nodes_.push_back(node_of(field.value));
        break;
      case kInitializer:
        weights_.emplace(text_in(field.value, kTensorName), field.bytes);
        break;
      case kSparseInitializer:
        weights_.emplace(text_in(text_in(field.value, kSparseValues), kTensorName), field.bytes);
        break;
      case kInput:
        inputs_.emplace(text_in(field.value, kValueName), field.bytes);
        break;
      case kOutput:
        outputs_.push_back(text_in(field.value, kValueName));
        break;
      default:
        break;  // names and annotations, which a part need not have
    }
  }
}

std::string OnnxModel::part(const OnnxPart& part) const {
  std::set<std::string> weights;
  std::string graph;
  protozero::pbf_writer writer(graph);
  for (const std::size_t number : part.nodes) {
    writer.add_message(kNode, nodes_[number].bytes.data(), nodes_[number].bytes.size());
    for (const std::string& name : nodes_[number].reads) {
      if (is_weight(name)) weights.insert(name);
    }
  }
  writer.add_string(kGraphName, part.name);
  for (const OnnxPort& input : part.inputs) {
    writer.add_message(kInput, value_message(input, path_));
  }
  for (const std::string& name : weights) {
    // Files of the first versions list weights among the inputs.
    if (const auto listed = inputs_.find(name); listed != inputs_.end()) graph += listed->second;
    const Field field = fields_of(weights_.at(name)).front();
    if (field.number == kSparseInitializer || !whole_in(field.value, kDataLocation).value_or(0)) {
      graph += field.bytes;
      continue;
    }
    std::string tensor;
    for (const Field& each : fields_of(field.value)) {
      if (each.number != kExternalData && each.number != kDataLocation) tensor += each.bytes;
    }
    protozero::pbf_writer(tensor).add_bytes(kRawData, external_values(field.value, path_));
    writer.add_message(kInitializer, tensor);
  }
  for (const auto& [name, numbers] : part.vectors) {
    writer.add_message(kInitializer, vector_message(name, numbers));
  }
  for (const OnnxPort& output : part.outputs) {
    writer.add_message(kOutput, value_message(output, path_));
  }
  if (graph.size() > kLargestOnnxFile) {
    throw InputError(path_, "",
                     fmt::format("the part '{}' has {:.1f} GB, ONNX files hold at most 2 GiB",
                                 part.name, static_cast<double>(graph.size()) / 1e9));
  }
  std::string model;
  for (const std::string_view field : other_fields_) model += field;
  protozero::pbf_writer(model).add_message(kGraph, graph);
  return model;
}

std::string OnnxModel::annotated(std::string_view key,
                                 const std::vector<std::string>& value_of_node) const {
  std::string graph;
  std::size_t number = 0;
  for (const Field& field : fields_of(graph_)) {
    const std::string value = field.number == kNode ? value_of_node.at(number++) : "";
    if (value.empty()) {
      graph += field.bytes;
      continue;
    }
    std::string node{field.value};
    protozero::pbf_writer writer(node);
    protozero::pbf_writer entry(writer, kNodeMetadata);
    entry.add_string(kKey, key.data(), key.size());
    entry.add_string(kValue, value);
    entry.commit();
    protozero::pbf_writer(graph).add_message(kNode, node);
  }
  std::string model;
  for (const std::string_view field : other_fields_) model += field;
  protozero::pbf_writer(model).add_message(kGraph, graph);
  return model;
}

bool OnnxModel::has_files_beside() const {
  return std::ranges::any_of(weights_, [](const auto& weight) {
    const Field field = fields_of(weight.second).front();
    return field.number == kInitializer && whole_in(field.value, kDataLocation).value_or(0) != 0;
  });
}

std::map<std::string, long> whole_attributes(const OnnxNode& node) {
  std::map<std::string, long> numbers;
  for (const Field& field : fields_of(node.bytes)) {
    if (field.number != kAttribute) continue;
    if (const auto number = whole_in(field.value, kWhole)) {
      numbers[text_in(field.value, kAttributeName)] = *number;
    }
  }
  return numbers;
}

}  // namespace placewright
