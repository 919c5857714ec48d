#include "planners/throughput/shared_ideal_program.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "bounds/rounding.h"
#include "planners/methods/stage_loads.h"
#include "planners/throughput/shared_program.h"
#include "problem/exclusion.h"

namespace placewright::throughput {
namespace {

constexpr std::size_t kLooksPerQuestion = 10'000;  // at sources and labels
constexpr std::size_t kMostCrews = 2000;
constexpr std::size_t kMostToldApart = 6;       // classes: 64 sets of them
constexpr std::size_t kMostLabels = 3'000'000;  // 120 to 310 bytes each
constexpr double kSecondsPerSum = 1e-9;         // of an ideal, a block and a set of classes
constexpr std::size_t kCrowd = 4;               // widths, at which labels are merged

// Sets of devices of one kind, at most.
double crew_count(const Problem& problem) {
  Table<KindId, std::size_t> devices(problem.kind_count(), 0);
  for (const DeviceId device : problem.devices()) ++devices[problem.kind_of(device)];
  double count = 0;
  const auto most = static_cast<std::size_t>(problem.rules().max_replicas);
  for (const std::size_t all : devices) {
    double choices = 1;
    for (std::size_t r = 1; r <= std::min(all, most); ++r) {
      choices *= static_cast<double>(all - r + 1) / static_cast<double>(r);
      count += choices;
    }
  }
  return count;
}

template <std::size_t kAtoms>
class Run {
 public:
  Run(const SharedIdeals& ideals, double cutoff, std::size_t width, Control& control)
      : ideals_(ideals),
        family_(ideals.family()),
        sets_(ideals.sets()),
        cutoff_(cutoff),
        width_(width),
        control_(control),
        loads_(family_),
        last_(family_.size() - 1) {}

  SharedRun run() {
    Label none;
    open_up(none.state, none.open);
    labels_.push_back(none);
    sources_.push_back({0, 0, 1, none.open});
    for (std::size_t ideal = 1; ideal <= last_; ++ideal) {
      if (control_.should_stop(1) || labels_.size() > most_labels()) return {};
      if (!find_labels(ideal)) return {};
    }
    return answer();
  }

 private:
  using State = CoreState<kAtoms>;
  struct Label {
    State state;
    double open = 0;  // sum over cores of the time that is left
    double peak = 0;  // the longest load, also of cores that are full
    std::size_t source = 0;
    std::uint32_t crew = 0;
    std::uint32_t ideal = 0;
    bool merged = false;  // it, or one that it comes from
  };
  // An ideal with labels.
  struct Source {
    std::size_t ideal = 0;
    std::size_t first = 0;  // label
    std::size_t end = 0;
    double open = 0;  // the most of its labels
  };

  // A vector that grows holds its old part and twice as much for a moment.
  [[nodiscard]] std::size_t most_labels() const {
    const double affordable = control_.budget().memory / (3 * sizeof(Label));
    return affordable < kMostLabels ? static_cast<std::size_t>(affordable) : kMostLabels;
  }

  // False if it was stopped.
  bool find_labels(std::size_t ideal) {
    set_outer(ideal);
    found_.clear();
    const double need = ideals_.need(ideal, 0);
    for (const Source& source : sources_) {
      if (!worth_a_look(source, need) || !family_.includes(ideal, source.ideal)) continue;
      if (is_time_to_stop(1)) return false;
      extend(source);
    }
    if (found_.size() > width_) merge_down();
    if (stopped_) return false;
    if (found_.empty()) return true;
    Source own{ideal, labels_.size(), labels_.size() + found_.size(), 0};
    for (const Label& label : found_) own.open = std::max(own.open, label.open);
    labels_.insert(labels_.end(), found_.begin(), found_.end());
    sources_.push_back(own);
    return true;
  }

  // Counts what was looked at since the control was asked, sources and labels.
  bool is_time_to_stop(std::size_t looks) {
    looks_ += looks;
    if (looks_ < kLooksPerQuestion) return stopped_;
    looks_ = 0;
    stopped_ = stopped_ || control_.should_stop();
    return stopped_;
  }

