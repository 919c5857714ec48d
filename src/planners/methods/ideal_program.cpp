#include "planners/methods/ideal_program.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "planners/methods/stage_loads.h"

namespace placewright::throughput {
namespace {

// Windows are widened by this much, so that rounding never loses an ideal.
constexpr double kWindowSlack = 1 + 1e-9;

// Blocks up to which labels are indexed by the blocks they hold, and sources from which the index
// pays.
constexpr std::size_t kIndexedBlocks = 192;
constexpr std::size_t kWorthAnIndex = 512;

// The devices that a stage takes: one, or several of a kind.
struct Transition {
  std::vector<std::size_t> devices;  // a class for each, the one whose overheads count first
  std::size_t stride = 0;            // difference of usage numbers
  double rate = 0;                   // of all of them

  [[nodiscard]] int replicas() const { return static_cast<int>(devices.size()); }
};

// Mixed-radix numbers: digit c counts the devices used of class c.
class Usages {
 public:
  explicit Usages(const StageModel& model) : model_(model) {
    std::size_t stride = 1;
    for (std::size_t c = 0; c < model.classes().size(); ++c) {
      const std::size_t devices = model.classes()[c].devices.size();
      strides_.push_back(stride);
      stride *= devices + 1;
    }
    count_ = stride;
    for (std::size_t c = 0; c < model.classes().size(); ++c) add_replicas({c}, 0);
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const std::vector<Transition>& transitions() const { return transitions_; }
  [[nodiscard]] std::size_t used(std::size_t usage, std::size_t device_class) const {
    return usage / strides_[device_class] % (model_.classes()[device_class].devices.size() + 1);
  }
  [[nodiscard]] bool allows(std::size_t usage, const Transition& transition) const {
    return std::all_of(transition.devices.begin(), transition.devices.end(), [&](std::size_t c) {
      return used(usage, c) >= static_cast<std::size_t>(std::count(transition.devices.begin(),
                                                                   transition.devices.end(), c));
    });
  }
  [[nodiscard]] double rate(std::size_t usage) const {
    double rate = 0;
    for (std::size_t c = 0; c < strides_.size(); ++c) {
      rate += model_.classes()[c].rate * static_cast<double>(used(usage, c));
    }
    return rate;
  }
  [[nodiscard]] WorkWindow window(std::size_t usage, double cutoff) const {
    const auto total = static_cast<double>(model_.total_work());
    const double reach = rate(usage) * cutoff * kWindowSlack;
    const double rest = (model_.total_rate() - rate(usage)) * cutoff * kWindowSlack;
    return {static_cast<std::int64_t>(std::max(0.0, std::floor(total - rest))),
            static_cast<std::int64_t>(std::min(total, std::ceil(reach)))};
  }

 private:
  // The devices as they are, and with more of the same kind behind them (classes ascending).
  void add_replicas(std::vector<std::size_t> devices, std::size_t from) {
    const auto& classes = model_.classes();
    Transition transition;
    transition.devices = devices;
    for (const std::size_t c : devices) {
      transition.stride += strides_[c];
      transition.rate += classes[c].rate;
    }
    transitions_.push_back(std::move(transition));
    if (static_cast<int>(devices.size()) >= model_.max_replicas()) return;
    for (std::size_t c = from; c < classes.size(); ++c) {
      const auto taken = static_cast<std::size_t>(std::count(devices.begin(), devices.end(), c));
      if (taken == classes[c].devices.size() || !model_.same_kind(c, devices.front())) continue;
      devices.push_back(c);
      add_replicas(devices, c);
      devices.pop_back();
    }
  }

  const StageModel& model_;
  std::vector<std::size_t> strides_;
  std::vector<Transition> transitions_;
  std::size_t count_ = 1;
};

// The labels of one usage, by ideal in ascending order. Only ideals that some split reaches have
// labels; what the search looks at first (work, value) is stored apart.
struct Layer {
  std::size_t first = 0;  // ideals of the window
  std::size_t last = 0;   // one past
  double rate = 0;
  double rest_rate = 0;      // of the devices that are left
  double transfer_rate = 0;  // the slowest rate of those left that pay for transfers
  std::vector<std::int64_t> work;
  std::vector<double> value;  // first + second
  std::vector<double> above;  // transfers of the rest, where they are a single sum
  struct Record {
    double first = 0;
    double second = 0;
    std::uint32_t ideal = 0;
    std::uint32_t source = 0;  // position in the source's layer
    std::uint32_t transition = 0;
  };
  std::vector<Record> records;
  // By block, a bit for each record whose ideal holds it; kept for models of few blocks.
  std::vector<std::vector<std::uint64_t>> holding;
  // The ideal seen last, and what a label there must beat, also where no label was kept.
  std::size_t latest = static_cast<std::size_t>(-1);
  double latest_value = kInfinity;

