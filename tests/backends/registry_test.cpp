// Names of devices and backends, and plugins that cannot be used.

#include "backends/registry.h"

#include <cstdlib>
#include <functional>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/import.h"
#include "backends/model_files.h"
#include "backends/target_devices.h"
#include "formats/problem_file.h"
#include "support/backend_case.h"
#include "support/folder.h"

namespace placewright {
namespace {

using placewright::testing::Folder;
using placewright::testing::register_toy_backend;
using placewright::testing::toy_entry;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(TargetNames, LeadToTheBackendThatServesThem) {
  register_toy_backend();
  EXPECT_EQ(target_named("cpu:0-1"), (Target{"openvino", "CPU", {0, 1}}));
  EXPECT_EQ(target_named("cpu:0-1:pinned"), (Target{"openvino", "CPU", {0, 1}, true}));
  EXPECT_EQ(target_named("GPU.0"), (Target{"openvino", "GPU.0", {}}));
  EXPECT_EQ(target_named("toy:1"), (Target{"toy", "toy:1", {}}));
  EXPECT_THROW(target_named(""), std::invalid_argument);
  EXPECT_THROW(target_named("cpu:x"), std::invalid_argument);
  EXPECT_THROW(target_named("cpu::pinned"), std::invalid_argument);
}

TEST(TargetNames, ThatNobodyServesAreRefusedWithTheKnownOnes) {
  register_toy_backend();
  EXPECT_THAT(message_of([] { target_named("tpu:0"); }),
              AllOf(HasSubstr("no device 'tpu:0'"), HasSubstr("cpu:0"), HasSubstr("GPU"),
                    HasSubstr("toy:")));
  EXPECT_THAT(message_of([] { targets_named({"toy:7"}); }),
              AllOf(HasSubstr("no device 'toy:7'"), HasSubstr("toy:host, toy:0, toy:1")));
}

TEST(Targets, CoresMustBeAllowedAndMayBelongToSeveralDevices) {
  const int core = allowed_cores().front();
  const std::string name = name_of(target_of_cores({core}));
  EXPECT_EQ(targets_named({name}).size(), 1U);
  EXPECT_THROW(targets_named({name, name}), std::invalid_argument);
  EXPECT_THROW(targets_named({name, "GPU.7"}), std::invalid_argument);
  const int beyond = allowed_cores().back() + 1;
  EXPECT_THAT(message_of([&] { targets_named({name_of(target_of_cores({beyond}))}); }),
              HasSubstr("may use only"));
  if (allowed_cores().size() < 2) return;
  const std::string both = name_of(target_of_cores({core, allowed_cores()[1]}));
  EXPECT_EQ(targets_named({name, both}).size(), 2U);
}

TEST(Backends, AreFoundByTheModelsThatTheyRead) {
  register_toy_backend();
  const Folder folder;
  EXPECT_EQ(backend_reading("model.onnx")->name, "openvino");
  EXPECT_EQ(backend_reading("model.toy")->name, "toy");
  EXPECT_EQ(backend_reading("problem.json"), nullptr);
  std::filesystem::create_directory(folder.file("saved"));
  EXPECT_EQ(backend_reading(folder.file("saved")), nullptr);
  folder.write("saved/saved_model.pb", "");
  EXPECT_EQ(backend_reading(folder.file("saved"))->name, "openvino");
  EXPECT_EQ(backend_named("").name, "openvino") << "files that name none";
  EXPECT_THAT(message_of([] { backend_named("none"); }), HasSubstr("there is: openvino"));
  EXPECT_THROW(register_backend(toy_entry()), std::invalid_argument);
}

// An entry for a plugin of a name of its own.
std::string message_of_loading(const std::string& name, const std::string& library) {
  BackendEntry entry = toy_entry();
  entry.name = name;
  entry.title = "It";
  entry.library = library;
  entry.devices = {};
  entry.endings = {};
  register_backend(std::move(entry));
  return message_of([&] { runtime_named(name); });
}

TEST(Plugins, BuiltForAnotherInterfaceAreRefusedBeforeAnyCall) {
  EXPECT_THAT(message_of_loading("stale", placewright::testing::plugin_path("stale_toy")),
              AllOf(HasSubstr("It cannot be used"), HasSubstr("was built for interface"),
                    HasSubstr("build it again")));
}

TEST(Plugins, ThatAreMissingOrNoneAreRefusedInOneSentence) {
  const Folder folder;
  EXPECT_THAT(message_of_loading("missing", folder.file("none.so")),
              AllOf(HasSubstr("no plugin"), HasSubstr("build the tests")));
  EXPECT_THAT(message_of_loading("text", folder.write("text.so", "no library")),
              HasSubstr("It cannot be used"));
  EXPECT_THAT(message_of_loading("other", "/proc/self/exe"), HasSubstr("It cannot be used"));
}

TEST(ModelSources, NameTheirBackend) {
  register_toy_backend();
  const Folder folder;
  const std::string path = placewright::testing::make_toy_model("pair", folder.file(""));
  const auto model = runtime_named("toy").read(path);
  ProblemDraft draft = draft_of(model->graph(), "pair", source_of(path, {}, ""));
  EXPECT_EQ(draft.models.front().source->backend, "toy");
  const auto targets = all_targets(backend_named("toy"));
  ASSERT_EQ(targets.size(), 3U);
  draft.cluster.kinds = {{.name = "toy"}};
  for (Op& op : draft.ops) op.time = {1};
  draft.cluster.devices = {{.name = "toy:0", .kind = KindId{0}}};
  const std::string text = write_problem(draft);
  EXPECT_THAT(text, HasSubstr("\"backend\": \"toy\""));
  EXPECT_EQ(parse_problem(text, "written").draft.models, draft.models);
}

TEST(Shapes, AreReadByInput) {
  const Shapes shapes = shapes_named({"image=1x3x8x8", "scale=2"});
  EXPECT_THAT(shapes.at("image"), ElementsAre(1, 3, 8, 8));
  EXPECT_THAT(shapes.at("scale"), ElementsAre(2));
  EXPECT_THAT(shapes_named({"4x5"}).at(""), ElementsAre(4, 5));
  for (const char* wrong : {"", "image=", "1x", "x1", "0x3", "-1x3", "1x3x?"}) {
    EXPECT_THROW(shapes_named({wrong}), std::invalid_argument) << wrong;
  }
  EXPECT_THROW(shapes_named({"a=1", "a=2"}), std::invalid_argument);
}

}  // namespace
}  // namespace placewright