  void set_outer(std::size_t ideal) {
    outer_ = ideal;
    loads_.set_outer(ideal);
    for (std::size_t place = 0; place < sets_.places().size(); ++place) {
      room_[place] = cutoff_ - ideals_.least_load(ideal, sets_.places()[place].device_class);
    }
  }

  // Whether some class could do what lies between, as far as energy tells.
  [[nodiscard]] bool worth_a_look(const Source& source, double need) const {
    const double most = source.open * (1 + kSearchRounding) - need;
    for (std::size_t c = 0; c < family_.model().classes().size(); ++c) {
      if (ideals_.energy(outer_, c) - ideals_.energy(source.ideal, c) <= most) return true;
    }
    return false;
  }

  void extend(const Source& source) {
    const double need = ideals_.need(outer_, 0);
    const double most = source.open * (1 + kSearchRounding) - need;
    for (std::size_t c = 0; c < family_.model().classes().size(); ++c) {
      if (ideals_.energy(outer_, c) - ideals_.energy(source.ideal, c) > most) continue;
      if (!loads_.allowed(source.ideal, c)) continue;
      const double alone = loads_.load(source.ideal, c, 1).sum();
      for (const std::uint32_t number : ideals_.crews_of_class(c)) {
        const auto& crew = ideals_.crews()[number];
        const double load = alone / crew.replicas();
        if (load >= cutoff_ || load * crew.cores > most) continue;
        if (!std::ranges::all_of(crew.classes, [&](std::size_t other) {
              return loads_.allowed(source.ideal, other);
            })) {
          continue;
        }
        for (std::size_t i = source.first; i < source.end; ++i) {
          const Label& label = labels_[i];
          if ((label.state.taken & crew.places) != 0) continue;
          if (label.open * (1 + kSearchRounding) < need + load * crew.cores) continue;
          extend(i, number, load);
          if (is_time_to_stop(1 + found_.size())) return;
        }
      }
    }
  }

  void extend(std::size_t source, std::uint32_t number, double load) {
    const auto& crew = ideals_.crews()[number];
    const Label& from = labels_[source];
    if (crew.replicas() == 1 &&
        sets_.repeated(from.state, static_cast<std::size_t>(std::countr_zero(crew.places)))) {
      return;
    }
    Label label{from.state, 0, from.peak, source, number, static_cast<std::uint32_t>(outer_),
                from.merged};
    if (!take(label.state, crew, load, label.peak)) return;
    if (outer_ != last_) {
      close(label.state);
      open_up(label.state, label.open);
      if (ideals_.need(outer_, label.state.taken) > label.open * (1 + kSearchRounding)) return;
      sets_.canonicalise(label.state);
      insert(label);
    } else if (found_.empty() || is_better_end(label, found_.front())) {
      found_.assign(1, label);
    }
  }

  static bool is_better_end(const Label& label, const Label& known) {
    return label.merged != known.merged ? known.merged : label.peak < known.peak;
  }

  // False if a core would have more than the cutoff to do.
  bool take(State& state, const SharedIdeals::Crew& crew, double load, double& peak) const {
    for (std::uint64_t bits = crew.places; bits != 0; bits &= bits - 1) {
      const auto place = static_cast<std::size_t>(std::countr_zero(bits));
      sets_.add(state, place, load);
      const CoreSets::Place& record = sets_.places()[place];
      for (std::size_t atom = record.first_atom; atom < record.end_atom; ++atom) {
        if (state.load[atom] >= cutoff_) return false;
        peak = std::max(peak, state.load[atom]);
      }
    }
    return true;
  }

