// Models cut into parts: the parts, one after the other, give what the whole gives. And the trained
// model, in parts, still knows what a file is.

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backends/part_inputs.h"
#include "backends/target_devices.h"
#include "support/backend_case.h"
#include "support/folder.h"
#include "support/locations.h"
#include "zoo/zoo.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;
using placewright::testing::backend_cases;
using placewright::testing::BackendCase;
using placewright::testing::Folder;
using placewright::testing::model_file;
using placewright::testing::name_of_case;

using Outputs = std::vector<HostBuffer>;

// Runs the ops, in topological order, as `count` parts of about equal length on one target.
Outputs run_in_parts(const NeuralModel& model, const Target& target, std::size_t count,
                     const Buffers& inputs) {
  const ModelGraph& graph = model.graph();
  std::vector<std::size_t> ops(graph.ops.size());
  std::iota(ops.begin(), ops.end(), std::size_t{0});

  std::map<TensorKey, Buffer*> made;
  std::vector<std::unique_ptr<CompiledPart>> parts;
  std::vector<std::unique_ptr<Request>> requests;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = ops.size() * i / count;
    const std::size_t end = ops.size() * (i + 1) / count;
    CompiledPart& part = *parts.emplace_back(
        model.compile(std::span(ops).subspan(begin, end - begin), {.device = target.device}));
    Request& request = *requests.emplace_back(part.request());
    for (std::size_t input = 0; input < part.inputs().size(); ++input) {
      const TensorKey key = part.inputs()[input];
      request.bind_input(input, key.is_model_input() ? *inputs[key.port] : *made.at(key));
    }
    request.run();
    for (std::size_t output = 0; output < part.outputs().size(); ++output) {
      made[part.outputs()[output]] = &request.output(output);
    }
  }
  Outputs outputs;
  for (const GraphOutput& output : graph.outputs) {
    outputs.push_back(read_back(*made.at(output.tensor), target));
  }
  return outputs;
}

class Parts : public ::testing::TestWithParam<BackendCase> {};

TEST_P(Parts, GiveWhatTheWholeGives) {
  const Folder folder;
  const std::string path = model_file(GetParam(), folder.file("models"));
  const Target target = reference_target(GetParam().backend);
  const auto model = runtime_named(GetParam().backend).read(path);
  const ModelGraph& graph = model->graph();
  const Buffers inputs = seeded_inputs(graph, 1, target);
  const Outputs whole = run_in_parts(*model, target, 1, inputs);
  const double tolerance =
      tolerance_of(model->compile_whole({.device = target.device})->precision());
  for (const std::size_t count : {2U, 3U, 7U}) {
    const Outputs found = run_in_parts(*model, target, count, inputs);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_LT(
          difference(type_of(graph, graph.outputs[i].tensor), whole[i].bytes(), found[i].bytes()),
          tolerance)
          << count << " parts, output " << graph.outputs[i].name;
    }
  }
}

// Where an op that computes with images begins, so that no border is inside what the backend fuses.
std::vector<std::size_t> borders_of(const ModelGraph& graph) {
  std::vector<std::size_t> borders;
  for (std::size_t op = 1; op < graph.ops.size(); ++op) {
    const std::string& type = graph.ops[op].type;
    if (type == "Convolution" || type == "MaxPool" || type == "Concat") borders.push_back(op);
  }
  return borders;
}

bool transposes(const CompiledPart& part) {
  return std::ranges::any_of(part.executed(),
                             [](const ExecutedNode& node) { return node.type == "Transpose"; });
}

TEST(Borders, ImagesCrossThemAsTheyAreKept) {
  const Folder folder;
  for (const char* name : {"squeezenet", "resnet50"}) {
    const auto model =
        runtime_named("openvino").read(model_file({"openvino", name}, folder.file("models")));
    const ModelGraph& graph = model->graph();
    std::vector<std::size_t> ops(graph.ops.size());
    std::iota(ops.begin(), ops.end(), std::size_t{0});
    for (const std::size_t border : borders_of(graph)) {
      if (border % 3 != 0) continue;  // a compilation takes its time
      const std::span all(ops);
      for (const auto part : {all.first(border), all.subspan(border)}) {
        EXPECT_FALSE(transposes(*model->compile(part, {.device = "CPU"})))
            << name << " at " << graph.ops[border].name;
      }
    }
  }
}

