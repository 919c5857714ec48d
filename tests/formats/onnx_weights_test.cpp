// Weights of ONNX models in files beside them: read from there, and from nowhere else.

#include "formats/onnx_weights.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>
#include <sys/stat.h>

#include "formats/input_error.h"
#include "formats/onnx_fields.h"
#include "formats/onnx_model.h"
#include "support/folder.h"
#include "support/locations.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using namespace onnx;
using testing::Folder;

using Entries = std::vector<std::pair<std::string, std::string>>;

// A tensor with its values elsewhere.
std::string tensor_with(const Entries& entries) {
  std::string text;
  protozero::pbf_writer tensor(text);
  tensor.add_string(kTensorName, "w");
  for (const auto& [key, value] : entries) {
    protozero::pbf_writer entry(tensor, kExternalData);
    entry.add_string(kKey, key);
    entry.add_string(kValue, value);
  }
  tensor.add_int32(kDataLocation, 1);
  return text;
}

// A message with one field that is a message.
std::string around(protozero::pbf_tag_type field, const std::string& inner) {
  std::string text;
  protozero::pbf_writer(text).add_message(field, inner);
  return text;
}

// The ways to a tensor that a reader may go.
std::vector<std::string> models_with(const std::string& tensor) {
  const std::string node = around(kNode, around(kAttribute, around(kConstant, tensor)));
  const std::string graph = around(kInitializer, tensor);
  const auto in_attribute = [](protozero::pbf_tag_type field, const std::string& inner) {
    return around(kGraph, around(kNode, around(kAttribute, around(field, inner))));
  };
  return {around(kGraph, graph),
          around(kGraph, node),
          around(kGraph, around(kSparseInitializer, around(kSparseValues, tensor))),
          around(kGraph, around(kSparseInitializer, around(kSparseIndices, tensor))),
          around(kGraph, "") + around(kGraph, graph),
          in_attribute(kSubGraph, graph),
          in_attribute(kSubGraphs, node),
          in_attribute(kConstants, tensor),
          in_attribute(kSparseConstant, around(kSparseIndices, tensor)),
          in_attribute(kSparseConstants, around(kSparseValues, tensor)),
          around(kTraining, around(kInitialization, graph)),
          around(kTraining, around(kAlgorithm, node)),
          around(kFunction, around(kFunctionNode, around(kAttribute, around(kConstant, tensor)))),
          around(kFunction, around(kFunctionAttribute, around(kConstant, tensor)))};
}

class OnnxWeights : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("secret", "secret");
    fs::create_directories(fs::path(model_).parent_path() / "sub");
    write("weights", "abcdefgh");
    write("sub/weights", "beneath");
    fs::create_symlink("../secret", beside("link"));
    fs::create_symlink("weights", beside("inner-link"));
    fs::create_directory_symlink("..", beside("up"));
    ASSERT_EQ(mkfifo(beside("pipe").c_str(), 0600), 0);
  }
  [[nodiscard]] std::string beside(const std::string& name) const {
    return (fs::path(model_).parent_path() / name).string();
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(beside(name), std::ios::binary) << text;
  }

  // What the file says wrong, whatever the way to the tensor; empty: nothing.
  std::string fault_of(const Entries& entries) {
    std::set<std::string> faults;
    for (const std::string& model : models_with(tensor_with(entries))) {
      write("m.onnx", model);
      try {
        require_weights_beside(model_);
        faults.insert("");
      } catch (const InputError& error) {
        faults.insert(error.what());
      }
    }
    EXPECT_EQ(faults.size(), 1U) << "it depends on the way";
    return *faults.begin();
  }

  Folder folder_;
  std::string model_ = folder_.file("models/m.onnx");
};

