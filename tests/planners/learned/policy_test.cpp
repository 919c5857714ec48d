#include "planners/learned/policy.h"

#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "support/random_problem.h"

namespace placewright::learned {
namespace {

Policy small_policy() {
  Policy policy;
  write_architecture(LearnerOptions{}, PlacementGraphOptions{}, policy);
  policy.facts["seed"] = "7";
  policy.weights = {{"a", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"b", {}, {0.5F}}, {"c", {0}, {}}};
  policy.training_state = {{"adam.mean.a", {1}, {-1}}};
  return policy;
}

TEST(Policy, HugeWeightsAreRefused) {
  Policy policy = small_policy();
  policy.weights.front().values.front() = -3e38F;
  try {
    (void)decode(encode(policy));
    ADD_FAILURE() << "it was read";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("holds -3e+38, expected at most 10000"),
              std::string::npos)
        << error.what();
  }
}

TEST(Policy, ComesBackAsItWas) {
  EXPECT_EQ(decode(encode(small_policy())), small_policy());
}

TEST(Policy, ItsArchitectureComesBack) {
  LearnerOptions options{.encoder = Encoder::gat, .parse = false, .channels = 48};
  PlacementGraphOptions features{.coarsen = Joining::chains, .structure = false};
  Policy policy;
  write_architecture(options, features, policy);
  LearnerOptions read;
  PlacementGraphOptions read_features;
  architecture_of(decode(encode(policy)), read, read_features);
  EXPECT_EQ(read.encoder, Encoder::gat);
  EXPECT_EQ(read.channels, 48);
  EXPECT_FALSE(read.parse);
  EXPECT_EQ(read_features.coarsen, Joining::chains);
  EXPECT_FALSE(read_features.structure);
  policy.facts["channels"] = "1000000000";
  EXPECT_THROW(architecture_of(policy, read, read_features), std::invalid_argument);
  policy.facts.erase("channels");
  EXPECT_THROW(architecture_of(policy, read, read_features), std::invalid_argument);
}

TEST(Policy, EveryPrefixIsRefused) {
  const std::string bytes = encode(small_policy());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(decode(std::string_view(bytes).substr(0, length)), std::invalid_argument);
  }
  EXPECT_THROW(decode(bytes + "x"), std::invalid_argument);
}

TEST(Policy, EveryDamagedByteIsNoticed) {
  const std::string bytes = encode(small_policy());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_THROW(decode(damaged), std::invalid_argument) << i;
  }
}

TEST(Policy, WeightsThatAreNotFiniteAreRefused) {
  Policy policy = small_policy();
  policy.weights[0].values[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(decode(encode(policy)), std::invalid_argument);
}

// Someone who writes a digest that agrees can still not make the reader take what is not there.
TEST(Policy, HostileLengthsAreRefusedBeforeAnythingIsAllocated) {
  Policy policy = small_policy();
  policy.weights[0].shape = {std::numeric_limits<std::int64_t>::max(), 3};
  EXPECT_THROW(decode(encode(policy)), std::invalid_argument);
  policy.weights[0].shape = {std::int64_t{1} << 33, std::int64_t{1} << 33};
  EXPECT_THROW(decode(encode(policy)), std::invalid_argument);
  policy.weights[0].shape.assign(9, 1);
  EXPECT_THROW(decode(encode(policy)), std::invalid_argument);
}

TEST(Policy, OtherFilesAreRefusedWithASentence) {
  try {
    decode("{\"ops\": []}");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "this is not a Placewright policy");
  }
}

}  // namespace
}  // namespace placewright::learned
