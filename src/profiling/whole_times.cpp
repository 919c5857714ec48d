#include "profiling/whole_times.h"

#include <charconv>

#include <fmt/format.h>

namespace placewright {
namespace {

std::string ending_of(const std::string& model, const std::string& kind) {
  return fmt::format(" ms, {} on {}", model, kind);
}

}  // namespace

std::string whole_time_line(const std::string& model, const KindProfile& kind) {
  return fmt::format("{}{:.6g}{}", kWholeTimeOrigin, kind.latency.median,
                     ending_of(model, kind.kind));
}

std::optional<double> whole_time(const ProblemDraft& draft, const std::string& model,
                                 const std::string& kind) {
  const std::string ending = ending_of(model, kind);
  for (const std::string_view line : draft.origin) {
    if (!line.starts_with(kWholeTimeOrigin) || !line.ends_with(ending)) continue;
    const std::string_view text =
        line.substr(kWholeTimeOrigin.size(), line.size() - kWholeTimeOrigin.size() - ending.size());
    double time = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), time);
    if (error == std::errc{} && end == text.data() + text.size()) return time;
  }
  return std::nullopt;
}

}  // namespace placewright