  [[nodiscard]] bool holds(std::size_t ideal) const { return ideal >= first && ideal < last; }
};

class Program {
 public:
  Program(const IdealFamily& family, double cutoff, double enough, Control& control)
      : family_(family),
        model_(family.model()),
        usages_(model_),
        phased_(model_.phased()),
        single_sum_(model_.slot_count() == 1 && model_.symmetric()),
        cutoff_(cutoff),
        enough_(enough),
        control_(control),
        loads_(family) {
    for (const DeviceClass& device_class : model_.classes()) has_cores_ |= device_class.profile < 0;
    indexed_ = model_.block_count() <= kIndexedBlocks;
    build_layers();
  }

  ProgramResult run() {
    if (layers_[0].holds(0)) add(layers_[0], {});
    for (std::size_t ideal = 1; ideal < family_.size(); ++ideal) {
      if (control_.should_stop(1)) return {};
      loads_.set_outer(ideal);
      for (std::size_t usage = 1; usage < usages_.count(); ++usage) {
        if (layers_[usage].holds(ideal)) improve(ideal, usage);
      }
    }
    return {true, best()};
  }

 private:
  using Record = Layer::Record;

  void build_layers() {
    const auto work = family_.work();
    for (std::size_t usage = 0; usage < usages_.count(); ++usage) {
      const WorkWindow window = usages_.window(usage, cutoff_);
      Layer layer;
      layer.rate = usages_.rate(usage);
      layer.rest_rate = model_.total_rate() - layer.rate;
      layer.transfer_rate = transfer_rate(usage);
      if (window.least <= window.most) {
        layer.first = static_cast<std::size_t>(
            std::lower_bound(work.begin(), work.end(), window.least) - work.begin());
        layer.last = static_cast<std::size_t>(
            std::upper_bound(work.begin(), work.end(), window.most) - work.begin());
      }
      layers_.push_back(std::move(layer));
    }
  }

  // Of the devices left that pay for transfers; zero where they pay unequal ones.
  [[nodiscard]] double transfer_rate(std::size_t usage) const {
    double least = kInfinity;
    for (std::size_t c = 0; c < model_.classes().size(); ++c) {
      const DeviceClass& device_class = model_.classes()[c];
      if (device_class.profile < 0) continue;
      if (usages_.used(usage, c) == device_class.devices.size()) continue;
      if (device_class.profile != 0) return 0;
      least = std::min(least, device_class.rate);
    }
    return least < kInfinity ? least : 0;
  }

  [[nodiscard]] bool single_sum() const { return single_sum_; }

  void add(Layer& layer, const Record& record) {
    layer.work.push_back(family_.work()[record.ideal]);
    layer.value.push_back(record.first + record.second);
    layer.above.push_back(single_sum() ? family_.above(record.ideal)[0] : 0);
    if (indexed_) index(layer, record.ideal);
    layer.records.push_back(record);
  }

