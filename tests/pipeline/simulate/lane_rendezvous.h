// This stand-in for NCCL carries out what ranks issue, with nothing but NCCL's rules. Each rank has a stream
// for each lane. What heads it stays there until the other ranks of that exchange have it at the head of
// theirs. Messages have no names, so a send meets whatever receive of that pair is there. The stand-in shares
// nothing with the pass that makes orders; from the program it takes when a receive can be posted. It says
// who stands where when nothing moves any more.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/schedule/happens_before.h"
#include "pipeline/schedule/lane.h"
#include "pipeline/simulate/message_order.h"
#include "pipeline/transport/transport.h"

namespace antichain::test {

// These links take no time, some, and more than all computing.
inline const Link links[] = {{}, {.bytes_per_s = 1e3, .latency_s = 0.3}, {.bytes_per_s = 10, .latency_s = 7}};

enum class Host {
  runs_ahead,  // stops only where it needs what has not arrived
  blocks,      // stops wherever it has issued something that is not done: no buffering at all
};

// IssuingRanks go on, one after the other, until none moves any more or something is wrong.
class IssuingRanks {
 public:
  virtual ~IssuingRanks() = default;

  // Returns "" when every rank came to its end and everything took place, otherwise what is wrong.
  std::string carry_out() {
    for (bool moved = true; moved && wrong_.empty();) {
      moved = false;
      for (int r = 0; r < ranks(); ++r) {
        moved = step(r) || moved;
        moved = meet(r) || moved;
      }
    }
    if (!wrong_.empty()) return wrong_;
    std::string stuck;
    for (int r = 0; r < ranks(); ++r) stuck += state(r);
    return stuck;
  }

 protected:
  virtual int ranks() const = 0;
  virtual bool step(int r) = 0;                // as far as the host of a rank comes
  virtual bool meet(int r) = 0;                // what heads the rank's streams, where it can take place
  virtual std::string state(int r) const = 0;  // "" of a rank that came to its end

