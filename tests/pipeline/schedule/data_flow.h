// This interpreter follows the data through a schedule instead of trusting its rules: which tensors are on
// which rank, in which order each gradient was added up, and that replicas add up all of a step. It shares no
// code with the validator.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "pipeline/schedule/schedule.h"
#include "tests/expect_error.h"

namespace antichain::test {

using Folded = std::vector<int>;  // the consumers whose contributions were added up, in that order

class DataFlow {
 public:
  DataFlow(const Schedule& schedule, const Profile& profile, const Plan& plan)
      : schedule_(schedule),
        profile_(profile),
        plan_(plan),
        next_(schedule.ranks.size(), 0),
        stage_of_(plan.stage_of(int(profile.nodes.size()))),
        consumers_(profile.consumers()) {}

  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int r = 0; r < int(next_.size()); ++r)
        while (next_[r] < schedule_.ranks[r].size() && act(r, schedule_.ranks[r][next_[r]]))
          ++next_[r], moved = true;
    }
    for (size_t r = 0; r < next_.size(); ++r)
      EXPECT_EQ(next_[r], schedule_.ranks[r].size()) << "rank " << r << " is stuck";
    EXPECT_TRUE(mail_.empty()) << mail_.size() << " messages were never received";
    EXPECT_TRUE(gradients_.empty()) << "received gradients were never used";
    for (const auto& [seat, microbatches] : weights_)
      EXPECT_TRUE(stepped_.count(seat))
          << "rank " << seat.first << " keeps gradients of stage " << seat.second;
  }

  int forwards = 0, backwards = 0, steps = 0;

 private:
  struct Letter {
    Folded folded;  // of a gradient
  };

  bool act(int rank, const Action& a) {
    const int s = a.stage, m = a.microbatch;
    const std::vector<int>& replicas = plan_.stages[s].ranks;
    EXPECT_EQ(std::count(replicas.begin(), replicas.end(), rank), 1);
    switch (a.verb) {
      case Verb::load:
        EXPECT_TRUE(loaded_.insert({rank, s, m}).second);
        return true;
      case Verb::forward:
        forward(rank, s, m);
        return true;
      case Verb::backward:
        input_gradients(rank, s, m);
        weight_gradients(rank, s, m);
        return true;
      case Verb::backward_input:
        input_gradients(rank, s, m);
        return true;
      case Verb::backward_weight:
        weight_gradients(rank, s, m);
        return true;
      case Verb::send:
        send(rank, a);
        return true;
      case Verb::recv:
        return recv(rank, a);
      case Verb::reduce:
        return reduce(rank, s, replicas);
      case Verb::vote:
        return true;
      case Verb::update:
        step(rank, s, replicas);
        return true;
    }
    return true;
  }

  void forward(int rank, int s, int m) {
    ++forwards;
    EXPECT_TRUE(rank_of_.emplace(std::pair(s, m), rank).second) << s << "F" << m << " twice";
    for (int n : plan_.stages[s].nodes) {
      for (int x : profile_.nodes[n].inputs) {
        const bool there = profile_.nodes[x].role == Role::input
                               ? loaded_.count({rank, s, m})
                               : received_.count({rank, s, x, m}) || outputs_.count({rank, x, m});
        EXPECT_TRUE(there) << "node " << n << " lacks input " << x << " of micro-batch " << m;
      }
      EXPECT_TRUE(outputs_.insert({rank, n, m}).second);
    }
  }

  void weight_gradients(int rank, int s, int m) {
    ++backwards;
    EXPECT_TRUE(done_.count({rank, s, m})) << s << "W" << m << " before its input half";
    std::vector<int>& added = weights_[{rank, s}];
    EXPECT_TRUE(added.empty() || added.back() < m) << "weight gradients out of order on rank " << rank;
    EXPECT_FALSE(reduced_.count({rank, s})) << s << "B" << m << " after the all-reduce";
    added.push_back(m);
  }

  void input_gradients(int rank, int s, int m) {
    EXPECT_EQ(rank_of_.at({s, m}), rank) << s << "B" << m << " far from its forward";
    for (int n : plan_.stages[s].nodes)
      if (profile_.nodes[n].needs_gradient) {
        EXPECT_EQ(fold(rank, s, n, m), descending(n)) << "gradient of node " << n;
      }
    done_.insert({rank, s, m});
  }

  // Everybody waits for the last replica; then all have the gradients of all micro-batches, each once.
  bool reduce(int rank, int s, const std::vector<int>& replicas) {
    EXPECT_GT(replicas.size(), 1u);
    reduced_.insert({rank, s});
    std::vector<int> all;
    for (int replica : replicas) {
      if (!reduced_.count({replica, s})) return false;
      const std::vector<int>& part = weights_[{replica, s}];
      all.insert(all.end(), part.begin(), part.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, every_microbatch()) << "stage " << s;
    return true;
  }

  void step(int rank, int s, const std::vector<int>& replicas) {
    if (replicas.size() == 1)
      EXPECT_EQ((weights_[{rank, s}]), every_microbatch());
    else
      EXPECT_TRUE(reduced_.count({rank, s})) << "stage " << s << " learns from a part of the batch";
    EXPECT_TRUE(stepped_.insert({rank, s}).second);
    ++steps;
  }

  std::vector<int> every_microbatch() const {
    std::vector<int> all(schedule_.microbatches);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  Folded descending(int n) const { return {consumers_[n].rbegin(), consumers_[n].rend()}; }

  // Adds local contributions, those of the rank's other stages, and received runs in descending order; only
  // the first may be a run.
  Folded fold(int rank, int s, int n, int m) {
    std::map<int, Folded, std::greater<>> parts;  // by first consumer
    for (int c : consumers_[n])
      if (stage_of_[c] == s || done_.count({rank, stage_of_[c], m})) parts[c] = {c};
    for (auto it = gradients_.begin(); it != gradients_.end();) {
      const auto& [to, tensor, microbatch, consumer] = it->first;
      if (std::tie(to, tensor, microbatch) == std::tie(rank, n, m)) {
        EXPECT_TRUE(parts.emplace(it->second.at(0), it->second).second);
        it = gradients_.erase(it);
      } else {
        ++it;
      }
    }
    Folded all;
    for (const auto& [first, part] : parts) {
      EXPECT_TRUE(part.size() == 1 || all.empty()) << "a run that does not start the fold was summed ahead";
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  // A gradient message holds the sender's consumers from the message before it (exclusive) down to its own.
  Folded carried(int rank, const Action& a) const {
    std::set<int, std::greater<>> cuts;
    for (const Action& other : schedule_.ranks[rank])
      if (other.verb == Verb::send && other.message.flow == Flow::gradient && other.stage == a.stage &&
          other.message.tensor == a.message.tensor)
        cuts.insert(other.message.consumer);
    Folded held;
    for (int c : descending(a.message.tensor)) {
      if (stage_of_[c] != a.stage) continue;
      held.push_back(c);
      if (c == a.message.consumer) return held;
      if (cuts.count(c)) held.clear();
    }
    ADD_FAILURE() << print(a) << ": the stage does not own that consumer";
    return held;
  }

  void send(int rank, const Action& a) {
    const bool gradient = a.message.flow == Flow::gradient;
    const bool made = gradient ? done_.count({rank, a.stage, a.microbatch}) > 0
                               : stage_of_[a.message.tensor] == a.stage &&
                                     outputs_.count({rank, a.message.tensor, a.microbatch}) > 0;
    EXPECT_TRUE(made) << print(a);
    const Letter letter{gradient ? carried(rank, a) : Folded{}};
    EXPECT_TRUE(mail_.emplace(std::tuple(rank, a.peer, a.message, a.microbatch), letter).second);
  }

  bool recv(int rank, const Action& a) {
    const auto letter = mail_.find({a.peer, rank, a.message, a.microbatch});
    if (letter == mail_.end()) return false;
    if (a.message.flow == Flow::activation) {
      EXPECT_TRUE(received_.insert({rank, a.stage, a.message.tensor, a.microbatch}).second);
    } else {
      gradients_[{rank, a.message.tensor, a.microbatch, a.message.consumer}] = letter->second.folded;
    }
    mail_.erase(letter);
    return true;
  }

  const Schedule& schedule_;
  const Profile& profile_;
  const Plan& plan_;
  std::vector<size_t> next_;
  std::vector<int> stage_of_;
  std::vector<std::vector<int>> consumers_;
  std::set<std::tuple<int, int, int>> outputs_;        // rank, node, micro-batch
  std::set<std::tuple<int, int, int, int>> received_;  // rank, stage, node, micro-batch
  std::set<std::tuple<int, int, int>> loaded_, done_;  // rank, stage, micro-batch
  std::map<std::tuple<int, int, Message, int>, Letter> mail_;
  std::map<std::tuple<int, int, int, int>, Folded> gradients_;  // rank, tensor, micro-batch, consumer
  std::map<std::pair<int, int>, int> rank_of_;                  // stage, micro-batch
  std::map<std::pair<int, int>, std::vector<int>> weights_;     // rank, stage: micro-batches, as added up
  std::set<std::pair<int, int>> reduced_, stepped_;             // rank, stage
};

inline void follow_data(const Schedule& schedule, const Profile& profile, const Plan& plan, bool training) {
  DataFlow flow(schedule, profile, plan);
  flow.run();
  const int each = int(plan.stages.size()) * schedule.microbatches;
  EXPECT_EQ(flow.forwards, each);
  EXPECT_EQ(flow.backwards, training ? each : 0);
  size_t seats = 0;
  for (const PlanStage& stage : plan.stages) seats += stage.ranks.size();
  EXPECT_EQ(flow.steps, training ? int(seats) : 0);
}

}  // namespace antichain::test