  void index(Layer& layer, std::size_t ideal) {
    const std::size_t position = layer.records.size();
    if (layer.holding.empty()) layer.holding.resize(model_.block_count());
    for (std::uint32_t block = 0; block < model_.block_count(); ++block) {
      auto& bits = layer.holding[block];
      if (position % 64 == 0) bits.push_back(0);
      if (!family_.contains(ideal, block)) continue;
      bits[position / 64] |= std::uint64_t{1} << (position % 64);
    }
  }

  // The blocks outside the ideal of which all predecessors are inside: an ideal that holds none of
  // them lies inside.
  void find_open_blocks(std::size_t ideal) {
    if (open_for_ == ideal) return;
    open_for_ = ideal;
    open_.clear();
    std::fill(behind_.begin(), behind_.end(), 0);
    behind_.resize(model_.block_count(), 0);
    for (std::uint32_t block = 0; block < model_.block_count(); ++block) {
      if (family_.contains(ideal, block)) continue;
      if (behind_[block] == 0) open_.push_back(block);
      for (const BlockId next : model_.blocks().successors[BlockId{block}]) {
        behind_[next.index()] = 1;
      }
    }
  }

  // Whether the devices that are left could still take the rest within the cutoff. They pay at
  // least once for every net that the ideal cuts, unless its blocks among the rest are on cores.
  [[nodiscard]] bool rest_fits(std::size_t ideal, const Layer& layer) {
    if (model_.component_count() > 1 || layer.transfer_rate == 0) return true;
    const double rest = static_cast<double>(model_.total_work() - family_.work()[ideal]);
    const double capacity = layer.rest_rate * cutoff_ * kWindowSlack + 1;
    const double transfers = family_.above(ideal)[0] * layer.transfer_rate;
    if (rest + transfers <= capacity) return true;
    if (avoidable_for_ != ideal) {
      avoidable_ = loads_.avoidable_transfers(cutoff_);
      avoidable_for_ = ideal;
    }
    return rest + transfers - avoidable_ * layer.transfer_rate <= capacity;
  }

  void improve(std::size_t ideal, std::size_t usage) {
    Layer& layer = layers_[usage];
    layer.latest = ideal;
    layer.latest_value = to_beat(ideal, usage);
    if (layer.latest_value <= enough_) return;
    // With cores the question is costly: worth it where the search is costly too.
    if ((!has_cores_ || has_many_sources(usage)) && !rest_fits(ideal, layer)) return;
    found_.clear();
    limit_ = layer.latest_value;
    const auto& transitions = usages_.transitions();
    for (std::uint32_t t = 0; t < transitions.size(); ++t) {
      if (!usages_.allows(usage, transitions[t])) continue;
      search_sources(ideal, usage, t);
      if (limit_ <= enough_) break;
    }
    if (limit_ >= 0) layer.latest_value = limit_;
    for (const Record& record : found_) add(layer, record);
  }

  [[nodiscard]] bool has_many_sources(std::size_t usage) const {
    const auto& transitions = usages_.transitions();
    return std::any_of(transitions.begin(), transitions.end(), [&](const Transition& transition) {
      return usages_.allows(usage, transition) &&
             layers_[usage - transition.stride].records.size() > kWorthAnIndex;
    });
  }

  // The cutoff, and for plain labels what fewer devices reach.
  [[nodiscard]] double to_beat(std::size_t ideal, std::size_t usage) const {
    double least = cutoff_;
    if (phased_) return least;
    for (const Transition& transition : usages_.transitions()) {
      if (transition.replicas() > 1 || !usages_.allows(usage, transition)) continue;
      const Layer& fewer = layers_[usage - transition.stride];
      if (fewer.latest == ideal) least = std::min(least, fewer.latest_value);
    }
    return least;
  }

