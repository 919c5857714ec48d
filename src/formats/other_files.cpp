#include "formats/other_files.h"

#include <array>

namespace placewright {
namespace {

struct Signature {
  std::size_t place;
  std::string_view bytes;
  std::string_view meaning;
};

using namespace std::string_view_literals;

constexpr std::array kSignatures = {
    Signature{0, "PK\x03\x04"sv,
              "a ZIP archive, such as a PyTorch checkpoint (.pt): export the model to ONNX"},
    Signature{0, "\x89HDF"sv,
              "an HDF5 file, such as a Keras model (.h5): export the model to ONNX"},
    Signature{0, "GGUF"sv, "weights without a graph (GGUF): export the model to ONNX"},
    Signature{4, "TFL3"sv, "a TensorFlow Lite model: its name must end in .tflite"},
    Signature{0, "<?xml"sv, "XML: if it is an OpenVINO model, its name must end in .xml"},
    Signature{0, "<net"sv, "an OpenVINO model: its name must end in .xml"},
    Signature{0, "<!DOCTYPE"sv, "an HTML page"},
    Signature{0, "<html"sv, "an HTML page"},
    Signature{0, "\x1f\x8b"sv, "compressed by gzip: unpack it first"},
    Signature{0,
              "\xfd"
              "7zXZ"sv,
              "compressed by xz: unpack it first"},
    Signature{0, "BZh"sv, "compressed by bzip2: unpack it first"},
    Signature{0, "\x80\x02"sv,
              "a Python pickle, such as an old PyTorch checkpoint: export the model to ONNX"},
    Signature{0, "\x80\x04"sv,
              "a Python pickle, such as an old PyTorch checkpoint: export the model to ONNX"},
};

// A message that begins with a small number in its first field, the version, and goes on with texts
// or the graph.
bool looks_like_onnx(std::string_view bytes) {
  return bytes.size() > 3 && bytes[0] == '\x08' && bytes[1] > 0 && bytes[1] < 32 &&
         (bytes[2] == '\x12' || bytes[2] == '\x1a' || bytes[2] == '\x3a' || bytes[2] == '\x42');
}

// The length of a JSON text in eight bytes, then that text.
bool looks_like_safetensors(std::string_view bytes) {
  return bytes.size() > 9 && bytes[8] == '{' && bytes[7] == '\0' && bytes[6] == '\0';
}

}  // namespace

std::optional<std::string> seems_to_be(std::string_view bytes) {
  for (const Signature& signature : kSignatures) {
    if (bytes.size() < signature.place) continue;
    if (bytes.substr(signature.place).starts_with(signature.bytes)) {
      return std::string{signature.meaning};
    }
  }
  if (looks_like_onnx(bytes)) return "an ONNX model: its name must end in .onnx";
  if (looks_like_safetensors(bytes)) {
    return "weights without a graph (safetensors): export the model to ONNX";
  }
  return std::nullopt;
}

}  // namespace placewright