TEST_P(Parts, RunOnDevicesWhoseMemoryIsTheirOwn) {
  const Folder folder;
  const std::string path = model_file(GetParam(), folder.file("models"));
  const Runtime& runtime = runtime_named(GetParam().backend);
  const auto model = runtime.read(path);
  const Target host = reference_target(GetParam().backend);
  const Outputs expected = run_in_parts(*model, host, 1, seeded_inputs(model->graph(), 1, host));
  for (const RuntimeDevice& device : runtime.devices()) {
    const Target target{GetParam().backend, device.name, {}};
    const Buffers inputs = seeded_inputs(model->graph(), 1, target);
    EXPECT_EQ(inputs.front()->space(), device.space);
    EXPECT_EQ(inputs.front()->bytes().empty(), !device.space.is_host());
    const Outputs found = run_in_parts(*model, target, 2, inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT(difference(type_of(model->graph(), model->graph().outputs[i].tensor),
                           expected[i].bytes(), found[i].bytes()),
                tolerance_of(model->compile_whole({.device = device.name})->precision()));
    }
  }
}

// Whether an inference that is stopped right after its start ends so. A small one may be over
// before that on a busy machine, so it is tried again.
bool is_stopped(Request& request) {
  constexpr int kMostTrials = 1000;
  for (int trial = 0; trial < kMostTrials; ++trial) {
    request.start();
    request.stop();
    try {
      request.wait();
    } catch (const RequestStopped&) {
      return true;
    }
  }
  return false;
}

// Stopped, and then run as if nothing had been.
TEST_P(Parts, AnInferenceThatIsStoppedEndsAndTheNextOneIsWhole) {
  const Folder folder;
  const std::string path = model_file(GetParam(), folder.file("models"));
  const Target target = reference_target(GetParam().backend);
  const auto model = runtime_named(GetParam().backend).read(path);
  const Buffers inputs = seeded_inputs(model->graph(), 1, target);
  const auto part = model->compile_whole({.device = target.device});
  const auto request = request_with(*part, inputs);
  const auto outputs = [&] {
    Outputs found;
    for (std::size_t i = 0; i < part->outputs().size(); ++i) {
      found.push_back(read_back(request->output(i), target));
    }
    return found;
  };
  request->stop();  // nothing runs
  request->run();
  const Outputs expected = outputs();
  EXPECT_TRUE(is_stopped(*request));
  request->run();
  const Outputs found = outputs();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(difference(type_of(model->graph(), part->outputs()[i]), expected[i].bytes(),
                         found[i].bytes()),
              tolerance_of(Precision::f32));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Parts, ::testing::ValuesIn(backend_cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Small, Parts, ::testing::Values(BackendCase{"openvino", "squeezenet"}),
                         name_of_case);

TEST(ZooGraphs, AreThoseThatTheListStates) {
  const Folder folder;
  for (const ZooEntry& entry : zoo_entries()) {
    if (!entry.name.starts_with("tiny-") && entry.name != "squeezenet") continue;
    const auto model =
        runtime_named("openvino").read(make_zoo_model(entry.name, folder.file("models")).xml);
    EXPECT_EQ(model->graph().ops.size(), entry.ops) << "ops that depend on no input";
    EXPECT_EQ(model->graph().outputs.size(), entry.outputs.size());
    ASSERT_EQ(model->graph().inputs.size(), entry.inputs.size());
    for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
      EXPECT_EQ(model->graph().inputs[i].name, entry.inputs[i].name);
    }
  }
}

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
std::unique_ptr<Buffer> trained_model_input(const std::string& content) {
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
  auto buffer = std::make_unique<HostBuffer>(values.size() * sizeof(std::int32_t));
  std::memcpy(buffer->data(), values.data(), buffer->size());
  return buffer;
}

TEST(TrainedModel, InPartsKnowsWhatAFileIs) {
  const fs::path folder = trained_model_folder();
  ASSERT_FALSE(folder.empty()) << "magika is not installed in .deps/venv: run scripts/setup";
  const auto settings = nlohmann::json::parse(content_of(folder / "config.min.json"));
  const auto model =
      runtime_named("openvino").read((folder / "model.onnx").string(), {{"", {1, 2048}}});
  const std::map<std::string, std::string> files{{"zoo/trained.py", "python"},
                                                 {"README.md", "markdown"},
                                                 {"zoo/architectures/gpt2.json.xz", "xz"}};
  for (const auto& [name, expected] : files) {
    Buffers input;
    input.push_back(trained_model_input(content_of(testing::source_path(name))));
    const Outputs outputs = run_in_parts(*model, reference_target("openvino"), 3, input);
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
