#include "pipeline/host/fault.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "framework/error.h"

namespace antichain {
namespace {

struct Fault {
  std::string kind;
  int rank = -1;
  long step = -1;
  Poison poison;
};

// Parses ":microbatch=2:gradient:layer1.0.conv1".
bool parse(const char* text, Poison& poison) {
  char tensor[16] = "";
  int end = 0;
  if (std::sscanf(text, ":microbatch=%d:%15[a-z]:%n", &poison.microbatch, tensor, &end) != 2 || end == 0)
    return false;
  poison.gradient = std::string(tensor) == "gradient";
  poison.node = text + end;
  return (poison.gradient || std::string(tensor) == "activation") && !poison.node.empty();
}

Fault parse(const char* text) {
  char kind[16] = "";
  Fault fault;
  int end = 0;
  const int fields = std::sscanf(text, "%15[a-z]:rank=%d:step=%ld%n", kind, &fault.rank, &fault.step, &end);
  fault.kind = kind;
  const bool known = fault.kind == "hang" || fault.kind == "stop" || fault.kind == "exit" ||
                     fault.kind == "throw" || fault.kind == "slow";
  const bool poisons = fault.kind == "nan" && fields == 3 && parse(text + end, fault.poison);
  if (!poisons && (fields != 3 || !known || text[end] != '\0')) {
    throw Error(fmt::format("ANTICHAIN_FAULT={} can't be understood", text),
                "write hang|stop|exit|throw|slow:rank=R:step=N, or "
                "nan:rank=R:step=N:microbatch=M:activation|gradient:NODE",
                ExitCode::usage);
  }
  return fault;
}

std::optional<Fault> fault_told() {
  const char* text = std::getenv("ANTICHAIN_FAULT");
  if (!text || !*text) return std::nullopt;
  return parse(text);
}

}  // namespace

std::optional<Poison> poison_for(int rank, int64_t step) {
  const std::optional<Fault> fault = fault_told();
  if (!fault || fault->kind != "nan" || fault->step != step || (fault->rank != rank && fault->rank != -1))
    return std::nullopt;
  return fault->poison;
}

double delay_for(int rank, int64_t step) {
  const std::optional<Fault> fault = fault_told();
  return fault && fault->kind == "slow" && fault->rank == rank && step >= fault->step ? 2 : 0;
}

void fault_point(int rank, int64_t step) {
  const std::optional<Fault> fault = fault_told();
  if (!fault || fault->kind == "nan" || fault->kind == "slow" || fault->rank != rank || fault->step != step)
    return;
  if (fault->kind == "exit") ::kill(::getpid(), SIGKILL);
  if (fault->kind == "throw")
    throw Error(fmt::format("rank {} was told to fail at step {}", rank, step), "unset ANTICHAIN_FAULT");
  if (fault->kind == "stop") {
    ::kill(::getpid(), SIGSTOP);  // execution continues here after SIGCONT
    return;
  }
  for (;;) ::pause();
}

}  // namespace antichain
