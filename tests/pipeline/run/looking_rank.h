// A rank that obeys a schedule as the runner does, with kernels that look whether what they need is there and
// write what is sent. The host never waits for them; memory is in rings of the sizes that the schedule's
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
#include "tests/pipeline/schedule/only.h"

namespace antichain::test {

class LookingRank {
 public:
  LookingRank(const Schedule& schedule, const Plan& plan, const Profile& network, Transport& transport,
              const Context& context, std::atomic<int>& wrong)
      : plan_(plan),
        actions_(schedule.ranks[size_t(transport.rank())]),
        slots_(only(slots(schedule)[size_t(transport.rank())])),
        replicas_(stage_of_rank(plan, transport.rank()).ranks),
        channels_(schedule),
        transport_(transport),
        device_(context.backend()),
        stream_(cuda::stream_of(context)),
        wrong_(wrong) {
    if (learns(schedule) && replicas_.size() > 1)
      sum_.emplace(replicas_, me(), schedule.microbatches, channels_.count(), context, wrong);
    const auto issue =
        issue_order(message_order(schedule, plan, network, one_link({})), int(schedule.ranks.size()));
    turns_ =
        turns_of(issue[size_t(me())], actions_, channels_, me(), sum_ ? sum_->turns() : std::vector<Turn>());
    for (const Action& a : actions_) {
      const bool activation = a.message.flow == Flow::activation;
      if (a.verb == Verb::recv) receives_[a.message].actions.push_back(a);
      if (a.verb == Verb::send && !sends_.contains(target(a)))
        sends_[target(a)] = ring(activation ? slots_.sent_activations : slots_.sent_gradients);
    }
    for (auto& [message, r] : receives_) r.ring = ring(slots_.receive_ring(message.flow));
  }

  void step(int number) {
    number_ = number;
    transport_.begin_step(turns_);
    for (auto& [message, r] : receives_) r.released = 0, r.awaited = 0, r.tickets.clear();
    post();
    std::vector<Action> needed;
    for (size_t i = 0; i < actions_.size(); ++i) {
      const Action& a = actions_[i];
      if (a.verb == Verb::recv) {
        Receive& r = receives_.at(a.message);
        transport_.wait(r.tickets.at(r.awaited++));
        needed.push_back(a);
      } else if (computes(a.verb)) {
        std::vector<Action> sent;
        for (size_t s = i + 1; s < actions_.size() && actions_[s].verb == Verb::send; ++s)
          sent.push_back(actions_[s]);
        compute(std::exchange(needed, {}), sent);
        release(a);
      } else if (a.verb == Verb::send) {
        transport_.send({channel(a), a.microbatch}, a.peer, slot(sends_.at(target(a)), a));
      } else if (a.verb == Verb::reduce) {
        sum_->run(transport_, number);
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

  int me() const { return transport_.rank(); }
  int channel(const Action& a) const {
    return a.verb == Verb::send ? channels_(me(), a.peer, a.message) : channels_(a.peer, me(), a.message);
  }
  Target target(const Action& send) const {
    return {send.message, stage_of_rank(plan_, send.peer).ranks.front()};
  }
  std::vector<Tensor> ring(int size) const {
    const int own = int(std::ranges::count(actions_, Verb::forward, &Action::verb));
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
    for (const Action& a : needed) in.push_back({slot(receives_.at(a.message).ring, a), value(a)});
    for (const Action& a : sent) out.push_back({slot(sends_.at(target(a)), a), value(a)});
    test::fake_cuda::launch(stream_, [in, out, this] {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      for (const auto& [tensor, value] : in)
        wrong_ += int(
            std::any_of(tensor.data<int>(), tensor.data<int>() + 300, [v = value](int x) { return x != v; }));
      for (const auto& [tensor, value] : out) std::fill_n(tensor.data<int>(), 300, value);
    });
  }

  // An activation is read until the weight half of its backward, a gradient until the input half.
  void release(const Action& a) {
    const bool learns = actions_.back().verb == Verb::update, backward = a.verb == Verb::backward;
    for (auto& [message, r] : receives_) {
      const Verb last = message.flow == Flow::gradient ? Verb::backward_input
                        : learns                       ? Verb::backward_weight
                                                       : Verb::forward;
      if (a.verb == last || backward) ++r.released;
    }
    post();
  }
  void post() {
    for (auto& [message, r] : receives_)
      while (r.tickets.size() < r.actions.size() && r.tickets.size() < r.released + r.ring.size()) {
        const Action& a = r.actions[r.tickets.size()];
        r.tickets.push_back(transport_.recv({channel(a), a.microbatch}, a.peer, slot(r.ring, a)));
      }
  }

  const Plan& plan_;
  const std::vector<Action>& actions_;
  const Slots slots_;
  const std::vector<int> replicas_;  // of its stage
  const Channels channels_;
  Transport& transport_;
  const Backend& device_;
  const cuda::Stream stream_;
  std::atomic<int>& wrong_;
  std::optional<LookingSum> sum_;
  std::vector<Turn> turns_;
  std::map<Message, Receive> receives_;
  std::map<Target, std::vector<Tensor>> sends_;
  int number_ = 0;
};

}  // namespace antichain::test