TEST_F(OnnxWeights, LieInTheFolderOfTheModel) {
  EXPECT_EQ(fault_of({{"location", "weights"}}), "");
  EXPECT_EQ(fault_of({{"location", "./sub/weights"}}), "");
  EXPECT_EQ(fault_of({{"location", "inner-link"}}), "");
  const auto refused = [&](const std::string& location) {
    EXPECT_THAT(fault_of({{"location", location}}), HasSubstr("expected a file in the model's"))
        << location;
  };
  refused("../secret");
  refused("sub/../../secret");
  refused("sub/../weights");  // inside, but ONNX forbids it too
  refused(folder_.file("secret"));
  refused("link");
  refused("up/secret");
  refused("");
  refused("*/_ORT_MEM_ADDR_/*");
  EXPECT_THAT(fault_of({{"location", "missing"}}), HasSubstr("cannot be read"));
  EXPECT_THAT(fault_of({{"location", "pipe"}}), HasSubstr("cannot be read"));
}

TEST_F(OnnxWeights, OfAFieldGivenTwiceTheLastCounts) {
  std::string entry;
  protozero::pbf_writer writer(entry);
  writer.add_string(kKey, "location");
  writer.add_string(kValue, "weights");
  writer.add_string(kValue, "../secret");
  write("m.onnx", around(kGraph, around(kInitializer, around(kExternalData, entry))));
  EXPECT_THROW(require_weights_beside(model_), InputError);
  EXPECT_THAT(fault_of({{"location", "weights"}, {"location", "../secret"}}), HasSubstr("secret"));
  EXPECT_THAT(fault_of({{"location", "../secret"}, {"location", "weights"}}), HasSubstr("secret"));
  EXPECT_EQ(
      external_values(
          tensor_with({{"location", "weights"}, {"offset", "1"}, {"length", "2"}, {"offset", "3"}}),
          model_),
      "de");
}

TEST_F(OnnxWeights, AreReadFromTheirPlace) {
  const auto values = [&](const Entries& entries) {
    return external_values(tensor_with(entries), model_);
  };
  EXPECT_EQ(values({{"location", "weights"}}), "abcdefgh");
  EXPECT_EQ(values({{"location", "weights"}, {"offset", "6"}}), "gh");
  EXPECT_THROW(values({{"location", "weights"}, {"offset", "6"}, {"length", "3"}}), InputError);
  EXPECT_THROW(values({{"location", "../secret"}}), InputError);
}

// Caches of downloads keep the files elsewhere, under other names, and link to them.
TEST_F(OnnxWeights, AModelThatIsALinkMayHaveItsWeightsBesideTheFileItLeadsTo) {
  const std::string tensor = tensor_with({{"location", "data"}});
  write("m.onnx", around(kGraph, around(kInitializer, tensor)));
  fs::create_directories(folder_.file("snapshot"));
  fs::create_symlink("../models/m.onnx", folder_.file("snapshot/model.onnx"));
  fs::create_symlink("../models/weights", folder_.file("snapshot/data"));
  EXPECT_EQ(external_values(tensor, folder_.file("snapshot/model.onnx")), "abcdefgh");
  EXPECT_NO_THROW(require_weights_beside(folder_.file("snapshot/model.onnx")));
}

TEST_F(OnnxWeights, WhatIsNoModelPassesAndWhatIsTooDeepDoesNot) {
  write("m.onnx", "no model at all");
  EXPECT_NO_THROW(require_weights_beside(model_));
  std::string deep;
  for (int i = 0; i < 60; ++i) deep = around(kNode, around(kAttribute, around(kSubGraph, deep)));
  write("m.onnx", around(kGraph, deep));
  EXPECT_THROW(require_weights_beside(model_), InputError);
}

// It says first that the values lie elsewhere, and then that they do not.
TEST_F(OnnxWeights, TheFileThatOnceGotOutIsRefused) {
  const std::string name = "tests/data/cases/onnx-external-escape.onnx";
  try {
    require_weights_beside(testing::source_path(name));
    ADD_FAILURE() << "it was read";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("secret.txt', expected a file in the model's folder"));
  }
}

}  // namespace
}  // namespace placewright
