#include "pipeline/transport/thread_transport.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "framework/error.h"
#include "framework/say.h"
#include "pipeline/host/host_memory.h"
#include "pipeline/host/launch.h"
#include "pipeline/host/watchdog.h"

namespace antichain {
namespace {

// A FirstError collects the errors of threads that fail together. It keeps the first one that is not merely a
// consequence of another rank's failure.
class FirstError {
 public:
  void note(const std::exception_ptr& error) {
    std::lock_guard lock(mutex_);
    std::exception_ptr& first = is_consequence(error) ? consequence_ : original_;
    if (!first) first = error;
  }
  // Call this after the threads have ended. It throws a consequence only where no other error was noted, and
  // does nothing where there was no error.
  void rethrow() const {
    if (original_) std::rethrow_exception(original_);
    if (consequence_) std::rethrow_exception(consequence_);
  }

 private:
  static bool is_consequence(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      return e.code() == ExitCode::peer_failed;
    } catch (...) {
      return false;
    }
  }

  std::mutex mutex_;
  std::exception_ptr original_, consequence_;
};

struct Parcel {
  MessageKey key;
  Tensor tensor;
};

// Everything the ranks share, under one lock; tensors are copied outside it.
struct Hub {
  explicit Hub(int n)
      : size(n), mailboxes(n * n), letters(n * n), undelivered(n), contributions(n), wake(n) {}

  std::vector<Parcel>& mailbox(int from, int to) { return mailboxes[from * size + to]; }

  const int size;
  std::mutex mutex;
  std::vector<std::vector<Parcel>> mailboxes;    // per (from, to), in the order of sending
  std::vector<std::deque<std::string>> letters;  // per (from, to)
  std::vector<int> undelivered;                  // per sender
  std::vector<std::string> contributions;        // to the collective under way
  std::shared_ptr<const std::vector<std::string>> result;
  int arrived = 0;
  uint64_t collectives = 0;
  std::vector<std::condition_variable> wake;  // one per rank
  std::atomic<bool> aborted{false};
  int aborted_by = -1;
};

class ThreadTransport : public JobTransport {
 public:
  ThreadTransport(Hub& hub, int rank) : hub_(hub), rank_(rank), crowded_(hub.size > available_cores()) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_.size; }
  int local_rank() const override { return rank_; }
  int local_size() const override { return hub_.size; }
  std::string host() const override { return host_name(); }

  void send(MessageKey key, int peer, Tensor tensor) override {
    check_peer(peer);
    {
      std::lock_guard lock(hub_.mutex);
      hub_.mailbox(rank_, peer).push_back({key, std::move(tensor)});
      ++hub_.undelivered[rank_];
    }
    hub_.wake[peer].notify_one();
  }

  Ticket recv(MessageKey key, int peer, Tensor into) override {
    check_peer(peer);
    posted_.push_back({++last_ticket_, key, peer, std::move(into)});
    return last_ticket_;
  }

  void wait(Ticket ticket) override {
    deliver_arrived();
    const PostedReceive* posted = find(ticket);
    if (!posted) return;
    const MessageKey key = posted->key;
    const int peer = posted->peer;
    Progress::Wait waiting(activity(), peer);
    block(
        waiting, [&] { return fmt::format("{} from rank {}", name_of(key, peer, rank_), peer); },
        [&] { return !find(ticket); });
  }

  bool arrived(Ticket ticket) override {
    deliver_arrived();
    return !find(ticket);
  }

  void progress() override {
    deliver_arrived();
    activity().beat();
  }

  void flush() override {
    Progress::Wait waiting(activity(), RankState::anybody);
    block(
        waiting, [] { return std::string("delivery of its own sends"); },
        [&] { return hub_.undelivered[rank_] == 0; });
  }

  void barrier() override { exchange({}, "barrier that the other ranks have not reached"); }

  std::string broadcast(std::string bytes, int root) override {
    check_peer(root);
    const bool mine = root == rank_;
    return (*exchange(mine ? std::move(bytes) : std::string(),
                      fmt::format("broadcast from rank {}", root)))[root];
  }

