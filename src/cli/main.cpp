#include "cli/commands.h"

int main(int argc, char** argv) {
  limber::CommandLine line;
  for (auto* add : {limber::add_inspect, limber::add_check, limber::add_run, limber::add_profile,
                    limber::add_bench, limber::add_export, limber::add_train, limber::add_eval}) {
    add(line);
  }
  return line.run(argc, argv);
}