  // Outwards from the balanced split, while the stage's work may stay below the limit.
  void search_sources(std::size_t ideal, std::size_t usage, std::uint32_t t) {
    const Transition& transition = usages_.transitions()[t];
    const Layer& sources = layers_[usage - transition.stride];
    std::size_t end = sources.records.size();
    while (end > 0 && sources.records[end - 1].ideal == ideal) --end;
    if (end == 0) return;
    const double rate = transition.rate * kWindowSlack;
    const std::int64_t own = family_.work()[ideal];
    const double share = layers_[usage].rate > 0 ? sources.rate / layers_[usage].rate : 0;
    const auto balanced = static_cast<std::int64_t>(static_cast<double>(own) * share);
    const auto begin = sources.work.begin();
    const auto middle = static_cast<std::size_t>(
        std::lower_bound(begin, begin + static_cast<std::ptrdiff_t>(end), balanced) - begin);
    // A net cut by one of I and J only is paid for by I \ J.
    const bool pays = single_sum() && model_.classes()[transition.devices.front()].profile == 0;
    const double above = pays ? family_.above(ideal)[0] : 0;
    const double transfer_rate = pays ? rate / transition.replicas() : 0;
    const auto look_at = [&](std::size_t i) {
      if (sources.value[i] >= limit_) return;
      const double transfers = std::abs(above - sources.above[i]) * transfer_rate;
      if (static_cast<double>(own - sources.work[i]) + transfers > rate * limit_ + 1) return;
      extend(ideal, usage, i, t);
    };
    if (indexed_ && end > kWorthAnIndex) {
      const double least = static_cast<double>(own) - rate * limit_ - 1;
      const auto low = static_cast<std::size_t>(
          std::lower_bound(
              begin, begin + static_cast<std::ptrdiff_t>(middle), least,
              [](std::int64_t work, double value) { return static_cast<double>(work) < value; }) -
          begin);
      find_open_blocks(ideal);
      for_each_inside(sources, low, middle, end, look_at);
      return;
    }
    for (std::size_t i = middle; i-- > 0;) {
      if (static_cast<double>(own - sources.work[i]) > rate * limit_ + 1) break;
      look_at(i);
    }
    for (std::size_t i = middle; i < end && limit_ > enough_; ++i) look_at(i);
  }

