// The datatypes of the protocol that JSON holds, as types of C++.

#pragma once

#include <cstdint>
#include <string_view>

namespace placewright {

// Calls `use` with a value of the type; false for one that JSON does not hold.
template <class Use>
bool with_number_type(std::string_view datatype, const Use& use) {
  if (datatype == "BOOL" || datatype == "UINT8") return use(std::uint8_t{}), true;
  if (datatype == "UINT16") return use(std::uint16_t{}), true;
  if (datatype == "UINT32") return use(std::uint32_t{}), true;
  if (datatype == "UINT64") return use(std::uint64_t{}), true;
  if (datatype == "INT8") return use(std::int8_t{}), true;
  if (datatype == "INT16") return use(std::int16_t{}), true;
  if (datatype == "INT32") return use(std::int32_t{}), true;
  if (datatype == "INT64") return use(std::int64_t{}), true;
  if (datatype == "FP32") return use(float{}), true;
  if (datatype == "FP64") return use(double{}), true;
  return false;
}

}  // namespace placewright
