// What the streams are connected to: a person at a terminal, or a file, pipe or program.

#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace placewright::cli {

// Prints to stderr. That nobody can read it (it is closed, or its disk is full) is no fault: what
// has been worked out must not be lost for a message.
void tell(std::string_view text);

bool is_terminal(std::FILE* stream);

// Columns of the terminal behind the stream, or `otherwise` if there is none.
int terminal_width(std::FILE* stream, int otherwise);

enum class Colour { green, yellow, red, bold };

// The text in colour when stdout is a terminal and NO_COLOR is not set; else the text.
std::string coloured(std::string_view text, Colour colour);

}  // namespace placewright::cli