  // Sets that no stage behind the ideal fits on count as taken. Cores that can only be taken
  // together have the longest load of them all to do; those that cannot be taken are full.
  void close(State& state) const {
    for (std::size_t place = 0; place < sets_.places().size(); ++place) {
      const CoreSets::Place& record = sets_.places()[place];
      for (std::size_t atom = record.first_atom; atom < record.end_atom; ++atom) {
        if (state.load[atom] < room_[place]) continue;
        state.taken |= std::uint64_t{1} << place;
        break;
      }
    }
    std::array<double, kMostPlaces + 1> longest{};
    // The innermost set that is left around the atom, by which those around it are known.
    const auto around = [&](std::size_t atom) {
      return static_cast<std::size_t>(std::bit_width(sets_.holders(atom) & ~state.taken));
    };
    for (std::size_t atom = 0; atom < sets_.atom_count(); ++atom) {
      double& known = longest[around(atom)];
      known = std::max(known, state.load[atom]);
    }
    longest[0] = cutoff_;
    for (std::size_t atom = 0; atom < sets_.atom_count(); ++atom) {
      state.load[atom] = longest[around(atom)];
    }
  }

  void open_up(const State& state, double& open) const {
    open = 0;
    for (std::size_t atom = 0; atom < sets_.atom_count(); ++atom) {
      open += sets_.atom_width(atom) * (cutoff_ - state.load[atom]);
    }
  }

  [[nodiscard]] bool dominates(const State& a, const State& b) const {
    if ((a.taken & ~b.taken) != 0) return false;
    for (std::size_t atom = 0; atom < sets_.atom_count(); ++atom) {
      if (a.load[atom] > b.load[atom]) return false;
    }
    return true;
  }

  void insert(const Label& label) {
    if (std::ranges::any_of(
            found_, [&](const Label& known) { return dominates(known.state, label.state); })) {
      return;
    }
    std::erase_if(found_, [&](const Label& known) { return dominates(label.state, known.state); });
    found_.push_back(label);
    if (found_.size() > kCrowd * width_) merge_down();
  }

  // Merges the closest neighbours until no more than the width are left.
  void merge_down() {
    merged_ = true;
    std::ranges::sort(found_, [&](const Label& a, const Label& b) {
      if (a.state.taken != b.state.taken) return a.state.taken < b.state.taken;
      return a.state.load < b.state.load;
    });
    std::vector<double> distances;
    for (std::size_t i = 1; i < found_.size(); ++i) {
      distances.push_back(distance(found_[i - 1].state, found_[i].state));
    }
    std::vector<double> sorted = distances;
    std::size_t merges = found_.size() - width_;
    std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(merges - 1));
    const double longest = sorted[merges - 1];
    std::vector<Label> before;
    before.swap(found_);
    Label next = before.front();
    for (std::size_t i = 1; i < before.size(); ++i) {
      if (merges > 0 && distances[i - 1] <= longest) {
        --merges;
        merge(next, before[i]);
      } else {
        if (is_time_to_stop(1 + found_.size())) return;
        insert(next);
        next = before[i];
      }
    }
    insert(next);
  }

  // How much time of cores the merged one gains; sets that only one has taken weigh as their cores
  // do.
  [[nodiscard]] double distance(const State& a, const State& b) const {
    double sum = 0;
    for (std::size_t atom = 0; atom < sets_.atom_count(); ++atom) {
      sum += sets_.atom_width(atom) * std::abs(a.load[atom] - b.load[atom]);
    }
    return sum + cutoff_ * std::popcount(a.taken ^ b.taken);
  }

  void merge(Label& into, const Label& other) const {
    if (other.open > into.open) {
      into.source = other.source;
      into.crew = other.crew;
    }
    into.state.taken &= other.state.taken;
    for (std::size_t atom = 0; atom < sets_.atom_count(); ++atom) {
      into.state.load[atom] = std::min(into.state.load[atom], other.state.load[atom]);
    }
    into.peak = std::min(into.peak, other.peak);
    into.merged = true;
    sets_.canonicalise(into.state);
    open_up(into.state, into.open);
  }

