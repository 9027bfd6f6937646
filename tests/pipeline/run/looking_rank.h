// A LookingRank obeys a program as the runner does, with kernels that look whether what they need is there and
// write what is sent. The host never waits for them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "framework/backend.h"
#include "framework/cuda/resources.h"
#include "pipeline/run/message_turns.h"
#include "pipeline/run/step_messages.h"
#include "pipeline/simulate/message_order.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/looking_sum.h"

namespace antichain::test {

class LookingRank {
 public:
  LookingRank(const Schedule& schedule, const Plan& plan, const Profile& profile, Transport& transport,
              const Context& context, std::atomic<int>& wrong)
      : actions_(schedule.ranks[size_t(transport.rank())]),
        program_(compile(schedule, profile, plan)),
        replicas_(plan.stages[size_t(stages_of_rank(plan, transport.rank()).front())].ranks),
        transport_(transport),
        device_(context.backend()),
        stream_(cuda::stream_of(context)),
        wrong_(wrong),
        messages_(
            own(), transport, [this](BufferId b, int m) -> const Tensor& { return tensor(b, m); },
            [](const Message&) { return "a message"; }, {}) {
    const int stage = stages_of_rank(plan, transport.rank()).front();
    if (buckets_ = buckets_in(actions_, stage); buckets_ > 0) {
      last_gradient_ = last_gradient(actions_, stage);
      sum_.emplace(replicas_, me(), schedule.microbatches, buckets_, program_.channels, context, wrong);
    }
    const auto issue =
        issue_order(message_order(program_, plan, profile, one_link({})), int(program_.ranks.size()));
    turns_ = turns_of(issue[size_t(me())], own(),
                      [&](int bucket, bool scatters) { return sum_->turns(bucket, scatters); });
    for (const Instruction& i : own().instructions) {
      if (i.channel < 0) continue;
      std::vector<Tensor>& copies = copies_[buffer(i)];
      while (int(copies.size()) < own().buffers[size_t(buffer(i))].copies)
        copies.push_back(device_.tensor({{300}, DType::i32}));
    }
  }

  void step(int number) {
    number_ = number;
    messages_.begin_step(turns_);
    std::vector<Instruction> needed;
    const std::vector<Instruction>& list = own().instructions;
    for (size_t i = 0; i < list.size(); ++i) {
      const Instruction& a = list[i];
      if (a.verb == Verb::recv) {
        messages_.wait(i);
        needed.push_back(a);
      } else if (computes(a.verb)) {
        std::vector<Instruction> sent;
        for (size_t s = i + 1; s < list.size() && list[s].verb == Verb::send; ++s) sent.push_back(list[s]);
        const auto used = std::stable_partition(needed.begin(), needed.end(),
                                                [&](const Action& recv) { return !uses(a, recv); });
        compute({used, needed.end()}, sent);
        needed.erase(used, needed.end());
        for (int k = 0; int(i) == last_gradient_ && k < buckets_; ++k) sum_->begin(transport_, number, k);
      } else if (a.verb == Verb::send) {
        messages_.send(i);
      } else if (a.verb == Verb::reduce) {
        sum_->finish(transport_, number, std::max(a.bucket, 0));
      }
      messages_.done(i);
      transport_.progress();
    }
    transport_.flush();
  }

 private:
  int me() const { return transport_.rank(); }
  const RankProgram& own() const { return program_.ranks[size_t(me())]; }
  static BufferId buffer(const Instruction& message) {
    return message.verb == Verb::send ? message.reads.front() : message.writes.front();
  }
  const Tensor& tensor(BufferId buffer, int microbatch) const {
    const std::vector<Tensor>& copies = copies_.at(buffer);
    return copies[size_t(microbatch / own().buffers[size_t(buffer)].replicas) % copies.size()];
  }
  int value(const Instruction& a) const { return (number_ * 1000 + a.channel) * 1000 + a.microbatch + 1; }

  void compute(const std::vector<Instruction>& needed, const std::vector<Instruction>& sent) {
    std::vector<std::pair<Tensor, int>> in, out;
    for (const Instruction& a : needed) in.push_back({tensor(buffer(a), a.microbatch), value(a)});
    for (const Instruction& a : sent) out.push_back({tensor(buffer(a), a.microbatch), value(a)});
    test::fake_cuda::launch(stream_, [in, out, this] {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      for (const auto& [tensor, value] : in)
        wrong_ += int(
            std::any_of(tensor.data<int>(), tensor.data<int>() + 300, [v = value](int x) { return x != v; }));
      for (const auto& [tensor, value] : out) std::fill_n(tensor.data<int>(), 300, value);
    });
  }

  // What the backward of a fused pair needs is there before the forward as well.
  static bool uses(const Action& a, const Action& recv) {
    return a.stage == recv.stage && a.microbatch == recv.microbatch &&
           (a.verb == Verb::forward) == (recv.message.flow == Flow::activation);
  }

  const std::vector<Action>& actions_;
  const Program program_;
  const std::vector<int> replicas_;  // of its stage; only itself where it has several
  Transport& transport_;
  const Backend& device_;
  const cuda::Stream stream_;
  std::atomic<int>& wrong_;
  std::optional<LookingSum> sum_;  // where the stage has replicas
  int buckets_ = 0, last_gradient_ = -1;
  std::vector<Turn> turns_;
  std::map<BufferId, std::vector<Tensor>> copies_;
  StepMessages messages_;
  int number_ = 0;
};

}  // namespace antichain::test
