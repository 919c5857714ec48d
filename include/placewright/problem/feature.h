// What a problem may ask beyond times of ops and links. A planner, bound or contraction declares
// the features that it knows; it is not used for a problem with others. So a new rule is a feature
// here, and who does not declare it needs no change.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "placewright/problem/spelling.h"

namespace placewright {

enum class Feature {
  sharing,
  several_spaces,
  lanes,
  peak_memory,
  free_sets,
  joint_sets,
  convex_sets,
  duplex,
  replicas,
  training,
  phased_training,
  cut_overheads,
  transfer_tables,
  pins,
  colocation,
  shared_weights,
  several_models,
};
// As the end of the sentence "it does not plan for ...".
template <>
inline constexpr auto kSpellings<Feature> = std::to_array<Spelling<Feature>>({
    {Feature::sharing, "shared resources or memory spaces"},
    {Feature::several_spaces, "several memory spaces"},
    {Feature::lanes, "devices with several lanes"},
    {Feature::peak_memory, "peak memory"},
    {Feature::free_sets, "sets of ops that need not be contiguous (--contiguity none)"},
    {Feature::joint_sets, "jointly contiguous sets of ops (--contiguity joint)"},
    {Feature::convex_sets, "sets of ops that are contiguous by device (--contiguity per-device)"},
    {Feature::duplex, "duplex transfers"},
    {Feature::replicas, "replicas"},
    {Feature::training, "training"},
    {Feature::phased_training, "phased training"},
    {Feature::cut_overheads, "the overheads of cuts"},
    {Feature::transfer_tables, "tables of transfer times"},
    {Feature::pins, "pinned ops"},
    {Feature::colocation, "colocation"},
    {Feature::shared_weights, "shared weights"},
    {Feature::several_models, "several models"},
});

class Features {
 public:
  constexpr Features() = default;
  constexpr Features(std::initializer_list<Feature> features) {
    for (const Feature feature : features) bits_ |= bit(feature);
  }

  [[nodiscard]] constexpr bool has(Feature feature) const { return (bits_ & bit(feature)) != 0; }
  [[nodiscard]] constexpr bool covers(Features other) const { return (other - *this).empty(); }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }

  constexpr Features& add_if(bool asked, Feature feature) {
    if (asked) bits_ |= bit(feature);
    return *this;
  }
  friend constexpr Features operator+(Features a, Features b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr Features operator-(Features a, Features b) {
    a.bits_ &= ~b.bits_;
    return a;
  }

 private:
  static constexpr std::uint32_t bit(Feature feature) {
    return std::uint32_t{1} << static_cast<unsigned>(feature);
  }

  std::uint32_t bits_ = 0;
};

// What nearly all planners know. A new feature is in none of these until its planners declare it.
inline constexpr Features kCommonFeatures{Feature::several_spaces, Feature::lanes,
                                          Feature::peak_memory,    Feature::free_sets,
                                          Feature::joint_sets,     Feature::convex_sets,
                                          Feature::duplex,         Feature::replicas,
                                          Feature::training,       Feature::phased_training,
                                          Feature::cut_overheads,  Feature::transfer_tables,
                                          Feature::pins,           Feature::colocation,
                                          Feature::shared_weights, Feature::several_models};
inline constexpr Features kCommonAndSharing = kCommonFeatures + Features{Feature::sharing};
inline constexpr Features kEveryFeature = [] {
  Features every;
  for (const auto& spelling : kSpellings<Feature>) every.add_if(true, spelling.value);
  return every;
}();

// "pinned ops or shared weights"
std::string text_of(Features features);

}  // namespace placewright
