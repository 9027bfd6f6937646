// What one rank is doing right now, written by the rank's thread and read by the watchdog's.
//
// Writing is cheap enough for every action (tens of nanoseconds, no allocation, no lock): a counter of beats,
// and two short texts that a reader can copy while they change. The texts are a sequence lock: Lameter,
// "Effective Synchronization on Linux/NUMA Systems", Gelato Federation Meeting 2005.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace antichain {

// The record as the watchdog sees it; trivially copyable, because MPI ranks send it to each other as it is.
struct RankState {
  static constexpr int not_waiting = -2, anybody = -1;  // values of waiting_for besides a rank

  uint64_t beats = 0;  // grows with everything the rank finishes
  double limit_s = 0;  // how long this phase may go without a beat; 0: for ever
  double starved_s =
      0;  // of the time since its last beat, ready to run but without a core (pipeline/host/standstill.h)
  double patience_s = 0;  // so much longer than the limit, while a disk works for the rank
  int32_t waiting_for = not_waiting;
  int32_t finished = 0;             // 1: the rank has left its work, well or not
  std::array<char, 128> action{};   // zero-terminated, such as "0F3 forward of micro-batch 3 on stage 0"
  std::array<char, 128> waiting{};  // zero-terminated; empty until a wait has lasted some milliseconds
  std::array<char, 128> failure{};  // zero-terminated; what the device reported by itself, mostly nothing

  bool is_waiting() const { return waiting_for != not_waiting || finished; }
};

// A text of at most 127 bytes that one thread writes and others read meanwhile.
class SharedText {
 public:
  using Bytes = std::array<char, 128>;  // zero-terminated

  void write(std::string_view text);
  Bytes read() const;                 // tries until the text is whole, but not for ever
  bool try_read(Bytes& bytes) const;  // false: a write was under way and the text may be torn

 private:
  std::atomic<uint32_t> version_{0};  // odd while a write is under way
  std::array<std::atomic<uint64_t>, 16> words_{};
};

class Progress {
 public:
  // Called by the rank's thread only.
  void limit(double seconds) { limit_s_.store(seconds, std::memory_order_relaxed); }
  void beat() { beats_.store(beats_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  void doing(std::string_view action) {
    action_.write(action);
    beat();
  }
  void finish();
  // What finds a failure that no call of the rank's thread returns (a device's asynchronous error), or "".
  // Asked by the watchdog's thread; an empty function ends that, after a call that is under way.
  void guard(std::function<std::string()> failure);

  // Called by any thread.
  RankState read() const;
  void examine() const;  // asks the guard
  double limit_s() const { return limit_s_.load(std::memory_order_relaxed); }

  // Held while the rank's thread waits for rank `peer` (or RankState::anybody).
  class Wait {
   public:
    Wait(Progress& progress, int peer) : progress_(progress) { progress_.begin_wait(peer); }
    ~Wait() { progress_.end_wait(); }
    Wait(const Wait&) = delete;
    // What it waits for; worth saying only once the wait has lasted (it costs a formatted text).
    void explain(std::string_view text) { progress_.explain(text); }

   private:
    Progress& progress_;
  };

  // Held while the rank's thread waits for a disk. A file server that stalls is no hang: the watchdog waits
  // so much longer before it takes it for one.
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

  std::atomic<uint64_t> beats_{0};
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
