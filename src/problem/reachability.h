// Which nodes of a graph a path leads to from each node: one bit for each pair, n^2 / 64 words.

#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

namespace placewright {

template <class Node>
class Reachability {
 public:
  // `order` is a topological order of all nodes; `successors(node)` lists those an edge leads to.
  template <class Successors>
  Reachability(std::span<const Node> order, const Successors& successors)
      : words_((order.size() + 63) / 64), bits_(order.size() * words_, 0) {
    for (const Node node : order | std::views::reverse) {
      std::uint64_t* const own = bits_.data() + node.index() * words_;
      for (const Node next : successors(node)) {
        const std::uint64_t* const other = bits_.data() + next.index() * words_;
        for (std::size_t word = 0; word < words_; ++word) own[word] |= other[word];
        own[next.index() / 64] |= std::uint64_t{1} << (next.index() % 64);
      }
    }
  }

  // Whether a path of at least one edge leads from one node to the other.
  [[nodiscard]] bool path(Node from, Node to) const {
    return (bits_[from.index() * words_ + to.index() / 64] >> (to.index() % 64) & 1U) != 0;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace placewright
