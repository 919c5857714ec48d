#include "serving/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace placewright {
namespace {

// SqueezeNet, ResNet-50, Inception-V4 on two cores.
std::vector<ServedModel> three_models() {
  return {{.name = "squeezenet", .whole = 1.7},
          {.name = "resnet", .whole = 15, .segments = {5.1, 5.1, 5.1}},
          {.name = "inception", .whole = 57, .segments = std::vector<double>(11, 5.3)}};
}

TEST(ServiceSimulation, AnIdleServerAnswersInTheOwnTime) {
  const std::vector<ServedModel> models = three_models();
  const std::vector<RequestArrival> arrivals{{0, 0}, {100, 1}};
  const ServiceSimulation run = simulate_service(models, {}, arrivals, 0.1);
  EXPECT_NEAR(run.requests[0].end, 1.8, 1e-9);
  EXPECT_NEAR(run.requests[1].end, 115.4, 1e-9) << "in segments, with the overhead once";
  EXPECT_NEAR(run.busy, 17.2, 1e-9);
}

TEST(ServiceSimulation, TogetherSharesTheCoresInEqualParts) {
  const std::vector<ServedModel> models{{.name = "a", .whole = 2}, {.name = "b", .whole = 10}};
  const std::vector<RequestArrival> arrivals{{0, 0}, {0, 1}};
  const ServiceSimulation run =
      simulate_service(models, {.policy = ServingPolicy::together}, arrivals);
  EXPECT_NEAR(run.requests[0].end, 4, 1e-9);
  EXPECT_NEAR(run.requests[1].end, 12, 1e-9);
}

// One model, one at a time: the M/D/1 queue, whose mean wait is load x time / (2 (1 - load)).
TEST(ServiceSimulation, AgreesWithTheFormulaForOneModel) {
  const std::vector<ServedModel> models{{.name = "only", .whole = 10}};
  const std::vector<double> rates{70};
  const auto arrivals = poisson_arrivals(rates, 200'000, 7);
  const ServiceSimulation run = simulate_service(models, {}, arrivals);
  const ServiceSummary summary = summaries_of(models, arrivals, run).front();
  EXPECT_NEAR(load_of(models, arrivals), 0.7, 0.01);
  EXPECT_NEAR(summary.mean, 10 + 0.7 * 10 / (2 * 0.3), 0.7);
  EXPECT_NEAR(run.busy / run.duration, 0.7, 0.01);
}

// The table of the design: what segments are for.
TEST(ServiceSimulation, SegmentsKeepShortModelsFromWaiting) {
  const std::vector<ServedModel> models = three_models();
  const std::vector<double> rates{60, 30, 10};
  const auto arrivals = at_load(models, poisson_arrivals(rates, 20'000, 1), 0.85);
  const auto p99 = [&](ServingPolicy policy, std::size_t model) {
    const auto run = simulate_service(models, {.policy = policy}, arrivals);
    return summaries_of(models, arrivals, run)[model].p99;
  };
  EXPECT_LT(p99(ServingPolicy::normalised, 0), 0.7 * p99(ServingPolicy::together, 0));
  EXPECT_LT(p99(ServingPolicy::normalised, 0), 0.1 * p99(ServingPolicy::arrival, 0));
}

TEST(ServiceSimulation, ARequestThatIsCancelledDoesNotCount) {
  const std::vector<ServedModel> models = three_models();
  const std::vector<RequestArrival> arrivals{{.time = 0, .model = 2, .cancelled = 12}, {0, 2}};
  const ServiceSimulation run = simulate_service(models, {}, arrivals);
  EXPECT_EQ(run.requests[0].fate, RequestFate::cancelled);
  EXPECT_NEAR(run.requests[0].end, 3 * 5.3, 1e-9) << "the border after it was cancelled";
  EXPECT_NEAR(run.requests[1].end, 14 * 5.3, 1e-9);
}

TEST(ServiceSimulation, PercentilesAreValuesThatOccurred) {
  std::vector<double> values{4, 1, 3, 2};
  EXPECT_EQ(percentile(values, 0.5), 2);
  EXPECT_EQ(percentile(values, 0.99), 4);
  values.clear();
  EXPECT_EQ(percentile(values, 0.5), 0);
}

}  // namespace
}  // namespace placewright
