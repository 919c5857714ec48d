#include "report/layered_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace placewright {
namespace {

constexpr int kOrderSweeps = 12;
constexpr int kCoordinateSweeps = 10;
constexpr double kBendWidth = 6;

using Neighbours = std::vector<std::vector<std::uint32_t>>;

// Nodes first, then the bends of long edges; every edge joins neighbouring layers.
class Layering {
 public:
  Layering(std::size_t node_count, const std::vector<LayoutEdge>& edges, const NodeSize& size)
      : node_count_(node_count), size_(size), layer_(layers_of(node_count, edges)) {
    add_bends(edges);
    above_.resize(layer_.size());
    below_.resize(layer_.size());
    for (const auto& [upper, lower] : segments_) {
      below_[upper].push_back(lower);
      above_[lower].push_back(upper);
    }
    set_first_order();
  }

  LayeredLayout layout(const std::vector<LayoutEdge>& edges) {
    improve_order();
    set_coordinates();
    LayeredLayout result;
    result.layer.assign(layer_.begin(), layer_.begin() + static_cast<std::ptrdiff_t>(node_count_));
    for (std::size_t node = 0; node < node_count_; ++node) result.centre.push_back(point(node));
    result.bends.resize(edges.size());
    for (std::size_t edge = 0; edge < edges.size(); ++edge) {
      for (const std::uint32_t bend : bends_of_[edge]) result.bends[edge].push_back(point(bend));
    }
    if (!rows_.empty()) {
      result.width = right_end_;
      result.height =
          static_cast<double>(rows_.size()) * (size_.height + size_.gap_down) - size_.gap_down;
    }
    return result;
  }

 private:
  // Short edges first: they gain most, and a few edges through the whole graph cannot use it all.
  void add_bends(const std::vector<LayoutEdge>& edges) {
    bends_of_.resize(edges.size());
    std::vector<std::size_t> by_span(edges.size());
    std::iota(by_span.begin(), by_span.end(), std::size_t{0});
    const auto span = [&](std::size_t edge) {
      return layer_[edges[edge].second] - layer_[edges[edge].first];
    };
    std::stable_sort(by_span.begin(), by_span.end(),
                     [&](std::size_t a, std::size_t b) { return span(a) < span(b); });
    std::size_t left = 2 * node_count_ + 500;
    for (const std::size_t edge : by_span) {
      if (span(edge) - 1 > left) break;
      left -= span(edge) - 1;
      std::uint32_t upper = edges[edge].first;
      for (std::uint32_t layer = layer_[upper] + 1; layer < layer_[edges[edge].second]; ++layer) {
        const auto bend = static_cast<std::uint32_t>(layer_.size());
        layer_.push_back(layer);
        bends_of_[edge].push_back(bend);
        segments_.emplace_back(upper, bend);
        upper = bend;
      }
      segments_.emplace_back(upper, edges[edge].second);
    }
  }

  // Depth first, so that what hangs together starts side by side.
  void set_first_order() {
    rows_.resize(layer_.empty() ? 0 : *std::max_element(layer_.begin(), layer_.end()) + 1);
    std::vector<char> seen(layer_.size(), 0);
    std::vector<std::uint32_t> stack;
    for (std::uint32_t root = 0; root < layer_.size(); ++root) {
      if (seen[root] || !above_[root].empty()) continue;
      stack.push_back(root);
      while (!stack.empty()) {
        const std::uint32_t node = stack.back();
        stack.pop_back();
        if (seen[node]) continue;
        seen[node] = 1;
        rows_[layer_[node]].push_back(node);
        stack.insert(stack.end(), below_[node].rbegin(), below_[node].rend());
      }
    }
    place_.resize(layer_.size());
    for (const auto& row : rows_) number(row);
  }

  void number(const std::vector<std::uint32_t>& row) {
    for (std::uint32_t i = 0; i < row.size(); ++i) place_[row[i]] = i;
  }

  void improve_order() {
    auto best = rows_;
    std::size_t fewest = crossings();
    for (int sweep = 0; sweep < kOrderSweeps && fewest > 0; ++sweep) {
      if (sweep % 2 == 0) {
        for (std::size_t row = 1; row < rows_.size(); ++row) sort_row(row, above_);
      } else {
        for (std::size_t row = rows_.size() - 1; row-- > 0;) sort_row(row, below_);
      }
      const std::size_t count = crossings();
      if (count >= fewest) continue;
      fewest = count;
      best = rows_;
    }
    rows_ = std::move(best);
    for (const auto& row : rows_) number(row);
  }