  std::string wrong_;
};

class LaneRendezvous : public IssuingRanks {
 public:
  LaneRendezvous(const Program& program, const std::vector<std::vector<int>>& issue, Host host,
                 const LaneOf& lane_of = one_lane)
      : program_(program),
        schedule_(*program.schedule),
        host_(host),
        lane_of_(lane_of),
        partners_(match_messages(schedule_)),
        ranks_(program.ranks.size()) {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].done.resize(schedule_.ranks[r].size());
      for (const int i : issue[r]) {
        const bool first =
            at(int(r), i).verb == Verb::reduce && std::ranges::count(ranks_[r].issue, mark(i)) == 0;
        ranks_[r].issue.push_back(first ? mark(i) : i);
      }
    }
  }

  int exchanges() const { return exchanges_; }

 private:
  struct RankProgress {
    size_t next = 0, issued = 0;             // action; turn of the issue order
    std::vector<int> issue;                  // indices into the list, marked as below
    std::map<int, std::deque<int>> streams;  // by lane
    std::vector<bool> done;                  // exchanges, by index
    bool empty() const {
      return std::ranges::all_of(streams, [](const auto& s) { return s.second.empty(); });
    }
  };
  static constexpr int none = no_lane;

  int lane(int r, int i) const {
    const Action& a = at(r, i);
    if (a.verb == Verb::reduce) return lane_of_(r, r, Flow::gradient);
    return a.verb == Verb::send ? lane_of_(r, a.peer, a.message.flow) : lane_of_(a.peer, r, a.message.flow);
  }

  // An all-reduce is there twice. The first half of it is marked.
  static constexpr int marked = 1 << 24;
  static int mark(int i) { return i + marked; }
  const Action& at(int r, int i) const { return schedule_.ranks[size_t(r)][size_t(i % marked)]; }
  bool ended(int r) const { return ranks_[size_t(r)].next == schedule_.ranks[size_t(r)].size(); }

  // Returns whether the host has come to where it can issue the exchange.
  bool ready(int r, int i) const {
    const int next = int(ranks_[size_t(r)].next);
    if (i >= marked) return next > last_gradient(schedule_.ranks[size_t(r)], i - marked);
    if (at(r, i).verb == Verb::send) return next > i;
    if (at(r, i).verb == Verb::recv) return next > program_.ranks[size_t(r)].instructions[size_t(i)].freed_by;
    return next >= i;
  }

  // A copy keeps its place in the order: what is behind it is not issued before it was begun, or the buffer
  // shown.
  bool issue(int r, int i) {
    if (lane(r, i) == none)
      return at(r, i).verb == Verb::send ? bool(ranks_[size_t(r)].done[size_t(i)]) : ready(r, i);
    if (!ready(r, i)) return false;
    ranks_[size_t(r)].streams[lane(r, i)].push_back(i);
    return true;
  }

  int ranks() const override { return int(ranks_.size()); }

  bool step(int r) override {
    RankProgress& rank = ranks_[size_t(r)];
    bool moved = false;
    for (;; moved = true) {
      if (host_ == Host::blocks && !rank.empty()) return moved;
      if (rank.issued < rank.issue.size() && issue(r, rank.issue[rank.issued])) {
        ++rank.issued;
        continue;
      }
      if (ended(r)) return moved;
      const Verb verb = at(r, int(rank.next)).verb;
      if ((verb == Verb::recv || verb == Verb::reduce) && !rank.done[rank.next]) return moved;
      ++rank.next;
    }
  }

  int head(int r, int lane) const {
    const auto stream = ranks_[size_t(r)].streams.find(lane);
    return stream == ranks_[size_t(r)].streams.end() || stream->second.empty() ? -1 : stream->second.front();
  }
  void finish(int r, int lane) {
    if (const int i = head(r, lane); i < marked) ranks_[size_t(r)].done[size_t(i)] = true;
    ranks_[size_t(r)].streams[lane].pop_front();
  }

  bool meet(int r) override {
    bool moved = false;
    for (const int lane : {0, 1}) moved = meet(r, lane) || moved;
    for (int i = 0; i < int(schedule_.ranks[size_t(r)].size()); ++i)
      if (at(r, i).verb == Verb::send && lane(r, i) == none) moved = copy(r, i) || moved;
    return moved;
  }

  // As soon as both have come to it, and the sender's host does not stand still.
  bool copy(int r, int i) {
    const int peer = at(r, i).peer, theirs = partners_.of[size_t(r)][size_t(i)];
    if (ranks_[size_t(r)].done[size_t(i)] || !ready(r, i) || !ready(peer, theirs)) return false;
    if (host_ == Host::blocks && !ranks_[size_t(r)].empty()) return false;
    ++exchanges_;
    return ranks_[size_t(r)].done[size_t(i)] = ranks_[size_t(peer)].done[size_t(theirs)] = true;
  }

  // What heads the rank's lane, if it can take place.
  bool meet(int r, int lane) {
    const int i = head(r, lane);
    if (i < 0) return false;
    if (at(r, i).verb == Verb::reduce)
      return meet_all(partners_.meetings[size_t(partners_.of[size_t(r)][size_t(i % marked)])], lane,
                      i >= marked);
    const int peer = at(r, i).peer, theirs = head(peer, lane);
    if (theirs < 0) return false;
    const Action &mine = at(r, i), &other = at(peer, theirs);
    const Verb wanted = mine.verb == Verb::send ? Verb::recv : Verb::send;
    if (other.verb != wanted || other.peer != r) return false;
    if (partners_.of[size_t(r)][size_t(i)] != theirs)
      wrong_ = fmt::format("rank {} does {} while rank {} does {}: another message arrives", r, print(mine),
                           peer, print(other));
    finish(r, lane), finish(peer, lane);
    ++exchanges_;
    return true;
  }
  bool meet_all(const std::vector<ActionPlace>& places, int lane, bool first) {
    for (const ActionPlace& place : places)
      if (head(place.rank, lane) != (first ? mark(place.index) : place.index)) return false;
    for (const ActionPlace& place : places) finish(place.rank, lane);
    ++exchanges_;
    return true;
  }

  std::string state(int r) const override {
    const RankProgress& rank = ranks_[size_t(r)];
    if (ended(r) && rank.empty() && rank.issued == rank.issue.size()) return "";
    std::string heads;
    for (const int lane : {0, 1})
      if (head(r, lane) >= 0) heads += (heads.empty() ? "" : " and ") + print(at(r, head(r, lane)));
    return fmt::format("rank {} stands in {}, its stream in {}\n", r,
                       ended(r) ? "its end" : print(at(r, int(rank.next))),
                       heads.empty() ? "nothing" : heads);
  }

  const Program& program_;
  const Schedule& schedule_;
  const Host host_;
  const LaneOf lane_of_;
  const Partners partners_;
  std::vector<RankProgress> ranks_;
  int exchanges_ = 0;
};

}  // namespace antichain::test
