// Shapes for inputs that leave theirs open, where the user gives none.
//
//   batch      1: the first axis, and every axis called so
//   image      an input of four axes with 1, 3 or 4 channels, or an open axis where channels usually
//              are: 3 channels; the height and width that the model states, else 224
//   otherwise  128, the length of a sequence
//
// Axes of one name have one size, and an axis called "a + b" has the sum of both, as in a sequence
// with its past. An input with any number of axes has no usual shape.

#pragma once

#include <string>
#include <vector>

#include "backends/runtime.h"

namespace placewright {

struct UsualShape {
  std::string input;
  std::string declared;  // "?x3x?x?"
  std::string shape;     // "1x3x224x224"
  bool stated = false;   // the model says how large its images are
};

// For the inputs of the model in this file that are open; none where one has any number of axes.
std::vector<UsualShape> usual_shapes(const std::string& path, const ModelSignature& signature);

}  // namespace placewright
