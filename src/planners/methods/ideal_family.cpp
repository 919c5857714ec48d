#include "planners/methods/ideal_family.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "planners/random_numbers.h"

namespace placewright::throughput {
namespace {

constexpr std::size_t kExactPotential =
    2048;  // blocks; beyond, what a drop takes away is estimated

}  // namespace

IdealFamily::IdealFamily(const StageModel& model) : model_(&model) {
  const std::size_t words = (model.block_count() + 63) / 64;
  nets_by_word_.resize(words);
  for (std::uint32_t net = 0; net < model.nets().size(); ++net) {
    const Net& record = model.nets()[net];
    for (std::size_t w = record.first_block / 64; w <= record.last_block / 64; ++w) {
      nets_by_word_[w].push_back(net);
    }
  }
}

bool IdealFamily::includes(std::size_t outer, std::size_t inner) const {
  const Bits& big = bits_[outer];
  const Bits& small = bits_[inner];
  // Before big's first word it has everything; from small's end on, small has nothing.
  for (std::uint32_t word = big.first_word; word < small.end_word; ++word) {
    const std::uint64_t in_small = word < small.first_word
                                       ? ~std::uint64_t{0}
                                       : words_[small.offset + word - small.first_word];
    const std::uint64_t in_big =
        word < big.end_word ? words_[big.offset + word - big.first_word] : 0;
    if ((in_small & ~in_big) != 0) return false;
  }
  return true;
}

void IdealFamily::cut_nets(std::size_t ideal, std::vector<std::uint32_t>& cut) const {
  const Bits& bits = bits_[ideal];
  if (nets_by_word_.empty()) return;
  const auto last_word = static_cast<std::uint32_t>(nets_by_word_.size() - 1);
  // Nets that straddle the border between ones and zeros show in the words around it.
  const std::uint32_t from = std::min(bits.first_word, last_word);
  const std::uint32_t to = std::min(std::max(bits.end_word, bits.first_word + 1), last_word + 1);
  const std::size_t begin = cut.size();
  for (std::uint32_t word = from; word < to; ++word) {
    for (const std::uint32_t id : nets_by_word_[word]) {
      const Net& net = model_->nets()[id];
      if (word > from && net.first_block / 64 < word) continue;  // seen in an earlier word
      const bool producer = contains(ideal, net.producer);
      const bool crosses = std::any_of(
          net.readers.begin(), net.readers.end(),
          [&](const NetReader& reader) { return contains(ideal, reader.block) != producer; });
      if (crosses) cut.push_back(id);
    }
  }
  std::sort(cut.begin() + static_cast<std::ptrdiff_t>(begin), cut.end());
}

std::vector<std::uint32_t> IdealFamily::difference(std::size_t outer, std::size_t inner) const {
  std::vector<std::uint32_t> blocks;
  for (std::uint32_t block = 0; block < model_->block_count(); ++block) {
    if (contains(outer, block) && !contains(inner, block)) blocks.push_back(block);
  }
  return blocks;
}

void IdealFamily::sort() {
  std::vector<std::uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (work_[a] != work_[b]) return work_[a] < work_[b];
    if (block_counts_[a] != block_counts_[b]) return block_counts_[a] < block_counts_[b];
    return a < b;
  });
  const auto gather = [&](auto& values, std::size_t width) {
    auto sorted = values;
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (std::size_t k = 0; k < width; ++k) {
        sorted[i * width + k] = values[order[i] * width + k];
      }
    }
    values = std::move(sorted);
  };
  gather(bits_, 1);
  gather(work_, 1);
  gather(block_counts_, 1);
  gather(times_, model_->classes().size() * 2);
  gather(bytes_, 1);
  gather(forbidden_, model_->classes().size());
  gather(above_, model_->slot_count());
}

// The ideal under construction: blocks are taken and given back, and the ideal as it stands is
// written down.
class IdealCollector {
 public:
  explicit IdealCollector(const StageModel& model)
      : model_(model),
        family_(model),
        taken_((model.block_count() + 63) / 64, 0),
        sums_(model.classes().size() * 2 + 1 + model.slot_count(), 0),
        forbidden_(model.classes().size(), 0) {}

  [[nodiscard]] std::int64_t work() const { return work_; }
  [[nodiscard]] std::size_t collected() const { return family_.size(); }

  void take(std::uint32_t block) {
    saved_.insert(saved_.end(), sums_.begin(), sums_.end());
    double* sum = sums_.data();
    for (std::size_t c = 0; c < model_.classes().size(); ++c) {
      const DeviceClass& device_class = model_.classes()[c];
      *sum++ += device_class.forward[block];
      *sum++ += device_class.backward[block];
      if (device_class.allowed[block] == 0) ++forbidden_[c];
    }
    *sum++ += model_.bytes(block);
    change_above(block, sum);
    work_ += model_.work(block);
    ++count_;
  }

