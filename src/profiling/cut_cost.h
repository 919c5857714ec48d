// What a cut costs: layouts that change at a border, what the backend can no longer do in place,
// one more call of the backend.
//
// Segments of the model run one after the other in one thread, in turn with the whole model:
//
//   apart     Every fused group is a segment. By a robust line through what the groups take alone against
//             what they take inside the model, alone = call + slope x inside: a call of the backend
//             costs all of them about the same. What a group takes beyond the line is its entry: a
//             convolution takes an image as it comes, a pool or a concatenation has it copied, or
//             cannot join it in place any more.
//   together  2, 4 and 8 segments of about equal time, then borders at random. A call may take longer
//             than for a group alone: where several cores share the work, their threads have to wake
//             up first. If these trials take longer by so much for each segment (a robust line), that is
//             what it takes. How well calls and entries then predict the trials is the error.
//
// Differences of whole runs would not do: a model compiled once more is 1 % faster or slower, which
// is as much as thirty cuts.
//
// In a plan a tensor that is handed over ends a segment of who sends it, which goes on with another
// one, and begins a segment of who receives it: a call for both. The receiver's segment begins with
// a group that reads the tensor, so all that the group reads crosses a border, and the tensor bears
// the entry: all of it if it is half of what the group reads or more, else twice its part, as if
// half of the inputs came from elsewhere.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/runtime.h"
#include "machine/targets.h"
#include "profiling/fused_ops.h"
#include "profiling/measurement.h"

namespace placewright {

struct CutTrial {
  std::size_t segments = 0;
  std::size_t transfers = 0;  // tensors that cross a border, by reading segment
  double bytes = 0;           // of these
  double predicted = 0;       // ms, by the whole model, calls and entries
  Measured time;              // of all segments, one after the other

  // Relative to what was measured.
  [[nodiscard]] double error() const;
};

// What one more call takes, and by group (in the order of `ordered` below) its entry: ms.
struct GroupEntries {
  double call = 0;
  std::vector<double> entries;
};

struct CutCost {
  GroupEntries groups;
  std::map<TensorKey, double> entries;  // ms, the mean over the groups that read the tensor
  Measured whole;                       // the model in one piece
  std::optional<Measured> apart;        // every group a segment; nullopt: the entries are supposed
  std::vector<CutTrial> trials;

  [[nodiscard]] double send() const { return groups.call; }
  [[nodiscard]] double receive(const TensorKey& tensor) const;
  // What a tensor that is handed over costs both sides, in the mean.
  [[nodiscard]] double per_transfer() const;
  // The median over the trials.
  [[nodiscard]] double error() const;

  // Why it should not be believed; empty: it may be.
  [[nodiscard]] std::string doubt() const;
};

// Consecutive groups of about equal time, `count` sets of ops at most.
std::vector<OpGroup> equal_segments(const std::vector<OpGroup>& ordered,
                                    const std::vector<double>& op_times, std::size_t count);

// Segments that end at `count` - 1 random borders of groups.
std::vector<OpGroup> random_segments(const std::vector<OpGroup>& ordered, std::size_t count,
                                     std::uint64_t seed);

// What a group takes, in milliseconds.
struct GroupTime {
  double inside = 0;  // the model
  double alone = 0;
};

GroupEntries entries_of(const std::vector<GroupTime>& groups);

// By tensor, what it bears of the entries of the groups (by their places in `ordered`) that read
// it.
using EntriesOfReaders = std::map<TensorKey, std::map<std::size_t, double>>;
EntriesOfReaders entries_of_readers(const ModelGraph& graph, const std::vector<OpGroup>& ordered,
                                    const std::vector<double>& entries);

// Raises the call, and what it predicts for the trials, to what they took.
void raise_call(CutCost& cost);

// What is cut, and where.
struct Cutting {
  const NeuralModel& model;
  const std::vector<OpGroup>& ordered;  // all ops in groups, in topological order (fused_ops.h)
  const std::vector<double>& op_times;
  const Target& target;
  const MeasureOptions& options;
};

CutCost measure_cuts(const Cutting& cutting);

// With entries that were not measured: two trials tell how well they predict.
CutCost try_cuts(const Cutting& cutting, GroupEntries supposed);

}  // namespace placewright
