// A LookingRank obeys a schedule as the runner does, with kernels that look whether what they need is there
// and write what is sent. The host never waits for them. Memory is in rings of the sizes that the schedule's
// slots say.
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
#include "pipeline/schedule/channels.h"
#include "pipeline/simulate/message_order.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/looking_sum.h"

namespace antichain::test {

class LookingRank {
 public:
  LookingRank(const Schedule& schedule, const Plan& plan, const Profile& profile, Transport& transport,
              const Context& context, std::atomic<int>& wrong)
      : plan_(plan),
        actions_(schedule.ranks[size_t(transport.rank())]),
        slots_(slots(schedule)[size_t(transport.rank())]),
        replicas_(plan.stages[size_t(stages_of_rank(plan, transport.rank()).front())].ranks),
        channels_(schedule),
        transport_(transport),
        device_(context.backend()),
        stream_(cuda::stream_of(context)),
        wrong_(wrong) {
    const int stage = stages_of_rank(plan, transport.rank()).front();
    if (buckets_ = buckets_in(actions_, stage); buckets_ > 0) {
      last_gradient_ = last_gradient(actions_, stage);
      sum_.emplace(replicas_, me(), schedule.microbatches, buckets_, channels_.count(), context, wrong);
    }
    const auto issue =
        issue_order(message_order(schedule, plan, profile, one_link({})), int(schedule.ranks.size()));
    turns_ = turns_of(issue[size_t(me())], actions_, channels_, me(),
                      [&](int bucket, bool scatters) { return sum_->turns(bucket, scatters); });
    for (const Action& a : actions_) {
      if (a.verb == Verb::recv) receives_[{a.stage, a.message}].actions.push_back(a);
      if (a.verb != Verb::send || sends_.contains(target(a))) continue;
      const Slots& own = slots_.at(a.stage);
      sends_[target(a)] =
          ring(a.stage, a.message.flow == Flow::activation ? own.sent_activations : own.sent_gradients);
    }
    for (auto& [of, r] : receives_) r.ring = ring(of.first, slots_.at(of.first).receive_ring(of.second.flow));
  }

  void step(int number) {
    number_ = number;
    transport_.begin_step(turns_);
    for (auto& [of, r] : receives_) r.released = 0, r.awaited = 0, r.tickets.clear();
    post();
    std::vector<Action> needed;
    for (size_t i = 0; i < actions_.size(); ++i) {
      const Action& a = actions_[i];
      if (a.verb == Verb::recv) {
        Receive& r = receives_.at({a.stage, a.message});
        transport_.wait(r.tickets.at(r.awaited++));
        needed.push_back(a);
      } else if (computes(a.verb)) {
        std::vector<Action> sent;
        for (size_t s = i + 1; s < actions_.size() && actions_[s].verb == Verb::send; ++s)
          sent.push_back(actions_[s]);
        const auto used = std::stable_partition(needed.begin(), needed.end(),
                                                [&](const Action& recv) { return !uses(a, recv); });
        compute({used, needed.end()}, sent);
        needed.erase(used, needed.end());
        for (int k = 0; int(i) == last_gradient_ && k < buckets_; ++k) sum_->begin(transport_, number, k);
        release(a);
      } else if (a.verb == Verb::send) {
        transport_.send({channel(a), a.microbatch}, a.peer, slot(sends_.at(target(a)), a));
      } else if (a.verb == Verb::reduce) {
        sum_->finish(transport_, number, std::max(a.bucket, 0));
      }
      transport_.progress();
    }
    transport_.flush();
  }

 private:
  struct Receive {
    std::vector<Action> actions;  // one a micro-batch of this rank
    std::vector<Tensor> ring;
    size_t released = 0, awaited = 0;
    std::vector<Transport::Ticket> tickets;
  };
  using Target = std::pair<Message, int>;  // and the first rank of the stage it goes to
  using Source = std::pair<int, Message>;  // and the stage that receives it

  int me() const { return transport_.rank(); }
  int channel(const Action& a) const {
    return a.verb == Verb::send ? channels_(me(), a.peer, a.message) : channels_(a.peer, me(), a.message);
  }
  Target target(const Action& send) const {
    const std::vector<int> stages = stages_of_rank(plan_, send.peer);
    return {send.message, stages.size() > 1 ? send.peer : plan_.stages[size_t(stages.front())].ranks.front()};
  }
  std::vector<Tensor> ring(int stage, int size) const {
    const int own = int(std::ranges::count_if(
        actions_, [=](const Action& a) { return a.verb == Verb::forward && a.stage == stage; }));
    std::vector<Tensor> buffers;
    for (int i = 0; i < std::clamp(size, 1, own); ++i) buffers.push_back(device_.tensor({{300}, DType::i32}));
    return buffers;
  }
  const Tensor& slot(const std::vector<Tensor>& ring, const Action& a) const {
    return ring[size_t(a.microbatch) / replicas_.size() % ring.size()];
  }
  int value(const Action& a) const { return (number_ * 1000 + channel(a)) * 1000 + a.microbatch + 1; }

  void compute(const std::vector<Action>& needed, const std::vector<Action>& sent) {
    std::vector<std::pair<Tensor, int>> in, out;
    for (const Action& a : needed) in.push_back({slot(receives_.at({a.stage, a.message}).ring, a), value(a)});
    for (const Action& a : sent) out.push_back({slot(sends_.at(target(a)), a), value(a)});
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

  // An activation is read until the weight half of its backward, a gradient until the input half.
  void release(const Action& a) {
    const bool learns = actions_.back().verb == Verb::update, backward = a.verb == Verb::backward;
    for (auto& [of, r] : receives_) {
      if (of.first != a.stage) continue;
      const Verb last = of.second.flow == Flow::gradient ? Verb::backward_input
                        : learns                         ? Verb::backward_weight
                                                         : Verb::forward;
      if (a.verb == last || backward) ++r.released;
    }
    post();
  }
  void post() {
    for (auto& [of, r] : receives_)
      while (r.tickets.size() < r.actions.size() && r.tickets.size() < r.released + r.ring.size()) {
        const Action& a = r.actions[r.tickets.size()];
        r.tickets.push_back(transport_.recv({channel(a), a.microbatch}, a.peer, slot(r.ring, a)));
      }
  }

  const Plan& plan_;
  const std::vector<Action>& actions_;
  const RankSlots slots_;
  const std::vector<int> replicas_;  // of its stage; only itself where it has several
  const Channels channels_;
  Transport& transport_;
  const Backend& device_;
  const cuda::Stream stream_;
  std::atomic<int>& wrong_;
  std::optional<LookingSum> sum_;  // where the stage has replicas
  int buckets_ = 0, last_gradient_ = -1;
  std::vector<Turn> turns_;
  std::map<Source, Receive> receives_;
  std::map<Target, std::vector<Tensor>> sends_;
  int number_ = 0;
};

}  // namespace antichain::test
