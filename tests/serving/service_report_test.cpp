#include "serving/service_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "formats/input_error.h"
#include "serving/forecast.h"
#include "serving/service_trace.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;

TEST(LatencyRecord, CountsBucketsThatGrowAndSummarisesTheLastOnes) {
  LatencyRecord record;
  for (int i = 0; i < 10; ++i) record.add(1e6);  // forgotten by the summary, not by the histogram
  for (std::size_t i = 0; i < LatencyRecord::kRecent; ++i) record.add(i % 100 == 0 ? 40 : 2);
  const LatencyRecord::Summary summary = record.summary();
  EXPECT_EQ(summary.requests, 10 + LatencyRecord::kRecent);
  EXPECT_EQ(summary.p50, 2);
  EXPECT_EQ(summary.p99, 2);
  EXPECT_NEAR(summary.mean, 2.38, 1e-9);
  const std::string text = record.text("latency", "model=\"m\"");
  EXPECT_THAT(text, HasSubstr("latency_bucket{model=\"m\",le=\"0.0015\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("latency_bucket{model=\"m\",le=\"0.002\"} 990\n"));
  EXPECT_THAT(text, HasSubstr("latency_bucket{model=\"m\",le=\"0.05\"} 1000\n"));
  EXPECT_THAT(text, HasSubstr("latency_bucket{model=\"m\",le=\"+Inf\"} 1010\n"));
  EXPECT_THAT(text, HasSubstr("latency_count{model=\"m\"} 1010\n"));
}

TEST(ServiceReport, ReadsWhatItWrites) {
  ServiceReport report{.version = "1", .up_seconds = 2.5, .cores = 4};
  report.running.push_back({"a", "cpu:0-1"});
  report.models.push_back({.name = "a\"b", .version = "3", .state = "ready", .own_time = 1.5});
  report.models.back().measured = {.requests = 3, .mean = 2, .p50 = 1, .p99 = 4};
  const ServiceReport found = parse_report(report_text(report), "server");
  EXPECT_EQ(found.models, report.models);
  EXPECT_EQ(found.running, report.running);
  EXPECT_EQ(found.cores, 4U);
  EXPECT_THROW(parse_report("{\"version\": 3}", "server"), InputError);
  EXPECT_THAT(metrics_text(report, {}), HasSubstr("{model=\"a\\\"b\",version=\"3\"} 0.0015\n"));
}

// The simulated service takes the same requests and is asked at other moments.
TEST(ServiceForecast, SaysWhatRequestsShouldMeetWith) {
  ServiceForecast forecast({});
  const auto latency = std::make_shared<LatencyRecord>();
  forecast.add({.name = "m", .whole = 4}, latency);
  forecast.submit(1, {.model = 0}, 0);
  forecast.submit(2, {.model = 0}, 1);
  forecast.submit(3, {.model = 0}, 2);
  forecast.cancel(3, 2.5);
  forecast.forget(1);
  forecast.advance(4);
  EXPECT_EQ(latency->summary().requests, 1U);
  forecast.advance(100);
  const LatencyRecord::Summary summary = latency->summary();
  EXPECT_EQ(summary.requests, 2U) << "one left before its answer";
  EXPECT_NEAR(summary.p50, 4, 1e-9);
  EXPECT_NEAR(summary.p99, 7, 1e-9);
  forecast.remove(0);
  EXPECT_THROW(forecast.submit(4, {.model = 0}, 101), std::invalid_argument);
}

TEST(SimulatedService, FrontsCostCoresAndWaysOnlyTime) {
  SimulatedService service({});
  service.add({.name = "m", .whole = 4, .front = 0.5, .way = 0.25});
  service.submit({.model = 0}, 0);
  service.submit({.model = 0}, 0);
  service.finish();
  const auto ended = service.take_ended();
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_NEAR(ended[0].moment, 4.75, 1e-9);
  EXPECT_NEAR(ended[1].moment, 9.25, 1e-9);
  EXPECT_NEAR(service.busy(), 9, 1e-9);
}

TEST(ServiceTrace, ShowsOneRequestWithItsStepsAndForgetsOldOnes) {
  ServiceTrace trace;
  trace.add({.id = 7, .model = "m", .client_id = "mine", .answer = "done", .begin = 1, .end = 5});
  trace.add({.model = "m", .requests = {7}, .segment = 0, .begin = 1, .end = 3});
  trace.add({.model = "other", .requests = {8}, .half = 1, .begin = 3, .end = 4});
  const auto events = nlohmann::json::parse(trace.text("mine")).at("traceEvents");
  std::vector<std::string> steps;
  for (const auto& event : events) {
    if (event.at("ph") == "X") steps.push_back(event.at("name"));
  }
  EXPECT_THAT(steps, ::testing::ElementsAre("m segment 0"));
  for (std::size_t i = 0; i < ServiceTrace::kKept; ++i) {
    trace.add(ServiceTrace::StepSpan{.model = "new", .requests = {9}});
  }
  EXPECT_THAT(trace.text(), ::testing::Not(HasSubstr("segment 0")));
}

}  // namespace
}  // namespace placewright
