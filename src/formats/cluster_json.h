// The part that cluster files and problem files share: kinds, devices, interconnect.

#pragma once

#include <string>

#include "formats/cluster_file.h"
#include "formats/json.h"

namespace placewright {

// Tables by pairs of devices grow with the square: this many devices take about 200 MB.
inline constexpr std::size_t kMostDevices = 2048;

// Throws where a file's list of devices is longer.
void check_device_count(JsonValue devices);

// Reads the keys `kinds`, `devices` and `interconnect` of an object.
Cluster cluster_from_json(JsonValue object, UnknownKeys& unknown);

// Appends these keys, one record per line, without the braces around them.
void append_cluster(std::string& text, const Cluster& cluster);

// Our own files say what they are: {"placewright": kind, "version": 1, ...}. Throws otherwise.
void check_header(JsonValue root, std::string_view kind);

// "'cpu', 'gpu' and 'npu'"
std::string listed(const std::vector<std::string>& names);

}  // namespace placewright
