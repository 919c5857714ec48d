#include "formats/problem_formats.h"

#include <algorithm>
#include <array>

namespace placewright {

std::span<const ProblemFormat> problem_formats() {
  static const std::array formats{
      native_format(),
      msr_format(),
      moirai_format(),
      talos_format(),
  };
  return formats;
}

std::vector<std::string> problem_format_names() {
  std::vector<std::string> names;
  for (const ProblemFormat& format : problem_formats()) names.emplace_back(format.name);
  return names;
}

const ProblemFormat* find_problem_format(std::string_view name) {
  const auto formats = problem_formats();
  const auto found = std::find_if(formats.begin(), formats.end(),
                                  [&](const ProblemFormat& format) { return format.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

}  // namespace placewright
