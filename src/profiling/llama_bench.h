// What hosts take for the layers of a model, measured with `llama-bench` of llama.cpp, before the
// model is loaded anywhere.
//
// A probe is the model with its first few layers. With T(n) the seconds of a token of a probe of n
// layers on one host, and k < m:
//
//   layer  (T(m) - T(k)) / (m - k)
//   rest   T(m) - m * layer: the head, the host's link, the program
//   entry  T of a probe whose first layers are on this host and whose last ones are on another,
//          less the layers of both and the rest of the other; negative where a host that rests
//          between its turns is faster than one that never does
//   experts_here  of T(m) with all experts on this machine
//
// A probe has at most `probe_layers` layers and fits the host's memory. The times are medians.

#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "problem/layer_split.h"

namespace placewright {

struct LlamaBench {
  std::string program = "llama-bench";
  std::vector<std::string> arguments = {};  // more of them, as "-t 4"
  int tokens = 32;
  int repeats = 3;
  std::size_t probe_layers = 8;
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// llama.cpp did not do what it was asked to; the message has the end of its own.
class LlamaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Seconds of a token. `arguments` are those of formats/llama_arguments.h for llama-bench.
double token_time(const LlamaBench& bench, const std::vector<std::string>& arguments);

// Hosts that state no memory get what their server reports as free.
void ask_for_memory(const LlamaBench& bench, std::vector<ServingHost>& hosts);

// Fills the times of the hosts. Throws LlamaError, InputError, or std::invalid_argument for a host
// without memory for the head and two layers.
void measure_hosts(const LlamaBench& bench, const GgufFile& file, const LayeredModel& model,
                   std::vector<ServingHost>& hosts);

}  // namespace placewright
