#include "planners/throughput/ideal_program.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "evaluate/memory.h"

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

// Loads of stages I \ J for one I after the other.
class StageLoads {
 public:
  explicit StageLoads(const IdealFamily& family) : family_(family), model_(family.model()) {}

  void set_outer(std::size_t ideal) {
    outer_ = ideal;
    cut_known_ = false;
    cut_profile_ = kNoProfile;
  }

  // Whether all the devices can run the blocks of I \ J within their memory. J must be inside I.
  [[nodiscard]] bool fits(std::size_t inner, const Transition& transition) const {
    return std::all_of(transition.devices.begin(), transition.devices.end(),
                       [&](std::size_t c) { return fits(inner, c); });
  }
  [[nodiscard]] bool fits(std::size_t inner, std::size_t device_class) const {
    if (family_.forbidden(outer_, device_class) != family_.forbidden(inner, device_class)) {
      return false;
    }
    const double memory = model_.classes()[device_class].memory;
    if (memory == kInfinity) return true;
    return within_memory(stage_bytes(inner), memory);
  }

  [[nodiscard]] double stage_bytes(std::size_t inner) const {
    double bytes = family_.bytes(outer_) - family_.bytes(inner);
    for (const StageModel::Weight& weight : model_.weights()) {
      const bool read = std::any_of(weight.blocks.begin(), weight.blocks.end(),
                                    [&](std::uint32_t block) { return inside(block, inner); });
      if (read) bytes += weight.bytes;
    }
    return bytes;
  }

  // Of the transfers that the blocks outside I must pay, at most what moving some of them to cores
  // for `seconds` each could save: a fractional knapsack, in which each block has an equal part in
  // the nets that need it moved.
  [[nodiscard]] double avoidable_transfers(double seconds) {
    const DeviceClass* core = nullptr;
    double cores = 0;
    for (const DeviceClass& device_class : model_.classes()) {
      if (device_class.profile >= 0) continue;
      if (core != nullptr) return kInfinity;  // cores of several kinds: not worked out
      core = &device_class;
      cores = static_cast<double>(device_class.devices.size());
    }
    if (core == nullptr) return 0;
    find_cut();
    movable_.clear();
    const auto outside = [&](std::uint32_t block) { return !family_.contains(outer_, block); };
    for (const std::uint32_t id : cut_) {
      const Net& net = model_.nets()[id];
      Transfers cost{};
      model_.charge(id, 0, outside, 1, cost.data());
      if (outside(net.producer)) {
        movable_.push_back({net.producer, cost[0], 0});
        continue;
      }
      const auto readers = static_cast<double>(
          std::count_if(net.readers.begin(), net.readers.end(),
                        [&](const NetReader& reader) { return outside(reader.block); }));
      for (const NetReader& reader : net.readers) {
        if (outside(reader.block)) movable_.push_back({reader.block, cost[0] / readers, 0});
      }
    }
    return knapsack(*core, cores * seconds);
  }

  [[nodiscard]] StageLoad load(std::size_t inner, const Transition& transition) {
    const std::size_t device_class = transition.devices.front();
    const int replicas = transition.replicas();
    const DeviceClass& kind = model_.classes()[device_class];
    const double forward =
        family_.forward(outer_, device_class) - family_.forward(inner, device_class);
    const double backward =
        family_.backward(outer_, device_class) - family_.backward(inner, device_class);
    const double bytes = replicas > 1 ? stage_bytes(inner) : 0;
    if (kind.profile < 0) return model_.load(forward, backward, nullptr, bytes, replicas);
    const Transfers moved = transfers(inner, static_cast<std::size_t>(kind.profile));
    return model_.load(forward, backward, moved.data(), bytes, replicas);
  }

 private:
  [[nodiscard]] bool inside(std::uint32_t block, std::size_t inner) const {
    return family_.contains(outer_, block) && !family_.contains(inner, block);
  }

  struct Movable {
    std::uint32_t block = 0;
    double saving = 0;
    double time = 0;
  };

  void find_cut() {
    if (cut_known_) return;
    cut_.clear();
    family_.cut_nets(outer_, cut_);
    cut_known_ = true;
  }

