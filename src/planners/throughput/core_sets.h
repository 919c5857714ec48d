// CoreSets: devices as sets of cores that are nested or disjoint, for programs that hand them out
// one after the other.
//
// Cores that are in the same sets form an atom. Devices are numbered by places, in preorder of
// nesting: the devices inside of one follow it, and its atoms are a range. Sets beside each other
// that hold the same classes of devices in the same way are interchangeable: of the states that an
// exchange of such sets turns into each other one is kept, the canonical one.
//
// O(devices^2 resources) to make; O(atoms + devices) to bring a state into its form.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planners/methods/stage_model.h"

namespace placewright::throughput {

inline constexpr std::size_t kMostAtoms = 32;
inline constexpr std::size_t kMostPlaces = 64;

// What stages have taken so far, with room for so many atoms: 8, 16 or kMostAtoms. Programs copy
// states all the time, and what is not there need not be copied.
template <std::size_t kAtoms>
struct CoreState {
  std::uint64_t taken = 0;            // places, a bit for each
  std::array<double, kAtoms> load{};  // of each atom: the sum of the stages that hold it
};

class CoreSets {
 public:
  // Resources must be nested and taken whole (problem/exclusion.h). Nullopt: more atoms or devices
  // than a state holds, as `refuses` says.
  static std::optional<CoreSets> of(const StageModel& model);
  static std::string refuses(const Problem& problem);

  struct Place {
    DeviceId device;
    std::size_t device_class = 0;
    std::size_t first_atom = 0;
    std::size_t end_atom = 0;
  };
  [[nodiscard]] std::span<const Place> places() const { return places_; }
  [[nodiscard]] std::size_t atom_count() const { return atom_width_.size(); }
  // Cores of the atom.
  [[nodiscard]] double atom_width(std::size_t atom) const { return atom_width_[atom]; }
  // Devices that hold the atom.
  [[nodiscard]] std::uint64_t holders(std::size_t atom) const { return holders_[atom]; }

  template <std::size_t kAtoms>
  void add(CoreState<kAtoms>& state, std::size_t place, double load) const;

  // Whether a place before this one is in the same state, and whatever is done here could be done
  // there.
  template <std::size_t kAtoms>
  [[nodiscard]] bool repeated(const CoreState<kAtoms>& state, std::size_t place) const;

  // Brings the state into its canonical form, and what stands at the places with it.
  template <std::size_t kAtoms>
  void canonicalise(CoreState<kAtoms>& state, std::span<std::size_t> at_places = {}) const;

 private:
  // Interchangeable sets beside each other, all of the same shape.
  struct Twins {
    std::size_t first = 0;  // place
    std::size_t count = 0;
    std::size_t places = 0;  // of each
    std::size_t first_atom = 0;
    std::size_t atoms = 0;  // of each
  };

  CoreSets() = default;
  friend class CoreSetsBuilder;
  template <std::size_t kAtoms>
  [[nodiscard]] static int compare(const CoreState<kAtoms>& state, const Twins& twins,
                                   std::size_t a, std::size_t b);
  template <std::size_t kAtoms>
  static void exchange(CoreState<kAtoms>& state, const Twins& twins, std::size_t a, std::size_t b,
                       std::span<std::size_t> at_places);

  std::vector<Place> places_;
  std::vector<double> atom_width_;
  std::vector<std::uint64_t> holders_;
  std::vector<Twins> twins_;  // inner ones first
  // By place: where it, or a set around it, is not the first of its twins.
  struct Later {
    std::size_t twins = 0;
    std::size_t number = 0;
  };
  std::vector<std::vector<Later>> later_;
};

}  // namespace placewright::throughput
