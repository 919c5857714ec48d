#include "formats/resource_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace placewright {
namespace {

// What is held is a product of amount and share: rounding leaves less than this out of it.
constexpr double kTolerance = 1e-9;

struct NumberedName {
  std::string_view word;
  std::size_t number;
};

// "core 12" is "core" and 12; nullopt for names of another kind, and for "core 07", which a range
// would not give back.
std::optional<NumberedName> numbered(std::string_view name) {
  const std::size_t space = name.rfind(' ');
  if (space == std::string_view::npos || space == 0) return std::nullopt;
  const std::string_view digits = name.substr(space + 1);
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  if (!whole || fmt::format("{}", number) != digits) return std::nullopt;
  return NumberedName{name.substr(0, space), number};
}

struct Family {
  std::string word;  // of names with numbers, or the whole name
  std::vector<std::size_t> numbers;
};

std::string ranges_text(const std::vector<std::size_t>& numbers) {
  std::vector<std::string> ranges;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    ranges.push_back(end - begin == 1 ? fmt::format("{}", numbers[begin])
                                      : fmt::format("{}-{}", numbers[begin], numbers[end - 1]));
    begin = end;
  }
  return fmt::format("{}", fmt::join(ranges, ", "));
}

std::string family_text(Family family) {
  if (family.numbers.empty()) return family.word;
  std::ranges::sort(family.numbers);
  return fmt::format("{}{} {}", family.word, family.numbers.size() > 1 ? "s" : "",
                     ranges_text(family.numbers));
}

}  // namespace

std::vector<std::string> resource_names(const Problem& problem,
                                        std::span<const ResourceId> resources) {
  std::vector<std::string> names;
  for (const ResourceId resource : resources) names.push_back(problem.resource(resource).name);
  return names;
}

std::string resources_text(const Problem& problem, std::span<const ResourceId> resources) {
  std::vector<Family> families;
  for (const ResourceId resource : resources) {
    const std::string& name = problem.resource(resource).name;
    const auto parts = numbered(name);
    if (!parts) {
      families.push_back({name, {}});
      continue;
    }
    auto family = std::ranges::find_if(families, [&](const Family& known) {
      return !known.numbers.empty() && known.word == parts->word;
    });
    if (family == families.end()) {
      family = families.insert(family, {std::string{parts->word}, {}});
    }
    family->numbers.push_back(parts->number);
  }
  std::vector<std::string> texts;
  for (Family& family : families) texts.push_back(family_text(std::move(family)));
  return fmt::format("{}", fmt::join(texts, " and "));
}

std::string held_text(const Problem& problem, std::span<const ResourceUse> held) {
  std::vector<ResourceId> whole;
  std::vector<std::string> texts;
  for (const ResourceUse& use : held) {
    const Resource& resource = problem.resource(use.resource);
    if (use.amount >= resource.capacity * (1 - kTolerance)) {
      whole.push_back(use.resource);
    } else {
      texts.push_back(
          fmt::format("{} ({:.6g} of {:.6g})", resource.name, use.amount, resource.capacity));
    }
  }
  if (!whole.empty()) texts.insert(texts.begin(), resources_text(problem, whole));
  return fmt::format("{}", fmt::join(texts, " and "));
}

}  // namespace placewright
