// What a model computes in, where it was written in f32. Ops of whole numbers, and what a file has
// quantized, stay as they are.

#pragma once

#include "placewright/problem/spelling.h"

namespace placewright {

enum class Precision { by_default, f32, bf16, f16 };
template <>
inline constexpr auto kSpellings<Precision> = std::to_array<Spelling<Precision>>({
    {Precision::by_default, "default",
     "what the device's backend chooses: bf16 or f16 where it is fast"},
    {Precision::f32, "f32", "single precision"},
    {Precision::bf16, "bf16", "the range of f32 with 8 bits of precision"},
    {Precision::f16, "f16", "half precision"},
});

}  // namespace placewright