  // The records from `low` to `end` whose ideals hold no open block, the words from the middle down
  // first.
  template <class LookAt>
  void for_each_inside(const Layer& sources, std::size_t low, std::size_t middle, std::size_t end,
                       LookAt look_at) const {
    const auto look_at_word = [&](std::size_t word) {
      std::uint64_t bits = ~std::uint64_t{0};
      for (const std::uint32_t block : open_) bits &= ~sources.holding[block][word];
      if (word == low / 64) bits &= ~std::uint64_t{0} << (low % 64);
      if (word == end / 64) bits &= (std::uint64_t{1} << (end % 64)) - 1;
      for (; bits != 0; bits &= bits - 1) {
        look_at(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
      }
    };
    const std::size_t middle_word = std::max(low, std::min(middle, end - 1)) / 64;
    for (std::size_t word = middle_word + 1; word-- > low / 64 && limit_ > enough_;) {
      look_at_word(word);
    }
    for (std::size_t word = middle_word + 1; word * 64 < end && limit_ > enough_; ++word) {
      look_at_word(word);
    }
  }

  // Whether all the devices can run the blocks of the stage that begins behind `inner`.
  [[nodiscard]] bool fits(std::size_t inner, const Transition& transition) const {
    return std::all_of(transition.devices.begin(), transition.devices.end(),
                       [&](std::size_t c) { return loads_.fits(inner, c); });
  }

  void extend(std::size_t ideal, std::size_t usage, std::size_t position, std::uint32_t t) {
    const Transition& transition = usages_.transitions()[t];
    const Record& source = layers_[usage - transition.stride].records[position];
    if (!family_.includes(ideal, source.ideal) || !fits(source.ideal, transition)) return;
    const StageLoad load =
        loads_.load(source.ideal, transition.devices.front(), transition.replicas());
    const double first = std::max(source.first, load.first);
    const double second = std::max(source.second, load.second);
    if (first + second >= limit_) return;
    if (phased_ &&
        (beaten(found_, first, second) || beaten_with_fewer(ideal, usage, first, second))) {
      return;
    }
    std::erase_if(found_, [&](const Record& known) {
      return first <= known.first && second <= known.second;
    });
    found_.push_back({first, second, static_cast<std::uint32_t>(ideal),
                      static_cast<std::uint32_t>(position), t});
    if (!phased_) limit_ = first;
  }

  [[nodiscard]] static bool beaten(std::span<const Record> records, double first, double second) {
    return std::any_of(records.begin(), records.end(), [&](const Record& known) {
      return known.first <= first && known.second <= second;
    });
  }

  [[nodiscard]] bool beaten_with_fewer(std::size_t ideal, std::size_t usage, double first,
                                       double second) const {
    for (const Transition& transition : usages_.transitions()) {
      if (transition.replicas() > 1 || !usages_.allows(usage, transition)) continue;
      const auto& records = layers_[usage - transition.stride].records;
      std::size_t begin = records.size();
      while (begin > 0 && records[begin - 1].ideal == ideal) --begin;
      if (beaten(std::span(records).subspan(begin), first, second)) return true;
    }
    return false;
  }

  [[nodiscard]] std::optional<Split> best() const {
    const std::size_t full = family_.size() - 1;
    Split split;
    std::size_t usage = 0;
    const Record* record = nullptr;
    for (std::size_t u = 0; u < usages_.count(); ++u) {
      const Layer& layer = layers_[u];
      for (std::size_t i = layer.records.size(); i-- > 0 && layer.records[i].ideal == full;) {
        if (layer.value[i] >= split.value) continue;
        split.value = layer.value[i];
        record = &layer.records[i];
        usage = u;
      }
    }
    if (record == nullptr) return std::nullopt;
    while (record->ideal != 0) {
      const Transition& transition = usages_.transitions()[record->transition];
      usage -= transition.stride;
      const Record& source = layers_[usage].records[record->source];
      split.stages.push_back({family_.difference(record->ideal, source.ideal), transition.devices});
      record = &source;
    }
    std::reverse(split.stages.begin(), split.stages.end());
    return split;
  }

  const IdealFamily& family_;
  const StageModel& model_;
  Usages usages_;
  bool phased_;
  bool single_sum_;  // transfers are one sum, the same in both directions
  double cutoff_;
  double enough_;
  Control& control_;
  StageLoads loads_;
  std::vector<Layer> layers_;
  bool has_cores_ = false;
  bool indexed_ = false;
  std::size_t open_for_ = 0;
  std::vector<std::uint32_t> open_;
  std::vector<char> behind_;
  std::size_t avoidable_for_ = 0;
  double avoidable_ = 0;
  // Of the label in hand.
  std::vector<Record> found_;
  double limit_ = kInfinity;
};

}  // namespace

double usage_count(const Problem& problem) {
  double count = 1;
  for (const std::vector<DeviceId>& alike : device_classes(problem)) {
    count *= static_cast<double>(alike.size() + 1);
  }
  return count;
}

std::vector<WorkWindow> work_windows(const StageModel& model, double cutoff) {
  const Usages usages(model);
  std::vector<WorkWindow> windows;
  for (std::size_t usage = 0; usage < usages.count(); ++usage) {
    const WorkWindow window = usages.window(usage, cutoff);
    if (window.least <= window.most) windows.push_back(window);
  }
  std::sort(windows.begin(), windows.end(),
            [](const WorkWindow& a, const WorkWindow& b) { return a.least < b.least; });
  std::vector<WorkWindow> merged;
  for (const WorkWindow& window : windows) {
    if (!merged.empty() && window.least <= merged.back().most) {
      merged.back().most = std::max(merged.back().most, window.most);
    } else {
      merged.push_back(window);
    }
  }
  return merged;
}

ProgramResult best_split(const IdealFamily& family, double cutoff, double enough,
                         Control& control) {
  if (family.size() < 2) return {true, std::nullopt};
  return Program(family, cutoff, enough, control).run();
}

}  // namespace placewright::throughput
