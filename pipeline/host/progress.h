// A Progress is the record of what one rank is doing right now. The rank's thread writes it and the
// watchdog's thread reads it.
//
// Writing is cheap enough for every action (tens of nanoseconds, no allocation, no lock). The record holds a
// counter of beats and two short texts that a reader can copy while they change. Each text is a sequence
// lock: Lameter, "Effective Synchronization on Linux/NUMA Systems", Gelato Federation Meeting 2005.
#pragma once

#include <time.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace antichain {

// A RankState is the record as the watchdog sees it. MPI ranks send it to each other byte by byte, so it is
// trivially copyable.
struct RankState {
  static constexpr int not_waiting = -2, anybody = -1;  // values of waiting_for besides a rank

  uint64_t beats = 0;     // grows with everything that the rank finishes
  double limit_s = 0;     // how long this phase may go without a beat; 0: forever
  double starved_s = 0;   // part of the time since its last beat in which it was ready but without a core
  double patience_s = 0;  // added to the limit while the rank waits for a disk
  int32_t waiting_for = not_waiting;
  int32_t finished = 0;             // 1: the rank has ended its work, successfully or not
  std::array<char, 128> action{};   // zero-terminated, such as "0F3 forward of micro-batch 3 on stage 0"
  std::array<char, 128> waiting{};  // zero-terminated; empty until a wait has lasted some milliseconds
  std::array<char, 128> failure{};  // zero-terminated; an asynchronous error of the device, usually empty

  bool is_waiting() const { return waiting_for != not_waiting || finished; }
};

// A SharedText holds at most 127 bytes that one thread writes while others read.
class SharedText {
 public:
  using Bytes = std::array<char, 128>;  // zero-terminated

  void write(std::string_view text);
  Bytes read() const;                 // retries until the text is whole, but gives up eventually
  bool try_read(Bytes& bytes) const;  // false: a write was under way and the text may be torn

 private:
  std::atomic<uint32_t> version_{0};  // odd while a write is under way
  std::array<std::atomic<uint64_t>, 16> words_{};
};

class Progress {
 public:
  Progress();
  // Only the rank's thread calls these.
  void limit(double seconds) { limit_s_.store(seconds, std::memory_order_relaxed); }
  void beat() { beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  void doing(std::string_view action) {
    action_.write(action);
    beat();
  }
  void finish();
  // Sets the function that finds failures which no call of the rank's thread returns (asynchronous errors of
  // a device); it returns "" when there is none. The watchdog's thread calls it. Setting an empty function
  // stops these calls, after one that is running has returned.
  void guard(std::function<std::string()> failure);

  // Any thread may call this.
  RankState read() const;
  void examine() const;  // calls the guard
  double limit_s() const { return limit_s_.load(std::memory_order_relaxed); }

  // A Wait is held while the rank's thread waits for rank `peer` (or RankState::anybody).
  class Wait {
   public:
    Wait(Progress& progress, int peer) : progress_(progress) { progress_.begin_wait(peer); }
    ~Wait() { progress_.end_wait(); }
    Wait(const Wait&) = delete;
    // Says what the rank waits for. This formats a text, so call it only once the wait has lasted.
    void explain(std::string_view text) { progress_.explain(text); }

   private:
    Progress& progress_;
  };

  // A Computing is held while the rank's thread computes for long without steps, as a planner's search does.
  // The thread's time on a core counts as progress; while it waits or sleeps it makes none.
  class Computing {
   public:
    explicit Computing(Progress&);
    ~Computing();
    Computing(const Computing&) = delete;

   private:
    Progress& progress_;
    const clockid_t before_;
  };

  // A Disk is held while the rank's thread waits for a disk. A file server that stalls is no hang, so the
  // watchdog waits this much longer before it reports one.
  static constexpr double disk_patience_s = 1800;
  class Disk {
   public:
    Disk(Progress&, std::string_view action);
    ~Disk();
    Disk(const Disk&) = delete;

   private:
    Progress& progress_;
    const double before_s_;
  };

 private:
  void begin_wait(int peer);
  void explain(std::string_view text);
  void end_wait();
  uint64_t beats() const;

  std::atomic<uint64_t> beats_{0};
  std::atomic<clockid_t> computing_;  // the clock of the thread's time on a core, in a Computing
  std::atomic<double> limit_s_{0}, patience_s_{0};
  std::atomic<int32_t> waiting_for_{RankState::not_waiting};
  std::atomic<bool> explained_{false}, finished_{false};
  SharedText action_, waiting_;
  mutable std::mutex guard_mutex_;
  std::function<std::string()> guard_;
  mutable std::atomic<bool> failed_{false};
  mutable SharedText failure_;
};

}  // namespace antichain
