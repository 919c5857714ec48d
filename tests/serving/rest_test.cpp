#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/rest_answer.h"
#include "serving/rest_call.h"

namespace placewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Takes two numbers and hands them out again.
ModelGraph two_numbers(const std::string& element, double bytes) {
  ModelGraph graph;
  const TensorType type{.element = element, .shape = {2}, .bytes = bytes};
  graph.inputs.push_back({"x", type});
  graph.outputs.push_back({"y", {.port = 0}});
  return graph;
}

std::string complaint(const ModelGraph& graph, const std::string& body,
                      std::optional<std::size_t> header = {}) {
  try {
    const InferenceCall call = parse_rest_call(body, header);
    static_cast<void>(fitted_call(graph, call));
    static_cast<void>(chosen_outputs(graph, call));
  } catch (const BadInference& error) {
    return error.what();
  }
  return "";
}

std::string input(const std::string& rest) {
  return "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2]," + rest + "}]}";
}

TEST(Rest, ReadsNumbersAndBinaryData) {
  const ModelGraph graph = two_numbers("f32", 8);
  const InferenceCall call = parse_rest_call(input("\"data\":[[1.5],[-2]]"), {});
  float values[2];
  std::memcpy(values, fitted_call(graph, call).front().data(), sizeof(values));
  EXPECT_THAT(values, ElementsAre(1.5F, -2.F));
  const std::string json = input("\"parameters\":{\"binary_data_size\":8}");
  const std::string body = json + std::string(8, '\0');
  EXPECT_EQ(fitted_call(graph, parse_rest_call(body, json.size())).front().size(), 8U);
}

TEST(Rest, ReadsFlagsInNestedLists) {
  const InferenceCall call = parse_rest_call(
      "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"BOOL\",\"shape\":[2,1],\"data\":[[true],[0]]}]}",
      {});
  EXPECT_THAT(call.inputs.front().data, ElementsAre(std::byte{1}, std::byte{0}));
}

TEST(Rest, SaysWhatIsWrongInOneSentence) {
  const ModelGraph graph = two_numbers("f32", 8);
  EXPECT_THAT(complaint(graph, "{"), HasSubstr("line 1"));
  EXPECT_THAT(complaint(graph, "{}", 3), HasSubstr("the body has 2 bytes"));
  EXPECT_EQ(complaint(graph, "{\"inputs\":[]}"), "the input 'x' is missing");
  EXPECT_EQ(complaint(graph, input("\"data\":[1]")), "the input 'x' takes 8 bytes, found 4");
  EXPECT_THAT(complaint(graph, input("\"data\":[1,\"a\"]")), HasSubstr("expected a number"));
  EXPECT_THAT(complaint(graph, input("\"parameters\":{\"binary_data_size\":9}")),
              HasSubstr("the body has 0 left"));
  const std::string json = input("\"data\":[1,2]");
  EXPECT_THAT(complaint(graph, json + "xy", json.size()), HasSubstr("belong to no input"));
  EXPECT_EQ(complaint(two_numbers("i64", 16), json), "the input 'x' takes INT64, found FP32");
  EXPECT_THAT(complaint(graph,
                        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2],"
                        "\"data\":[1,2]}]}"),
              HasSubstr("has the shape [2], found [1, 2]"));
  EXPECT_THAT(complaint(graph,
                        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2],"
                        "\"data\":[1,2]}],\"outputs\":[{\"name\":\"z\"}]}"),
              HasSubstr("no output 'z'"));
  EXPECT_EQ(complaint(graph,
                      "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2],"
                      "\"data\":[1,2]}],\"outputs\":[{\"name\":\"y\"},{\"name\":\"y\"}]}"),
            "the request has the output 'y' twice");
  EXPECT_THAT(complaint(graph,
                        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"BYTES\",\"shape\":[2],"
                        "\"data\":[\"a\",\"b\"]}]}"),
              HasSubstr("BYTES cannot be sent as JSON"));
}

TEST(Rest, AnswersInTheFormThatIsAskedFor) {
  const ModelGraph graph = two_numbers("f32", 8);
  const float values[2] = {0.5F, 3.F};
  const auto bytes = std::as_bytes(std::span(values));
  const std::vector<std::span<const std::byte>> outputs{bytes};
  InferenceCall call{.model = "m", .id = "a\"b"};
  const RestAnswer text = rest_answer(graph, call, "2", outputs);
  EXPECT_EQ(text.body,
            "{\"id\":\"a\\\"b\",\"model_name\":\"m\",\"model_version\":\"2\",\"outputs\":[{"
            "\"name\":\"y\","
            "\"datatype\":\"FP32\",\"shape\":[2],\"data\":[0.5,3]}]}");
  EXPECT_FALSE(text.header.has_value());
  call.binary_outputs = true;
  const RestAnswer binary = rest_answer(graph, call, "2", outputs);
  EXPECT_EQ(binary.body.size(), binary.header.value() + 8);
  EXPECT_THAT(binary.body, HasSubstr("\"binary_data_size\":8"));
}

}  // namespace
}  // namespace placewright
