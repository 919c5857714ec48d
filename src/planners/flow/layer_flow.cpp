#include "planners/flow/layer_flow.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace placewright {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

LayerFlow::LayerFlow(std::span<const std::int64_t> capacity)
    : capacity_(capacity.begin(), capacity.end()),
      ops_on_(capacity.size()),
      move_(capacity.size() * capacity.size(), kInfinite),
      mover_(capacity.size() * capacity.size(), kNowhere),
      stale_(capacity.size(), 0),
      potential_(capacity.size() + 1, 0) {
  search_.distance.resize(capacity.size() + 1);
  search_.previous.resize(capacity.size() + 1);
  search_.settled.resize(capacity.size() + 1);
}

void LayerFlow::clear() {
  costs_.clear();
  place_.clear();
  slot_.clear();
  free_numbers_.clear();
  waiting_.clear();
  for (auto& ops : ops_on_) ops.clear();
  std::fill(move_.begin(), move_.end(), kInfinite);
  std::fill(mover_.begin(), mover_.end(), kNowhere);
  std::fill(stale_.begin(), stale_.end(), 0);
  std::fill(potential_.begin(), potential_.end(), 0);
}

double LayerFlow::cost() const {
  double total = 0;
  for (std::size_t place = 0; place < places(); ++place) {
    for (const std::size_t op : ops_on_[place]) total += cost(op, place);
  }
  return total;
}

void LayerFlow::put(std::size_t op, std::size_t place) {
  place_[op] = place;
  slot_[op] = ops_on_[place].size();
  ops_on_[place].push_back(op);
  // One more op can only lower the moves out of its place.
  if (stale_[place]) return;
  double* const row = move_.data() + place * places();
  for (std::size_t to = 0; to < places(); ++to) {
    const double step = cost(op, to) - cost(op, place);
    if (to == place || !(step < row[to])) continue;
    row[to] = step;
    mover_[place * places() + to] = op;
  }
}

void LayerFlow::take(std::size_t op) {
  const std::size_t place = place_[op];
  auto& ops = ops_on_[place];
  ops[slot_[op]] = ops.back();
  slot_[ops.back()] = slot_[op];
  ops.pop_back();
  place_[op] = kNowhere;
  const std::size_t* const movers = mover_.data() + place * places();
  for (std::size_t to = 0; to < places(); ++to) {
    if (movers[to] == op) stale_[place] = 1;
  }
}

void LayerFlow::refresh(std::size_t place) {
  double* const row = move_.data() + place * places();
  std::size_t* const movers = mover_.data() + place * places();
  std::fill(row, row + places(), kInfinite);
  std::fill(movers, movers + places(), kNowhere);
  stale_[place] = 0;
  for (const std::size_t op : ops_on_[place]) {
    const double* const costs = costs_.data() + op * places();
    const double here = costs[place];
    for (std::size_t to = 0; to < places(); ++to) {
      const double step = costs[to] - here;
      if (to == place || !(step < row[to])) continue;
      row[to] = step;
      movers[to] = op;
    }
  }
}

// The cost of the residual arc between two nodes; infinite if there is none.
double LayerFlow::arc(std::size_t from, std::size_t to) const {
  if (to == sink()) return has_room(from) ? 0 : kInfinite;
  if (from == sink()) return ops_on_[to].empty() ? kInfinite : 0;
  return move_[from * places() + to];
}

void LayerFlow::begin_search() {
  for (std::size_t place = 0; place < places(); ++place) {
    if (stale_[place]) refresh(place);
  }
  std::fill(search_.distance.begin(), search_.distance.end(), kInfinite);
  std::fill(search_.previous.begin(), search_.previous.end(), kNowhere);
  std::fill(search_.settled.begin(), search_.settled.end(), 0);
}

// Dijkstra from the distances that are set, up to `target`. The arc from `closed` into the sink, if
// that is a place, is left out: it is the one whose reduced cost may be negative.
void LayerFlow::run_search(std::size_t target, std::size_t closed) {
  const std::size_t nodes = places() + 1;
  while (true) {
    std::size_t nearest = kNowhere;
    double least = kInfinite;
    for (std::size_t node = 0; node < nodes; ++node) {
      if (search_.settled[node] || !(search_.distance[node] < least)) continue;
      nearest = node;
      least = search_.distance[node];
    }
    if (nearest == kNowhere) return;
    search_.settled[nearest] = 1;
    if (nearest == target) return;
    for (std::size_t node = 0; node < nodes; ++node) {
      if (search_.settled[node] || (node == sink() && nearest == closed)) continue;
      const double length = arc(nearest, node);
      if (length == kInfinite) continue;
      const double reduced = std::max(0.0, length + potential_[nearest] - potential_[node]);
      if (least + reduced < search_.distance[node]) {
        search_.distance[node] = least + reduced;
        search_.previous[node] = nearest;
      }
    }
  }
}

// Keeps reduced costs >= 0 for the arcs that the path turns round.
void LayerFlow::lift_potentials(std::size_t target) {
  const double limit = search_.distance[target];
  for (std::size_t node = 0; node <= places(); ++node) {
    potential_[node] += std::min(search_.distance[node], limit);
  }
}

// Moves one op over each arc of the path that ends at `last` and begins at `first`; the sink is
// passed through without a move.
void LayerFlow::move_along_path(std::size_t first, std::size_t last) {
  path_.clear();
  for (std::size_t node = last; node != kNowhere; node = search_.previous[node]) {
    path_.push_back(node);
    if (node == first) break;
  }
  std::reverse(path_.begin(), path_.end());
  // Which op makes a move is looked up before anything moves.
  moves_.clear();
  for (std::size_t i = 0; i + 1 < path_.size(); ++i) {
    if (path_[i] == sink() || path_[i + 1] == sink()) continue;
    moves_.emplace_back(mover_[path_[i] * places() + path_[i + 1]], path_[i + 1]);
  }
  for (const auto& [op, to] : moves_) {
    take(op);
    put(op, to);
  }
}

