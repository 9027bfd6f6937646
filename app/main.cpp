// The `antichain` program: one subcommand, or one sentence that says what is wrong.
#include "app/run.h"

int main(int argc, char** argv) { return antichain::run(argc, argv); }
