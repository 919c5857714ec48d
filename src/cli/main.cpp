#include "cli/program.h"

int main(int argc, char** argv) {
  return placewright::cli::run_program(argc, argv);
}
