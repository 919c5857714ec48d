// What a server does and has done, as Prometheus and `placewright top` read it.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serving/latency_record.h"

namespace placewright {

// Of one version of a model. Times are milliseconds.
struct ModelReport {
  std::string name;
  std::string version;
  std::string state;  // "ready", "unloaded" until a request comes, or why it is not served
  double own_time = 0;
  std::uint64_t segments = 1;
  std::uint64_t waiting = 0;  // requests
  double waiting_bytes = 0;
  double busy_seconds = 0;
  double memory = 0;  // bytes that it took when it was loaded
  // Answers since it was loaded.
  std::uint64_t done = 0;
  std::uint64_t refused = 0;
  std::uint64_t late = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  LatencyRecord::Summary measured;
  LatencyRecord::Summary predicted;
  friend bool operator==(const ModelReport&, const ModelReport&) = default;
};

// What computes at the moment.
struct RunningReport {
  std::string model;
  std::string cores;
  friend bool operator==(const RunningReport&, const RunningReport&) = default;
};

struct ServiceReport {
  std::string version;  // of the server
  double up_seconds = 0;
  std::uint64_t cores = 0;
  double busy_seconds = 0;
  double backlog = 0;  // milliseconds of accepted work
  double memory = 0;   // bytes of the process
  std::vector<RunningReport> running;
  std::vector<ModelReport> models;
};

std::string report_text(const ServiceReport& report);
// Throws InputError.
ServiceReport parse_report(std::string_view text, const std::string& name);

// Histograms of a version, which metrics give in full.
struct ModelHistograms {
  std::string measured;
  std::string predicted;
};
// A label list without braces: model="…",version="…".
std::string metric_labels(const std::string& model, const std::string& version);
// In the text format of Prometheus; `histograms` by model of the report.
std::string metrics_text(const ServiceReport& report,
                         const std::vector<ModelHistograms>& histograms);

inline constexpr const char* kMeasuredMetric = "placewright_latency_seconds";
inline constexpr const char* kPredictedMetric = "placewright_predicted_latency_seconds";

}  // namespace placewright
