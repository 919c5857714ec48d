#include "machine/targets.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/target_cluster.h"

namespace placewright {
namespace {

using ::testing::ElementsAre;

Target cores(std::vector<int> numbers) {
  return {"openvino", "CPU", std::move(numbers)};
}

TEST(Machine, CoreSetsAreReadAndSpelledShortly) {
  EXPECT_THAT(cores_named("cpu:0"), ElementsAre(0));
  EXPECT_THAT(cores_named("cpu:0-2,5"), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(cores_named("cpu:3,1,1"), ElementsAre(1, 3));
  EXPECT_EQ(name_of(cores(cores_named("cpu:0,1,2,4"))), "cpu:0-2,4");
  EXPECT_EQ(kind_of(cores({0, 2})), "cpu-2");
  EXPECT_EQ(kind_of({"openvino", "GPU.0", {}}), "GPU.0");
  for (const char* wrong :
       {"cpu:", "cpu:x", "cpu:1-", "cpu:-1", "cpu:2-1", "cpu:0,", "cpu:99999"}) {
    EXPECT_THROW(cores_named(wrong), std::invalid_argument) << wrong;
  }
}

TEST(Machine, SetsWhoseThreadsTheBackendBindsAreSpelledSoAndOfAnotherKind) {
  Target pinned = cores({0, 1});
  pinned.pinned = true;
  EXPECT_EQ(name_of(pinned), "cpu:0-1:pinned");
  EXPECT_NE(kind_of(pinned), kind_of(cores({0, 1})));
}

TEST(Machine, SetsOfEquallyManyCoresAreJoined) {
  EXPECT_EQ(joined({cores({2, 3}), cores({0, 1})}), cores({0, 1, 2, 3}));
  EXPECT_EQ(joined({}), std::nullopt);
  EXPECT_EQ(joined({cores({0})}), std::nullopt);
  EXPECT_EQ(joined({cores({0}), cores({1, 2})}), std::nullopt);
  EXPECT_EQ(joined({cores({0, 1}), cores({1, 2})}), std::nullopt);
  EXPECT_EQ(joined({cores({}), cores({})}), std::nullopt);
  Target pinned = cores({1});
  pinned.pinned = true;
  EXPECT_EQ(joined({cores({0}), pinned}), std::nullopt);
}

TEST(Machine, ClusterHasOneKindForEachSizeOfCoreSet) {
  const Cluster cluster =
      cluster_of_targets({cores({0}), cores({1, 2}), cores({3}), {"openvino", "GPU.0", {}}},
                         {{}, {}, {}, {"GPU.0", "a card", 4e9, {}}});
  ASSERT_EQ(cluster.kinds.size(), 3U);
  EXPECT_EQ(cluster.devices[0].kind, cluster.devices[2].kind);
  EXPECT_NE(cluster.devices[0].kind, cluster.devices[1].kind);
  EXPECT_EQ(cluster.devices[3].memory, 4e9);
  EXPECT_EQ(cluster.devices[1].name, "cpu:1-2");
  EXPECT_EQ(cluster.links.size(), 12U);
  EXPECT_THAT(first_of_each_kind(cluster), ElementsAre(0, 1, 3));
}

TEST(Machine, CoreSetsAreNestedInHalves) {
  using Sets = std::vector<std::vector<int>>;
  EXPECT_EQ(nested_core_sets({}), Sets{});
  EXPECT_EQ(nested_core_sets({3}), Sets{{3}});
  EXPECT_EQ(nested_core_sets({0, 1}), (Sets{{0}, {1}, {0, 1}}));
  EXPECT_EQ(nested_core_sets({0, 1, 2, 4, 5}),
            (Sets{{0}, {1}, {2}, {4}, {5}, {0, 1}, {2, 4}, {0, 1, 2, 4}, {0, 1, 2, 4, 5}}));
}

TEST(Machine, SetsWithCoresInCommonUseThemAsResourcesOfOneMemory) {
  const Cluster cluster =
      cluster_of_targets({cores({0}), cores({2}), cores({0, 2}), {"openvino", "GPU.0", {}}},
                         {{}, {}, {}, {"GPU.0", "a card", 4e9, {}}});
  ASSERT_EQ(cluster.resources.size(), 2U);
  EXPECT_EQ(cluster.resources[1].name, "core 2");
  EXPECT_EQ(cluster.devices[1].uses, (std::vector<ResourceUse>{{ResourceId{1}, 1}}));
  EXPECT_EQ(cluster.devices[2].uses.size(), 2U);
  ASSERT_EQ(cluster.spaces.size(), 1U);
  EXPECT_EQ(cluster.devices[2].space, SpaceId{0});
  EXPECT_FALSE(cluster.devices[3].space.valid());
  EXPECT_EQ(cluster.links.size(), 6U);  // between the card and each set
}

}  // namespace
}  // namespace placewright
