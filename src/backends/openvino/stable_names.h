// Names of a model's nodes that depend on its file alone.
//
// OpenVINO makes up a name for each node that the file does not name, from the node's type and a
// counter of the process: "Multiply_99001". Problem and plan files refer to ops by name, so such a
// name must not depend on what was read before. A made-up name looks like any other; but the
// counter only grows, so between two readings of one file exactly the made-up names differ.

#pragma once

#include <string>
#include <vector>

#include <openvino/core/model.hpp>

namespace placewright::openvino {

// In the model's topological order, which depends on the file alone.
std::vector<std::string> names_of(const ov::Model& model);

// `first`: names_of another reading of the same file. Nodes of the model that are called otherwise
// there are renamed after the first node with a name of its own that uses what they make, and
// their type: "encoder/gelu/Multiply". Names may then occur more than once.
void replace_made_up_names(ov::Model& model, const std::vector<std::string>& first);

}  // namespace placewright::openvino
