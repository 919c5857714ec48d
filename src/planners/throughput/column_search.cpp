#include "planners/throughput/column_search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <unordered_map>

namespace placewright::throughput {
namespace {

constexpr std::size_t kMostOpenNets = 28;  // two bits each in a key

// What is known of an open net.
enum Mark : std::uint64_t {
  kPaid = 0,        // or not open
  kAllInside = 1,   // producer (or all readers so far) inside, nothing outside yet
  kAllOutside = 2,  // ... outside, nothing inside yet
  kBothSides = 3,   // readers on both sides, the producer to come
};

}  // namespace

std::uint32_t ColumnSearch::OpenNet::first() const {
  return std::min(producer, readers.front());
}

std::uint32_t ColumnSearch::OpenNet::last() const {
  return std::max(producer, readers.back());
}

ColumnSearch::ColumnSearch(const StageModel& model, std::size_t device_class,
                           std::size_t most_states)
    : model_(model), class_(model.classes()[device_class]), most_states_(most_states) {
  choose_order();
  collect_nets();
  while (!build_states()) {
  }
}

// Sum over places of open nets squared: few at a time is what counts.
std::uint64_t ColumnSearch::widths(std::span<const std::uint32_t> order) const {
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<std::int64_t> change(order.size() + 1, 0);
  for (const Net& net : model_.nets()) {
    std::uint32_t first = place[net.producer];
    std::uint32_t last = first;
    for (const NetReader& reader : net.readers) {
      first = std::min(first, place[reader.block]);
      last = std::max(last, place[reader.block]);
    }
    ++change[first];
    --change[last];
  }
  std::int64_t open = 0;
  std::uint64_t sum = 0;
  for (const std::int64_t step : change) {
    open += step;
    sum += static_cast<std::uint64_t>(open * open);
  }
  return sum;
}

// The blocks' own order, or greedily the block that leaves the fewest nets open.
void ColumnSearch::choose_order() {
  const std::size_t count = model_.block_count();
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0U);
  if (class_.profile < 0 || model_.component_count() > 1) return;

  std::vector<std::uint32_t> missing(model_.nets().size());
  for (std::size_t e = 0; e < missing.size(); ++e) {
    missing[e] = static_cast<std::uint32_t>(model_.nets()[e].readers.size()) + 1;
  }
  std::vector<char> open(missing.size(), 0);
  std::vector<char> placed(count, 0);
  std::vector<std::uint32_t> greedy;
  while (greedy.size() < count) {
    std::uint32_t best = 0;
    std::int64_t best_growth = INT64_MAX;
    for (std::uint32_t v = 0; v < count; ++v) {
      if (placed[v] != 0) continue;
      std::int64_t growth = 0;
      for (const std::uint32_t e : model_.nets_of(v)) {
        growth += open[e] == 0 ? 1 : 0;
        growth -= missing[e] == 1 ? 1 : 0;
      }
      if (growth >= best_growth) continue;
      best_growth = growth;
      best = v;
    }
    placed[best] = 1;
    greedy.push_back(best);
    for (const std::uint32_t e : model_.nets_of(best)) {
      open[e] = 1;
      --missing[e];
    }
  }
  if (widths(greedy) < widths(order_)) order_ = std::move(greedy);
}

// Nets over the same blocks become one.
void ColumnSearch::collect_nets() {
  if (class_.profile < 0 || model_.component_count() > 1) return;
  std::vector<std::uint32_t> place(order_.size());
  for (std::uint32_t i = 0; i < order_.size(); ++i) place[order_[i]] = i;
  const auto profile = static_cast<std::size_t>(class_.profile);
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::pair<double, double>> costs;
  for (std::uint32_t e = 0; e < model_.nets().size(); ++e) {
    const Net& net = model_.nets()[e];
    std::vector<std::uint32_t> readers;
    for (const NetReader& reader : net.readers) readers.push_back(place[reader.block]);
    std::sort(readers.begin(), readers.end());
    auto& cost = costs[{place[net.producer], std::move(readers)}];
    cost.first += model_.cost(e, profile).all_in();
    cost.second += model_.cost(e, profile).all_out();
  }
  for (const auto& [blocks, cost] : costs) {
    if (cost.first + cost.second > 0) {
      nets_.push_back({cost.first, cost.second, blocks.first, blocks.second});
    }
  }
}

// The cheapest net open behind the place ends there, or begins behind it.
void ColumnSearch::shorten_cheapest(std::uint32_t place) {
  auto open = nets_ | std::views::filter([&](const OpenNet& net) {
                return net.first() <= place && net.last() > place;
              });
  OpenNet& cheapest =
      *std::ranges::min_element(open, {}, [](const OpenNet& net) { return net.in + net.out; });
  const bool producer_is_past = cheapest.producer <= place;
  std::erase_if(cheapest.readers,
                [&](std::uint32_t reader) { return (reader <= place) != producer_is_past; });
  std::erase_if(nets_, [](const OpenNet& net) { return net.readers.empty(); });
}

