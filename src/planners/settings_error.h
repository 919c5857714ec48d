// What a planner says about the value of one of its settings, once it knows what the value names.

#pragma once

#include <stdexcept>

namespace placewright {

// A setting names something that cannot be used (a damaged policy, a measurement that is not
// offered); the message is one sentence.
class SettingsError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace placewright
