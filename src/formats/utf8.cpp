#include "formats/utf8.h"

#include "formats/input_error.h"

namespace placewright {

std::string_view utf8_content(std::string_view bytes, const std::string& file) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\xEF\xBB\xBF"sv)) return bytes.substr(3);
  // The first character of our files is an ASCII one; in wider encodings it comes with zeros.
  const std::string_view first = bytes.substr(0, 4);
  const bool wide = first.starts_with("\xFF\xFE"sv) || first.starts_with("\xFE\xFF"sv) ||
                    (first.size() >= 2 && (first[0] == '\0') != (first[1] == '\0'));
  if (wide || first == "\0\0\xFE\xFF"sv) {
    throw InputError(file, "", "is in UTF-16 or UTF-32, expected UTF-8");
  }
  return bytes;
}

}  // namespace placewright
