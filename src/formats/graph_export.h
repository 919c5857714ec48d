// The graph of a problem with a plan drawn into it, for two viewers.
//
//   dot             Graphviz: a box for each device (pipelines: each stage), ops in the device's
//                   colour, tensors that leave their device drawn bold with the time they take
//   model explorer  Google's Model Explorer: one graph for each model, ops nested under their
//                   device, with attributes; and, as a file of its own, node data: the time and
//                   the device of each op as overlays that colour the graph
//
// Reference: https://graphviz.org/doc/info/lang.html; google-ai-edge/model-explorer, "Graph" and
// "GraphNodeData" (graph_builder.py, node_data_builder.py).

#pragma once

#include <string>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

std::string dot_text(const Problem& problem, const Plan& plan);

// {"label": …, "graphs": [{"id", "nodes": [{"id", "label", "namespace", "attrs",
//  "incomingEdges", …}]}]}
std::string model_explorer_graph(const Problem& problem, const Plan& plan);

// {graph id: {"results": {node id: {"value", "bgColor"}}}}; `value` is the op's time on its device.
std::string model_explorer_node_data(const Problem& problem, const Plan& plan);

}  // namespace placewright
