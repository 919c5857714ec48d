// Arrays in files: NumPy's .npy and .npz, and images (PNG, JPEG, BMP, …).
//
// An image becomes an array of bytes, height x width x 3. Files that numpy.savez_compressed wrote
// are read too; big-endian, structured and column-major arrays are refused.

#pragma once

#include <string>
#include <string_view>

#include "formats/array.h"

namespace placewright {

// The array of a .npy file, of the only array in a .npz file, or of an image, by the ending of the
// path. Throws InputError.
Array read_array(const std::string& path);

// All arrays of a .npz file. Throws InputError.
NamedArrays read_arrays(const std::string& path);

// The same from the bytes of a .npy or .npz file; `origin` is what messages call it.
Array parse_npy(std::string_view bytes, const std::string& origin);
NamedArrays parse_npz(std::string_view bytes, const std::string& origin);

// Whether the values of an array of this shape and type of elements take that many bytes; false if
// the type is not known.
bool fits(const Array& array, std::size_t bytes);

// The bytes of a .npy file. Throws std::invalid_argument for elements that NumPy does not have.
std::string npy_bytes(const Array& array);

// The array as an input of this type and shape. Numbers are converted if none of them is out of
// range; a leading dimension of 1 may be missing. An image (bytes, height x width x 3) for an input
// of 1x3xHxW or 1xHxWx3 is resized, put in the order of dimensions, and divided by 255 if the input
// is real. Throws std::invalid_argument with the reason: "it takes 1x8, not 1x9"; also for an array
// whose bytes are not those of its shape.
Array as_input(const Array& array, const std::string& element,
               const std::vector<std::size_t>& shape);

}  // namespace placewright
