// The program: verbs, and one sentence with the right exit code for whatever goes wrong.

#pragma once

namespace placewright::cli {

int run_program(int argc, char** argv);

}  // namespace placewright::cli
