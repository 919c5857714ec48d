#include "cli/input_options.h"

#include <stdexcept>

#include <fmt/format.h>

#include "backends/inputs.h"
#include "cli/exit_code.h"
#include "cli/repeated_option.h"
#include "formats/array_files.h"

namespace placewright::cli {
namespace {

// All arrays of a .npz file that is given without a name, or the array of one file.
NamedArrays arrays_in(const std::string& text) {
  const std::size_t split = text.find('=');
  if (split != std::string::npos)
    return {{text.substr(0, split), read_array(text.substr(split + 1))}};
  if (text.ends_with(".npz")) return read_arrays(text);
  return {{"", read_array(text)}};
}

}  // namespace

void InputOptions::add_to(CLI::App& verb) {
  add_repeated(verb, "--input", texts, "[MODEL:][INPUT=]FILE",
               "Read an input from a .npy or .npz file or an image: image=cat.png, or "
               "MODEL:image=cat.png with several models; repeatable; default: random values")
      ->group("Run");
}

std::vector<NamedArrays> InputOptions::read(
    const Problem& problem, const std::vector<std::unique_ptr<NeuralModel>>& models) const {
  NamedArrays given;
  for (const std::string& text : texts) {
    for (auto& [name, array] : arrays_in(text)) {
      if (!given.emplace(name, std::move(array)).second) {
        throw UsageError(fmt::format("--input gives '{}' twice", name));
      }
    }
  }
  try {
    std::vector<NamedArrays> inputs = by_model(model_names(problem), given);
    for (std::size_t model = 0; model < models.size(); ++model) {
      inputs[model] = fitted_inputs(models[model]->graph(), inputs[model]);
    }
    return inputs;
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--input: {}", error.what()));
  }
}

}  // namespace placewright::cli
