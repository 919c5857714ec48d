#include "formats/catalogue.h"

#include <algorithm>

#include "formats/cluster_json.h"

namespace placewright {

template <>
inline constexpr auto kFields<CatalogueDevice> =
    std::tuple{required("name", &CatalogueDevice::name),
               required("class", &CatalogueDevice::device_class),
               required("memory", &CatalogueDevice::memory),
               required(
                   "flops", [](auto& device) -> auto& { return device.rates.flops; }),
               required(
                   "bandwidth", [](auto& device) -> auto& { return device.rates.bandwidth; }),
               required(
                   "launch", [](auto& device) -> auto& { return device.rates.launch; }),
               optional(
                   "half_flops", [](auto& device) -> auto& { return device.rates.half_flops; }),
               required("source", &CatalogueDevice::source),
               optional("unverified", &CatalogueDevice::unverified)};

template <>
inline constexpr auto kFields<CatalogueLink> = std::tuple{
    required("name", &CatalogueLink::name), required("latency", &CatalogueLink::latency),
    required("bandwidth", &CatalogueLink::bandwidth), required("source", &CatalogueLink::source),
    optional("unverified", &CatalogueLink::unverified)};

template <>
inline constexpr auto kFields<Catalogue> =
    std::tuple{required("devices", &Catalogue::devices), required("links", &Catalogue::links)};

namespace {

struct CatalogueReading {
  UnknownKeys unknown;

  void read(JsonValue json, double& value) const { value = amount_in(json, TimeUnit::seconds); }
};

template <class Entry>
const Entry* entry_named(const std::vector<Entry>& entries, std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace

double PeakRates::estimated_seconds(const OpWork& work) const {
  constexpr double kMatrixShare = 0.5;
  constexpr double kOtherShare = 0.2;
  constexpr double kBandwidthShare = 0.7;
  const bool has_units = work.of_matrices && work.in_half && half_flops > 0;
  const double peak = has_units ? half_flops : flops;
  const double share = work.of_matrices ? kMatrixShare : kOtherShare;
  return std::max(work.flops / (share * peak), work.bytes / (kBandwidthShare * bandwidth)) + launch;
}

const CatalogueDevice* Catalogue::device(std::string_view name) const {
  return entry_named(devices, name);
}

const CatalogueLink* Catalogue::link(std::string_view name) const {
  return entry_named(links, name);
}

const Catalogue& catalogue() {
  static const Catalogue known = [] {
    const JsonDocument document(catalogue_text(), "catalogue.json");
    check_header(document.root(), "catalogue");
    Catalogue read;
    CatalogueReading context;
    read_fields(document.root(), read, kFields<Catalogue>, context);
    return read;
  }();
  return known;
}

}  // namespace placewright
