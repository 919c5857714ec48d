// Dominated blocks: work-free blocks that some best pipeline keeps with a neighbour.
//
// Let v take no time wherever a neighbour u may run, need no memory that could matter, and be
// allowed wherever u is. Take a placement with u on d and v on e != d, and move v to d. Per sample,
// with nets as sets of blocks (one producer, its readers):
//
//   saved on both d and e   a = nets from u that only v reads, b = nets from v that only u reads
//   new on d or e, at most  p = nets from v that others read,
//                           q = nets from others that v reads and u does not
//
// and no other device gets more to do. So if p <= a on the way out and q <= b on the way in
// (sequential transfers: p + q <= a + b), merging u and v loses nothing. Joint contiguity survives
// the move if u is the last predecessor of v (all others come before u) or its first successor.
// Repeated until nothing changes, this removes views, reshapes, masks and idle outputs, and with
// them most down-sets of the graph: GNMT's 300,000 shrink to some hundreds.
//
// Not for per-device contiguity and peak memory: there the blocks come back as they are. Where
// links, cut overheads or phased training make a saving hard to compare, only blocks with nothing
// new (p and q empty) are merged. O(blocks + edges) for each of a few rounds, and blocks^2 / 64
// words where reachability is asked (up to 4096 blocks; beyond, direct edges only).

#pragma once

#include "coarsen/blocks.h"
#include "problem/problem.h"

namespace placewright {

// Throughput only.
Blocks merge_dominated(const Problem& problem, Blocks blocks);

// The blocks with some of them joined: those with the same label become one. Labels are block ids.
// Where contiguity is asked for the result must be acyclic, and is numbered along its edges, depth
// first.
Blocks joined(const Problem& problem, const Blocks& blocks, const Table<BlockId, BlockId>& label);

}  // namespace placewright
