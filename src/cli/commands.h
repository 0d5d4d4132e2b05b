// The program `limber`: one file per command, each with a function that declares it.
#pragma once

#include <string>

#include "cli/arguments.h"

namespace limber {

void add_inspect(CommandLine& line);
void add_check(CommandLine& line);
void add_run(CommandLine& line);
void add_profile(CommandLine& line);
void add_bench(CommandLine& line);
void add_export(CommandLine& line);
void add_predict(CommandLine& line);
void add_train(CommandLine& line);
void add_eval(CommandLine& line);
void add_adapt(CommandLine& line);
void add_apps(CommandLine& line);
void add_elastify(CommandLine& line);
void add_search(CommandLine& line);
void add_exits_command(CommandLine& line);
void add_report(CommandLine& line);
void add_compare(CommandLine& line);
void add_doctor(CommandLine& line);
void add_port(CommandLine& line);
void add_serve(CommandLine& line);
void add_device(CommandLine& line);
void add_demo(CommandLine& line);
void add_loadgen(CommandLine& line);

}  // namespace limber
