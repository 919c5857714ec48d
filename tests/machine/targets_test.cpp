#include "machine/targets.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/import.h"
#include "machine/target_cluster.h"

namespace placewright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Machine, CoreSetsAreReadAndSpelledShortly) {
  EXPECT_THAT(target_named("cpu:0").cores, ElementsAre(0));
  EXPECT_THAT(target_named("cpu:0-2,5").cores, ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(target_named("cpu:3,1,1").cores, ElementsAre(1, 3));
  EXPECT_EQ(name_of(target_named("cpu:0,1,2,4")), "cpu:0-2,4");
  EXPECT_EQ(kind_of(target_named("cpu:0,2")), "cpu-2");
  EXPECT_EQ(kind_of(target_named("GPU.0")), "GPU.0");
  EXPECT_TRUE(target_named("GPU.0").cores.empty());
  for (const char* wrong :
       {"", "cpu:", "cpu:x", "cpu:1-", "cpu:-1", "cpu:2-1", "cpu:0,", "cpu:99999"}) {
    EXPECT_THROW(target_named(wrong), std::invalid_argument) << wrong;
  }
}

TEST(Machine, ACoreBelongsToOneDeviceAndMustBeAllowed) {
  const int core = allowed_cores().front();
  const std::string name = name_of({"CPU", {core}});
  EXPECT_EQ(targets_named({name}, {}).size(), 1U);
  EXPECT_THROW(targets_named({name, name}, {}), std::invalid_argument);
  EXPECT_THROW(targets_named({name, "GPU.7"}, {{"CPU", "", 0}}), std::invalid_argument);
  const int beyond = allowed_cores().back() + 1;
  try {
    targets_named({name_of({"CPU", {beyond}})}, {});
    ADD_FAILURE() << "core " << beyond << " is not there";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("may use only"));
  }
  if (allowed_cores().size() < 2) return;
  const std::string both = name_of({"CPU", {core, allowed_cores()[1]}});
  EXPECT_THROW(targets_named({name, both}, {}), std::invalid_argument);
}

TEST(Machine, ClusterHasOneKindForEachSizeOfCoreSet) {
  const Cluster cluster = cluster_of_targets(
      {{"CPU", {0}}, {"CPU", {1, 2}}, {"CPU", {3}}, {"GPU.0", {}}}, {{"GPU.0", "a card", 4e9}});
  ASSERT_EQ(cluster.kinds.size(), 3U);
  EXPECT_EQ(cluster.devices[0].kind, cluster.devices[2].kind);
  EXPECT_NE(cluster.devices[0].kind, cluster.devices[1].kind);
  EXPECT_EQ(cluster.devices[3].memory, 4e9);
  EXPECT_EQ(cluster.devices[1].name, "cpu:1-2");
  EXPECT_EQ(cluster.links.size(), 12U);
  EXPECT_THAT(first_of_each_kind(cluster), ElementsAre(0, 1, 3));
}

TEST(Machine, ShapesAreReadByInput) {
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
