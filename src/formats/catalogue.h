// The catalogue: devices and links that one can buy, by what their makers publish.
//
// It serves to estimate times on devices that are not at hand: a cluster file names an entry as a
// device's kind or as a link. The figures are peaks, of which ops reach a part (estimated_seconds).
// catalogue.json beside this file is the data, with the source of each entry; `unverified` marks
// those whose source was not opened when the entry was written.

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace placewright {

// What an op does. `in_half`: with numbers of 16 bits.
struct OpWork {
  double flops = 0;
  double bytes = 0;  // that it reads and writes
  bool of_matrices = false;
  bool in_half = false;
};

// What a kind of device can do at most. Flops are of f32, without units for matrices.
struct PeakRates {
  double flops = 0;       // per second
  double bandwidth = 0;   // of its memory, bytes per second
  double launch = 0;      // seconds before an op starts
  double half_flops = 0;  // of products of matrices in 16 bits, with such units; 0: as in f32

  // The time of an op in seconds, by the roofline: the longer of flops / speed and bytes /
  // bandwidth, and the launch. Products of matrices and convolutions are taken to reach half of the
  // flops, other ops a fifth, all of them 70 % of the bandwidth; assumed, not fitted to
  // measurements.
  [[nodiscard]] double estimated_seconds(const OpWork& work) const;

  friend bool operator==(const PeakRates&, const PeakRates&) = default;
};

struct CatalogueDevice {
  std::string name;
  std::string device_class;  // "gpu", "npu", "cpu"
  double memory = 0;         // bytes
  PeakRates rates;
  std::string source;
  bool unverified = false;
};

struct CatalogueLink {
  std::string name;
  double latency = 0;    // seconds
  double bandwidth = 0;  // bytes per second
  std::string source;
  bool unverified = false;
};

struct Catalogue {
  std::vector<CatalogueDevice> devices;
  std::vector<CatalogueLink> links;

  // Nullptr if there is none of this name.
  [[nodiscard]] const CatalogueDevice* device(std::string_view name) const;
  [[nodiscard]] const CatalogueLink* link(std::string_view name) const;
};

// The one in the program.
const Catalogue& catalogue();

// The text of catalogue.json (catalogue_text.cpp.in).
std::string_view catalogue_text();

}  // namespace placewright
