// The plugin's one exported function; see src/openvino/loader.cpp.

#include "openvino/plugin/core_runtime.h"

extern "C" __attribute__((visibility("default"))) const placewright::openvino::Runtime*
placewright_openvino_runtime() {
  static const placewright::openvino::CoreRuntime runtime;
  return &runtime;
}
