#include "report/accuracy_story.h"

#include <fmt/format.h>

namespace placewright {
namespace {

std::string share_text(const std::optional<double>& error) {
  return error ? fmt::format("{:.2g} %", 100 * *error) : std::string("more than can be told");
}

}  // namespace

std::string accuracy_sentence(const RunFile& run) {
  if (!run.precision || !run.outputs || !run.outputs->against_f32) return {};
  const RunAccuracy& accuracy = *run.outputs->against_f32;
  const std::string top = accuracy.same_top
                              ? fmt::format("; the top class is the same for {} of {} inputs",
                                            *accuracy.same_top, accuracy.inputs)
                              : std::string{};
  return fmt::format("{} beside f32: off by {} of the largest value at most, {} in the mean{}",
                     name_of(*run.precision), share_text(accuracy.largest_error),
                     share_text(accuracy.mean_error), top);
}

}  // namespace placewright
