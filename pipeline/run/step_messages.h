// StepMessages sends and receives the messages of one rank's step. It posts each receive as soon as the
// program says that its memory is free, and names each message for the watchdog.
#pragma once

#include <climits>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pipeline/program/program.h"
#include "pipeline/transport/transport.h"

namespace antichain {

class StepMessages {
 public:
  using TensorOf = std::function<const Tensor&(BufferId, int microbatch)>;
  using NameOf = std::function<std::string(const Message&)>;

  // The program and the transport must outlive it. Reports call a message by `name` and its micro-batch. By
  // channel, `more_names` are those of what the caller sends besides, up to the number that ends them.
  StepMessages(const RankProgram&, Transport&, TensorOf, const NameOf& name,
               std::map<int, std::string> more_names);

  // Names the messages, tells the transport their order, if it keeps one, and posts the first receives: of so
  // many of the steps that the program has in a row.
  void begin_step(const std::vector<Turn>& turns = {}, int steps = INT_MAX);
  // These are about the instruction at the index: `send` posts its message, `wait` returns when it has
  // arrived, and `done` posts the receives that the instruction has freed memory for.
  void send(size_t index);
  void wait(size_t index);
  void done(size_t index);

 private:
  void post(const std::vector<size_t>& receives);

  const std::vector<Instruction>& instructions_;
  Transport& transport_;
  const TensorOf tensor_;
  Transport::Namer namer_;
  int steps_ = INT_MAX;                     // that are under way
  std::vector<size_t> first_;               // receives that nothing frees memory for
  std::vector<std::vector<size_t>> freed_;  // those that an instruction frees memory for
  std::vector<Transport::Ticket> tickets_;  // of receives that are posted
};

}  // namespace antichain