  [[nodiscard]] SharedRun answer() {
    SharedRun result;
    result.complete = true;
    result.merged = merged_;
    if (labels_.back().ideal != last_) return result;
    std::vector<std::size_t> path;
    for (std::size_t i = labels_.size() - 1; i != 0; i = labels_[i].source) path.push_back(i);
    std::ranges::reverse(path);
    result.path.push_back(0);
    for (const std::size_t i : path) result.path.push_back(labels_[i].ideal);
    if (!labels_.back().merged) result.stages = stages_of(path);
    return result;
  }

  // Follows the labels once more, with the devices at their places.
  [[nodiscard]] std::vector<Stage> stages_of(const std::vector<std::size_t>& path) {
    std::vector<std::size_t> at_places(sets_.places().size());
    for (std::size_t place = 0; place < at_places.size(); ++place) at_places[place] = place;
    std::vector<Stage> stages;
    for (const std::size_t i : path) {
      const Label& label = labels_[i];
      const Label& from = labels_[label.source];
      const auto& crew = ideals_.crews()[label.crew];
      stages.push_back(stage_of(crew, at_places, family_.difference(label.ideal, from.ideal)));
      if (label.ideal == last_) break;
      State state = from.state;
      double peak = 0;
      set_outer(label.ideal);
      take(state, crew, loads_.load(from.ideal, crew.first_class, 1).sum() / crew.replicas(), peak);
      close(state);
      sets_.canonicalise(state, at_places);
    }
    return stages;
  }

  [[nodiscard]] Stage stage_of(const SharedIdeals::Crew& crew,
                               const std::vector<std::size_t>& at_places,
                               const std::vector<std::uint32_t>& blocks) const {
    Stage stage;
    for (std::uint64_t bits = crew.places; bits != 0; bits &= bits - 1) {
      const auto place = static_cast<std::size_t>(std::countr_zero(bits));
      const CoreSets::Place& record = sets_.places()[at_places[place]];
      const bool first = record.device_class == crew.first_class;
      stage.devices.insert(first ? stage.devices.begin() : stage.devices.end(), record.device);
    }
    for (const std::uint32_t block : blocks) {
      const auto ops = family_.model().blocks().ops[BlockId{block}];
      stage.ops.insert(stage.ops.end(), ops.begin(), ops.end());
    }
    std::ranges::sort(stage.ops);
    return stage;
  }

  const SharedIdeals& ideals_;
  const IdealFamily& family_;
  const CoreSets& sets_;
  double cutoff_;
  std::size_t width_;
  Control& control_;
  StageLoads loads_;
  std::size_t last_;
  std::size_t outer_ = 0;
  std::array<double, kMostPlaces> room_{};  // load from which on no stage behind the ideal fits
  bool merged_ = false;
  std::size_t looks_ = 0;  // since the control was asked
  bool stopped_ = false;
  std::vector<Label> labels_;  // by ideal, ascending
  std::vector<Label> found_;   // of the ideal in hand
  std::vector<Source> sources_;
};

}  // namespace

std::string refuses_shared_ideals(const Problem& problem) {
  if (std::string refusal = CoreSets::refuses(problem); !refusal.empty()) return refusal;
  if (problem.resource_count() > 0 && !resources_are_nested(problem)) {
    return "it knows sets of cores that are nested or disjoint, taken whole";
  }
  if (crew_count(problem) > static_cast<double>(kMostCrews)) {
    return "it has too many sets of devices that could share a stage";
  }
  return refuses_shared_program(problem);
}

double seconds_of_shared_ideals(const IdealFamily& family) {
  const std::size_t classes = std::min(family.model().classes().size(), kMostToldApart);
  const std::size_t sums = family.model().block_count() << classes;
  return kSecondsPerSum * static_cast<double>(family.size()) * static_cast<double>(sums);
}

double bytes_of_shared_ideals(const IdealFamily& family) {
  const std::size_t classes = family.model().classes().size();
  const std::size_t sets = classes <= kMostToldApart ? std::size_t{1} << classes : 1;
  // The needs twice, while new ones are worked out; energies and least loads.
  return static_cast<double>(sizeof(double) * family.size() * (2 * sets + 2 * classes + 1));
}