  void sort_row(std::size_t row, const Neighbours& neighbours) {
    std::vector<std::pair<double, std::uint32_t>> keyed;
    for (const std::uint32_t node : rows_[row]) {
      double sum = 0;
      for (const std::uint32_t other : neighbours[node]) sum += place_[other];
      const auto count = static_cast<double>(neighbours[node].size());
      keyed.emplace_back(count > 0 ? sum / count : static_cast<double>(place_[node]), node);
    }
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < keyed.size(); ++i) rows_[row][i] = keyed[i].second;
    number(rows_[row]);
  }

  // Pairs of edges between neighbouring rows whose ends are in opposite order, with a Fenwick tree.
  [[nodiscard]] std::size_t crossings() const {
    std::size_t count = 0;
    for (std::size_t row = 0; row + 1 < rows_.size(); ++row) {
      std::vector<std::size_t> tree(rows_[row + 1].size() + 1, 0);
      std::size_t inserted = 0;
      for (const std::uint32_t node : rows_[row]) {
        for (const std::uint32_t other : below_[node]) {
          std::size_t not_right = 0;
          for (std::size_t i = place_[other] + 1; i > 0; i &= i - 1) not_right += tree[i];
          count += inserted - not_right;
        }
        for (const std::uint32_t other : below_[node]) {
          for (std::size_t i = place_[other] + 1; i < tree.size(); i += i & (~i + 1)) ++tree[i];
          ++inserted;
        }
      }
    }
    return count;
  }

  [[nodiscard]] double width(std::uint32_t node) const {
    return node < node_count_ ? size_.width : kBendWidth;
  }

  [[nodiscard]] double distance(std::uint32_t left, std::uint32_t right) const {
    return (width(left) + width(right)) / 2 + size_.gap_across;
  }

  void set_coordinates() {
    x_.assign(layer_.size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t i = 1; i < row.size(); ++i) {
        x_[row[i]] = x_[row[i - 1]] + distance(row[i - 1], row[i]);
      }
      const double middle = row.empty() ? 0 : x_[row.back()] / 2;
      for (const std::uint32_t node : row) x_[node] -= middle;
    }
    for (int sweep = 0; sweep < kCoordinateSweeps; ++sweep) {
      for (std::size_t row = 1; row < rows_.size(); ++row) pull_row(row, above_);
      for (std::size_t row = rows_.size(); row-- > 0;) pull_row(row, below_);
    }
    double left = std::numeric_limits<double>::infinity();
    for (std::uint32_t node = 0; node < x_.size(); ++node) {
      left = std::min(left, x_[node] - width(node) / 2);
    }
    for (std::uint32_t node = 0; node < x_.size(); ++node) {
      x_[node] -= left;
      right_end_ = std::max(right_end_, x_[node] + width(node) / 2);
    }
  }

  // Moves the row's nodes towards their neighbours on one side, by pool adjacent violators on the
  // positions less the distances that must lie between them.
  void pull_row(std::size_t row, const Neighbours& neighbours) {
    struct Pool {
      double sum;
      double count;
      [[nodiscard]] double mean() const { return sum / count; }
    };
    std::vector<Pool> pools;
    std::vector<double> offset(rows_[row].size(), 0);
    for (std::size_t i = 0; i < rows_[row].size(); ++i) {
      const std::uint32_t node = rows_[row][i];
      if (i > 0) offset[i] = offset[i - 1] + distance(rows_[row][i - 1], node);
      double wanted = x_[node];
      if (!neighbours[node].empty()) {
        wanted = 0;
        for (const std::uint32_t other : neighbours[node]) wanted += x_[other];
        wanted /= static_cast<double>(neighbours[node].size());
      }
      Pool pool{wanted - offset[i], 1};
      while (!pools.empty() && pools.back().mean() >= pool.mean()) {
        pool = {pool.sum + pools.back().sum, pool.count + pools.back().count};
        pools.pop_back();
      }
      pools.push_back(pool);
    }
    std::size_t i = 0;
    for (const Pool& pool : pools) {
      for (auto left = static_cast<std::size_t>(pool.count); left > 0; --left, ++i) {
        x_[rows_[row][i]] = pool.mean() + offset[i];
      }
    }
  }

  [[nodiscard]] Point point(std::size_t node) const {
    return {x_[node], size_.height / 2 + layer_[node] * (size_.height + size_.gap_down)};
  }

  std::size_t node_count_;
  NodeSize size_;
  std::vector<std::uint32_t> layer_;
  std::vector<std::vector<std::uint32_t>> bends_of_;
  std::vector<LayoutEdge> segments_;
  Neighbours above_;
  Neighbours below_;
  std::vector<std::vector<std::uint32_t>> rows_;
  std::vector<std::uint32_t> place_;
  std::vector<double> x_;
  double right_end_ = 0;
};

// A connected part of a graph, with numbers of its own.
struct Part {
  std::vector<std::uint32_t> nodes;
  std::vector<std::size_t> edges;
  LayeredLayout layout;
};

