#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/folder.h"
#include "support/locations.h"
#include "support/program.h"
#include "support/small_gguf.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;

// Answers as llama-bench does: a layer takes 1 ms on port 1, 4 ms on port 2 and 2 ms here, the head
// 3 ms, the way through a host 0.5 ms and a layer with its experts here 3 ms.
constexpr const char* kStandIn = R"py(#!/usr/bin/env python3
import json, re, sys
words = sys.argv[1:]
value = lambda flag, other: words[words.index(flag) + 1] if flag in words else other
if "--list-devices" in words:
    print("Available devices:\n  RPC0: " + value("--rpc", "") + " (100 MiB, 50 MiB free)")
    sys.exit()
path, tokens = value("-m", ""), int(value("-n", "0"))
open(sys.argv[0] + ".log", "a").write(" ".join(words) + "\n")
data = open(path, "rb").read()
at = data.index(b"llama.block_count") + len(b"llama.block_count") + 4
layers = int.from_bytes(data[at:at + 4], "little")
ports = [one.split(":")[1] for one in value("--rpc", "").split(",") if one]
counts = [int(one) for one in value("-ts", str(int(value("-ngl", "0")))).split("/")]
counts[-1] -= 1
here = layers - sum(counts) if ports else layers
ms = 3 + 2 * here + (0.5 if ports and here else 0)
for port, count in zip(ports, counts):
    ms += 0.5 + {"1": 1, "2": 4}[port] * count
experts = re.search(r"blk\\\.\(([0-9|]+)\)", value("-ot", ""))
if experts:
    ms += 2 * len(experts[1].split("|"))
sample = int(ms * 1e6 * tokens)
print(json.dumps([{"samples_ns": [sample] * int(value("-r", "1"))}]))
)py";

class LlamaVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("llama-bench", kStandIn);
    std::filesystem::permissions(folder_.file("llama-bench"), std::filesystem::perms::owner_all);
  }

  std::string hosts(const std::string& list) const {
    return folder_.write(
        "hosts.json", R"({"placewright": "llama-hosts", "version": 1, "hosts": [)" + list + "]}");
  }
  ProgramResult llama(const SmallGguf& shape, std::vector<std::string> more) const {
    std::vector<std::string> words = {"llama",     folder_.write("m.gguf", small_gguf(shape)),
                                      "--hosts",   folder_.file("hosts.json"),
                                      "--tools",   folder_.file(""),
                                      "--context", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  Folder folder_;
};

// A layer has 32,768 bytes and the head 2,560.
constexpr const char* kTwoHosts = R"({"name": "slow", "endpoint": "h:2", "memory": 1e6},
                                     {"name": "fast", "endpoint": "h:1", "memory": 199000})";

