#include "pipeline/host/progress.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace antichain {
namespace {

constexpr clockid_t no_clock = CLOCK_REALTIME;

}  // namespace

// A reader that sees a part of this write also sees the odd version stored before it (release, then acquire
// on the same word), and so reads again. There are no fences, because ThreadSanitizer does not model them.
void SharedText::write(std::string_view text) {
  Bytes bytes{};
  std::memcpy(bytes.data(), text.data(), std::min(text.size(), bytes.size() - 1));
  const uint32_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  for (size_t i = 0; i < words_.size(); ++i) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + 8 * i, 8);
    words_[i].store(word, std::memory_order_release);
  }
  version_.store(version + 2, std::memory_order_release);
}

bool SharedText::try_read(Bytes& bytes) const {
  const uint32_t before = version_.load(std::memory_order_acquire);
  for (size_t i = 0; i < words_.size(); ++i) {
    const uint64_t word = words_[i].load(std::memory_order_acquire);
    std::memcpy(bytes.data() + 8 * i, &word, 8);
  }
  bytes.back() = 0;
  return before % 2 == 0 && version_.load(std::memory_order_relaxed) == before;
}

SharedText::Bytes SharedText::read() const {
  Bytes bytes{};
  // A writer that is stopped in the middle of a write must not block its reader: after some tries the reader
  // takes a torn text.
  for (int tries = 0; tries < 1000 && !try_read(bytes); ++tries)
    if (tries > 10) std::this_thread::yield();  // the writer may be waiting for this core
  return bytes;
}

Progress::Progress() : computing_(no_clock) {}

void Progress::finish() {
  finished_.store(true, std::memory_order_relaxed);
  beat();
}

void Progress::guard(std::function<std::string()> failure) {
  std::lock_guard lock(guard_mutex_);
  guard_ = std::move(failure);
}

void Progress::examine() const {
  std::lock_guard lock(guard_mutex_);
  if (!guard_ || failed_.load(std::memory_order_relaxed)) return;
  const std::string failure = guard_();
  if (failure.empty()) return;
  failure_.write(failure);
  failed_.store(true, std::memory_order_release);
}

void Progress::begin_wait(int peer) {
  explained_.store(false, std::memory_order_relaxed);
  waiting_for_.store(peer, std::memory_order_release);
}

void Progress::explain(std::string_view text) {
  waiting_.write(text);
  explained_.store(true, std::memory_order_release);
}

// The beat comes first: a reader that sees the wait over must also see the new count, or it would take the
// time spent waiting for time spent computing.
void Progress::end_wait() {
  beat();
  waiting_for_.store(RankState::not_waiting, std::memory_order_release);
}

// Every millisecond on a core is a beat.
uint64_t Progress::beats() const {
  const uint64_t beats = beats_.load(std::memory_order_acquire);
  const clockid_t clock = computing_.load(std::memory_order_relaxed);
  timespec t{};
  if (clock == no_clock || ::clock_gettime(clock, &t) != 0) return beats;
  return beats + 1000 * uint64_t(t.tv_sec) + uint64_t(t.tv_nsec) / 1'000'000;
}

Progress::Computing::Computing(Progress& progress) : progress_(progress), before_(progress.computing_) {
  clockid_t mine;
  if (::pthread_getcpuclockid(::pthread_self(), &mine) == 0) progress.computing_ = mine;
}

Progress::Computing::~Computing() {
  progress_.beats_ = progress_.beats() + 1;
  progress_.computing_ = before_;
}

Progress::Disk::Disk(Progress& progress, std::string_view action)
    : progress_(progress), before_s_(progress.patience_s_.load(std::memory_order_relaxed)) {
  progress.doing(action);
  progress.patience_s_.store(disk_patience_s, std::memory_order_release);
}

// The beat comes first, as at the end of a wait.
Progress::Disk::~Disk() {
  progress_.beat();
  progress_.patience_s_.store(before_s_, std::memory_order_release);
}

RankState Progress::read() const {
  RankState state;
  state.waiting_for = waiting_for_.load(std::memory_order_acquire);
  state.patience_s = patience_s_.load(std::memory_order_acquire);
  state.beats = beats();
  state.limit_s = limit_s();
  state.finished = finished_.load(std::memory_order_relaxed);
  state.action = action_.read();
  if (explained_.load(std::memory_order_acquire)) state.waiting = waiting_.read();
  if (failed_.load(std::memory_order_acquire)) state.failure = failure_.read();
  return state;
}

}  // namespace antichain