  std::vector<std::string> gather(const std::string& bytes) override {
    const auto all = exchange(bytes, "gathering of results on rank 0");
    return rank_ == 0 ? *all : std::vector<std::string>();
  }

  void post(int to, std::string letter) override {
    check_peer(to);
    {
      std::lock_guard lock(hub_.mutex);
      hub_.letters[rank_ + to * hub_.size].push_back(std::move(letter));
    }
    hub_.wake[to].notify_one();
  }

  std::string take(int from) override {
    check_peer(from);
    std::deque<std::string>& letters = hub_.letters[from + rank_ * hub_.size];
    Progress::Wait waiting(activity(), from);
    block(
        waiting, [&] { return fmt::format("letter from rank {}", from); }, [&] { return !letters.empty(); });
    std::lock_guard lock(hub_.mutex);
    std::string letter = std::move(letters.front());
    letters.pop_front();
    return letter;
  }

  void abort() {
    {
      std::lock_guard lock(hub_.mutex);
      if (!hub_.aborted) hub_.aborted_by = rank_;
      hub_.aborted = true;
    }
    for (auto& wake : hub_.wake) wake.notify_all();
  }
  void check_job() override { check_aborted(); }

 private:
  struct PostedReceive {
    Ticket ticket;
    MessageKey key;
    int peer;
    Tensor into;
  };

  void check_peer(int peer) const {
    if (peer >= 0 && peer < hub_.size) return;
    throw Error(fmt::format("rank {} addresses rank {}, but there are {} ranks", rank_, peer, hub_.size),
                "schedule and plan must be for this number of ranks");
  }

  const PostedReceive* find(Ticket ticket) const {
    for (const PostedReceive& p : posted_)
      if (p.ticket == ticket) return &p;
    return nullptr;
  }

  // Blocks until `ready()`, called under the lock, taking in what arrives meanwhile: a peer's flush may be
  // waiting for that. Looks a few times first: waking a sleeping thread takes longer than most short waits,
  // but is the better choice where ranks share a core.
  template <class Text, class Ready>
  void block(Progress::Wait& waiting, const Text& text, const Ready& ready) {
    for (int looks = crowded_ ? 2 : 50;; --looks) {
      deliver_arrived();
      std::unique_lock lock(hub_.mutex);
      check_aborted();
      if (ready()) return;
      if (looks > 0) {
        lock.unlock();
        std::this_thread::yield();
      } else {
        sleep(lock, waiting, text, [&] { return hub_.aborted || ready() || any_arrived(); });
      }
    }
  }

  template <class Text, class Ready>
  void sleep(std::unique_lock<std::mutex>& lock, Progress::Wait& waiting, const Text& text,
             const Ready& ready) {
    auto& wake = hub_.wake[rank_];
    if (wake.wait_for(lock, std::chrono::milliseconds(20), ready)) return;
    lock.unlock();
    waiting.explain(text());
    lock.lock();
    wake.wait(lock, ready);
  }

  void check_aborted() const {
    if (!hub_.aborted) return;
    throw Error(fmt::format("rank {} stops because rank {} ended the job", rank_, hub_.aborted_by), "",
                ExitCode::peer_failed);
  }

  std::vector<Parcel>::iterator parcel_for(const PostedReceive& posted) {
    auto& box = hub_.mailbox(posted.peer, rank_);
    auto it = box.begin();
    while (it != box.end() && it->key != posted.key) ++it;
    return it;
  }

  bool any_arrived() {  // under the lock
    for (const PostedReceive& p : posted_)
      if (parcel_for(p) != hub_.mailbox(p.peer, rank_).end()) return true;
    return false;
  }

  struct Arrival {
    Tensor from;
    PostedReceive to;
  };

  // Takes every message that is there for a posted receive, in the order of posting: equal keys match in
  // order.
  void deliver_arrived() {
    while (std::optional<Arrival> arrival = take()) deliver(std::move(arrival->from), arrival->to);
  }

