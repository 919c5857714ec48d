#include "cli/choice_option.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "planning/suggestion.h"

namespace placewright::cli {
namespace {

constexpr char kBetweenNames = '|';

}  // namespace

CLI::Option* add_choice(CLI::App& verb, const std::string& option, std::vector<std::string> names,
                        std::function<void(const std::string&)> choose, const std::string& help) {
  const std::string type = fmt::format("{}", fmt::join(names, std::string_view(&kBetweenNames, 1)));
  const auto check_and_choose = [option, names = std::move(names),
                                 choose = std::move(choose)](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return choose(name);
    const std::string hint = did_you_mean(name, names);
    throw UsageError(
        fmt::format("{}: unknown value '{}'{}", option, name,
                    hint.empty() ? fmt::format(" (known: {})", fmt::join(names, ", ")) : hint));
  };
  return verb.add_option_function<std::string>(option, check_and_choose, help)->type_name(type);
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.find(kBetweenNames) == std::string::npos) return {};
  return CLI::detail::split(type, kBetweenNames);
}

}  // namespace placewright::cli
