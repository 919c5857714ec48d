#include "planners/throughput/core_sets.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace placewright::throughput {

// Lays the devices out along their nesting.
class CoreSetsBuilder {
 public:
  explicit CoreSetsBuilder(const StageModel& model)
      : problem_(model.problem()),
        class_of_(problem_.device_count()),
        inside_(problem_.device_count() + 1),
        own_cores_(problem_.device_count(), 0),
        shape_(problem_.device_count(), 0) {
    for (std::size_t c = 0; c < model.classes().size(); ++c) {
      for (const DeviceId device : model.classes()[c].devices) class_of_[device] = c;
    }
  }

  std::optional<CoreSets> build() {
    if (problem_.device_count() > kMostPlaces) return std::nullopt;
    for (const DeviceId device : problem_.devices()) {
      inside_[smallest_around(device).value_or(outermost())].push_back(device);
    }
    for (const ResourceId resource : problem_.resources()) {
      if (const auto device = smallest_with(resource)) own_cores_[*device] += 1;
    }
    arrange(outermost());
    lay_out(outermost());
    if (sets_.atom_width_.size() > kMostAtoms) return std::nullopt;
    sets_.later_.resize(sets_.places_.size());
    for (std::size_t t = 0; t < sets_.twins_.size(); ++t) note_later(t);
    for (std::size_t atom = 0; atom < sets_.atom_count(); ++atom) {
      sets_.holders_.push_back(holders_of(atom));
    }
    return std::move(sets_);
  }

 private:
  // Stands for the machine around all sets.
  [[nodiscard]] DeviceId outermost() const { return DeviceId{problem_.device_count()}; }

  [[nodiscard]] bool holds(DeviceId device, ResourceId resource) const {
    return std::ranges::any_of(problem_.uses(device),
                               [&](const ResourceUse& use) { return use.resource == resource; });
  }
  // Of two devices with the same cores the first is around the second.
  [[nodiscard]] bool is_around(DeviceId outer, DeviceId inner) const {
    const auto uses = problem_.uses(inner);
    const std::size_t width = problem_.uses(outer).size();
    if (outer == inner || width < uses.size() || (width == uses.size() && inner < outer)) {
      return false;
    }
    return std::ranges::all_of(uses,
                               [&](const ResourceUse& use) { return holds(outer, use.resource); });
  }
  [[nodiscard]] std::optional<DeviceId> smallest_around(DeviceId inner) const {
    std::optional<DeviceId> smallest;
    for (const DeviceId outer : problem_.devices()) {
      if (!is_around(outer, inner)) continue;
      if (!smallest || is_around(*smallest, outer)) smallest = outer;
    }
    return smallest;
  }
  [[nodiscard]] std::optional<DeviceId> smallest_with(ResourceId resource) const {
    std::optional<DeviceId> smallest;
    for (const DeviceId device : problem_.devices()) {
      if (!holds(device, resource)) continue;
      if (!smallest || is_around(*smallest, device)) smallest = device;
    }
    return smallest;
  }

  // Sorts what is inside by shape, so that sets of one shape lie beside each other. A shape is a
  // class, a number of cores and the shapes inside.
  void arrange(DeviceId around) {
    auto& inside = inside_[around];
    for (const DeviceId device : inside) {
      arrange(device);
      std::vector<std::size_t> described{class_of_[device], own_cores_[device]};
      for (const DeviceId inner : inside_[device]) described.push_back(shape_[inner]);
      shape_[device] = shapes_.try_emplace(described, shapes_.size()).first->second;
    }
    std::ranges::stable_sort(inside, {}, [&](DeviceId device) { return shape_[device]; });
  }

  void lay_out(DeviceId around) {
    const auto& inside = inside_[around];
    for (std::size_t i = 0; i < inside.size();) {
      CoreSets::Twins twins{sets_.places_.size(), 0, 0, sets_.atom_width_.size(), 0};
      const std::size_t shape = shape_[inside[i]];
      do {
        put(inside[i++]);
        ++twins.count;
      } while (i < inside.size() && shape_[inside[i]] == shape);
      twins.places = (sets_.places_.size() - twins.first) / twins.count;
      twins.atoms = (sets_.atom_width_.size() - twins.first_atom) / twins.count;
      if (twins.count > 1) sets_.twins_.push_back(twins);
    }
  }

  void put(DeviceId device) {
    const std::size_t place = sets_.places_.size();
    sets_.places_.push_back({device, class_of_[device], sets_.atom_width_.size(), 0});
    if (own_cores_[device] > 0) {
      sets_.atom_width_.push_back(static_cast<double>(own_cores_[device]));
    }
    lay_out(device);
    sets_.places_[place].end_atom = sets_.atom_width_.size();
  }

  void note_later(std::size_t number) {
    const CoreSets::Twins& twins = sets_.twins_[number];
    for (std::size_t i = 1; i < twins.count; ++i) {
      const std::size_t begin = twins.first + i * twins.places;
      for (std::size_t place = begin; place < begin + twins.places; ++place) {
        sets_.later_[place].push_back({number, i});
      }
    }
  }

