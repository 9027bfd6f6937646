// This stand-in for NCCL is one step nearer to it than lane_rendezvous.h's. All-reduces are the messages that
// they are made of. What heads a rank's stream is a group of messages, each of which meets its other half at
// the head of the peer's stream; the group is done when all of them are.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "pipeline/run/replica_sum.h"
#include "pipeline/schedule/channels.h"
#include "pipeline/transport/transport.h"
#include "tests/pipeline/simulate/lane_rendezvous.h"

namespace antichain::test {

class TurnRendezvous : public IssuingRanks {
 public:
  // `turns` has those of each rank. Those of channels behind the schedule's belong to the rank's all-reduce.
  TurnRendezvous(const Program& program, std::vector<std::vector<Turn>> turns, Host host)
      : program_(program), turns_(std::move(turns)), host_(host), ranks_(program.ranks.size()) {
    for (size_t r = 0; r < ranks_.size(); ++r) list(int(r));
  }

 private:
  struct RankProgress {
    std::vector<int> action_of;               // by turn
    std::vector<bool> early;                  // by turn: the first half of an all-reduce
    std::vector<int> to_come;                 // by action: its turns that have not taken place
    size_t next = 0, issued = 0;              // action, turn
    std::deque<std::pair<int, bool>> stream;  // turns, and whether each took place
  };

  const std::vector<Action>& actions(int r) const { return program_.schedule->ranks[size_t(r)]; }
  const Turn& turn(int r, int i) const { return turns_[size_t(r)][size_t(i)]; }
  bool ended(int r) const { return ranks_[size_t(r)].next == actions(r).size(); }

  void list(int r) {
    RankProgress& rank = ranks_[size_t(r)];
    rank.to_come.resize(actions(r).size());
    std::map<std::tuple<Verb, int, int>, int> named;
    std::map<int, int> reduces;  // by bucket
    for (int i = 0; i < int(actions(r).size()); ++i) {
      const Instruction& a = program_.ranks[size_t(r)].instructions[size_t(i)];
      if (a.verb == Verb::reduce) reduces[std::max(a.bucket, 0)] = i;
      if (a.channel >= 0) named[{a.verb, a.channel, a.microbatch}] = i;
    }
    for (const Turn& t : turns_[size_t(r)]) {
      const bool of_sum = t.key.channel >= program_.channels;
      const auto channel = SumChannel(t.key.channel - program_.channels);
      const int bucket = channel == SumChannel::statistics ? 0 : t.key.microbatch;
      rank.early.push_back(of_sum && channel != SumChannel::sums);
      rank.action_of.push_back(
          of_sum ? reduces.at(bucket)
                 : named.at({t.sends ? Verb::send : Verb::recv, t.key.channel, t.key.microbatch}));
      ++rank.to_come.at(size_t(rank.action_of.back()));
    }
  }

  // Returns whether the host has come to where it can issue the turn.
  bool ready(int r, size_t i) const {
    const RankProgress& rank = ranks_[size_t(r)];
    const int action = rank.action_of[i], next = int(rank.next);
    const Action& a = actions(r)[size_t(action)];
    if (rank.early[i]) return next > last_gradient(actions(r), action);
    if (a.verb == Verb::send) return next > action;
    if (a.verb == Verb::recv) return next > program_.ranks[size_t(r)].instructions[size_t(action)].freed_by;
    return next >= action;
  }

  size_t group_end(int r, size_t first) const {
    const auto& turns = turns_[size_t(r)];
    size_t end = first + 1;
    while (turns[first].group != 0 && end < turns.size() && turns[end].group == turns[first].group) ++end;
    return end;
  }

  bool group_is_ready(int r, size_t first) const {
    for (size_t i = first; i < group_end(r, first); ++i)
      if (!ready(r, i)) return false;
    return true;
  }

  int ranks() const override { return int(ranks_.size()); }

  bool step(int r) override {
    RankProgress& rank = ranks_[size_t(r)];
    for (bool moved = false;; moved = true) {
      if (host_ == Host::blocks && !rank.stream.empty()) return moved;
      if (rank.issued < turns_[size_t(r)].size() && group_is_ready(r, rank.issued)) {
        const size_t end = group_end(r, rank.issued);
        while (rank.issued < end) rank.stream.push_back({int(rank.issued++), false});
        continue;
      }
      if (ended(r)) return moved;
      const Verb verb = actions(r)[rank.next].verb;
      if ((verb == Verb::recv || verb == Verb::reduce) && rank.to_come[rank.next] > 0) return moved;
      ++rank.next;
    }
  }

  // So many turns of its stream can take place.
  size_t heads(int r) const {
    const RankProgress& rank = ranks_[size_t(r)];
    if (rank.stream.empty()) return 0;
    const size_t first = size_t(rank.stream.front().first);
    return group_end(r, first) - first;
  }

  // Returns the sends at the head of the rank's stream.
  bool meet(int r) override {
    RankProgress& rank = ranks_[size_t(r)];
    bool moved = false;
    for (size_t i = 0; i < heads(r); ++i) {
      auto& [mine, done] = rank.stream[i];
      if (!done && turn(r, mine).sends) moved = meet(r, mine, done) || moved;
    }
    moved = retire(r) || moved;
    for (int peer = 0; peer < int(ranks_.size()); ++peer) moved = retire(peer) || moved;
    return moved;
  }
  bool meet(int r, int mine, bool& done) {
    const Turn& send = turn(r, mine);
    RankProgress& peer = ranks_[size_t(send.peer)];
    for (size_t i = 0; i < heads(send.peer); ++i) {
      auto& [theirs, met] = peer.stream[i];
      const Turn& recv = turn(send.peer, theirs);
      if (met || recv.sends || recv.peer != r) continue;
      if (recv.key != send.key && wrong_.empty())
        wrong_ = fmt::format("rank {} sends {} to rank {}, which receives {}: another message", r, name(send),
                             send.peer, name(recv));
      return done = met = true;
    }
    return false;
  }

  // What heads the stream, when all of it took place.
  bool retire(int r) {
    RankProgress& rank = ranks_[size_t(r)];
    const size_t count = heads(r);
    if (count == 0 || !std::all_of(rank.stream.begin(), rank.stream.begin() + int(count),
                                   [](const auto& t) { return t.second; }))
      return false;
    for (size_t i = 0; i < count; ++i, rank.stream.pop_front())
      --rank.to_come[size_t(rank.action_of[size_t(rank.stream.front().first)])];
    return true;
  }

  static std::string name(const Turn& t) { return fmt::format("{}.{}", t.key.channel, t.key.microbatch); }
  std::string state(int r) const override {
    const RankProgress& rank = ranks_[size_t(r)];
    if (ended(r) && rank.stream.empty() && rank.issued == turns_[size_t(r)].size()) return "";
    std::string text =
        fmt::format("rank {} stands in {}", r, ended(r) ? "its end" : print(actions(r)[rank.next]));
    for (size_t i = 0; i < heads(r); ++i)
      if (const auto& [t, done] = rank.stream[i]; !done)
        text += fmt::format(", {} {} {} rank {}", turn(r, t).sends ? "sends" : "receives", name(turn(r, t)),
                            turn(r, t).sends ? "to" : "from", turn(r, t).peer);
    return text + "\n";
  }

  const Program& program_;
  const std::vector<std::vector<Turn>> turns_;
  const Host host_;
  std::vector<RankProgress> ranks_;
};

}  // namespace antichain::test
