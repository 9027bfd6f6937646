#include "pipeline/host/watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "pipeline/host/seconds.h"

namespace antichain {
namespace {

class ThreadStates : public RankStates {
 public:
  explicit ThreadStates(const std::vector<const Progress*>& ranks) : states_(ranks.size()) {
    for (const Progress* rank : ranks) ranks_.emplace_back(*rank);
  }
  void refresh() override {
    for (size_t r = 0; r < ranks_.size(); ++r) states_[r] = ranks_[r].look(now_s());
  }
  int size() const override { return int(ranks_.size()); }
  RankState state(int rank) const override { return states_[rank]; }
  double unheard_s(int) const override { return 0; }
  std::string host(int) const override { return {}; }
  bool leave() override { return true; }

 private:
  std::vector<Standstill> ranks_;
  std::vector<RankState> states_;
};

bool over(double seconds, const RankState& s) { return s.limit_s > 0 && seconds > s.limit_s; }

bool failed(const RankView& v) { return v.state.failure[0] != 0; }
// The rank's process is stopped, gone, or cut off: even its watchdog is silent.
bool lost(const RankView& v) { return !v.state.finished && over(v.unheard_s, v.state); }
// A rank whose heartbeats have just stopped may hang or be lost. The next seconds decide.
bool heard(const RankView& v) { return v.unheard_s < 1; }
bool still_too_long(const RankView& v) { return over(v.still_s - v.state.patience_s, v.state); }
bool hung(const RankView& v) { return heard(v) && !v.state.is_waiting() && still_too_long(v); }
// A rank that has just finished does not make the others' waits a deadlock: what is known of them is as old
// as their last heartbeat, and what they wait for may have come since.
bool waits_too_long(const RankView& v) { return v.state.is_waiting() && still_too_long(v); }

std::string who(const std::vector<RankView>& ranks, int r) {
  return ranks[r].host.empty() ? fmt::format("rank {}", r) : fmt::format("rank {} on {}", r, ranks[r].host);
}

std::string action(const RankState& s) {
  return s.action[0] ? fmt::format("its last action was \"{}\"", s.action.data()) : "before its first action";
}

// Says how much time was not counted, where that is worth mentioning.
std::string besides(const RankView& v) {
  if (v.state.starved_s < 0.1 * v.state.limit_s) return "";
  return fmt::format(", besides {:.1f} s without a core", v.state.starved_s);
}

std::string what_is_wrong(const RankView& v) {
  if (failed(v)) return fmt::format("was told by its device: {}", v.state.failure.data());
  if (lost(v))
    return fmt::format("has not been heard from (stopped, lost, or cut off) for {:.1f} s (limit {:g} s)",
                       v.unheard_s, v.state.limit_s);
  const std::string patience =
      v.state.patience_s > 0 ? fmt::format(", and {:g} s while a disk works", v.state.patience_s) : "";
  return fmt::format("has made no progress for {:.1f} s (limit {:g} s{}){}", v.still_s, v.state.limit_s,
                     patience, besides(v));
}

std::string waits_for(const RankState& s) {
  if (s.finished) return "has finished";
  if (s.waiting[0]) return fmt::format("waits for the {}", s.waiting.data());
  return s.waiting_for < 0 ? "waits for the other ranks" : fmt::format("waits for rank {}", s.waiting_for);
}

std::string others_wait(const std::vector<RankView>& ranks, const std::vector<bool>& culprit) {
  std::string text;
  constexpr int most = 8;  // lines: in a large job more would hide the first one
  int lines = 0;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (culprit[r] || !ranks[r].state.is_waiting() || ranks[r].state.finished) continue;
    if (++lines <= most) text += fmt::format("\n  {} {}", who(ranks, int(r)), waits_for(ranks[r].state));
  }
  if (lines > most) text += fmt::format("\n  and {} more ranks wait", lines - most);
  return text;
}

}  // namespace

RankState Standstill::look(double now_s) {
  rank_->examine();
  RankState state = rank_->read();
  if (state.beats != beats_ || since_s_ == 0) {
    beats_ = state.beats;
    since_s_ = now_s;
    starved_.reset();
  }
  // Asking the system about every thread costs more than the rest of the watchdog. So this waits until the
  // answer may matter.
  if (starved_)
    starved_->look();
  else if (state.limit_s > 0 && now_s - since_s_ > state.limit_s / 10)
    starved_.emplace(::getpid());
  if (starved_) state.starved_s = starved_->seconds();
  return state;
}

