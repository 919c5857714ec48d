// Latencies of requests, as they are counted for Prometheus and as a person asks for them: of those
// of late.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace placewright {

class LatencyRecord {
 public:
  // Milliseconds; close enough to each other that a percentile can be read from them.
  static constexpr std::array kBounds{0.1,  0.2,  0.3,  0.5,  0.7,  1.,    1.5,   2.,    3.,
                                      5.,   7.,   10.,  15.,  20.,  30.,   50.,   70.,   100.,
                                      150., 200., 300., 500., 700., 1000., 2000., 5000., 10000.};
  // So many of the last latencies make a summary.
  static constexpr std::size_t kRecent = 1000;

  struct Summary {
    std::uint64_t requests = 0;  // all that there were
    double mean = 0;             // of the last ones, milliseconds
    double p50 = 0;
    double p99 = 0;
    friend bool operator==(const Summary&, const Summary&) = default;
  };

  void add(double milliseconds);
  [[nodiscard]] Summary summary() const;
  // A histogram in the text format of Prometheus, in seconds.
  [[nodiscard]] std::string text(const std::string& name, const std::string& labels) const;

 private:
  mutable std::mutex mutex_;
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::vector<double> recent_;  // a ring
};

}  // namespace placewright
