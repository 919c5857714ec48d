// The two ways in which a file can go wrong: what was read is not what it should be, or what is to
// be written cannot be.

#pragma once

#include <stdexcept>
#include <string>

namespace placewright {

// "FILE: PLACE: message". The place is a JSON pointer ("/nodes/12/time"), or "line 3, column 7"
// if the text is not JSON; it is empty if the file as a whole is at fault.
class InputError : public std::runtime_error {
 public:
  InputError(std::string file, std::string place, std::string message)
      : std::runtime_error(place.empty() ? file + ": " + message
                                         : file + ": " + place + ": " + message),
        file_(std::move(file)),
        place_(std::move(place)),
        message_(std::move(message)) {}

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  std::string file_;
  std::string place_;
  std::string message_;
};

// "PATH: reason"; nothing half-written is left behind.
class OutputError : public std::runtime_error {
 public:
  OutputError(std::string path, std::string reason)
      : std::runtime_error(path + ": " + reason),
        path_(std::move(path)),
        reason_(std::move(reason)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::string path_;
  std::string reason_;
};

}  // namespace placewright
