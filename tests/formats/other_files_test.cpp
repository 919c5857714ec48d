#include "formats/other_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/input_error.h"
#include "formats/problem_file.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

std::string fault_of(const std::string& bytes) {
  try {
    (void)parse_problem(bytes, "file");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(OtherFiles, AreCalledWhatTheySeemToBe) {
  EXPECT_THAT(fault_of("PK\x03\x04rest"), HasSubstr("seems to be a ZIP archive"));
  EXPECT_THAT(fault_of("\x89HDF\r\n\x1a\n"), HasSubstr("a Keras model (.h5)"));
  EXPECT_THAT(fault_of("\x1c\0\0\0TFL3"s), HasSubstr("must end in .tflite"));
  EXPECT_THAT(fault_of("\x08\x08\x12\x07pytorch"), HasSubstr("must end in .onnx"));
  EXPECT_THAT(fault_of("\x40\0\0\0\0\0\0\0{\"weight\": {}}"s), HasSubstr("safetensors"));
  EXPECT_THAT(fault_of("<?xml version=\"1.0\"?>"), HasSubstr("must end in .xml"));
}

TEST(OtherFiles, TextIsLeftToTheReader) {
  for (const char* text : {"", "hello", "{\"placewright\": 1}", "[1, 2]", "  {"}) {
    EXPECT_FALSE(seems_to_be(text)) << text;
  }
  EXPECT_THAT(fault_of("hello"), HasSubstr("is not JSON"));
}

}  // namespace
}  // namespace placewright
