// A stand-in for NCCL that carries out what ranks issue, with nothing but its rules: each rank has one stream; what heads it
// stays there until the other ranks of that exchange have it at the head of theirs; messages have no names, so a send meets
// whatever receive of that pair is there. It finds out for itself what a rank needs, sharing nothing with the pass that makes orders, and says who stands where when
// nothing moves any more.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <string>
#include <vector>

#include "pipeline/happens_before.h"
#include "pipeline/message_order.h"

namespace antichain::test {

enum class Host {
  runs_ahead,  // stops only where it needs what has not arrived
  blocks,      // stops wherever it has issued something that is not done: no buffering at all
};

// Whether a rank that has come to action `next` has posted the receive, as the runner does: so many buffers ahead of the
// micro-batches of this rank that are used up.
inline bool has_buffer(const Schedule& schedule, const Slots& slots, int rank, const Action& recv, int next) {
  const Flow flow = recv.message.flow;
  const auto& actions = schedule.ranks[size_t(rank)];
  const bool training = actions.back().verb == Verb::step;
  int before = 0, used_up = 0;
  for (int i = 0; i < int(actions.size()); ++i) {
    const Action& a = actions[size_t(i)];
    before += a.verb == Verb::forward && a.microbatch < recv.microbatch;
    const bool half = a.verb == (flow == Flow::activation ? Verb::backward_weight : Verb::backward_input);
    used_up += i < next && (training ? a.verb == Verb::backward || half : a.verb == Verb::forward);
  }
  return before < used_up + slots.receive_ring(flow);
}

class Rendezvous {
 public:
  Rendezvous(const Schedule& schedule, std::vector<std::vector<int>> issue, Host host)
      : schedule_(schedule),
        issue_(std::move(issue)),
        host_(host),
        partners_(match_messages(schedule)),
        slots_(slots(schedule)),
        ranks_(schedule.ranks.size()) {
    for (size_t r = 0; r < ranks_.size(); ++r) ranks_[r].done.resize(schedule.ranks[r].size());
  }

  // "" when every rank came to its end and every exchange took place; else what is wrong.
  std::string carry_out() {
    for (bool moved = true; moved && wrong_.empty();) {
      moved = false;
      for (size_t r = 0; r < ranks_.size(); ++r) {
        moved = step(int(r)) || moved;
        moved = meet(int(r)) || moved;
      }
    }
    if (!wrong_.empty()) return wrong_;
    std::string stuck;
    for (size_t r = 0; r < ranks_.size(); ++r) stuck += state(int(r));
    return stuck;
  }

  int exchanges() const { return exchanges_; }

 private:
  struct Rank {
    size_t next = 0, issued = 0;  // action; turn of the issue order
    std::deque<int> stream;       // indices into the list
    std::vector<bool> done;       // exchanges, by index
  };

  const Action& at(int r, int i) const { return schedule_.ranks[size_t(r)][size_t(i)]; }
  bool ended(int r) const { return ranks_[size_t(r)].next == schedule_.ranks[size_t(r)].size(); }

  // Whether the host has come to where it can issue the exchange.
  bool ready(int r, int i) const {
    const int next = int(ranks_[size_t(r)].next);
    if (at(r, i).verb == Verb::send) return next > i;
    if (at(r, i).verb == Verb::recv) return has_buffer(schedule_, slots_[size_t(r)], r, at(r, i), next);
    return next >= i;
  }

  // As far as the host of a rank comes.
  bool step(int r) {
    Rank& rank = ranks_[size_t(r)];
    bool moved = false;
    for (;; moved = true) {
      if (host_ == Host::blocks && !rank.stream.empty()) return moved;
      if (rank.issued < issue_[size_t(r)].size() && ready(r, issue_[size_t(r)][rank.issued])) {
        rank.stream.push_back(issue_[size_t(r)][rank.issued++]);
        continue;
      }
      if (ended(r)) return moved;
      const Verb verb = at(r, int(rank.next)).verb;
      if ((verb == Verb::recv || verb == Verb::reduce) && !rank.done[rank.next]) return moved;
      ++rank.next;
    }
  }

  int head(int r) const { return ranks_[size_t(r)].stream.empty() ? -1 : ranks_[size_t(r)].stream.front(); }
  void finish(int r) {
    ranks_[size_t(r)].done[size_t(head(r))] = true;
    ranks_[size_t(r)].stream.pop_front();
  }

  // What heads the rank's stream, if it can take place.
  bool meet(int r) {
    const int i = head(r);
    if (i < 0) return false;
    if (at(r, i).verb == Verb::reduce)
      return meet_all(partners_.meetings[size_t(partners_.of[size_t(r)][size_t(i)])]);
    const int peer = at(r, i).peer, theirs = head(peer);
    if (theirs < 0) return false;
    const Action &mine = at(r, i), &other = at(peer, theirs);
    const Verb wanted = mine.verb == Verb::send ? Verb::recv : Verb::send;
    if (other.verb != wanted || other.peer != r) return false;
    if (partners_.of[size_t(r)][size_t(i)] != theirs)
      wrong_ = fmt::format("rank {} does {} while rank {} does {}: another message arrives", r, print(mine),
                           peer, print(other));
    finish(r), finish(peer);
    ++exchanges_;
    return true;
  }
  bool meet_all(const std::vector<Place>& places) {
    for (const Place& place : places)
      if (head(place.rank) != place.index) return false;
    for (const Place& place : places) finish(place.rank);
    ++exchanges_;
    return true;
  }

  std::string state(int r) const {
    const Rank& rank = ranks_[size_t(r)];
    if (ended(r) && rank.stream.empty() && rank.issued == issue_[size_t(r)].size()) return "";
    return fmt::format("rank {} stands in {}, its stream in {}\n", r,
                       ended(r) ? "its end" : print(at(r, int(rank.next))),
                       head(r) < 0 ? "nothing" : print(at(r, head(r))));
  }

  const Schedule& schedule_;
  const std::vector<std::vector<int>> issue_;
  const Host host_;
  const Partners partners_;
  const std::vector<Slots> slots_;

  std::vector<Rank> ranks_;
  std::string wrong_;
  int exchanges_ = 0;
};

}  // namespace antichain::test