  [[nodiscard]] std::uint64_t holders_of(std::size_t atom) const {
    std::uint64_t holders = 0;
    for (std::size_t place = 0; place < sets_.places_.size(); ++place) {
      const CoreSets::Place& record = sets_.places_[place];
      if (record.first_atom <= atom && atom < record.end_atom) holders |= std::uint64_t{1} << place;
    }
    return holders;
  }

  const Problem& problem_;
  Table<DeviceId, std::size_t> class_of_;
  Table<DeviceId, std::vector<DeviceId>> inside_;  // by device, and of the outermost
  Table<DeviceId, std::size_t> own_cores_;         // that no device inside it holds
  Table<DeviceId, std::size_t> shape_;
  std::map<std::vector<std::size_t>, std::size_t> shapes_;
  CoreSets sets_;
};

std::string CoreSets::refuses(const Problem& problem) {
  if (problem.device_count() > kMostPlaces) {
    return fmt::format("it knows up to {} devices", kMostPlaces);
  }
  Table<ResourceId, std::uint64_t> holders(problem.resource_count(), 0);
  for (const DeviceId device : problem.devices()) {
    for (const ResourceUse& use : problem.uses(device)) {
      holders[use.resource] |= std::uint64_t{1} << device.index();
    }
  }
  std::set<std::uint64_t> atoms(holders.begin(), holders.end());
  atoms.erase(0);
  if (atoms.size() <= kMostAtoms) return {};
  return fmt::format("it knows up to {} cores, those that the same devices have being one",
                     kMostAtoms);
}

std::optional<CoreSets> CoreSets::of(const StageModel& model) {
  return CoreSetsBuilder(model).build();
}

template <std::size_t kAtoms>
void CoreSets::add(CoreState<kAtoms>& state, std::size_t place, double load) const {
  state.taken |= std::uint64_t{1} << place;
  for (std::size_t atom = places_[place].first_atom; atom < places_[place].end_atom; ++atom) {
    state.load[atom] += load;
  }
}

template <std::size_t kAtoms>
int CoreSets::compare(const CoreState<kAtoms>& state, const Twins& twins, std::size_t a,
                      std::size_t b) {
  const std::uint64_t mask =
      twins.places == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << twins.places) - 1;
  const std::uint64_t taken_a = state.taken >> (twins.first + a * twins.places) & mask;
  const std::uint64_t taken_b = state.taken >> (twins.first + b * twins.places) & mask;
  if (taken_a != taken_b) return taken_a < taken_b ? -1 : 1;
  const double* load_a = state.load.data() + twins.first_atom + a * twins.atoms;
  const double* load_b = state.load.data() + twins.first_atom + b * twins.atoms;
  for (std::size_t i = 0; i < twins.atoms; ++i) {
    if (load_a[i] != load_b[i]) return load_a[i] < load_b[i] ? -1 : 1;
  }
  return 0;
}

template <std::size_t kAtoms>
void CoreSets::exchange(CoreState<kAtoms>& state, const Twins& twins, std::size_t a, std::size_t b,
                        std::span<std::size_t> at_places) {
  for (std::size_t i = 0; i < twins.places; ++i) {
    const std::size_t place_a = twins.first + a * twins.places + i;
    const std::size_t place_b = twins.first + b * twins.places + i;
    const std::uint64_t differ = (state.taken >> place_a ^ state.taken >> place_b) & 1U;
    state.taken ^= differ << place_a | differ << place_b;
    if (!at_places.empty()) std::swap(at_places[place_a], at_places[place_b]);
  }
  for (std::size_t i = 0; i < twins.atoms; ++i) {
    std::swap(state.load[twins.first_atom + a * twins.atoms + i],
              state.load[twins.first_atom + b * twins.atoms + i]);
  }
}

template <std::size_t kAtoms>
bool CoreSets::repeated(const CoreState<kAtoms>& state, std::size_t place) const {
  return std::ranges::any_of(later_[place], [&](const Later& later) {
    return compare(state, twins_[later.twins], later.number - 1, later.number) == 0;
  });
}

// Insertion sort, the greatest first: those with more taken and longer loads.
template <std::size_t kAtoms>
void CoreSets::canonicalise(CoreState<kAtoms>& state, std::span<std::size_t> at_places) const {
  for (const Twins& twins : twins_) {
    for (std::size_t i = 1; i < twins.count; ++i) {
      for (std::size_t k = i; k > 0 && compare(state, twins, k - 1, k) < 0; --k) {
        exchange(state, twins, k - 1, k, at_places);
      }
    }
  }
}

#define PLACEWRIGHT_STATES_OF(atoms)                                            \
  template void CoreSets::add(CoreState<atoms>&, std::size_t, double) const;    \
  template bool CoreSets::repeated(const CoreState<atoms>&, std::size_t) const; \
  template void CoreSets::canonicalise(CoreState<atoms>&, std::span<std::size_t>) const
PLACEWRIGHT_STATES_OF(8);
PLACEWRIGHT_STATES_OF(16);
PLACEWRIGHT_STATES_OF(kMostAtoms);
#undef PLACEWRIGHT_STATES_OF

}  // namespace placewright::throughput
