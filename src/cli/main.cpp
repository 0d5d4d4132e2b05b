#include "cli/commands.h"

int main(int argc, char** argv) {
  limber::CommandLine line;
  const auto add = [&](const char* heading, std::initializer_list<void (*)(limber::CommandLine&)> commands) {
    line.group(heading);
    for (auto* command : commands) command(line);
  };
  add("First look", {limber::add_demo, limber::add_doctor, limber::add_device});
  add("Run and measure a model",
      {limber::add_inspect, limber::add_check, limber::add_run, limber::add_predict, limber::add_profile,
       limber::add_bench, limber::add_compare, limber::add_export});
  add("Train, all of it or what is worth it", {limber::add_train, limber::add_eval, limber::add_report});
  add("Make it change its shape", {limber::add_elastify, limber::add_search, limber::add_exits_command});
  add("Follow a drifting world", {limber::add_adapt, limber::add_apps});
  add("Make it fit many devices", {limber::add_port});
  add("Serve it", {limber::add_serve, limber::add_loadgen});
  return line.run(argc, argv);
}