SharedIdeals::SharedIdeals(const IdealFamily& family, const CoreSets& sets)
    : family_(family),
      sets_(sets),
      crews_of_class_(family.model().classes().size()),
      class_places_(family.model().classes().size(), 0) {
  for (std::size_t place = 0; place < sets.places().size(); ++place) {
    class_places_[sets.places()[place].device_class] |= std::uint64_t{1} << place;
  }
  std::vector<std::size_t> members;
  add_crews(members, 0, 0);
  build_needs();
}

// The members with each set behind them of their kind that has none of their atoms.
void SharedIdeals::add_crews(std::vector<std::size_t>& members, std::uint64_t atoms,
                             std::size_t from) {
  const StageModel& model = family_.model();
  if (members.size() == static_cast<std::size_t>(model.max_replicas())) return;
  for (std::size_t place = from; place < sets_.places().size(); ++place) {
    const CoreSets::Place& record = sets_.places()[place];
    const std::uint64_t own =
        (std::uint64_t{1} << record.end_atom) - (std::uint64_t{1} << record.first_atom);
    if ((own & atoms) != 0) continue;
    if (!members.empty() &&
        !model.same_kind(record.device_class, sets_.places()[members.front()].device_class)) {
      continue;
    }
    members.push_back(place);
    std::vector<std::size_t> classes;
    for (const std::size_t member : members) classes.push_back(sets_.places()[member].device_class);
    std::ranges::sort(classes);
    const auto repeated = std::ranges::unique(classes);
    classes.erase(repeated.begin(), repeated.end());
    for (const std::size_t first : classes) add_crew(members, first);
    add_crews(members, atoms | own, place + 1);
    members.pop_back();
  }
}

void SharedIdeals::add_crew(const std::vector<std::size_t>& members, std::size_t first_class) {
  Crew crew;
  crew.first_class = first_class;
  for (const std::size_t place : members) {
    const std::size_t device_class = sets_.places()[place].device_class;
    crew.places |= std::uint64_t{1} << place;
    crew.classes.push_back(device_class);
    crew.cores += family_.model().width(family_.model().classes()[device_class]);
  }
  crews_of_class_[first_class].push_back(static_cast<std::uint32_t>(crews_.size()));
  crews_.push_back(std::move(crew));
}

std::size_t SharedIdeals::classes_left(std::uint64_t taken) const {
  if (class_sets_ == 1) return 0;
  std::size_t left = 0;
  for (std::size_t c = 0; c < class_places_.size(); ++c) {
    if ((class_places_[c] & ~taken) != 0) left |= std::size_t{1} << c;
  }
  return left;
}