  void give_back(std::uint32_t block) {
    std::copy(saved_.end() - static_cast<std::ptrdiff_t>(sums_.size()), saved_.end(),
              sums_.begin());
    saved_.resize(saved_.size() - sums_.size());
    for (std::size_t c = 0; c < model_.classes().size(); ++c) {
      if (model_.classes()[c].allowed[block] == 0) --forbidden_[c];
    }
    taken_[block / 64] &= ~(std::uint64_t{1} << (block % 64));
    work_ -= model_.work(block);
    --count_;
  }

  void write_down() {
    IdealFamily::Bits bits;
    bits.offset = family_.words_.size();
    auto end = static_cast<std::uint32_t>(taken_.size());
    while (end > 0 && taken_[end - 1] == 0) --end;
    std::uint32_t first = 0;
    while (first < end && taken_[first] == ~std::uint64_t{0}) ++first;
    bits.first_word = first;
    bits.end_word = end;
    family_.words_.insert(family_.words_.end(), taken_.begin() + first, taken_.begin() + end);
    family_.bits_.push_back(bits);
    family_.work_.push_back(work_);
    family_.block_counts_.push_back(count_);
    const std::size_t times = model_.classes().size() * 2;
    const auto sum = sums_.begin();
    const auto after_times = sum + static_cast<std::ptrdiff_t>(times);
    family_.times_.insert(family_.times_.end(), sum, after_times);
    family_.bytes_.push_back(*after_times);
    family_.above_.insert(family_.above_.end(), after_times + 1, sums_.end());
    family_.forbidden_.insert(family_.forbidden_.end(), forbidden_.begin(), forbidden_.end());
  }

  // Orders share prefixes, whose sums are rounded differently: a stage without blocks between two
  // records of one ideal would seem to lower a load.
  void write_down_once() {
    if (known_.size() <= count_) known_.resize(count_ + 1);
    std::vector<std::size_t>& of_same_size = known_[count_];
    const bool known = std::any_of(of_same_size.begin(), of_same_size.end(),
                                   [&](std::size_t ideal) { return is_taken(ideal); });
    if (known) return;
    of_same_size.push_back(family_.size());
    write_down();
  }

  IdealFamily finish() {
    family_.sort();
    return std::move(family_);
  }

 private:
  // Whether the ideal, as large as what is taken, is the same.
  [[nodiscard]] bool is_taken(std::size_t ideal) const {
    const IdealFamily::Bits& bits = family_.bits_[ideal];
    for (std::size_t word = 0; word < taken_.size(); ++word) {
      const std::uint64_t held = word < bits.first_word ? ~std::uint64_t{0}
                                 : word < bits.end_word
                                     ? family_.words_[bits.offset + word - bits.first_word]
                                     : 0;
      if (held != taken_[word]) return false;
    }
    return true;
  }

  // The stage "all blocks not taken" loses a block.
  void change_above(std::uint32_t block, double* above) {
    const auto outside = [&](std::uint32_t other) {
      return (taken_[other / 64] >> (other % 64) & 1U) == 0;
    };
    const std::size_t components = model_.component_count();
    const auto charge_all = [&](double sign) {
      for (const std::uint32_t net : model_.nets_of(block)) {
        for (std::size_t profile = 0; profile < model_.profile_count(); ++profile) {
          model_.charge(net, profile, outside, sign, above + profile * components);
        }
      }
    };
    charge_all(-1);
    taken_[block / 64] |= std::uint64_t{1} << (block % 64);
    charge_all(1);
  }

  const StageModel& model_;
  IdealFamily family_;
  std::vector<std::uint64_t> taken_;
  std::vector<double> sums_;  // times by class and pass, bytes, transfers of the rest
  std::vector<std::uint32_t> forbidden_;
  std::vector<double> saved_;
  std::int64_t work_ = 0;
  std::uint32_t count_ = 0;
  std::vector<std::vector<std::size_t>> known_;  // by block count: what was written down once
};

namespace {

class Enumeration {
 public:
  Enumeration(const StageModel& model, std::span<const WorkWindow> windows, std::size_t limit,
              Control& control)
      : model_(model),
        windows_(windows),
        limit_(limit),
        control_(control),
        collector_(model),
        words_((model.block_count() + 63) / 64) {
    build_descendants();
  }

  std::optional<IdealFamily> run() {
    blocked_.emplace_back(words_, 0);
    const std::size_t beyond = model_.block_count() % 64;
    if (beyond != 0) blocked_[0].back() = ~std::uint64_t{0} << beyond;
    if (!explore(0, 0, model_.total_work())) return std::nullopt;
    return collector_.finish();
  }

