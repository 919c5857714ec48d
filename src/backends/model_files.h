// Model files as a command names them: paths, and shapes for the inputs that leave theirs open.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/runtime.h"

namespace placewright {

struct ModelFile {
  std::string path;
  std::vector<std::string> shapes;  // "image=1x3x224x224"; see shapes_named
  Precision precision = Precision::by_default;
};

// "image=1x3x224x224", or "1x3x224x224" for the only input. Throws std::invalid_argument.
Shapes shapes_named(const std::vector<std::string>& texts);

// Gives each shape to its model. With several models a shape begins with its model's name or path:
// "bert:ids=1x128"; with one it may. Throws std::invalid_argument for a shape that cannot be read
// or names none of the models.
std::vector<ModelFile> model_files(const std::vector<std::string>& paths,
                                   const std::vector<std::string>& shapes,
                                   Precision precision = Precision::by_default);

// What `Runtime::read` and `Runtime::signature` give. Both go through here: the file is looked at
// before a library that may trust it gets it. Throws InputError also for a pipe or a device, and
// for an ONNX model with weights outside its folder.
std::unique_ptr<NeuralModel> read_model(const Runtime& runtime, const ModelFile& file);
ModelSignature signature_of(const Runtime& runtime, const ModelFile& file);

// Gives each input with an open shape a usual one (usual_shapes.h). A sentence says what was
// chosen and how to choose otherwise; empty where nothing was open.
std::string fix_open_shapes(std::vector<ModelFile>& files);

// Throws InputError if an input of any of the files has an open shape still.
void require_fixed_shapes(const std::vector<ModelFile>& files);

// What a model is called that came from this file.
std::string model_name_of(const std::string& path);

}  // namespace placewright
