// This file counts, in micro-batches, how much memory a schedule needs.
//
// What a rank keeps for itself is counted along its own list: it grows with one action and shrinks with
// another. What it sends must stay until the peer has it. Buffers of the rank's n-th micro-batch are used
// again by its (n + k)-th. That never waits when the peer's recv of the n-th certainly happens before the
// action that writes the (n + k)-th.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "framework/error.h"
#include "pipeline/schedule/happens_before.h"

namespace antichain {
namespace {

using Is = std::function<bool(const Action&)>;

// For what lives from the first action that `begins` it to the first that `ends` it, per micro-batch, a Peak
// is the most that live at once, and where.
struct Peak {
  int count = 0;
  Action at;
};
Peak most_alive(const std::vector<Action>& actions, const Is& begins, const Is& ends) {
  enum class Life { alive, over };
  std::map<int, Life> lives;
  Peak peak;
  int alive = 0;
  for (const Action& action : actions) {
    if (begins(action) && lives.try_emplace(action.microbatch, Life::alive).second && ++alive > peak.count)
      peak = {alive, action};
    const auto life = lives.find(action.microbatch);
    if (!ends(action) || life == lives.end() || life->second == Life::over) continue;
    life->second = Life::over;
    --alive;
  }
  return peak;
}

// Returns the last action of each micro-batch that is of this kind.
std::map<int, Action> last_of_each(const std::vector<Action>& actions, const Is& is) {
  std::map<int, Action> last;
  for (const Action& action : actions)
    if (is(action)) last[action.microbatch] = action;
  return last;
}

std::map<int, std::vector<Action>> by_stage(const std::vector<Action>& actions) {
  std::map<int, std::vector<Action>> stages;
  for (const Action& action : actions) stages[action.stage].push_back(action);
  return stages;
}

bool is(const Action& a, Verb verb) { return a.verb == verb; }
bool receives(const Action& a, Flow flow) { return a.verb == Verb::recv && a.message.flow == flow; }

Peak in_flight(const std::vector<Action>& actions, bool learns) {
  return most_alive(
      actions,
      [](const Action& a) {
        return is(a, Verb::load) || receives(a, Flow::activation) || is(a, Verb::forward);
      },
      [=](const Action& a) {
        return learns ? is(a, Verb::backward) || is(a, Verb::backward_weight) : is(a, Verb::forward);
      });
}

Peak held_gradients(const std::vector<Action>& actions) {
  return most_alive(
      actions, [](const Action& a) { return is(a, Verb::backward_input); },
      [](const Action& a) { return is(a, Verb::backward_weight); });
}

Peak received_gradients(const std::vector<Action>& actions) {
  return most_alive(
      actions, [](const Action& a) { return receives(a, Flow::gradient); },
      [](const Action& a) { return is(a, Verb::backward) || is(a, Verb::backward_input); });
}

// RingWrites say when a rank writes what it sends of one stage and flow: its micro-batches, ascending, and
// the index of each one's forward, or backward or input half, in the rank's list. The n-th has slot n mod k.
struct RingWrites {
  std::vector<int> microbatches, writes;
  int number_of(int microbatch) const {
    return int(std::lower_bound(microbatches.begin(), microbatches.end(), microbatch) - microbatches.begin());
  }
  int size() const { return int(writes.size()); }
};

std::map<std::pair<Flow, int>, RingWrites> rings(const std::vector<Action>& actions) {
  std::map<std::pair<Flow, int>, std::map<int, int>> written;
  for (int i = 0; i < int(actions.size()); ++i) {
    const Action& a = actions[i];
    if (is(a, Verb::forward)) written[{Flow::activation, a.stage}][a.microbatch] = i;
    if (is(a, Verb::backward) || is(a, Verb::backward_input))
      written[{Flow::gradient, a.stage}][a.microbatch] = i;
  }
  std::map<std::pair<Flow, int>, RingWrites> rings;
  for (const auto& [of, index_of] : written)
    for (const auto& [microbatch, index] : index_of) {
      rings[of].microbatches.push_back(microbatch);
      rings[of].writes.push_back(index);
    }
  return rings;
}

// Returns the smallest k such that the rank's micro-batch n + k, and every later one, is certainly written
// after the peer has the n-th.
int reuse_distance(const HappensBefore& before, const RingWrites& ring, int rank, const Action& send,
                   int recv_index) {
  const int n = ring.number_of(send.microbatch);
  if (recv_index < 0 || n == ring.size()) return ring.size();
  // Writes ascend along the rank's list, and what is known along a list only grows.
  const auto first = std::partition_point(ring.writes.begin() + n + 1, ring.writes.end(), [&](int index) {
    return !before(send.peer, recv_index, rank, index);
  });
  return int(first - ring.writes.begin()) - n;
}

// Calls visit(clocks, ring of the sent tensor, rank, send, index of its recv on the peer or −1) for every
// send.
template <class Visit>
void each_send(const Schedule& schedule, Visit visit) {
  const Partners partners = match_messages(schedule);
  const HappensBefore before(schedule, partners);
  for (int r = 0; r < int(schedule.ranks.size()); ++r) {
    auto of_rank = rings(schedule.ranks[r]);
    for (size_t i = 0; i < schedule.ranks[r].size(); ++i) {
      const Action& a = schedule.ranks[r][i];
      if (is(a, Verb::send)) visit(before, of_rank[{a.message.flow, a.stage}], r, a, partners.of[r][i]);
    }
  }
}

int& sent(Slots& slots, Flow flow) {
  return flow == Flow::activation ? slots.sent_activations : slots.sent_gradients;
}

[[noreturn]] void too_few(int rank, const Action& at, std::string_view what, int given,
                          const std::string& needed) {
  throw Error(fmt::format("schedule, rank {}: {} finds no free slot: {} slots for {}, but {}", rank,
                          print(at), given, what, needed));
}

void check_count(int rank, std::string_view what, int given, const Peak& peak) {
  if (given < peak.count) too_few(rank, peak.at, what, given, fmt::format("{} are needed", peak.count));
}

}  // namespace

std::vector<RankSlots> slots(const Schedule& schedule) {
  const bool training = learns(schedule);
  std::vector<RankSlots> all;
  for (const auto& of_rank : schedule.ranks) {
    all.emplace_back();
    for (const auto& [stage, actions] : by_stage(of_rank))
      all.back()[stage] = {.microbatches = in_flight(actions, training).count,
                           .held_gradients = held_gradients(actions).count,
                           .received_gradients = received_gradients(actions).count};
  }
  each_send(schedule, [&](const HappensBefore& before, const RingWrites& ring, int rank, const Action& send,
                          int recv_index) {
    int& needed = sent(all[rank][send.stage], send.message.flow);
    needed = std::max(needed, reuse_distance(before, ring, rank, send, recv_index));
  });
  return all;
}

std::vector<double> peak_in_flight(const Schedule& schedule) {
  const bool training = learns(schedule);
  std::vector<double> peaks;
  for (const auto& actions : schedule.ranks) {
    int alive = 0, most = 0;
    for (const Action& a : actions) {
      if (is(a, Verb::forward)) most = std::max(most, ++alive);
      alive -= training ? is(a, Verb::backward) || is(a, Verb::backward_weight) : is(a, Verb::forward);
    }
    peaks.push_back(double(most) / double(std::max<size_t>(1, by_stage(actions).size())));
  }
  return peaks;
}

int shared_outputs(const std::vector<Action>& actions, int stage, const std::vector<int>& users,
                   bool rereads) {
  const std::map<int, Action> last = last_of_each(actions, [&](const Action& a) {
    if (std::ranges::count(users, a.stage) == 0) return false;
    return rereads ? is(a, Verb::backward) || is(a, Verb::backward_weight) : is(a, Verb::forward);
  });
  const auto begins = [&](const Action& a) {
    return a.stage == stage && is(a, Verb::forward) && last.contains(a.microbatch);
  };
  const auto ends = [&](const Action& a) {
    return last.contains(a.microbatch) && a == last.at(a.microbatch);
  };
  return most_alive(actions, begins, ends).count;
}

int shared_gradients(const std::vector<Action>& actions, int stage, const std::vector<int>& users) {
  const auto sends = [](const Action& a) { return is(a, Verb::backward) || is(a, Verb::backward_input); };
  const auto begins = [&](const Action& a) { return sends(a) && std::ranges::count(users, a.stage) > 0; };
  const auto ends = [&](const Action& a) { return sends(a) && a.stage == stage; };
  return most_alive(actions, begins, ends).count;
}

void validate_slots(const Schedule& schedule, const std::vector<RankSlots>& all) {
  ANTICHAIN_CHECK(all.size() == schedule.ranks.size(), "one entry of slots per rank");
  const bool training = learns(schedule);
  for (size_t r = 0; r < all.size(); ++r)
    for (const auto& [stage, actions] : by_stage(schedule.ranks[r])) {
      const Slots& given = all[r].at(stage);
      check_count(int(r), "micro-batches in flight", given.microbatches, in_flight(actions, training));
      check_count(int(r), "gradients held for their weight half", given.held_gradients,
                  held_gradients(actions));
      check_count(int(r), "received gradients", given.received_gradients, received_gradients(actions));
    }
  each_send(schedule, [&](const HappensBefore& before, const RingWrites& ring, int rank, const Action& send,
                          int recv_index) {
    Slots have = all[rank].at(send.stage);
    const int k = sent(have, send.message.flow), next = ring.number_of(send.microbatch) + k;
    if (k >= 1 && next >= ring.size()) return;  // nobody uses the slot again
    if (k >= 1 && recv_index >= 0 && before(send.peer, recv_index, rank, ring.writes[next])) return;
    const std::string why = fmt::format("reusing it for micro-batch {} would wait for rank {}",
                                        ring.microbatches[next], send.peer);
    too_few(rank, send, "sent tensors", k, why);
  });
}

}  // namespace antichain
