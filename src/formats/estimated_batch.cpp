#include "formats/estimated_batch.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "problem/time_unit.h"

namespace placewright {
namespace {

constexpr double kRounding = 1e-6;

bool has_one_of(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// By the names that model files and PyTorch give such ops.
bool multiplies_matrices(const Op& op) {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"Conv", "MatMul", "Gemm", "mm", "linear", "conv", "matmul", "attention"});
  return has_one_of(op.type, kWords);
}

// It reads of its weights what it gathers, which grows with the batch.
bool gathers(const Op& op) {
  static constexpr auto kWords =
      std::to_array<std::string_view>({"Gather", "Embedding", "embedding"});
  return has_one_of(op.type, kWords);
}

}  // namespace

EstimatedBatch::EstimatedBatch(const ProblemDraft& draft, const ClusterFile& cluster)
    : draft_(draft) {
  for (const DeviceKind& kind : draft.cluster.kinds) peaks_.push_back(rates_of(cluster, kind.name));
  for (const Op& op : draft.ops) weights_.push_back(op.memory);
  for (const SharedWeight& weight : draft.shared_weights) {
    for (const OpId op : weight.ops) weights_[op.index()] += weight.bytes;
  }
  for (std::size_t op = 0; op < draft.ops.size(); ++op) {
    if (gathers(draft.ops[op])) weights_[op] = 0;
  }
}

EstimatedBatch::Parts EstimatedBatch::parts(OpId op, const PeakRates& peak, double seconds) const {
  const Op& stated = draft_.ops[op.index()];
  // A roofline without a launch, of which only one side is asked for.
  PeakRates bare = peak;
  bare.launch = 0;
  Parts parts{.launch = std::min(peak.launch, seconds)};
  const double busy = seconds - parts.launch;
  const double weights = bare.estimated_seconds({.bytes = weights_[op.index()]});
  OpWork work{.flops = stated.flops, .of_matrices = multiplies_matrices(stated)};
  // Products that take less than in f32 are in 16 bits.
  work.in_half = bare.estimated_seconds(work) > busy * (1 + kRounding);
  const double compute = bare.estimated_seconds(work);
  parts.weights = std::min(weights, busy);
  parts.compute = std::min(compute, busy);
  parts.tensors = parts.compute < busy ? busy - parts.weights : 0;
  return parts;
}

double EstimatedBatch::growth(OpId op, KindId kind, double samples) const {
  const std::optional<PeakRates>& peak = peaks_[kind.index()];
  const double time = draft_.ops[op.index()].time[kind.index()];
  if (!peak || draft_.unit == TimeUnit::none || time == 0 || time == kUnsupported) return samples;
  const double seconds = time * milliseconds_in(draft_.unit) / 1000;
  const Parts part = parts(op, *peak, seconds);
  const double moved = part.weights + samples * part.tensors;
  return (part.launch + std::max(samples * part.compute, moved)) / seconds;
}

}  // namespace placewright