 private:
  void build_descendants() {
    const std::size_t count = model_.block_count();
    descendants_.assign(count * words_, 0);
    work_with_descendants_.assign(count, 0);
    for (std::size_t i = count; i-- > 0;) {
      std::uint64_t* own = descendants_.data() + i * words_;
      own[i / 64] |= std::uint64_t{1} << (i % 64);
      for (const BlockId next : model_.blocks().successors[BlockId{i}]) {
        const std::uint64_t* other = descendants_.data() + next.index() * words_;
        for (std::size_t w = i / 64; w < words_; ++w) own[w] |= other[w];
      }
      for (std::size_t w = i / 64; w < words_; ++w) {
        for (std::uint64_t bits = own[w]; bits != 0; bits &= bits - 1) {
          work_with_descendants_[i] +=
              model_.work(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
        }
      }
    }
  }

  // The first block from `position` on that may still be taken; the number of blocks when none is
  // left.
  [[nodiscard]] std::size_t next_block(std::size_t level, std::size_t position) const {
    const auto& blocked = blocked_[level];
    std::size_t word = position / 64;
    if (word >= words_) return model_.block_count();
    std::uint64_t open = ~blocked[word] & (~std::uint64_t{0} << (position % 64));
    while (open == 0) {
      if (++word == words_) return model_.block_count();
      open = ~blocked[word];
    }
    return word * 64 + static_cast<std::size_t>(std::countr_zero(open));
  }

  // Whether an ideal with at least this work and at most that may lie in a window.
  [[nodiscard]] bool may_count(std::int64_t least, std::int64_t most) const {
    const auto window =
        std::lower_bound(windows_.begin(), windows_.end(), least,
                         [](const WorkWindow& w, std::int64_t value) { return w.most < value; });
    return window != windows_.end() && window->least <= most;
  }

  // Work that dropping the block takes away from what may still be reached; at least.
  [[nodiscard]] std::int64_t lost(std::size_t level, std::size_t block) const {
    const std::uint64_t* gone = descendants_.data() + block * words_;
    std::int64_t work = 0;
    for (std::size_t w = block / 64; w < words_; ++w) {
      for (std::uint64_t bits = gone[w] & ~blocked_[level][w]; bits != 0; bits &= bits - 1) {
        work += model_.work(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    }
    return work;
  }

  // All ideals that extend what is taken by blocks from `position` on that this level does not
  // block. `reach` is the most work that any of them has. False: the limit was met, or it is time
  // to stop.
  bool explore(std::size_t level, std::size_t position, std::int64_t reach) {
    std::vector<std::uint32_t> path;
    bool complete = true;
    for (std::size_t block = next_block(level, position);; block = next_block(level, block + 1)) {
      if (!may_count(collector_.work(), reach)) break;
      if (block == model_.block_count()) {
        if (collector_.collected() >= limit_) {
          complete = false;
        } else {
          collector_.write_down();
        }
        break;
      }
      complete = drop(level, block, reach);
      if (!complete) break;
      collector_.take(static_cast<std::uint32_t>(block));
      path.push_back(static_cast<std::uint32_t>(block));
    }
    while (!path.empty()) {
      collector_.give_back(path.back());
      path.pop_back();
    }
    return complete;
  }

  bool drop(std::size_t level, std::size_t block, std::int64_t reach) {
    if ((++visits_ & 1023U) == 0 && control_.should_stop()) return false;
    const std::int64_t left = model_.block_count() <= kExactPotential
                                  ? reach - lost(level, block)
                                  : std::min(reach - model_.work(block),
                                             model_.total_work() - work_with_descendants_[block]);
    if (!may_count(collector_.work(), left)) return true;
    if (blocked_.size() == level + 1) blocked_.emplace_back(words_);
    const std::uint64_t* gone = descendants_.data() + block * words_;
    for (std::size_t w = 0; w < words_; ++w) {
      blocked_[level + 1][w] = blocked_[level][w] | gone[w];
    }
    return explore(level + 1, block + 1, left);
  }

  const StageModel& model_;
  std::span<const WorkWindow> windows_;
  std::size_t limit_;
  Control& control_;
  IdealCollector collector_;
  std::size_t words_;
  std::vector<std::uint64_t> descendants_;
  std::vector<std::int64_t> work_with_descendants_;
  std::vector<std::vector<std::uint64_t>> blocked_;  // by number of drops
  std::uint64_t visits_ = 0;
};

using Neighbours = std::vector<std::vector<std::uint32_t>>;

// A linear extension: of the ready blocks the one for which `better(a, b)` holds against all
// others.
template <class Better>
std::vector<std::uint32_t> extension(const Neighbours& successors, Better better) {
  std::vector<std::uint32_t> missing(successors.size(), 0);
  for (const auto& row : successors) {
    for (const std::uint32_t to : row) ++missing[to];
  }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t block = 0; block < successors.size(); ++block) {
    if (missing[block] == 0) ready.push_back(block);
  }
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    const auto best = std::min_element(ready.begin(), ready.end(), better);
    const std::uint32_t block = *best;
    *best = ready.back();
    ready.pop_back();
    order.push_back(block);
    for (const std::uint32_t next : successors[block]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

// Least growth of the transfers of the rest first.
std::vector<std::uint32_t> least_cut_order(const StageModel& model, const Neighbours& successors) {
  const std::size_t count = model.block_count();
  std::vector<std::uint32_t> missing(count, 0);
  for (const auto& row : successors) {
    for (const std::uint32_t to : row) ++missing[to];
  }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t block = 0; block < count; ++block) {
    if (missing[block] == 0) ready.push_back(block);
  }
  std::vector<char> taken(count, 0);
  const auto cut = [&](std::uint32_t block, double sign) {
    Transfers sum{};
    for (const std::uint32_t net : model.nets_of(block)) {
      model.charge(
          net, 0, [&](std::uint32_t b) { return taken[b] == 0; }, sign, sum.data());
    }
    return std::accumulate(sum.begin(), sum.end(), 0.0);
  };
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    std::size_t best = 0;
    double best_growth = kInfinity;
    // The latest few that became ready: the search stays local and the order near linear.
    const std::size_t from = ready.size() > 32 ? ready.size() - 32 : 0;
    for (std::size_t i = from; i < ready.size(); ++i) {
      double growth = cut(ready[i], -1);
      taken[ready[i]] = 1;
      growth += cut(ready[i], 1);
      taken[ready[i]] = 0;
      if (growth < best_growth || (growth == best_growth && ready[i] < ready[best])) {
        best_growth = growth;
        best = i;
      }
    }
    const std::uint32_t block = ready[best];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
    taken[block] = 1;
    order.push_back(block);
    for (const std::uint32_t next : successors[block]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

}  // namespace

std::optional<IdealFamily> IdealFamily::all_ideals(const StageModel& model,
                                                   std::span<const WorkWindow> windows,
                                                   std::size_t limit, Control& control) {
  if (control.should_stop()) return std::nullopt;  // all descendants of all blocks are found first
  return Enumeration(model, windows, limit, control).run();
}

IdealFamily IdealFamily::prefixes(const StageModel& model,
                                  std::span<const std::vector<std::uint32_t>> orders,
                                  Control& control) {
  IdealCollector collector(model);
  collector.write_down_once();
  for (const std::vector<std::uint32_t>& order : orders) {
    for (const std::uint32_t block : order) {
      if (control.should_stop()) return collector.finish();
      collector.take(block);
      collector.write_down_once();
    }
    for (std::size_t k = order.size(); k-- > 0;) collector.give_back(order[k]);
  }
  return collector.finish();
}

std::vector<std::vector<std::uint32_t>> linear_orders(const StageModel& model, std::size_t random,
                                                      std::uint64_t seed) {
  const std::size_t count = model.block_count();
  Neighbours successors(count);
  Neighbours predecessors(count);
  for (std::uint32_t from = 0; from < count; ++from) {
    for (const BlockId to : model.blocks().successors[BlockId{from}]) {
      successors[from].push_back(static_cast<std::uint32_t>(to.index()));
      predecessors[to.index()].push_back(from);
    }
  }
  std::vector<std::vector<std::uint32_t>> orders;
  // Blocks are numbered depth first.
  orders.push_back(extension(successors, std::less<>()));
  auto backward = extension(predecessors, std::greater<>());
  std::reverse(backward.begin(), backward.end());
  orders.push_back(std::move(backward));
  if (model.profile_count() > 0) orders.push_back(least_cut_order(model, successors));

  std::vector<std::uint32_t> level(count, 0);
  for (std::uint32_t from = 0; from < count; ++from) {
    for (const std::uint32_t to : successors[from]) {
      level[to] = std::max(level[to], level[from] + 1);
    }
  }
  orders.push_back(extension(successors, [&](std::uint32_t a, std::uint32_t b) {
    return level[a] != level[b] ? level[a] < level[b] : a < b;
  }));

  RandomNumbers engine(seed);
  for (std::size_t i = 0; i < random; ++i) {
    std::vector<std::uint64_t> priority(count);
    for (auto& value : priority) value = engine();
    orders.push_back(extension(
        successors, [&](std::uint32_t a, std::uint32_t b) { return priority[a] < priority[b]; }));
  }
  std::sort(orders.begin() + 1, orders.end());
  orders.erase(std::unique(orders.begin(), orders.end()), orders.end());
  return orders;
}

}  // namespace placewright::throughput
