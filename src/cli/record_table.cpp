#include "cli/record_table.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/text.h"
#include "planning/sizes.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string words_of(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_array())
    return fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), ", "));
  return value.get<std::string>();
}

// Numbers, aligned to the right; "-" where there is none.
Style numbers(std::function<std::string(double)> text) {
  return {Align::right, [text = std::move(text)](const Json& value) {
            return value.is_null() ? "-" : text(value.get<double>());
          }};
}

}  // namespace

Style words(Align align) {
  return {align, words_of};
}

Style count() {
  return {Align::right, [](const Json& value) { return value.dump(); }};
}

Style time_in(TimeUnit unit) {
  return numbers([unit](double value) { return value_text(value, unit); });
}

Style percent() {
  return numbers(percent_text);
}

Style duration() {
  return numbers(duration_text);
}

Style size() {
  return numbers(size_text);
}

Style number(const std::string& form) {
  return scaled(1, form);
}

Style scaled(double factor, const std::string& form) {
  return numbers(
      [factor, form](double value) { return fmt::format(fmt::runtime(form), factor * value); });
}

std::string titled_line(const std::string& title, const std::string& text, std::size_t indent) {
  return fmt::format("{:{}}{:<16}  {}\n", "", indent, title, text);
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Json without_infinity(Json value) {
  const bool endless = value.is_number_float() && !std::isfinite(value.get<double>());
  return endless ? Json() : value;
}

}  // namespace placewright::cli
