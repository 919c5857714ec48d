#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "planners/hosts/layer_split_planner.h"

namespace placewright::testing {
namespace {

// Every split, one after the other.
double brute_force(const LayeredModel& model, const std::vector<ServingHost>& hosts) {
  double least = kInfinity;
  LayerSplit split;
  const std::function<void(std::size_t)> extend = [&](std::size_t done) {
    if (done == model.layers.size()) {
      least = std::min(least, token_seconds(model, hosts, split));
      return;
    }
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const bool used = std::ranges::find(split, h, &HostShare::host) != split.end();
      if (used || (hosts[h].is_here() && !split.empty())) continue;
      for (std::size_t count = 1; done + count <= model.layers.size(); ++count) {
        const bool may = !hosts[h].is_here() && hosts[h].times.experts_here < kInfinity;
        for (std::size_t apart = 0; apart <= (may ? count : 0); ++apart) {
          split.push_back({h, count, apart});
          extend(done + count);
          split.pop_back();
        }
      }
    }
  };
  extend(0);
  return least;
}

struct Case {
  LayeredModel model;
  std::vector<ServingHost> hosts;
};

Case random_case(std::mt19937_64& random) {
  const auto any = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  Case made;
  const bool has_experts = any(0, 1) == 1;
  const bool equal = any(0, 1) == 1;
  made.model.head = any(0, 4);
  const ModelLayer one{static_cast<double>(any(4, 8)), 0, static_cast<double>(any(0, 2)), 1};
  for (int layers = any(1, 6); layers > 0; --layers) {
    ModelLayer layer = one;
    if (!equal) layer.weights = any(4, 8), layer.work = layer.weights / 6;
    // The planner takes experts at the size of the largest: here all are equal.
    if (has_experts) layer.experts = 3;
    made.model.layers.push_back(layer);
  }
  for (int h = 0, count = any(1, 3); h < count; ++h) {
    ServingHost host;
    host.name = std::string(1, static_cast<char>('a' + h));
    if (h > 0 || any(0, 1) == 0) host.endpoint = host.name + ":1";
    if (any(0, 3) > 0) host.memory = any(5, 40);
    host.times = {static_cast<double>(any(1, 9)), kInfinity, static_cast<double>(any(0, 5)),
                  static_cast<double>(any(0, 9))};
    if (has_experts && !host.is_here()) host.times.experts_here = any(1, 12);
    made.hosts.push_back(host);
  }
  return made;
}

TEST(LayerSplit, IsTheBestOfAll) {
  std::mt19937_64 random(36);
  int infeasible = 0;
  int split = 0;
  int apart = 0;
  for (int i = 0; i < 3000; ++i) {
    const Case made = random_case(random);
    const LayerSplit best = best_layer_split(made.model, made.hosts);
    const double least = brute_force(made.model, made.hosts);
    if (least == kInfinity) {
      EXPECT_TRUE(best.empty()) << i;
      ++infeasible;
      continue;
    }
    ASSERT_FALSE(best.empty()) << i;
    EXPECT_NEAR(token_seconds(made.model, made.hosts, best), least, 1e-9) << i;
    if (best.size() > 1) ++split;
    if (std::ranges::any_of(best, [](const HostShare& share) { return share.experts_here > 0; })) {
      ++apart;
    }
  }
  EXPECT_GT(infeasible, 100);
  EXPECT_GT(split, 300);
  EXPECT_GT(apart, 100);
}

LayeredModel layers(std::size_t count, double weights) {
  LayeredModel model;
  model.layers.assign(count, {weights, 0, 0, 1});
  return model;
}

TEST(LayerSplit, DoesNotSplitWhatTheFastestHolds) {
  const std::vector<ServingHost> hosts = {{"fast", "a:1", 100, {1, kInfinity, 2, 3}},
                                          {"slow", "b:1", 100, {4, kInfinity, 2, 3}}};
  EXPECT_EQ(best_layer_split(layers(10, 10), hosts), (LayerSplit{{0, 10, 0}}));
  const LayerSplit split = best_layer_split(layers(11, 10), hosts);
  EXPECT_EQ(split.size(), 2U);
  EXPECT_DOUBLE_EQ(token_seconds(layers(11, 10), hosts, split), 10 * 1 + 4 + 2 + 3);
}

TEST(LayerSplit, ByMemoryIsWhatLlamaCppDoes) {
  // 16 layers and the head in proportions 6 and 10: layer i goes to the first host if i / 17 is
  // below 6 / 16.
  const std::vector<ServingHost> hosts = {{"a", "a:1", 6}, {"here", ""}, {"b", "b:1", 10}};
  EXPECT_EQ(split_by_memory(layers(16, 1), hosts), (LayerSplit{{0, 7, 0}, {2, 9, 0}}));
}

TEST(LayerSplit, TwelveHostsAndAHundredLayers) {
  std::vector<ServingHost> hosts;
  for (int h = 0; h < 12; ++h) {
    hosts.push_back(
        {std::string(1, static_cast<char>('a' + h)), "x:1", 95, {1.0 + h, kInfinity, 0.5, 1}});
  }
  const LayerSplit best = best_layer_split(layers(100, 10), hosts);
  // Nine layers fit one host: the eleven fastest hosts have 99, the slowest has one.
  EXPECT_EQ(best.size(), 12U);
}

}  // namespace
}  // namespace placewright::testing
