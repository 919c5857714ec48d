// How to read a problem file; the defaults let the file decide.

#pragma once

#include <optional>
#include <string>

#include "placewright/problem/objective.h"

namespace placewright {

struct ReadOptions {
  std::string format = {};  // "placewright", "moirai", "msr", "talos"; empty: recognised by content
  std::optional<Objective> objective = {};  // absent: the file's, or the format's default
  std::string cluster = {};                 // path of a cluster file that replaces the devices
};

}  // namespace placewright