TEST_F(LlamaVerb, MeasuresPlansAndStatesTheSpeed) {
  (void)hosts(kTwoHosts);
  const auto done = llama({.layers = 10}, {"--json", "--measured", folder_.file("measured.json")});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto answer = done.json();
  EXPECT_EQ(answer["split"], true);
  EXPECT_NEAR(answer["hosts"][0]["layer"], 4e-3, 1e-8);
  EXPECT_NEAR(answer["hosts"][1]["layer"], 1e-3, 1e-8);
  EXPECT_NEAR(answer["hosts"][0]["entry"], 0.5e-3, 1e-8);
  EXPECT_NEAR(answer["hosts"][1]["rest"], 3.5e-3, 1e-8);
  // Six layers fit the fast host, with the head five.
  EXPECT_EQ(answer["candidates"][0]["shares"][0]["host"], "fast");
  EXPECT_EQ(answer["candidates"][0]["shares"][0]["layers"], 6);
  EXPECT_NEAR(answer["tokens_per_second"], 1 / (6e-3 + 16e-3 + 3e-3 + 1e-3), 1e-3);
  const std::string command = answer["command"].dump();
  EXPECT_THAT(command,
              HasSubstr(R"("--rpc","h:1,h:2","-dev","RPC0,RPC1","-ngl","11","-ts","6,5")"));

  const std::string log = folder_.read("llama-bench.log");
  std::filesystem::copy_file(folder_.file("measured.json"), folder_.file("hosts.json"),
                             std::filesystem::copy_options::overwrite_existing);
  const auto again = llama({.layers = 10}, {"--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.json()["command"], answer["command"]);
  EXPECT_EQ(folder_.read("llama-bench.log"), log) << "nothing is measured twice";
  const auto other = llama({.layers = 9}, {"--json"});
  EXPECT_THAT(other.err, HasSubstr("measured again"));
  EXPECT_NE(folder_.read("llama-bench.log"), log);
}

TEST_F(LlamaVerb, SaysThatOneHostIsFaster) {
  (void)hosts(R"({"name": "here"}, {"name": "fast", "endpoint": "h:1", "memory": 1e6})");
  const auto done = llama({.layers = 10}, {});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("do not split, fast 0 to 9: 74.07 tokens/s predicted"));
}

TEST_F(LlamaVerb, ExpertsStayHereWhereTheHostHasNoMemory) {
  (void)hosts(R"({"name": "fast", "endpoint": "h:1", "memory": 500000})");
  // A layer has 16,384 bytes and 8 experts of as many.
  const auto done = llama({.layers = 10, .experts = 8}, {"--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto share = done.json()["candidates"][0]["shares"][0];
  EXPECT_EQ(share["layers"], 10);
  // 10 x 147,456 + 2,560 bytes less those of 8 layers' experts.
  EXPECT_EQ(share["experts_here"], 8);
  EXPECT_THAT(done.json()["command"].dump(), HasSubstr("_exps"));
}

TEST_F(LlamaVerb, AsksForMemoryThatNobodyStates) {
  (void)hosts(R"({"name": "fast", "endpoint": "h:1"})");
  const auto done = llama({.layers = 4}, {"--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.json()["hosts"][0]["memory"], 50 * 1024 * 1024);
}

TEST_F(LlamaVerb, StatesTheSpeedOfASplitThatIsAskedFor) {
  (void)hosts(kTwoHosts);
  const auto done = llama({.layers = 10}, {"--json", "--split", "slow=7,fast=3"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NEAR(done.json()["tokens_per_second"], 1 / (28e-3 + 3e-3 + 3e-3 + 1e-3), 1e-3);
  const auto large = llama({.layers = 10}, {"--json", "--split", "slow=3,fast=7"});
  EXPECT_EQ(large.exit_code, 1);
  EXPECT_EQ(large.json()["command"], nullptr);
  EXPECT_THAT(llama({.layers = 10}, {"--split", "slow=3,other=7"}).err,
              HasSubstr("'other=7' is not HOST=LAYERS"));
  EXPECT_THAT(llama({.layers = 10}, {"--split", "slow=3,fast=6"}).err,
              HasSubstr("9 layers, but the model has 10"));
}

TEST_F(LlamaVerb, WhatDoesNotFitIsInfeasible) {
  (void)hosts(R"({"name": "fast", "endpoint": "h:1", "memory": 200000})");
  const auto done = llama({.layers = 10}, {});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("infeasible"));
  (void)hosts(R"({"name": "tiny", "endpoint": "h:1", "memory": 40000})");
  EXPECT_THAT(llama({.layers = 10}, {}).err,
              HasSubstr("host 'tiny' has no memory for the head and two layers"));
}

TEST_F(LlamaVerb, MissingOrFailingProgramsAreNamed) {
  (void)hosts(kTwoHosts);
  folder_.write("llama-bench", "#!/bin/sh\necho no such model >&2\nexit 7\n");
  const auto failed = llama({.layers = 10}, {});
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_THAT(failed.err, HasSubstr("ended with 7: no such model"));
  std::filesystem::remove(folder_.file("llama-bench"));
  const auto missing = llama({.layers = 10}, {});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, HasSubstr("cannot be started (No such file or directory)"));
}

TEST_F(LlamaVerb, BecomesTheProgram) {
  (void)hosts(kTwoHosts);
  folder_.write("llama-completion", "#!/bin/sh\necho \"$@\"\n");
  std::filesystem::permissions(folder_.file("llama-completion"), std::filesystem::perms::owner_all);
  const auto done = llama({.layers = 10}, {"--run", "--for", "llama-completion", "--quiet"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("-ts 6,5 -c 1"));
}

}  // namespace
}  // namespace placewright::testing