bool LayerFlow::insert(std::size_t op) {
  begin_search();
  const double* const costs = costs_.data() + op * places();
  double own = -kInfinite;  // the op's potential: reduced costs of its arcs are >= 0
  for (std::size_t place = 0; place < places(); ++place) {
    if (costs[place] < kInfinite) own = std::max(own, potential_[place] - costs[place]);
  }
  for (std::size_t place = 0; place < places(); ++place) {
    if (costs[place] < kInfinite) {
      search_.distance[place] = std::max(0.0, costs[place] + own - potential_[place]);
    }
  }
  run_search(sink(), kNowhere);
  if (!search_.settled[sink()]) return false;
  lift_potentials(sink());
  std::size_t first = search_.previous[sink()];
  const std::size_t last = first;
  while (search_.previous[first] != kNowhere) first = search_.previous[first];
  move_along_path(first, last);
  put(op, first);
  return true;
}

// The place has got room: the cheapest way to fill it by moving ops, if that gains.
void LayerFlow::improve_into(std::size_t place) {
  begin_search();
  search_.distance[sink()] = 0;
  run_search(place, place);
  if (!search_.settled[place]) {
    // Nothing can come here, nor to the other places not reached: raising them together keeps the
    // arcs among them as they are and makes the new arc into the sink one of reduced cost 0.
    const double lift = std::max(0.0, potential_[sink()] - potential_[place]);
    for (std::size_t node = 0; node < places(); ++node) {
      if (!search_.settled[node]) potential_[node] += lift;
    }
    return;
  }
  lift_potentials(place);
  const bool gains = potential_[place] < potential_[sink()];
  if (gains) move_along_path(sink(), place);
}

// One op more than the place may hold: the cheapest way out.
void LayerFlow::evict_from(std::size_t place) {
  begin_search();
  search_.distance[place] = 0;
  run_search(sink(), place);
  if (search_.settled[sink()]) {
    lift_potentials(sink());
    move_along_path(place, search_.previous[sink()]);
    return;
  }
  const std::size_t op = ops_on_[place].back();
  take(op);
  waiting_.push_back(op);
}

void LayerFlow::place_waiting() {
  std::vector<std::size_t> still;
  std::vector<std::size_t> asked;
  asked.swap(waiting_);
  for (const std::size_t op : asked) {
    if (!insert(op)) still.push_back(op);
  }
  waiting_ = std::move(still);
}

std::size_t LayerFlow::add(std::span<const double> costs) {
  std::size_t op = 0;
  if (free_numbers_.empty()) {
    op = place_.size();
    place_.push_back(kNowhere);
    slot_.push_back(0);
    costs_.insert(costs_.end(), costs.begin(), costs.end());
  } else {
    op = free_numbers_.back();
    free_numbers_.pop_back();
    std::copy(costs.begin(), costs.end(),
              costs_.begin() + static_cast<std::ptrdiff_t>(op * places()));
  }
  if (!insert(op)) waiting_.push_back(op);
  return op;
}

void LayerFlow::remove(std::size_t op) {
  free_numbers_.push_back(op);
  const std::size_t place = place_[op];
  if (place == kNowhere) {
    std::erase(waiting_, op);
    return;
  }
  // Only where the place was full is the arc into the sink new.
  const bool was_full = !has_room(place);
  take(op);
  if (!was_full) return;
  improve_into(place);
  if (!waiting_.empty()) place_waiting();
}

void LayerFlow::retire(std::size_t op) {
  const std::size_t place = place_[op];
  if (place == kNowhere || capacity_[place] == kUnlimited) {
    remove(op);
    return;
  }
  free_numbers_.push_back(op);
  take(op);
  --capacity_[place];
}

void LayerFlow::set_costs(std::size_t op, std::span<const double> costs) {
  if (std::equal(costs.begin(), costs.end(),
                 costs_.begin() + static_cast<std::ptrdiff_t>(op * places()))) {
    return;
  }
  remove(op);
  (void)add(costs);  // takes the number that was freed last
}

void LayerFlow::set_capacity(std::size_t place, std::int64_t capacity) {
  while (capacity_[place] < capacity) {
    const bool was_full = !has_room(place);
    if (!was_full) {
      capacity_[place] = capacity;
      return;
    }
    ++capacity_[place];
    improve_into(place);
    if (!waiting_.empty()) place_waiting();
  }
  while (capacity_[place] > capacity) {
    if (has_room(place)) {
      const auto used = static_cast<std::int64_t>(ops_on_[place].size());
      capacity_[place] = std::max(capacity, used);
      continue;
    }
    --capacity_[place];
    evict_from(place);
  }
}

bool LayerFlow::potentials_prove_optimality() const {
  double scale = 1;
  for (const double value : potential_) scale = std::max(scale, std::fabs(value));
  for (std::size_t from = 0; from <= places(); ++from) {
    for (std::size_t to = 0; to <= places(); ++to) {
      if (from == to) continue;
      double length = kInfinite;
      if (from < places() && to < places()) {
        for (const std::size_t op : ops_on_[from]) {
          length = std::min(length, cost(op, to) - cost(op, from));
        }
      } else {
        length = arc(from, to);
      }
      if (length + potential_[from] - potential_[to] < -1e-9 * scale) return false;
    }
  }
  return true;
}

}  // namespace placewright
