// Whole files in and out. The path "-" stands for standard input or standard output.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace placewright {

inline constexpr std::size_t kLargestFile = std::size_t{1} << 30;

// What a file is called in messages: its path, or "standard input".
std::string input_name(const std::string& path);

// Everything in the file, or what a pipe or a terminal gives to its end. Throws InputError for a
// directory or another device, a file that is missing or cannot be read, or one larger than `limit`
// bytes.
std::string read_whole(const std::string& path, std::size_t limit = kLargestFile);

// The same, to see what the file is: read_whole gives the text once more. Standard input and pipes
// can be read only once, so their text is kept until then.
std::string peek_whole(const std::string& path);

// For a path that stands inside a file, or that another library reads. Throws InputError for a pipe
// or a device, whose end nobody may ever write. A missing file is for the reader to complain about.
void require_that_it_ends(const std::string& path);

// Writes the file whole or not at all: a temporary file in the same folder takes the text, is
// written to the disk, and then takes the path's name. Devices and pipes are written in place.
// Throws OutputError.
void write_whole(const std::string& path, std::string_view text);

// SHA-256 of the bytes as 64 hexadecimal digits, as `sha256sum` prints it.
std::string digest_of(std::string_view bytes);

// The same of a file of any size, read in pieces; of a folder, of the names and digests of all
// files in it. Throws InputError.
std::string digest_of_file(const std::string& path);

}  // namespace placewright
