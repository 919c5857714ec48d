// How estimated times grow with the batch: launches and weights are paid once, the rest grows.
//
// An estimate is launch + max(compute, weights + tensors), by the peaks of the device's kind
// (catalogue.h). With b samples it is launch + max(b compute, weights + b tensors), so an op that
// waits for its weights takes hardly longer, until it computes for longer than they take. Of the
// parts the problem states what they come from: flops, the op's own and shared weights, bytes. What
// limits the op with one sample has the whole of the stated time, so that one sample stays as it
// is.

#pragma once

#include <optional>
#include <vector>

#include "formats/cluster_file.h"
#include "problem/draft.h"

namespace placewright {

class EstimatedBatch {
 public:
  // Peaks are those of the cluster file, or else the catalogue's.
  EstimatedBatch(const ProblemDraft& draft, const ClusterFile& cluster);

  // How many times as long the op takes with so many samples as with one. In proportion, if nobody
  // knows the peaks of the kind.
  [[nodiscard]] double growth(OpId op, KindId kind, double samples) const;

 private:
  struct Parts {
    double launch = 0;
    double compute = 0;
    double weights = 0;
    double tensors = 0;
  };
  [[nodiscard]] Parts parts(OpId op, const PeakRates& peak, double seconds) const;

  ProblemDraft draft_;
  std::vector<std::optional<PeakRates>> peaks_;  // by kind
  std::vector<double> weights_;                  // by op, bytes of weights that it reads
};

}  // namespace placewright
