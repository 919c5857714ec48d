// Shapes for inputs that leave theirs open.

#include "backends/usual_shapes.h"

#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

#include "formats/onnx_fields.h"
#include "support/folder.h"

namespace placewright {
namespace {

using namespace onnx;

constexpr long kOpen = PortSignature::kOpen;

PortSignature port(const std::string& name, std::vector<long> shape) {
  return {.name = name, .element = "f32", .shape = std::move(shape)};
}

std::vector<std::string> shapes_of(const std::string& path, std::vector<PortSignature> inputs) {
  std::vector<std::string> shapes;
  for (const UsualShape& usual : usual_shapes(path, {.inputs = std::move(inputs), .outputs = {}})) {
    shapes.push_back(usual.input + "=" + usual.shape);
  }
  return shapes;
}

using Shapes = std::vector<std::string>;

TEST(UsualShapes, OfBatchesImagesAndSequences) {
  EXPECT_EQ(shapes_of("m.xml", {port("ids", {kOpen, kOpen}), port("fixed", {1, 7})}),
            (Shapes{"ids=1x128"}));
  EXPECT_EQ(shapes_of("m.xml", {port("image", {kOpen, 3, kOpen, kOpen})}),
            (Shapes{"image=1x3x224x224"}));
  EXPECT_EQ(shapes_of("m.xml", {port("image", {kOpen, kOpen, kOpen, 3})}),
            (Shapes{"image=1x224x224x3"}));
  EXPECT_EQ(shapes_of("m.xml", {port("image", {kOpen, kOpen, kOpen, kOpen})}),
            (Shapes{"image=1x3x224x224"}));
  EXPECT_EQ(shapes_of("m.xml", {port("image", {kOpen, 1, 28, 28})}), (Shapes{"image=1x1x28x28"}));
  EXPECT_EQ(shapes_of("m.xml", {port("past", {kOpen, 12, kOpen, 64})}),
            (Shapes{"past=1x12x128x64"}));
}

TEST(UsualShapes, ThereIsNoneForAnyNumberOfAxes) {
  PortSignature any = port("any", {});
  any.shape = std::nullopt;
  EXPECT_EQ(shapes_of("m.xml", {port("ids", {kOpen, kOpen}), any}), Shapes{});
}

// An ONNX file with one input of axes with these names, and an entry of metadata.
std::string onnx_file(const std::string& input, const Shapes& axes, const std::string& size) {
  std::string text;
  protozero::pbf_writer model(text);
  {
    protozero::pbf_writer graph(model, kGraph);
    protozero::pbf_writer value(graph, kInput);
    value.add_string(kValueName, input);
    protozero::pbf_writer type(value, kValueType);
    protozero::pbf_writer tensor(type, kTensorType);
    protozero::pbf_writer shape(tensor, kShape);
    for (const std::string& axis : axes) {
      protozero::pbf_writer(shape, kDimension).add_string(kDimensionName, axis);
    }
  }
  protozero::pbf_writer entry(model, kModelMetadata);
  entry.add_string(kKey, "imgsz");
  entry.add_string(kValue, size);
  entry.commit();
  return text;
}

TEST(UsualShapes, FollowNamesOfAxes) {
  const testing::Folder folder;
  const auto shape = [&](const Shapes& axes) {
    const std::string path = folder.write("m.onnx", onnx_file("x", axes, ""));
    return shapes_of(path, {port("x", std::vector<long>(axes.size(), kOpen))}).front();
  };
  EXPECT_EQ(shape({"seq_length", "batch_size", ""}), "x=128x1x128");
  EXPECT_EQ(shape({"batch", "past_length + sequence_length"}), "x=1x256");
  EXPECT_EQ(shape({"batch", "past_length + 1"}), "x=1x129");
  EXPECT_EQ(shape({"N", "?"}), "x=1x128");
}

TEST(UsualShapes, TakeTheSizeOfImagesThatTheModelStates) {
  const testing::Folder folder;
  const auto shape = [&](const std::string& size, std::vector<long> declared) {
    const std::string path =
        folder.write("m.onnx", onnx_file("images", {"batch", "3", "height", "width"}, size));
    return shapes_of(path, {port("images", std::move(declared))}).front();
  };
  EXPECT_EQ(shape("[640, 480]", {kOpen, 3, kOpen, kOpen}), "images=1x3x640x480");
  EXPECT_EQ(shape("[640, 480]", {kOpen, kOpen, kOpen, 3}), "images=1x640x480x3");
  EXPECT_EQ(shape("320", {1, 3, kOpen, kOpen}), "images=1x3x320x320");
  EXPECT_EQ(shape("large", {1, 3, kOpen, kOpen}), "images=1x3x224x224");
  const auto usual = usual_shapes(
      folder.file("m.onnx"), {.inputs = {port("images", {1, 3, kOpen, kOpen})}, .outputs = {}});
  EXPECT_EQ(usual.front().declared, "1x3x?x?");
}

}  // namespace
}  // namespace placewright
