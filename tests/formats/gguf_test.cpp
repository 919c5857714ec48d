#include "formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/input_error.h"
#include "formats/llama_arguments.h"
#include "formats/serving_hosts.h"
#include "support/folder.h"
#include "support/small_gguf.h"

namespace placewright::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const std::string& path) {
  try {
    (void)read_gguf(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Gguf, LayersHeadAndCacheHaveTheirBytes) {
  const Folder folder;
  const GgufFile file =
      read_gguf(folder.write("m.gguf", small_gguf({.layers = 3, .heads_by_layer = true})));
  EXPECT_EQ(file.architecture(), "llama");
  const LayeredModel model = layered_model(file, 100, 8);
  ASSERT_EQ(model.layers.size(), 3U);
  for (std::size_t l = 0; l < 3; ++l) {
    EXPECT_DOUBLE_EQ(model.layers[l].weights, 2 * 64 * 64 * 4);
    EXPECT_DOUBLE_EQ(model.layers[l].experts, 0);
    // Heads of 16 numbers; layer l has l + 1 of them for keys, as many for values.
    EXPECT_DOUBLE_EQ(model.layers[l].cache, 2.0 * 100 * (16 + 16) * static_cast<double>(l + 1));
    EXPECT_DOUBLE_EQ(model.layers[l].work, 1);
  }
  EXPECT_DOUBLE_EQ(model.head, 64 * 10 * 4);
}

TEST(Gguf, ATokenReadsTheExpertsThatItUses) {
  const Folder folder;
  const std::string path =
      folder.write("m.gguf", small_gguf({.layers = 2, .experts = 8, .own_head = false}));
  const LayeredModel model = layered_model(read_gguf(path), 1, 2);
  EXPECT_DOUBLE_EQ(model.layers[1].experts, 8 * 64 * 64 * 4);
  EXPECT_DOUBLE_EQ(model.layers[1].weights, 9 * 64 * 64 * 4);
  EXPECT_DOUBLE_EQ(model.layers[1].work, 1);
  EXPECT_DOUBLE_EQ(model.head, 64 * 10 * 4) << "the embedding is the head too";
}

TEST(Gguf, AProbeHasTheFirstLayersAndTheirBytes) {
  const Folder folder;
  const SmallGguf shape{.layers = 5, .heads_by_layer = true};
  const GgufFile whole = read_gguf(folder.write("m.gguf", small_gguf(shape)));
  write_first_layers(whole, 2, folder.file("probe.gguf"));
  EXPECT_EQ(folder.read("probe.gguf"), small_gguf({.layers = 2, .heads_by_layer = true}));
  write_first_layers(whole, 5, folder.file("all.gguf"));
  EXPECT_EQ(folder.read("all.gguf"), folder.read("m.gguf"));
}

TEST(Gguf, DamagedFilesAreRefusedWithTheirPlace) {
  const Folder folder;
  const std::string whole = small_gguf({.layers = 2});
  EXPECT_THAT(error_of(folder.write("a", "GGML and more")),
              HasSubstr("does not begin with 'GGUF'"));
  EXPECT_THAT(error_of(folder.write("b", whole.substr(0, 200))),
              HasSubstr("ends inside its header"));
  EXPECT_THAT(error_of(folder.write("c", whole.substr(0, whole.size() - 20000))),
              HasSubstr("the tensor lies behind the end of the file"));
  EXPECT_THAT(error_of(folder.write("d", small_gguf({.parts = 3}))), HasSubstr("--merge"));
  EXPECT_THAT(error_of(folder.write("e", small_gguf({.layers = 0}))),
              HasSubstr("'llama.block_count' states no number of layers"));
  std::string version = whole;
  version[4] = 9;
  EXPECT_THAT(error_of(folder.write("f", version)), HasSubstr("GGUF version 9; 2 and 3 are known"));
  EXPECT_THAT(error_of(folder.file("none")), HasSubstr("is no file"));
}

TEST(Gguf, NoCutOfAFileIsReadOutside) {
  const Folder folder;
  const std::string whole = small_gguf({.layers = 2, .heads_by_layer = true});
  for (std::size_t size = 0; size + 64 < whole.size(); size += size < 700 ? 7 : 2997) {
    EXPECT_NE(error_of(folder.write("cut.gguf", whole.substr(0, size))), "no error") << size;
  }
}

TEST(Hosts, AreReadAsTheyWereWritten) {
  const HostsFile file{.hosts = {{"here", "", 1e9, {0.5, kInfinity, 0, 0.1}},
                                 {"b", "h:1", kInfinity, {1, 2, -3, 4}}},
                       .measured = "llama, 2 layers"};
  const HostsFile read = read_hosts(write_hosts(file), "hosts.json");
  EXPECT_EQ(read.hosts, file.hosts);
  EXPECT_EQ(read.measured, file.measured);
}

TEST(Hosts, MistakesAreNamed) {
  const auto complaint = [](const std::string& hosts) -> std::string {
    try {
      (void)read_hosts(R"({"placewright": "llama-hosts", "version": 1, "hosts": [)" + hosts + "]}",
                       "h.json");
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(complaint(""), HasSubstr("/hosts: expected at least one host"));
  EXPECT_THAT(complaint(R"({"name": "a"}, {"name": "a", "endpoint": "h:1"})"),
              HasSubstr("/hosts/1/name: two hosts are called 'a'"));
  EXPECT_THAT(complaint(R"({"name": "a"}, {"name": "b"})"),
              HasSubstr("two hosts without an endpoint"));
  EXPECT_THAT(complaint(R"({"name": "a", "endpoint": "h:1"}, {"name": "b", "endpoint": "h:1"})"),
              HasSubstr("two hosts have the endpoint 'h:1'"));
  EXPECT_THAT(complaint(R"({"name": "a", "endpoint": "here"})"), HasSubstr("expected HOST:PORT"));
}

TEST(LlamaArguments, SayWhichLayersGoWhere) {
  const std::vector<ServingHost> hosts = {{"here", ""}, {"a", "h:1"}, {"b", "h:2"}};
  const auto words = [&](std::size_t program, const LayerSplit& split) {
    return llama_arguments(llama_programs()[program], "m.gguf", hosts, split);
  };
  EXPECT_THAT(words(0, {{2, 6, 0}, {1, 10, 0}}),
              ElementsAre("-m", "m.gguf", "--rpc", "h:2,h:1", "-dev", "RPC0,RPC1", "-ngl", "17",
                          "-ts", "6,11"));
  EXPECT_THAT(words(3, {{0, 4, 0}, {2, 6, 0}, {1, 10, 2}}),
              ElementsAre("-m", "m.gguf", "--rpc", "h:2,h:1", "-dev", "RPC0/RPC1", "-ngl", "17",
                          "-ts", "6/11", "-ot", "blk\\.(10|11)\\.ffn_.*_exps\\.=CPU"));
  EXPECT_THAT(words(3, {{0, 16, 0}}), ElementsAre("-m", "m.gguf", "-ngl", "0", "-dev", "none"));
}

}  // namespace
}  // namespace placewright::testing
