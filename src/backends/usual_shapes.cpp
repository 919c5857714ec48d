#include "backends/usual_shapes.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/onnx_inputs.h"

namespace placewright {
namespace {

constexpr long kUsualImage = 224;
constexpr long kUsualSequence = 128;
constexpr long kColours = 3;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return text;
}

bool is_channels(long size) {
  return size == 1 || size == kColours || size == 4;
}

// The axes of a model's inputs, one input after the other.
class Axes {
 public:
  explicit Axes(const OnnxInputSizes& stated) : stated_(stated) {}

  UsualShape shape_of(const PortSignature& input) {
    std::vector<long> sizes = *input.shape;
    const auto named = stated_.axes.find(input.name);
    std::vector<std::string> names(sizes.size());
    if (named != stated_.axes.end() && named->second.size() == sizes.size()) names = named->second;
    UsualShape usual{.input = input.name, .declared = shape_text(input), .shape = {}};
    const std::size_t channels = channels_of(sizes);
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] != PortSignature::kOpen) continue;
      const bool of_image = channels != kNoImage && axis > 0;
      if (of_image && axis != channels) {
        sizes[axis] = image_size(axis == (channels == 1 ? 2U : 1U));
        usual.stated = usual.stated || stated_.image.has_value();
      } else {
        sizes[axis] = of_image ? kColours : size_of(lower(names[axis]), axis);
      }
    }
    usual.shape = fmt::format("{}", fmt::join(sizes, "x"));
    return usual;
  }

 private:
  static constexpr std::size_t kNoImage = 0;

  // The axis of an image's channels.
  static std::size_t channels_of(const std::vector<long>& sizes) {
    if (sizes.size() != 4) return kNoImage;
    if (is_channels(sizes[1])) return 1;
    if (is_channels(sizes[3])) return 3;
    const bool all_open = std::ranges::count(sizes, PortSignature::kOpen) == 4;
    return all_open ? 1 : kNoImage;
  }

  [[nodiscard]] long image_size(bool height) const {
    if (!stated_.image) return kUsualImage;
    return height ? stated_.image->height : stated_.image->width;
  }

  long size_of(const std::string& name, std::size_t axis) {
    if (name.find("batch") != std::string::npos) return 1;
    const bool sequence = name.find("seq") != std::string::npos ||
                          name.find("length") != std::string::npos || name == "tokens";
    if (axis == 0 && !sequence) return 1;
    long sum = 0;
    for (std::string_view rest = name; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find('+'));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
      long number = 0;
      const std::size_t begin = std::min(part.find_first_not_of(' '), part.size());
      const auto [end, error] =
          std::from_chars(part.data() + begin, part.data() + part.size(), number);
      sum += error == std::errc{} ? number : kUsualSequence;
    }
    return std::max(sum, name.empty() ? kUsualSequence : 1);
  }

  const OnnxInputSizes& stated_;
};

}  // namespace

std::vector<UsualShape> usual_shapes(const std::string& path, const ModelSignature& signature) {
  std::vector<const PortSignature*> open;
  for (const PortSignature& input : signature.inputs) {
    if (!input.shape) return {};
    if (input.is_open()) open.push_back(&input);
  }
  if (open.empty()) return {};
  const OnnxInputSizes stated = std::filesystem::path(path).extension() == ".onnx"
                                    ? onnx_input_sizes(path)
                                    : OnnxInputSizes{};
  Axes axes(stated);
  std::vector<UsualShape> shapes;
  for (const PortSignature* input : open) shapes.push_back(axes.shape_of(*input));
  return shapes;
}

}  // namespace placewright