void SharedIdeals::build_needs() {
  const StageModel& model = family_.model();
  const auto& classes = model.classes();
  class_sets_ = classes.size() <= kMostToldApart ? std::size_t{1} << classes.size() : 1;
  const auto least = [&](std::size_t set, const auto& energy) {
    double smallest = kInfinity;
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (has(set, c)) smallest = std::min(smallest, energy(c));
    }
    return smallest;
  };
  std::vector<double> of_block(model.block_count() * class_sets_);
  std::vector<double> of_net(model.nets().size() * class_sets_);
  for (std::size_t set = 0; set < class_sets_; ++set) {
    for (std::size_t block = 0; block < model.block_count(); ++block) {
      of_block[block * class_sets_ + set] = least(set, [&](std::size_t c) {
        const DeviceClass& record = classes[c];
        return record.allowed[block] != 0 ? record.forward[block] * model.width(record) : kInfinity;
      });
    }
    for (std::uint32_t net = 0; net < model.nets().size(); ++net) {
      of_net[net * class_sets_ + set] = least(set, [&](std::size_t c) {
        const auto profile = static_cast<std::size_t>(classes[c].profile);
        return model.cost(net, profile).receive * model.width(classes[c]);
      });
    }
  }
  needs_.assign(family_.size() * class_sets_, 0);
  least_loads_.assign(family_.size() * classes.size(), kInfinity);
  energies_.resize(family_.size() * classes.size());
  std::vector<std::uint32_t> cut;
  for (std::size_t ideal = 0; ideal < family_.size(); ++ideal) {
    double* needs = needs_.data() + ideal * class_sets_;
    for (std::uint32_t block = 0; block < model.block_count(); ++block) {
      if (family_.contains(ideal, block)) continue;
      for (std::size_t set = 0; set < class_sets_; ++set) {
        needs[set] += of_block[block * class_sets_ + set];
      }
      for (std::size_t c = 0; c < classes.size(); ++c) {
        if (classes[c].allowed[block] == 0) continue;
        double& smallest = least_loads_[ideal * classes.size() + c];
        smallest = std::min(smallest, classes[c].forward[block] / model.max_replicas());
      }
    }
    energies_of_blocks_.push_back(needs[class_sets_ - 1]);
    cut.clear();
    family_.cut_nets(ideal, cut);
    for (const std::uint32_t net : cut) {
      for (std::size_t set = 0; set < class_sets_; ++set) {
        needs[set] += of_net[net * class_sets_ + set];
      }
    }
    for (std::size_t c = 0; c < classes.size(); ++c) {
      energies_[c * family_.size() + ideal] = family_.forward(ideal, c) * model.width(classes[c]);
    }
  }
}

bool SharedIdeals::look_below(double cutoff, Control& control) {
  const StageModel& model = family_.model();
  const auto& classes = model.classes();
  const std::size_t last = family_.size() - 1;
  const std::size_t all = class_sets_ - 1;
  double capacity = 0;
  for (std::size_t atom = 0; atom < sets_.atom_count(); ++atom) {
    capacity += sets_.atom_width(atom) * cutoff * (1 + kSearchRounding);
  }
  // What is before an ideal takes at least the rest of the empty one without its own rest.
  const double total = energies_of_blocks_.front();
  std::vector<double> rest(needs_.size(), kInfinity);
  std::fill_n(rest.begin() + static_cast<std::ptrdiff_t>(last * class_sets_), class_sets_, 0.0);
  StageLoads loads(family_);
  for (std::size_t outer = last; outer > 0; --outer) {
    if (control.should_stop(1)) return false;
    loads.set_outer(outer);
    const double* behind = rest.data() + outer * class_sets_;
    const double least_behind = behind[all];
    if (least_behind == kInfinity) continue;
    for (std::size_t inner = 0; inner < outer; ++inner) {
      const double before = total - energies_of_blocks_[inner];
      bool inside = false;
      for (std::size_t c = 0; c < classes.size(); ++c) {
        const double compute = energy(outer, c) - energy(inner, c);
        if (before + compute + least_behind > capacity) continue;
        if (!inside && !family_.includes(outer, inner)) break;
        inside = true;
        if (!loads.allowed(inner, c)) continue;
        const double load = loads.load(inner, c, 1).sum();
        if (load >= cutoff * model.max_replicas()) continue;
        const double taken = load * model.width(classes[c]);
        for (std::size_t set = 0; set < class_sets_; ++set) {
          if (!has(set, c)) continue;
          double& known = rest[inner * class_sets_ + set];
          known = std::min(known, taken + behind[set]);
        }
      }
    }
  }
  needs_ = std::move(rest);
  return true;
}

SharedRun shared_split(const SharedIdeals& ideals, double cutoff, std::size_t width,
                       Control& control) {
  const std::size_t atoms = ideals.sets().atom_count();
  if (atoms <= 8) return Run<8>(ideals, cutoff, width, control).run();
  if (atoms <= 16) return Run<16>(ideals, cutoff, width, control).run();
  return Run<kMostAtoms>(ideals, cutoff, width, control).run();
}

}  // namespace placewright::throughput