  // Looks for all receives under one lock: a message that comes between two looks would go to a later receive
  // of its key.
  std::optional<Arrival> take() {
    std::lock_guard lock(hub_.mutex);
    check_aborted();
    for (auto posted = posted_.begin(); posted != posted_.end(); ++posted) {
      auto& box = hub_.mailbox(posted->peer, rank_);
      const auto parcel = parcel_for(*posted);
      if (parcel == box.end()) continue;
      Arrival arrival{std::move(parcel->tensor), std::move(*posted)};
      box.erase(parcel);
      posted_.erase(posted);
      return arrival;
    }
    return std::nullopt;
  }

  void deliver(Tensor from, const PostedReceive& to) {
    const int64_t bytes = from.bytes();
    if (bytes == to.into.bytes()) std::memcpy(to.into.raw(), from.raw(), size_t(bytes));
    from = Tensor();  // before the sender may reuse its bytes
    {
      std::lock_guard lock(hub_.mutex);
      --hub_.undelivered[to.peer];
    }
    hub_.wake[to.peer].notify_one();
    activity().beat();
    if (bytes != to.into.bytes()) throw wrong_size(to.key, to.peer, to.into.bytes(), bytes);
  }

  // Every collective is this one: all give, all see everything. The last to arrive publishes the result.
  std::shared_ptr<const std::vector<std::string>> exchange(std::string bytes, const std::string& what) {
    Progress::Wait waiting(activity(), RankState::anybody);
    std::unique_lock lock(hub_.mutex);
    check_aborted();
    const uint64_t mine = hub_.collectives;
    hub_.contributions[rank_] = std::move(bytes);
    if (++hub_.arrived == hub_.size) {
      auto all = std::vector<std::string>(hub_.size);
      all.swap(hub_.contributions);
      hub_.result = std::make_shared<const std::vector<std::string>>(std::move(all));
      hub_.arrived = 0;
      ++hub_.collectives;
      for (auto& wake : hub_.wake) wake.notify_all();
      return hub_.result;
    }
    lock.unlock();
    // Nobody can complete the next collective before this rank has joined it, so the result is still this
    // one's.
    block(
        waiting, [&] { return what; }, [&] { return hub_.collectives != mine; });
    lock.lock();
    return hub_.result;
  }

  Hub& hub_;
  const int rank_;
  const bool crowded_;
  std::vector<PostedReceive> posted_;
  Ticket last_ticket_ = 0;
};

[[noreturn]] void end_stuck(const Verdict& verdict) {
  say_last(verdict.message);
  std::_Exit(int(ExitCode::watchdog));
}

}  // namespace

void run_ranks(int n, const std::function<void(JobTransport&)>& body, const RunRanksOptions& options) {
  if (n < 1) throw Error(fmt::format("a job needs at least one rank, not {}", n), "", ExitCode::usage);
  Hub hub(n);
  std::vector<std::unique_ptr<ThreadTransport>> transports;
  std::vector<const Progress*> records;
  for (int r = 0; r < n; ++r) {
    transports.push_back(std::make_unique<ThreadTransport>(hub, r));
    transports[r]->activity().limit(options.watchdog_s);
    records.push_back(&transports[r]->activity());
  }
  FirstError error;
  Watchdog watchdog(states_of_threads(records), end_stuck);
  const auto end_with = [&](int r, const std::exception_ptr& why) {
    error.note(why);
    transports[r]->abort();
  };
  const auto work = [&](int r) {
    try {
      body(*transports[r]);
    } catch (...) {
      end_with(r, std::current_exception());
    }
    transports[r]->activity().finish();
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) try {
      threads.emplace_back(work, r);
    } catch (const std::system_error& none) {
      end_with(r, std::make_exception_ptr(beyond_limits(none)));
      transports[r]->activity().finish();
    }
  for (auto& thread : threads) thread.join();
  error.rethrow();
}

}  // namespace antichain
