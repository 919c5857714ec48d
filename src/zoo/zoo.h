// The model zoo: real architectures that need no download, with weights grown from a seed.
//
// What is shipped of a model is its graph (OpenVINO's IR, zoo/architectures/) and every constant
// that means something: shapes, indices, masks, scalars. A weight is shipped as the mean and the
// deviation that its values are to have, chosen by layer (zoo/make_architectures.py), and its
// values come from the seed: so outputs are finite, differ from each other and from input to input,
// and mean nothing. Times and memory are those of the trained model.
//
// The same seed gives the same bytes on every machine: value i is a hash of (seed, model, i), the
// sum of whose four 16-bit parts, nearly normal, is scaled by one multiplication. About 0.2 s for
// each 100 million weights, plus the writing; the weights are in memory once. Needs no OpenVINO.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace placewright {

inline constexpr std::uint64_t kZooSeed = 1;

struct ZooTensor {
  std::string name;
  std::string type;  // "f32", "i64"
  std::vector<std::int64_t> shape;
  // Inputs of integers: the values that make sense, such as the ids of a vocabulary.
  std::int64_t least = 0;
  std::int64_t most = 0;
};

struct ZooEntry {
  std::string name;
  std::string title;
  std::size_t ops = 0;         // constants, inputs and outputs not counted
  std::size_t parameters = 0;  // values that come from the seed
  std::size_t bytes = 0;       // of the file of weights
  std::vector<ZooTensor> inputs;
  std::vector<ZooTensor> outputs;
  std::string source;
  std::string licence;
};

// An IR model: the text of NAME.xml and the bytes of NAME.bin.
struct ZooModel {
  std::string xml;
  std::string weights;
};

struct ZooFiles {
  std::string xml;
  std::string weights;
};

// The tiny ones for tests come first.
const std::vector<ZooEntry>& zoo_entries();

// Throws std::invalid_argument for a name that is not in the zoo.
ZooModel zoo_model(std::string_view name, std::uint64_t seed = kZooSeed);

// Writes NAME.xml and NAME.bin into the folder, which is made if it is not there; each file whole
// or not at all, the weights first. Throws std::invalid_argument and OutputError.
ZooFiles make_zoo_model(std::string_view name, const std::string& folder,
                        std::uint64_t seed = kZooSeed);

}  // namespace placewright
