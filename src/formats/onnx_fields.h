// The messages of an ONNX file, field by field, with the numbers of
// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto. Views into the file; nothing is copied.
//
// All functions throw protozero::exception for bytes that are no message.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/types.hpp>

namespace placewright::onnx {

// What protobuf can hold.
inline constexpr std::size_t kLargestOnnxFile = (std::size_t{1} << 31U) - 1;

enum ModelField : protozero::pbf_tag_type {
  kGraph = 7,
  kModelMetadata = 14,
  kTraining = 20,
  kFunction = 25
};
enum GraphField : protozero::pbf_tag_type {
  kNode = 1,
  kGraphName = 2,
  kInitializer = 5,
  kInput = 11,
  kOutput = 12,
  kSparseInitializer = 15,
};
enum NodeField : protozero::pbf_tag_type {
  kReads = 1,
  kMakes = 2,
  kType = 4,
  kAttribute = 5,
  kNodeMetadata = 9,
};
enum AttributeField : protozero::pbf_tag_type {
  kAttributeName = 1,
  kWhole = 3,
  kConstant = 5,
  kSubGraph = 6,
  kConstants = 10,
  kSubGraphs = 11,
  kSparseConstant = 22,
  kSparseConstants = 23,
};
enum TrainingField : protozero::pbf_tag_type { kInitialization = 1, kAlgorithm = 2 };
enum FunctionField : protozero::pbf_tag_type { kFunctionNode = 7, kFunctionAttribute = 11 };
enum TensorField : protozero::pbf_tag_type {
  kDimensions = 1,
  kDataType = 2,
  kTensorName = 8,
  kRawData = 9,
  kExternalData = 13,
  kDataLocation = 14,
};
enum SparseField : protozero::pbf_tag_type { kSparseValues = 1, kSparseIndices = 2 };
enum EntryField : protozero::pbf_tag_type { kKey = 1, kValue = 2 };
enum ValueField : protozero::pbf_tag_type { kValueName = 1, kValueType = 2 };
enum TypeField : protozero::pbf_tag_type { kTensorType = 1, kElementType = 1, kShape = 2 };
enum ShapeField : protozero::pbf_tag_type {
  kDimension = 1,
  kDimensionValue = 1,
  kDimensionName = 2
};

// One field of a message: its number, the value of a field that has a length, and all of its bytes.
struct Field {
  protozero::pbf_tag_type number = 0;
  std::string_view value;
  std::string_view bytes;
};

std::vector<Field> fields_of(std::string_view message);

// Of a field that is given several times the last one counts, as protobuf has it.
std::string text_in(std::string_view message, protozero::pbf_tag_type number);
std::optional<long> whole_in(std::string_view message, protozero::pbf_tag_type number);

}  // namespace placewright::onnx
