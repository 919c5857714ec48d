// A model's graph as a problem: ops, tensors, weights, and times where nothing was measured.
//
// Estimated times follow the roofline of a device kind (formats/catalogue.h). A gather reads what
// it gathers, not the whole table. Ops that runtimes fold have no place of their own
// (folded_ops.h). Estimates serve until `profile` has measured; the problem's `origin` says that
// they are estimates.

#pragma once

#include <string>
#include <vector>

#include "backends/runtime.h"
#include "formats/catalogue.h"
#include "machine/targets.h"
#include "problem/draft.h"

namespace placewright {

// The model file as a problem in `folder` refers to it, with the backend that reads it and its
// digest (of an IR: of the XML, which holds the graph; of a SavedModel: of the folder; empty
// `folder`: the path stays absolute).
ModelSource source_of(const std::string& path, const std::vector<std::string>& shapes,
                      const std::string& folder);

// Ops, tensors, weights; no devices and no times yet. Tensors that nobody reads are left out.
ProblemDraft draft_of(const ModelGraph& graph, const std::string& name, ModelSource source);

// The tensors of the graph that such a draft has, in its order.
std::vector<TensorKey> tensors_of_draft(const ModelGraph& graph);

// The peaks of a target that nobody measured: one core as common today, n cores n times as fast in
// flops and less than that in memory; any other device as an integrated GPU.
PeakRates usual_rates(const Target& target);

// Fills in the cluster, and the times by the rooflines of its kinds.
void estimate_times(ProblemDraft& draft, const ModelGraph& graph, const Cluster& cluster,
                    const std::vector<PeakRates>& kinds);

// Ops that runtimes fold into others stay with them (folded_ops.h): for problems that are
// estimated.
void keep_folded_together(ProblemDraft& draft, const ModelGraph& graph);

}  // namespace placewright
