#include "report/report_page.h"

#include <stdexcept>

namespace placewright {
namespace {

constexpr std::string_view kMark = "{\"placewright\":\"data\"}";

std::string without_markup(const std::string& json) {
  std::string text;
  text.reserve(json.size());
  for (const char character : json) {
    if (character == '<') {
      text += "\\u003c";
    } else {
      text += character;
    }
  }
  return text;
}

}  // namespace

std::string report_page(std::span<const ReportedPlan> plans) {
  const std::string_view page = page_template();
  const std::size_t mark = page.find(kMark);
  if (mark == std::string_view::npos) throw std::logic_error("the page has no place for data");
  return std::string(page.substr(0, mark)) + without_markup(report_data(plans)) +
         std::string(page.substr(mark + kMark.size()));
}

}  // namespace placewright
