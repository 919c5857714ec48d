#include "formats/training_file.h"
#include "reading.h"

// A plan holds its problem; a text that is no plan may be a problem.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  const std::string_view text = fuzzing::text_of(data, size);
  try {
    const TrainingFile file = read_training_plan(text, "fuzzed");
    const TrainingFile again =
        read_training_plan(write_training_plan(file.problem, *file.answer), "written");
    fuzzing::require(again.answer->plan == file.answer->plan);
  } catch (const InputError&) {
  }
  try {
    const TrainingFile file = read_training_problem(text, "fuzzed");
    const std::string written = write_training_problem(file.problem);
    fuzzing::require(write_training_problem(read_training_problem(written, "written").problem) ==
                     written);
  } catch (const InputError&) {
  }
  return 0;
}
