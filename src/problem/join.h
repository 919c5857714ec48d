// Several problems on the same devices as one: how several models come to share a machine.

#pragma once

#include <vector>

#include "problem/draft.h"

namespace placewright {

// The models, ops and tensors of all drafts on the first one's devices and under its objective and
// rules. The others must have the same kinds, devices and links, and the same unit; throws
// std::invalid_argument naming the first that does not. Overheads of devices, latencies and
// bandwidths of links may differ, since each profile measures them anew: the joined problem has the
// means (of bandwidths, the mean time of a byte), and its origin says so. A model's name that is
// taken gets a number ("bert 2"); the ops of a draft in which a name is taken are called
// "model/op".
ProblemDraft joined(std::vector<ProblemDraft> drafts);

// Adds the models, ops, tensors, groups and shared weights of `part` behind those of `all`; ids in
// them follow. Names stay as they are, and so does the rest of `all`.
void append_records(ProblemDraft& all, ProblemDraft part);

}  // namespace placewright
