// A profile as people and programs read it.

#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "profiling/profile.h"

namespace placewright::cli {

std::string profile_text(const Profile& profile);
nlohmann::ordered_json profile_json(const Profile& profile);

}  // namespace placewright::cli
