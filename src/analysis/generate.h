// Problems made to measure: graphs of a chosen family and size on a random cluster.
//
// The same options give the same draft, bit for bit, on every machine: the generator is
// std::mt19937_64, whose output the standard fixes, and its numbers become times and sizes by
// integer arithmetic and single divisions, never through the library's distributions or libm.
//
//   layered          ops in layers, each reading one op of the layer before and others further up
//   chain            one op after the other
//   series-parallel  series and parallel parts nested at random
//   transformer      attention and feed-forward blocks; the same op costs the same in every block
//   encoder-decoder  attention of eight heads, ops of their own; the decoder reads the encoder's end
//   inception        modules of parallel convolution branches that a concat joins
//
// Costs: an op is heavy (convolution, matrix product: long, with weights) or light (short,
// without). Each kind of device has a speed for heavy ops and one for light ops, so speed-ups vary
// from op to op. Times are in milliseconds, bandwidths in bytes per millisecond. Where devices are
// streams of a GPU, an op takes some eighths of it, a heavy op two to eight, a light one one to
// four. O(ops + edges).
//
// A training graph mirrors the forward graph: the backward op of v reads what v made and the
// gradients of v's readers, and shares v's device (its colour class). There are no optimizer ops.

#pragma once

#include <cstddef>
#include <cstdint>

#include "problem/draft.h"

namespace placewright {

enum class GraphFamily { layered, chain, series_parallel, transformer, encoder_decoder, inception };
template <>
inline constexpr auto kSpellings<GraphFamily> = std::to_array<Spelling<GraphFamily>>({
    {GraphFamily::layered, "layered", "ops in layers, reading from layers further up"},
    {GraphFamily::chain, "chain", "one op after the other"},
    {GraphFamily::series_parallel, "series-parallel", "series and parallel parts nested at random"},
    {GraphFamily::transformer, "transformer", "attention and feed-forward blocks"},
    {GraphFamily::encoder_decoder, "encoder-decoder",
     "attention with ops for each head, a decoder that reads an encoder"},
    {GraphFamily::inception, "inception", "parallel convolution branches that a concat joins"},
});

struct GenerateOptions {
  GraphFamily family = GraphFamily::layered;
  std::uint64_t seed = 1;
  std::size_t ops = 100;   // all models together, backward ops included
  std::size_t models = 1;  // of nearly equal size; each after the first arrives later
  std::size_t layers = 0;  // layered: 0 chooses the square root of the ops
  std::size_t edges = 0;   // layered: of the forward graph; 0: `density` decides
  double density = 1.5;    // layered: edges for each forward op
  bool training = false;

  std::size_t devices = 4;       // joined by links, where there are no accelerators or cores
  std::size_t kinds = 3;         // links: kinds of devices, at most one for each device
  std::size_t accelerators = 0;  // a host interconnect: number of accelerators ...
  std::size_t cores = 0;         // ... and CPU cores
  std::size_t shared_cores = 0;  // nested sets of this many cores, which share one memory ...
  std::size_t sockets = 1;       // ... or this many, each with its part of the cores
  std::size_t streams = 0;       // of each device or accelerator, which share what it computes with
  double memory_pressure = 0;    // bytes of all weights / memory of all devices; 0: no limit
  double communication = 1;      // multiplies the tensors' sizes
  double variation = 0.25;  // of op times around the mean of their role and kind; 0: equal layers
  double unsupported = 0;   // share of ops that some kinds cannot run

  Objective objective = Objective::latency;
  Rules rules = {};
};

// The largest number of ops that is made.
inline constexpr std::size_t kMostGeneratedOps = 10'000'000;

// How many devices the options ask for, where they do not contradict each other.
std::size_t generated_device_count(const GenerateOptions& options);

// Throws std::invalid_argument with one sentence where the options contradict each other.
ProblemDraft generate(const GenerateOptions& options);

}  // namespace placewright
