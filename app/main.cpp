// The `antichain` program runs one subcommand, or says in one sentence what is wrong.
#include "app/run.h"

int main(int argc, char** argv) { return antichain::run(argc, argv); }
