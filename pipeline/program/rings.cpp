#include "pipeline/program/rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "framework/error.h"
#include "pipeline/schedule/happens_before.h"

namespace antichain {
namespace {

// Arrival is the recv on another rank of what was sent from here; index −1 where nobody receives it.
struct Arrival {
  int peer = 0, index = 0;
};

// A Life is that of one micro-batch's copy: the indices of the first and the last instruction that touch it.
struct Life {
  int first = INT_MAX, last = -1;
  std::vector<Arrival> arrivals = {};
};

class RankRings {
 public:
  RankRings(RankProgram& program, int rank, const Partners& partners, const HappensBefore& before, Feed feed)
      : program_(program), rank_(rank), before_(before), feed_(feed), lives_(program.buffers.size()) {
    for (int i = 0; i < int(program_.instructions.size()); ++i) {
      const Instruction& instruction = program_.instructions[size_t(i)];
      if (instruction.microbatch < 0) continue;
      for (const BufferId b : instruction.reads) {
        if (program_.buffers[size_t(b)].content == Content::weight) continue;  // the send folds it itself
        Life& life = life_of(b, instruction);
        if (life.last < 0)
          fail(instruction, fmt::format("reads a tensor of node {} that no action before it has written",
                                        program_.buffers[size_t(b)].node));
        life.last = i;
        if (instruction.verb == Verb::send)
          life.arrivals.push_back({instruction.peer, partners.of[size_t(rank)][size_t(i)]});
      }
      for (const BufferId b : instruction.writes) {
        Life& life = life_of(b, instruction);
        life.first = std::min(life.first, i);
        life.last = i;
      }
    }
  }

  void set_copies() {
    for (size_t b = 0; b < lives_.size(); ++b) {
      Buffer& buffer = program_.buffers[b];
      if (buffer.copies > 0) continue;
      const bool ahead = buffer.content == Content::received ||
                         (buffer.content == Content::input && feed_ == Feed::one_ahead);
      const int turns = int(lives_[b].size());
      buffer.copies = std::clamp(copies_of(lives_[b]) + int(ahead), 1, std::max(1, turns));
    }
  }

  void set_freed_by() {
    for (int i = 0; i < int(program_.instructions.size()); ++i) {
      Instruction& recv = program_.instructions[size_t(i)];
      if (recv.verb != Verb::recv) continue;
      const BufferId b = recv.writes.front();
      const int before = turn(b, recv) - program_.buffers[size_t(b)].copies;
      if (before < 0) continue;
      recv.freed_by = lives_[size_t(b)][size_t(before)].last;
      if (recv.freed_by >= i) fail(recv, "waits for memory that is free later");
    }
  }

 private:
  [[noreturn]] void fail(const Action& action, std::string_view why) const {
    throw Error(fmt::format("schedule, rank {}: {} {}", rank_, print(action), why));
  }
  int turn(BufferId b, const Action& a) const { return a.microbatch / program_.buffers[size_t(b)].replicas; }
  Life& life_of(BufferId b, const Action& a) {
    std::vector<Life>& lives = lives_[size_t(b)];
    const size_t turn = size_t(this->turn(b, a));
    if (lives.size() <= turn) lives.resize(turn + 1);
    return lives[turn];
  }

  // Returns the smallest k for which copies may be used in turn.
  int copies_of(const std::vector<Life>& lives) const {
    const int turns = int(lives.size());
    std::vector<int> first_from(lives.size() + 1, INT_MAX);  // of this turn and all later ones
    for (int n = turns - 1; n >= 0; --n)
      first_from[size_t(n)] = std::min(first_from[size_t(n) + 1], lives[size_t(n)].first);
    int copies = 0;
    for (int n = 0; n < turns; ++n) {
      const Life& life = lives[size_t(n)];
      const auto waits = [&](int write) { return write <= life.last || !has_arrived(life, write); };
      // Writes ascend, and what is known along a list only grows.
      const auto reusable =
          std::partition_point(first_from.begin() + n + 1, first_from.begin() + turns, waits);
      copies = std::max(copies, int(reusable - first_from.begin()) - n);
    }
    return copies;
  }
  bool has_arrived(const Life& life, int write) const {
    return std::ranges::all_of(life.arrivals, [&](const Arrival& arrival) {
      return arrival.index >= 0 && before_(arrival.peer, arrival.index, rank_, write);
    });
  }

  RankProgram& program_;
  const int rank_;
  const HappensBefore& before_;
  const Feed feed_;
  std::vector<std::vector<Life>> lives_;  // of each buffer, by turn
};

}  // namespace

void add_rings(Program& program, Feed feed) {
  const Partners partners = match_messages(*program.schedule);
  const HappensBefore before(*program.schedule, partners);
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    RankRings rings(program.ranks[r], int(r), partners, before, feed);
    rings.set_copies();
    rings.set_freed_by();
  }
}

}  // namespace antichain
