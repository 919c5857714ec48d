#include "serving/latency_record.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "serving/simulation.h"

namespace placewright {

void LatencyRecord::add(double milliseconds) {
  const auto bucket = std::ranges::lower_bound(kBounds, milliseconds) - kBounds.begin();
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<std::size_t>(bucket)];
  sum_ += milliseconds;
  if (recent_.size() < kRecent) {
    recent_.push_back(milliseconds);
  } else {
    recent_[count_ % kRecent] = milliseconds;
  }
  ++count_;
}

LatencyRecord::Summary LatencyRecord::summary() const {
  std::vector<double> recent;
  Summary summary;
  {
    const std::lock_guard lock(mutex_);
    recent = recent_;
    summary.requests = count_;
  }
  if (recent.empty()) return summary;
  summary.mean =
      std::accumulate(recent.begin(), recent.end(), 0.0) / static_cast<double>(recent.size());
  summary.p50 = percentile(recent, 0.5);
  summary.p99 = percentile(recent, 0.99);
  return summary;
}

std::string LatencyRecord::text(const std::string& name, const std::string& labels) const {
  const std::lock_guard lock(mutex_);
  std::string text;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    count += counts_[i];
    const std::string bound =
        i < kBounds.size() ? fmt::format("{:g}", kBounds[i] / 1000) : std::string("+Inf");
    text += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, count);
  }
  text += fmt::format("{}_sum{{{}}} {}\n", name, labels, sum_ / 1000);
  return text + fmt::format("{}_count{{{}}} {}\n", name, labels, count);
}

}  // namespace placewright
