#include "pipeline/run/step_messages.h"

#include <fmt/format.h>

#include <utility>

namespace antichain {

StepMessages::StepMessages(const RankProgram& program, Transport& transport, TensorOf tensor,
                           const NameOf& name, std::map<int, std::string> names)
    : instructions_(program.instructions),
      transport_(transport),
      tensor_(std::move(tensor)),
      freed_(instructions_.size()),
      tickets_(instructions_.size()) {
  for (size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& of = instructions_[i];
    if (of.channel >= 0) names.try_emplace(of.channel, name(of.message) + ", micro-batch");
    if (of.verb == Verb::recv) (of.freed_by < 0 ? first_ : freed_[size_t(of.freed_by)]).push_back(i);
  }
  namer_ = [names = std::move(names)](MessageKey key, int, int) {
    const auto found = names.find(key.channel);
    return fmt::format("{} {}", found == names.end() ? "a message" : found->second, key.microbatch);
  };
}

void StepMessages::begin_step(const std::vector<Turn>& turns, int steps) {
  steps_ = steps;
  transport_.name_messages(namer_);
  transport_.begin_step(turns);
  post(first_);
}

void StepMessages::post(const std::vector<size_t>& receives) {
  for (const size_t i : receives) {
    const Instruction& of = instructions_[i];
    if (of.step >= steps_) continue;
    tickets_[i] =
        transport_.recv({of.channel, of.microbatch}, of.peer, tensor_(of.writes.front(), of.microbatch));
  }
}

void StepMessages::send(size_t index) {
  const Instruction& of = instructions_[index];
  transport_.send({of.channel, of.microbatch}, of.peer, tensor_(of.reads.front(), of.microbatch));
}

void StepMessages::wait(size_t index) { transport_.wait(tickets_[index]); }

void StepMessages::done(size_t index) { post(freed_[index]); }

}  // namespace antichain