// The states of every place and the steps between them. False: some place had too many, and a net
// was shortened.
bool ColumnSearch::build_states() {
  const auto count = static_cast<std::uint32_t>(order_.size());
  std::vector<std::vector<std::uint32_t>> nets_at(count);
  for (std::uint32_t e = 0; e < nets_.size(); ++e) {
    nets_at[nets_[e].producer].push_back(e);
    for (const std::uint32_t reader : nets_[e].readers) nets_at[reader].push_back(e);
  }
  // Slots of two bits, taken while a net is open.
  std::vector<std::uint32_t> slot(nets_.size(), 0);
  std::uint32_t used = 0;
  steps_.assign(count, {});
  states_ = 0;
  std::vector<std::uint64_t> keys{0};
  for (std::uint32_t place = 0; place < count; ++place) {
    for (const std::uint32_t e : nets_at[place]) {
      if (nets_[e].first() != place) continue;
      slot[e] = 0;
      while ((used >> slot[e] & 1U) != 0) ++slot[e];
      if (slot[e] >= kMostOpenNets) {
        shorten_cheapest(place);
        return false;
      }
      used |= 1U << slot[e];
    }
    const auto step = [&](std::uint64_t key, bool inside, double& cost) {
      for (const std::uint32_t e : nets_at[place]) {
        const OpenNet& net = nets_[e];
        const std::uint32_t shift = 2 * slot[e];
        const auto mark = static_cast<Mark>(key >> shift & 3U);
        const Mark own = inside ? kAllInside : kAllOutside;
        Mark next = mark;
        if (net.producer == place) {
          const Mark against = inside ? kAllOutside : kAllInside;
          const bool paid = mark == kBothSides || mark == against;
          if (paid) cost += inside ? net.out : net.in;
          next = paid ? kPaid : own;
        } else if (net.producer < place) {
          if (mark != kPaid && mark != own) {
            cost += mark == kAllInside ? net.out : net.in;
            next = kPaid;
          }
        } else {
          next = static_cast<Mark>(mark | own);
        }
        if (net.last() == place) next = kPaid;
        key = (key & ~(std::uint64_t{3} << shift)) | static_cast<std::uint64_t>(next) << shift;
      }
      return key;
    };
    std::unordered_map<std::uint64_t, std::uint32_t> index;
    std::vector<std::uint64_t> next_keys;
    const auto index_of = [&](std::uint64_t key) {
      const auto [known, added] = index.emplace(key, static_cast<std::uint32_t>(next_keys.size()));
      if (added) next_keys.push_back(key);
      return known->second;
    };
    for (const std::uint64_t key : keys) {
      Step made;
      made.outside = index_of(step(key, false, made.outside_cost));
      made.inside = index_of(step(key, true, made.inside_cost));
      steps_[place].push_back(made);
    }
    if (next_keys.size() > most_states_) {
      shorten_cheapest(place);
      return false;
    }
    states_ += next_keys.size();
    keys = std::move(next_keys);
    for (const std::uint32_t e : nets_at[place]) {
      if (nets_[e].last() == place) used &= ~(1U << slot[e]);
    }
  }
  return true;
}

bool ColumnSearch::run(std::span<const std::uint32_t> prizes, std::uint32_t most_prize,
                       double most_load, Control& control) {
  most_prize_ = most_prize;
  prizes_.assign(prizes.begin(), prizes.end());
  const std::size_t width = most_prize + 1;
  came_from_.resize(order_.size());
  std::vector<double> loads(width, kInfinity);
  loads[0] = 0;
  std::vector<double> next;
  std::uint32_t reach = 0;  // no larger prize is possible so far
  for (std::size_t place = 0; place < order_.size(); ++place) {
    if (control.remaining() <= 0 || control.should_stop()) return false;
    const std::uint32_t block = order_[place];
    const std::vector<Step>& steps = steps_[place];
    std::uint32_t states = 0;
    for (const Step& step : steps) states = std::max({states, step.outside + 1, step.inside + 1});
    next.assign(states * width, kInfinity);
    std::vector<std::uint16_t>& came_from = came_from_[place];
    came_from.assign(states * width, 0);
    const bool allowed = class_.allowed[block] != 0;
    const std::uint32_t prize = prizes_[block];
    const double time = class_.forward[block] + class_.backward[block];
    for (std::uint32_t state = 0; state < steps.size(); ++state) {
      const Step& step = steps[state];
      const double* from = loads.data() + state * width;
      double* out = next.data() + step.outside * width;
      std::uint16_t* out_from = came_from.data() + step.outside * width;
      const auto left = static_cast<std::uint16_t>(state * 2);
      for (std::uint32_t p = 0; p <= reach; ++p) {
        const double load = from[p] + step.outside_cost;
        if (load >= out[p] || load > most_load) continue;
        out[p] = load;
        out_from[p] = left;
      }
      if (!allowed) continue;
      double* in = next.data() + step.inside * width;
      std::uint16_t* in_from = came_from.data() + step.inside * width;
      const auto taken = static_cast<std::uint16_t>(state * 2 + 1);
      const double added = step.inside_cost + time;
      for (std::uint32_t p = 0; p <= reach; ++p) {
        const double load = from[p] + added;
        const std::uint32_t sum = std::min(p + prize, most_prize_);
        if (load >= in[sum] || load > most_load) continue;
        in[sum] = load;
        in_from[sum] = taken;
      }
    }
    reach = std::min(reach + prize, most_prize_);
    loads.swap(next);
  }
  best_.assign(loads.begin(), loads.begin() + static_cast<std::ptrdiff_t>(width));
  return true;
}

std::uint32_t ColumnSearch::best_prize(double load) const {
  std::uint32_t prize = most_prize_;
  while (prize > 0 && best_[prize] > load) --prize;
  return prize;
}

std::vector<std::uint32_t> ColumnSearch::column(std::uint32_t prize) const {
  std::vector<std::uint32_t> blocks;
  const std::size_t width = most_prize_ + 1;
  std::size_t state = 0;
  for (std::size_t place = order_.size(); place-- > 0;) {
    const std::uint16_t from = came_from_[place][state * width + prize];
    state = from / 2;
    if (from % 2 == 0) continue;
    blocks.push_back(order_[place]);
    prize -= prizes_[order_[place]];
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

}  // namespace placewright::throughput
