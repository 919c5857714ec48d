#include "planners/learned/policy.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

namespace placewright::learned {
namespace {

constexpr std::string_view kMagic = "placewright policy\n";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kLargestRank = 8;
// A thousand times what training comes to. Sums of products of much larger ones overflow.
constexpr float kLargestWeight = 1e4F;

static_assert(std::endian::native == std::endian::little,
              "weights are stored as they are in memory");

std::uint64_t digest(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  return hash;
}

template <class Number>
void put(std::string& out, Number number) {
  std::array<char, sizeof(Number)> bytes;
  std::memcpy(bytes.data(), &number, sizeof(Number));
  out.append(bytes.data(), bytes.size());
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

void put_tensors(std::string& out, const Weights& tensors) {
  put(out, static_cast<std::uint32_t>(tensors.size()));
  for (const NamedTensor& tensor : tensors) {
    put_text(out, tensor.name);
    put(out, static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::int64_t extent : tensor.shape) put(out, static_cast<std::uint64_t>(extent));
    for (const float value : tensor.values) put(out, value);
  }
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof(Number)).data(), sizeof(Number));
    return value;
  }

  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) throw std::invalid_argument("the policy ends too early");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  std::string text() { return std::string{take(number<std::uint32_t>())}; }

  NamedTensor tensor() {
    NamedTensor tensor;
    tensor.name = text();
    const auto rank = number<std::uint32_t>();
    if (rank > kLargestRank) {
      throw std::invalid_argument(
          fmt::format("the tensor '{}' has {} dimensions", tensor.name, rank));
    }
    std::uint64_t count = 1;
    for (std::uint32_t i = 0; i < rank; ++i) {
      const auto extent = number<std::uint64_t>();
      // Also keeps the product from overflowing.
      if (extent > bytes_.size() || count * extent > bytes_.size()) {
        throw std::invalid_argument(
            fmt::format("the tensor '{}' is larger than the policy", tensor.name));
      }
      count *= extent;
      tensor.shape.push_back(static_cast<std::int64_t>(extent));
    }
    const std::string_view raw = take(count * sizeof(float));
    tensor.values.resize(count);
    if (count > 0) std::memcpy(tensor.values.data(), raw.data(), raw.size());
    for (const float value : tensor.values) {
      if (!std::isfinite(value)) {
        throw std::invalid_argument(
            fmt::format("the tensor '{}' holds a value that is not finite", tensor.name));
      }
    }
    return tensor;
  }

  Weights tensors() {
    Weights tensors;
    const auto count = number<std::uint32_t>();
    for (std::uint32_t i = 0; i < count; ++i) tensors.push_back(tensor());
    return tensors;
  }

  [[nodiscard]] std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

const std::string& fact(const Policy& policy, const std::string& key) {
  const auto found = policy.facts.find(key);
  if (found == policy.facts.end()) {
    throw std::invalid_argument(fmt::format("the policy does not state its '{}'", key));
  }
  return found->second;
}

template <class Enum>
Enum value_of(const Policy& policy, const std::string& key) {
  const std::optional<Enum> value = value_named<Enum>(fact(policy, key));
  if (!value) {
    throw std::invalid_argument(
        fmt::format("the policy has an unknown {} '{}'", key, fact(policy, key)));
  }
  return *value;
}

void require_modest(const Weights& weights) {
  for (const NamedTensor& tensor : weights) {
    for (const float value : tensor.values) {
      if (std::abs(value) <= kLargestWeight) continue;
      throw std::invalid_argument(fmt::format("the tensor '{}' holds {:g}, expected at most {:g}",
                                              tensor.name, value, kLargestWeight));
    }
  }
}

bool flag(const Policy& policy, const std::string& key) {
  const std::string& text = fact(policy, key);
  if (text != "true" && text != "false") {
    throw std::invalid_argument(fmt::format("the policy's '{}' is '{}'", key, text));
  }
  return text == "true";
}

std::int64_t integer(const Policy& policy, const std::string& key, std::int64_t lower,
                     std::int64_t upper) {
  const std::string& text = fact(policy, key);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < lower || value > upper) {
    throw std::invalid_argument(fmt::format("the policy's '{}' is '{}'", key, text));
  }
  return value;
}

}  // namespace

std::string encode(const Policy& policy) {
  std::string body;
  put(body, static_cast<std::uint32_t>(policy.facts.size()));
  for (const auto& [key, value] : policy.facts) {
    put_text(body, key);
    put_text(body, value);
  }
  put_tensors(body, policy.weights);
  put_tensors(body, policy.training_state);
  std::string out{kMagic};
  put(out, kVersion);
  put(out, static_cast<std::uint64_t>(body.size()));
  put(out, digest(body));
  return out + body;
}

Policy decode(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) throw std::invalid_argument("this is not a Placewright policy");
  Reader header(bytes.substr(kMagic.size()));
  const auto version = header.number<std::uint32_t>();
  if (version != kVersion) {
    throw std::invalid_argument(
        fmt::format("the policy has version {}, this program reads {}", version, kVersion));
  }
  const auto length = header.number<std::uint64_t>();
  const auto expected = header.number<std::uint64_t>();
  const std::string_view body = header.rest();
  if (length != body.size() || digest(body) != expected) {
    throw std::invalid_argument("the policy is damaged: its digest does not agree");
  }
  Reader reader(body);
  Policy policy;
  const auto facts = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < facts; ++i) {
    std::string key = reader.text();
    policy.facts[std::move(key)] = reader.text();
  }
  policy.weights = reader.tensors();
  require_modest(policy.weights);
  policy.training_state = reader.tensors();
  if (!reader.rest().empty()) throw std::invalid_argument("the policy has bytes after its end");
  return policy;
}

void write_architecture(const LearnerOptions& options, const PlacementGraphOptions& features,
                        Policy& policy) {
  const auto text = [](bool value) { return value ? "true" : "false"; };
  policy.facts["network"] = name_of(options.network);
  policy.facts["encoder"] = name_of(options.encoder);
  policy.facts["channels"] = std::to_string(options.channels);
  policy.facts["parse"] = text(options.parse);
  policy.facts["coarsen"] = name_of(features.coarsen);
  policy.facts["structure"] = text(features.structure);
  policy.facts["costs"] = text(features.costs);
  policy.facts["features"] = std::to_string(kNodeFeatures);
  policy.facts["pair features"] = std::to_string(kPairFeatures);
}

void architecture_of(const Policy& policy, LearnerOptions& options,
                     PlacementGraphOptions& features) {
  options.network = value_of<Network>(policy, "network");
  options.encoder = value_of<Encoder>(policy, "encoder");
  options.channels = integer(policy, "channels", 4, 1024);
  options.parse = flag(policy, "parse");
  options.any_devices = true;
  features.coarsen = value_of<Joining>(policy, "coarsen");
  features.structure = flag(policy, "structure");
  features.costs = flag(policy, "costs");
  if (fact(policy, "features") != std::to_string(kNodeFeatures) ||
      fact(policy, "pair features") != std::to_string(kPairFeatures)) {
    throw std::invalid_argument("the policy was trained on other features than this program makes");
  }
}

}  // namespace placewright::learned
