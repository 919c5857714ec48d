// Text from files, made harmless: names may hold characters on which a terminal acts instead of
// showing them. These are the control characters (C0, DEL and C1; among them the escape that begins
// a control sequence, in both its forms), the separators of lines and paragraphs, and the marks and
// overrides that turn the direction of text; and every byte that is not part of valid UTF-8, since
// an 8-bit terminal may take it for one of these.
//
// For people each of them becomes "?"; in files it is escaped as JSON escapes characters, so that
// it can be told what it was. Every other character stays.

#pragma once

#include <string>
#include <string_view>

namespace placewright {

// One line for people, in as many characters as before: "a?[31mb".
std::string printable(std::string_view text);

// For text of several lines, as files hold it: "a\u001b[31mb". Line feeds stay. In JSON, where
// these characters occur inside strings only, this changes the text and not what it says.
std::string with_escapes(std::string_view text);

// The name of a model or tensor as that of a file: without slashes, and not hidden.
std::string file_name_of(std::string name);

}  // namespace placewright
