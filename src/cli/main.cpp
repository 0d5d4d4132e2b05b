#include "cli/commands.h"

int main(int argc, char** argv) { return limber::run_command_line(argc, argv); }
