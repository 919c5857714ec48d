#include "mutation.h"

#include <cstdio>
#include <cstdlib>

namespace mutation {
namespace {

int chosen_by_environment() {
  const char* const number = std::getenv("PLACEWRIGHT_MUTANT");
  return number == nullptr ? -1 : std::atoi(number);
}

// At the end, the numbers of the mutants that the process has come by.
struct Report {
  ~Report() {
    const char* const path = std::getenv("PLACEWRIGHT_MUTANTS_REACHED");
    std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
    if (file == nullptr) return;
    for (int mutant = 0; mutant < MUTANTS; ++mutant) {
      if (reached[mutant] != 0) std::fprintf(file, "%d\n", mutant);
    }
    std::fclose(file);
  }
} report;

}  // namespace

const int chosen = chosen_by_environment();
unsigned char reached[MUTANTS + 1];

}  // namespace mutation
