#include "pipeline/fault.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "framework/error.h"

namespace antichain {
namespace {

struct Fault {
  std::string kind;
  int rank = -1;
  long step = -1;
};

Fault parse(const char* text) {
  char kind[16] = "";
  Fault fault;
  int end = 0;
  const int fields = std::sscanf(text, "%15[a-z]:rank=%d:step=%ld%n", kind, &fault.rank, &fault.step, &end);
  fault.kind = kind;
  const bool known =
      fault.kind == "hang" || fault.kind == "stop" || fault.kind == "exit" || fault.kind == "throw";
  if (fields != 3 || !known || text[end] != '\0')
    throw Error(fmt::format("ANTICHAIN_FAULT={} can't be understood", text),
                "write hang|stop|exit|throw:rank=R:step=N", ExitCode::usage);
  return fault;
}

}  // namespace

void fault_point(int rank, int64_t step) {
  const char* text = std::getenv("ANTICHAIN_FAULT");
  if (!text || !*text) return;
  const Fault fault = parse(text);
  if (fault.rank != rank || fault.step != step) return;
  if (fault.kind == "exit") ::kill(::getpid(), SIGKILL);
  if (fault.kind == "throw")
    throw Error(fmt::format("rank {} was told to fail at step {}", rank, step), "unset ANTICHAIN_FAULT");
  if (fault.kind == "stop") {
    ::kill(::getpid(), SIGSTOP);  // and goes on from here when SIGCONT comes
    return;
  }
  for (;;) ::pause();
}

}  // namespace antichain