std::unique_ptr<RankStates> states_of_threads(std::vector<const Progress*> ranks) {
  return std::make_unique<ThreadStates>(std::move(ranks));
}

Verdict judge(const std::vector<RankView>& ranks) {
  Verdict verdict;
  std::vector<bool> culprit(ranks.size());
  for (size_t r = 0; r < ranks.size(); ++r) {
    const RankView& v = ranks[r];
    if (!failed(v) && !lost(v) && !hung(v)) continue;
    culprit[r] = verdict.stuck = true;
    verdict.message += fmt::format("{}{} {}: {}", verdict.message.empty() ? "" : "\n", who(ranks, int(r)),
                                   what_is_wrong(v), action(v.state));
  }
  const bool all_wait = std::all_of(ranks.begin(), ranks.end(), waits_too_long) &&
                        !std::all_of(ranks.begin(), ranks.end(), [](auto& v) { return v.state.finished; });
  if (!verdict.stuck && all_wait) {
    verdict.stuck = true;
    verdict.message =
        "every rank waits for another one and none has made progress within its limit (a deadlock)";
  }
  verdict.message += others_wait(ranks, culprit);
  while (verdict.speaker + 1 < int(ranks.size()) && lost(ranks[verdict.speaker])) ++verdict.speaker;
  return verdict;
}

Watchdog::Watchdog(std::unique_ptr<RankStates> states, OnStuck on_stuck)
    : states_(std::move(states)),
      on_stuck_(std::move(on_stuck)),
      beats_(states_->size()),
      changed_at_s_(states_->size()),
      looked_at_s_(now_s()),
      thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::vector<RankView> Watchdog::look() {
  states_->refresh();
  std::vector<RankView> views(states_->size());
  const double slept_s = now_s() - looked_at_s_;
  looked_at_s_ += slept_s;
  // While this thread has no core it cannot know whether the ranks had one. So a check that comes late counts
  // like one in time.
  watched_s_ += std::min(slept_s, std::max(2 * pause_s_, 0.05));
  const double now = watched_s_;
  // A process that was stopped (by a terminal, a batch system) may have been stopped together with all
  // others. Then earlier time does not count, and every rank gets the whole limit again.
  if (slept_s > 2) awake_since_s_ = now;
  for (int r = 0; r < states_->size(); ++r) {
    const RankState state = states_->state(r);
    if (state.beats != beats_[r]) {
      beats_[r] = state.beats;
      changed_at_s_[r] = now;
    }
    const double still_s = now - std::max(changed_at_s_[r], awake_since_s_) - state.starved_s;
    views[r] = {state, std::max(still_s, 0.0), std::min(states_->unheard_s(r), now - awake_since_s_),
                states_->host(r)};
  }
  return views;
}

// Checks often enough to be late by at most a twentieth of the limit, and rarely enough to cost nothing.
double Watchdog::pause_s(const std::vector<RankView>& views) const {
  if (stopping_) return 1e-3;
  double pause = 0.25;
  for (const RankView& v : views)
    if (v.state.limit_s > 0) pause = std::min(pause, v.state.limit_s / 20);
  return std::max(pause, 5e-3);
}

void Watchdog::run() {
  try {
    watch();
  } catch (const std::exception& error) {  // the ranks can no longer exchange heartbeats
    on_stuck_({.stuck = true, .message = std::string("the watchdog stops: ") + error.what()});
  }
}

void Watchdog::watch() {
  for (;;) {
    const std::vector<RankView> views = look();
    const Verdict verdict = judge(views);
    if (verdict.stuck) return on_stuck_(verdict);
    std::unique_lock lock(mutex_);
    if (stopping_ && states_->leave()) return;
    pause_s_ = pause_s(views);
    wake_.wait_for(lock, std::chrono::duration<double>(pause_s_), [&] { return stopping_; });
    if (stopping_) {  // peers' answers arrive by polling
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace antichain
