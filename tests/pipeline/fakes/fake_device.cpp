#include "tests/pipeline/fakes/fake_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "framework/error.h"

namespace antichain::test {
namespace {

using Flag = std::atomic<bool>;

bool is_set(const Moment& moment) {
  ANTICHAIN_CHECK(moment != nullptr, "a moment that comes");
  return static_cast<Flag*>(moment.get())->load(std::memory_order_acquire);
}
void stand_until(const Moment& moment) {
  while (!is_set(moment)) std::this_thread::yield();
}
void copy_bytes(const Tensor& from, const Tensor& to) {
  ANTICHAIN_CHECK(from.bytes() == to.bytes(), "both ends have one size");
  std::memcpy(to.raw(), from.raw(), size_t(from.bytes()));
}

}  // namespace

FakeCopies::FakeCopies() : thread_([this] { work(); }) {}

FakeCopies::~FakeCopies() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Moment FakeCopies::computed() { return std::make_shared<Flag>(true); }
void FakeCopies::compute_after(const Moment& moment) { stand_until(moment); }
bool FakeCopies::reached(const Moment& moment) { return is_set(moment); }

std::shared_ptr<std::byte> FakeCopies::page_locked(int64_t bytes) {
  ++buffers_;
  return allocate_host(bytes);
}

Moment FakeCopies::to_host(const Tensor& from, const Tensor& host, const Moment& after) {
  ANTICHAIN_CHECK(is_set(after), "computing here is done at once");
  return copy(from, host);
}
Moment FakeCopies::to_device(const Tensor& host, const Tensor& to, const Moment& after) {
  ANTICHAIN_CHECK(is_set(after), "computing here is done at once");
  return copy(host, to);
}

Moment FakeCopies::copy(const Tensor& from, const Tensor& to) {
  const auto done = std::make_shared<Flag>(false);
  {
    std::lock_guard lock(mutex_);
    copies_.push_back({from, to, done});
  }
  wake_.notify_one();
  return done;
}

void FakeCopies::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !copies_.empty(); });
    if (copies_.empty()) return;
    Copy next = std::move(copies_.front());
    copies_.pop_front();
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    copy_bytes(next.from, next.to);
    next.from = next.to = {};
    next.done->store(true, std::memory_order_release);
    lock.lock();
  }
}

std::vector<Moment> Rendezvous::issue(int rank, int lanes, std::span<const MessageHalf> halves) {
  std::vector<Moment> ends(static_cast<size_t>(lanes));
  std::map<int, Work> work;
  std::string call;
  for (const MessageHalf& half : halves) {
    Work& of_lane = work[half.lane];
    if (!of_lane.done) ends.at(size_t(half.lane)) = of_lane.done = std::make_shared<Flag>(false);
    of_lane.halves.push_back({half});
    call += fmt::format("{}{} {} {} {}", call.empty() ? "" : ", ", half.sends ? "send" : "recv",
                        half.tensor.bytes(), half.sends ? "to" : "from", half.peer);
  }
  std::lock_guard lock(mutex_);
  calls[size_t(rank)].push_back(call);
  for (auto& [lane, of_lane] : work) streams_[size_t(rank)][lane].push_back(std::move(of_lane));
  advance();
  return ends;
}

bool Rendezvous::reached(const Moment& moment) {
  ANTICHAIN_CHECK(moment != nullptr, "a moment that comes");
  return is_set(moment);
}

void Rendezvous::advance() {
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < int(streams_.size()); ++r)
      for (auto& [lane, stream] : streams_[size_t(r)]) moved = advance(r, stream) || moved;
  }
}

bool Rendezvous::advance(int rank, Stream& mine) {
  if (mine.empty()) return false;
  bool moved = false;
  for (Half& half : mine.front().halves)
    if (!half.met && half.half.sends) moved = meet(rank, half) || moved;
  if (!std::ranges::all_of(mine.front().halves, &Half::met)) return moved;
  mine.front().done->store(true, std::memory_order_release);
  mine.pop_front();
  return true;
}

// The first receive from this rank at the head of the peer's stream, if there is one.
bool Rendezvous::meet(int rank, Half& send) {
  Stream& theirs = streams_[size_t(send.half.peer)][send.half.lane];
  if (theirs.empty()) return false;
  for (Half& other : theirs.front().halves) {
    if (other.met || other.half.sends || other.half.peer != rank) continue;
    copy_bytes(send.half.tensor, other.half.tensor);
    return send.met = other.met = true;
  }
  return false;
}

void Rendezvous::give_up(int rank) {
  const std::lock_guard lock(mutex_);
  streams_[size_t(rank)].clear();
}

Moment FakeMessages::computed() { return std::make_shared<Flag>(true); }
void FakeMessages::compute_after(const Moment& moment) { stand_until(moment); }
bool FakeMessages::reached(const Moment& moment) { return all_.reached(moment); }
std::string FakeMessages::failure() { return fails_with.load(); }
void FakeMessages::give_up() { all_.give_up(rank_); }

std::vector<Moment> FakeMessages::exchange(std::span<const MessageHalf> halves) {
  for (const MessageHalf& half : halves)
    ANTICHAIN_CHECK(is_set(half.after), "computing here is done at once");
  const std::vector<Moment> ends = all_.issue(rank_, lanes_, halves);
  if (blocks_)
    for (const Moment& end : ends)
      if (end) stand_until(end);
  return ends;
}

}  // namespace antichain::test
