// Memory of this process.

#pragma once

namespace placewright {

// Bytes that are in memory.
double resident_bytes();

// Gives back to the system what nobody uses any more.
void give_back_memory();

}  // namespace placewright