  [[nodiscard]] double knapsack(const DeviceClass& core, double capacity) {
    std::sort(movable_.begin(), movable_.end(),
              [](const Movable& a, const Movable& b) { return a.block < b.block; });
    std::size_t kept = 0;
    for (const Movable& item : movable_) {
      if (core.allowed[item.block] == 0) continue;
      if (kept > 0 && movable_[kept - 1].block == item.block) {
        movable_[kept - 1].saving += item.saving;
      } else {
        const double time = core.forward[item.block] + core.backward[item.block];
        movable_[kept++] = {item.block, item.saving, time};
      }
    }
    movable_.resize(kept);
    std::sort(movable_.begin(), movable_.end(), [](const Movable& a, const Movable& b) {
      return a.saving * b.time > b.saving * a.time;
    });
    double saved = 0;
    for (const Movable& item : movable_) {
      if (item.time >= capacity && item.time > 0) return saved + item.saving * capacity / item.time;
      saved += item.saving;
      capacity -= item.time;
    }
    return saved;
  }

  // What a cut net asks of J, worked out once for each I.
  struct CutNet {
    double in = 0;
    double out = 0;
    std::uint32_t producer = 0;
    bool produced_inside = false;
    std::uint32_t readers_begin = 0;  // of cut_readers_: the readers in I
    std::uint32_t readers_end = 0;
  };

  [[nodiscard]] Transfers transfers(std::size_t inner, std::size_t profile) {
    if (model_.component_count() == 1) return {single_transfers(inner, profile)};
    find_cut();
    Transfers sum{};
    std::copy_n(family_.above(inner) + profile * kMostComponents, kMostComponents, sum.begin());
    const auto in_stage = [&](std::uint32_t block) { return inside(block, inner); };
    const auto in_rest = [&](std::uint32_t block) { return !family_.contains(inner, block); };
    for (const std::uint32_t net : cut_) {
      model_.charge(net, profile, in_stage, 1, sum.data());
      model_.charge(net, profile, in_rest, -1, sum.data());
    }
    return sum;
  }

  // The same for a single sum. Of a net that I cuts, with S = I \ J and R = all \ J:
  //   made in I, not in J   S sends; R sends if J reads
  //   made in J             S fetches if S reads; R fetches
  //   made outside I        S fetches if S reads; R sends if J reads
  [[nodiscard]] double single_transfers(std::size_t inner, std::size_t profile) {
    if (cut_profile_ != profile) prepare_cut(profile);
    double sum = family_.above(inner)[profile];
    for (const CutNet& net : cut_nets_) {
      bool inner_reads = false;
      bool stage_reads = false;
      for (std::uint32_t i = net.readers_begin; i < net.readers_end; ++i) {
        (family_.contains(inner, cut_readers_[i]) ? inner_reads : stage_reads) = true;
      }
      if (!net.produced_inside) {
        sum += (stage_reads ? net.in : 0) - (inner_reads ? net.out : 0);
      } else if (family_.contains(inner, net.producer)) {
        sum += (stage_reads ? net.in : 0) - net.in;
      } else {
        sum += net.out - (inner_reads ? net.out : 0);
      }
    }
    return sum;
  }

  void prepare_cut(std::size_t profile) {
    find_cut();
    cut_profile_ = profile;
    cut_nets_.clear();
    cut_readers_.clear();
    for (const std::uint32_t id : cut_) {
      const Net& record = model_.nets()[id];
      CutNet net;
      net.in = model_.in_cost(id, profile);
      net.out = model_.out_cost(id, profile);
      net.producer = record.producer;
      net.produced_inside = family_.contains(outer_, record.producer);
      net.readers_begin = static_cast<std::uint32_t>(cut_readers_.size());
      for (const NetReader& reader : record.readers) {
        if (family_.contains(outer_, reader.block)) cut_readers_.push_back(reader.block);
      }
      net.readers_end = static_cast<std::uint32_t>(cut_readers_.size());
      cut_nets_.push_back(net);
    }
  }

  static constexpr std::size_t kNoProfile = static_cast<std::size_t>(-1);

  const IdealFamily& family_;
  const StageModel& model_;
  std::size_t outer_ = 0;
  bool cut_known_ = false;
  std::vector<std::uint32_t> cut_;
  std::size_t cut_profile_ = kNoProfile;
  std::vector<CutNet> cut_nets_;
  std::vector<std::uint32_t> cut_readers_;
  std::vector<Movable> movable_;
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

  void extend(std::size_t ideal, std::size_t usage, std::size_t position, std::uint32_t t) {
    const Transition& transition = usages_.transitions()[t];
    const Record& source = layers_[usage - transition.stride].records[position];
    if (!family_.includes(ideal, source.ideal) || !loads_.fits(source.ideal, transition)) return;
    const StageLoad load = loads_.load(source.ideal, transition);
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
