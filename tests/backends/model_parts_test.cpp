// Models of the zoo cut into parts: the parts, one after the other, give what the whole gives. And
// the trained model, in parts, still knows what a file is.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backends/inputs.h"
#include "backends/runtime.h"
#include "support/folder.h"
#include "support/locations.h"
#include "support/test_name.h"
#include "zoo/zoo.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;
using placewright::testing::Folder;

using Outputs = std::vector<std::vector<std::byte>>;

// Runs the ops, in topological order, as `count` parts of about equal length.
Outputs run_in_parts(const NeuralModel& model, std::size_t count, std::span<const Bytes> inputs) {
  const ModelGraph& graph = model.graph();
  std::vector<std::size_t> ops(graph.ops.size());
  std::iota(ops.begin(), ops.end(), std::size_t{0});

  struct Source {
    Request* request;
    std::size_t output;
  };
  std::map<TensorKey, Source> sources;
  std::vector<std::unique_ptr<CompiledPart>> parts;
  std::vector<std::unique_ptr<Request>> requests;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = ops.size() * i / count;
    const std::size_t end = ops.size() * (i + 1) / count;
    parts.push_back(model.compile(std::span(ops).subspan(begin, end - begin), {}));
    requests.push_back(parts.back()->request());
    for (std::size_t input = 0; input < parts.back()->inputs().size(); ++input) {
      const TensorKey key = parts.back()->inputs()[input];
      if (key.is_model_input()) {
        requests.back()->bind_input(input, inputs[key.port].data());
      } else {
        requests.back()->bind_input(input, *sources.at(key).request, sources.at(key).output);
      }
    }
    requests.back()->run();
    for (std::size_t output = 0; output < parts.back()->outputs().size(); ++output) {
      sources[parts.back()->outputs()[output]] = {requests.back().get(), output};
    }
  }
  Outputs outputs;
  for (const GraphOutput& output : graph.outputs) {
    const auto bytes = sources.at(output.tensor).request->output(sources.at(output.tensor).output);
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

std::vector<Bytes> inputs_for(const ZooEntry& entry, const ModelGraph& graph) {
  std::vector<Bytes> inputs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    EXPECT_EQ(graph.inputs[i].name, entry.inputs[i].name);
    inputs.push_back(seeded_input(graph.inputs[i], i));
  }
  return inputs;
}

class ZooParts : public ::testing::TestWithParam<const char*> {};

TEST_P(ZooParts, GiveWhatTheWholeGives) {
  const Folder folder;
  const auto& entries = zoo_entries();
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [](const ZooEntry& each) { return each.name == GetParam(); });
  ASSERT_NE(entry, entries.end());
  const auto model =
      openvino_runtime().read(make_zoo_model(entry->name, folder.file("models")).xml);
  const ModelGraph& graph = model->graph();
  EXPECT_EQ(graph.ops.size(), entry->ops) << "ops that depend on no input";
  EXPECT_EQ(graph.outputs.size(), entry->outputs.size());

  const std::vector<Bytes> inputs = inputs_for(*entry, graph);
  const Outputs whole = run_in_parts(*model, 1, inputs);
  for (const std::size_t count : {2U, 3U, 7U}) {
    const Outputs found = run_in_parts(*model, count, inputs);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const TensorKey key = graph.outputs[i].tensor;
      EXPECT_LT(difference(graph.ops[key.op].outputs[key.port], whole[i], found[i]), 1e-5)
          << count << " parts, output " << graph.outputs[i].name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Small, ZooParts,
                         ::testing::Values("tiny-branches", "tiny-pair", "tiny-bert", "squeezenet"),
                         [](const auto& test) {
                           return placewright::testing::test_name(test.param);
                         });

std::string content_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// The folder of magika's model in the private environment; empty where it is not installed.
fs::path trained_model_folder() {
  const fs::path environment = testing::source_path(".deps/venv/lib");
  std::error_code missing;
  for (const auto& python : fs::directory_iterator(environment, missing)) {
    const fs::path models = python.path() / "site-packages/magika/models";
    for (const auto& model : fs::directory_iterator(models, missing)) return model.path();
  }
  return {};
}

// What magika reads of a file: its begin and its end, less white space (see zoo/trained.py).
Bytes trained_model_input(const std::string& content) {
  constexpr std::size_t kBlock = 4096;
  constexpr std::size_t kSize = 1024;
  constexpr std::int32_t kPadding = 256;
  constexpr const char* kWhite = " \t\n\r\f\v";
  std::string begin = content.substr(0, kBlock);
  begin.erase(0, begin.find_first_not_of(kWhite));
  begin.resize(std::min(begin.size(), kSize));
  std::string end = content.substr(content.size() - std::min(content.size(), kBlock));
  end.erase(end.find_last_not_of(kWhite) + 1);
  end.erase(0, end.size() - std::min(end.size(), kSize));

  std::vector<std::int32_t> values(2 * kSize, kPadding);
  const auto value_of = [](char letter) {
    return std::int32_t{static_cast<unsigned char>(letter)};
  };
  std::transform(begin.begin(), begin.end(), values.begin(), value_of);
  std::transform(end.rbegin(), end.rend(), values.rbegin(), value_of);
  Bytes bytes(values.size() * sizeof(std::int32_t));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(TrainedModel, InPartsKnowsWhatAFileIs) {
  const fs::path folder = trained_model_folder();
  ASSERT_FALSE(folder.empty()) << "magika is not installed in .deps/venv: run scripts/setup";
  const auto settings = nlohmann::json::parse(content_of(folder / "config.min.json"));
  const auto model = openvino_runtime().read((folder / "model.onnx").string(), {{"", {1, 2048}}});
  const std::map<std::string, std::string> files{{"zoo/trained.py", "python"},
                                                 {"README.md", "markdown"},
                                                 {"zoo/architectures/gpt2.json.xz", "xz"}};
  for (const auto& [name, expected] : files) {
    std::vector<Bytes> input;
    input.push_back(trained_model_input(content_of(testing::source_path(name))));
    const Outputs outputs = run_in_parts(*model, 3, input);
    std::vector<float> scores(outputs.at(0).size() / sizeof(float));
    std::memcpy(scores.data(), outputs[0].data(), outputs[0].size());
    const auto best = std::max_element(scores.begin(), scores.end());
    EXPECT_EQ(settings["target_labels_space"][static_cast<std::size_t>(best - scores.begin())],
              expected)
        << name;
    EXPECT_GT(*best, 0.5F) << name;
  }
}

}  // namespace
}  // namespace placewright