std::vector<Part> parts_of(std::size_t node_count, const std::vector<LayoutEdge>& edges) {
  std::vector<std::uint32_t> leader(node_count);
  std::iota(leader.begin(), leader.end(), 0U);
  const auto find = [&](std::uint32_t node) {
    while (leader[node] != node) node = leader[node] = leader[leader[node]];
    return node;
  };
  for (const auto& [from, to] : edges) leader[find(from)] = find(to);
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> part_of(node_count, kNone);
  std::vector<Part> parts;
  for (std::uint32_t node = 0; node < node_count; ++node) {
    std::size_t& part = part_of[find(node)];
    if (part == kNone) {
      part = parts.size();
      parts.emplace_back();
    }
    parts[part].nodes.push_back(node);
  }
  for (std::size_t edge = 0; edge < edges.size(); ++edge) {
    parts[part_of[find(edges[edge].first)]].edges.push_back(edge);
  }
  return parts;
}

void lay_out(std::vector<Part>& parts, std::size_t node_count, const std::vector<LayoutEdge>& edges,
             const NodeSize& size) {
  std::vector<std::uint32_t> number(node_count);
  for (Part& part : parts) {
    for (std::uint32_t i = 0; i < part.nodes.size(); ++i) number[part.nodes[i]] = i;
    std::vector<LayoutEdge> own;
    for (const std::size_t edge : part.edges) {
      own.emplace_back(number[edges[edge].first], number[edges[edge].second]);
    }
    part.layout = layered_layout(part.nodes.size(), own, size);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.layout.height > b.layout.height; });
}

// Copies a part into the whole, moved to (x, y).
void put(const Part& part, double x, double y, LayeredLayout& whole) {
  const auto moved = [&](Point point) { return Point{point.x + x, point.y + y}; };
  for (std::size_t i = 0; i < part.nodes.size(); ++i) {
    whole.centre[part.nodes[i]] = moved(part.layout.centre[i]);
    whole.layer[part.nodes[i]] = part.layout.layer[i];
  }
  for (std::size_t i = 0; i < part.edges.size(); ++i) {
    for (const Point& bend : part.layout.bends[i]) {
      whole.bends[part.edges[i]].push_back(moved(bend));
    }
  }
  whole.width = std::max(whole.width, x + part.layout.width);
  whole.height = std::max(whole.height, y + part.layout.height);
}

}  // namespace

LayeredLayout packed_layout(std::size_t node_count, const std::vector<LayoutEdge>& edges,
                            const NodeSize& size) {
  std::vector<Part> parts = parts_of(node_count, edges);
  lay_out(parts, node_count, edges, size);
  double area = 0;
  for (const Part& part : parts) {
    area += (part.layout.width + size.gap_across) * (part.layout.height + size.gap_down);
  }
  const double row_width = 1.3 * std::sqrt(area);
  LayeredLayout whole;
  whole.centre.resize(node_count);
  whole.layer.resize(node_count);
  whole.bends.resize(edges.size());
  double x = 0;
  double y = 0;
  double row_height = 0;
  for (const Part& part : parts) {
    if (x > 0 && x + part.layout.width > row_width) {
      y += row_height + size.gap_down;
      x = row_height = 0;
    }
    put(part, x, y, whole);
    x += part.layout.width + size.gap_across;
    row_height = std::max(row_height, part.layout.height);
  }
  return whole;
}

std::vector<std::uint32_t> layers_of(std::size_t node_count, const std::vector<LayoutEdge>& edges) {
  Neighbours below(node_count);
  std::vector<std::uint32_t> waiting_for(node_count, 0);
  for (const auto& [from, to] : edges) {
    below[from].push_back(to);
    ++waiting_for[to];
  }
  const std::vector<std::uint32_t> reads = waiting_for;
  std::vector<std::uint32_t> layer(node_count, 0);
  std::vector<std::uint32_t> queue;
  for (std::uint32_t node = 0; node < node_count; ++node) {
    if (waiting_for[node] == 0) queue.push_back(node);
  }
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (const std::uint32_t reader : below[queue[next]]) {
      layer[reader] = std::max(layer[reader], layer[queue[next]] + 1);
      if (--waiting_for[reader] == 0) queue.push_back(reader);
    }
  }
  for (std::uint32_t node = 0; node < node_count; ++node) {
    if (reads[node] > 0 || below[node].empty()) continue;
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
    for (const std::uint32_t reader : below[node]) first = std::min(first, layer[reader]);
    layer[node] = first - 1;
  }
  return layer;
}

LayeredLayout layered_layout(std::size_t node_count, const std::vector<LayoutEdge>& edges,
                             const NodeSize& size) {
  return Layering(node_count, edges, size).layout(edges);
}

}  // namespace placewright
