// What this program offers its planners: files that their options name, and runs on real devices.

#pragma once

#include <atomic>

#include "planners/learned/learned.h"

namespace placewright::cli {

FrontEnd front_end(const std::atomic<bool>* interrupted);

}  // namespace placewright::cli
