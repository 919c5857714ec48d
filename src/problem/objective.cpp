#include "problem/objective.h"

#include <array>
#include <utility>

namespace placewright {
namespace {

template <class Enum, std::size_t N>
using Spellings = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Spellings<Objective, 4> kObjectives{{{Objective::throughput, "throughput"},
                                               {Objective::call_latency, "call-latency"},
                                               {Objective::latency, "latency"},
                                               {Objective::total_completion, "total-completion"}}};
constexpr Spellings<TransferMode, 3> kTransferModes{{{TransferMode::sequential, "sequential"},
                                                     {TransferMode::overlapped, "overlapped"},
                                                     {TransferMode::duplex, "duplex"}}};
constexpr Spellings<TrainingMode, 2> kTrainingModes{
    {{TrainingMode::interleaved, "interleaved"}, {TrainingMode::phased, "phased"}}};
constexpr Spellings<Contiguity, 3> kContiguities{{{Contiguity::none, "none"},
                                                  {Contiguity::joint, "joint"},
                                                  {Contiguity::per_device, "per-device"}}};
constexpr Spellings<MemoryModel, 2> kMemoryModels{
    {{MemoryModel::resident, "resident"}, {MemoryModel::peak, "peak"}}};
constexpr Spellings<TimeUnit, 4> kTimeUnits{{{TimeUnit::none, "none"},
                                             {TimeUnit::seconds, "s"},
                                             {TimeUnit::milliseconds, "ms"},
                                             {TimeUnit::microseconds, "us"}}};

template <class Enum, std::size_t N>
constexpr std::string_view spell(const Spellings<Enum, N>& spellings, Enum value) {
  for (const auto& [candidate, name] : spellings) {
    if (candidate == value) return name;
  }
  return {};
}

template <class Enum, std::size_t N>
constexpr std::optional<Enum> find(const Spellings<Enum, N>& spellings, std::string_view text) {
  for (const auto& [candidate, name] : spellings) {
    if (name == text) return candidate;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Objective objective) {
  return spell(kObjectives, objective);
}
std::string_view name_of(TransferMode mode) {
  return spell(kTransferModes, mode);
}
std::string_view name_of(TrainingMode mode) {
  return spell(kTrainingModes, mode);
}
std::string_view name_of(Contiguity contiguity) {
  return spell(kContiguities, contiguity);
}
std::string_view name_of(MemoryModel memory) {
  return spell(kMemoryModels, memory);
}
std::string_view name_of(TimeUnit unit) {
  return spell(kTimeUnits, unit);
}

std::optional<Objective> objective_named(std::string_view name) {
  return find(kObjectives, name);
}
std::optional<TransferMode> transfer_mode_named(std::string_view name) {
  return find(kTransferModes, name);
}
std::optional<TrainingMode> training_mode_named(std::string_view name) {
  return find(kTrainingModes, name);
}
std::optional<Contiguity> contiguity_named(std::string_view name) {
  return find(kContiguities, name);
}
std::optional<MemoryModel> memory_model_named(std::string_view name) {
  return find(kMemoryModels, name);
}
std::optional<TimeUnit> time_unit_named(std::string_view name) {
  return find(kTimeUnits, name);
}

}  // namespace placewright
