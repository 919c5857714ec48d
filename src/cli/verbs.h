// One function for each verb of the program: it adds the verb's options and help, and what to do
// when the verb is chosen.

#pragma once

#include <functional>

#include <CLI/App.hpp>

#include "cli/exit_code.h"

namespace placewright::cli {

// What the chosen verb does once the whole command line has been read.
using Action = std::function<ExitCode()>;

void add_plan(CLI::App& program, Action& action);
void add_compare(CLI::App& program, Action& action);
void add_check(CLI::App& program, Action& action);
void add_simulate(CLI::App& program, Action& action);
void add_run(CLI::App& program, Action& action);
void add_report(CLI::App& program, Action& action);
void add_explain(CLI::App& program, Action& action);
void add_what_if(CLI::App& program, Action& action);
void add_export(CLI::App& program, Action& action);
void add_affinity(CLI::App& program, Action& action);
void add_online(CLI::App& program, Action& action);
void add_serve(CLI::App& program, Action& action);
void add_top(CLI::App& program, Action& action);
void add_fleet(CLI::App& program, Action& action);
void add_import(CLI::App& program, Action& action);
void add_devices(CLI::App& program, Action& action);
void add_profile(CLI::App& program, Action& action);
void add_tune(CLI::App& program, Action& action);
void add_train(CLI::App& program, Action& action);
void add_llama(CLI::App& program, Action& action);
void add_info(CLI::App& program, Action& action);
void add_generate(CLI::App& program, Action& action);
void add_zoo(CLI::App& program, Action& action);
void add_planners(CLI::App& program, Action& action);
void add_schemas(CLI::App& program, Action& action);
void add_manual(CLI::App& program, Action& action);
void add_completion(CLI::App& program, Action& action);

}  // namespace placewright::cli
