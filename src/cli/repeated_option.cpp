#include "cli/repeated_option.h"

namespace placewright::cli {

CLI::Option* add_repeated(CLI::App& verb, const std::string& option,
                          std::vector<std::string>& values, const std::string& type,
                          const std::string& help) {
  return verb.add_option(option, values, help)
      ->type_name(type)
      ->allow_extra_args(false)
      ->take_all();
}

}  // namespace placewright::cli
