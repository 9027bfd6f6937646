// This is the device behind the stand-ins (fake_cuda.h): a thread that does what is in the streams, and what
// CUDA's and NCCL's handles stand for.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/pipeline/fakes/fake_cuda.h"

namespace antichain::test::fake_cuda {

// CUDA's last error, which each thread has for itself: what a call returns other than success stays until it
// is asked for.
cudaError_t failed(cudaError_t);
cudaError_t taken_last_error();

using Clock = std::chrono::steady_clock;

inline Clock::duration duration(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

struct Reached {
  bool is = false;
  Clock::time_point at;
};

}  // namespace antichain::test::fake_cuda

// Each recording is one of its own: who waits for an earlier one is not concerned.
struct CUevent_st {
  bool timed = false;
  std::shared_ptr<antichain::test::fake_cuda::Reached> reached;
  CUstream_st* stream = nullptr;  // of its last recording
  bool destroyed = false;
};

namespace antichain::test::fake_cuda {

struct Half {  // of a message, in the stream of one rank
  int rank = 0, peer = 0;
  bool sends = false;
  void* bytes = nullptr;
  size_t count = 0;
  bool done = false;
  int world = 0;  // of the communicator
};

struct Work {
  std::function<void()> kernel;
  std::shared_ptr<Reached> wait, record;
  std::vector<Half> message;  // of a group: done when all are
  double takes_s = 0;
  bool on_host = false;
  Clock::time_point started = Clock::now();
  uint64_t number = 0;  // in the order of starting
};

}  // namespace antichain::test::fake_cuda

struct CUstream_st {
  std::deque<antichain::test::fake_cuda::Work> work;
  std::thread::id owner = std::this_thread::get_id();
  bool busy = false;       // a kernel of it runs
  bool side = false;       // made by CUDA's call, not for computing
  int priority = 0;        // the less the sooner
  int lag_ms = 0;          // where such streams are late
  bool held = false;       // not looked at until it is let go
  bool destroyed = false;  // not looked at any more once it is idle
  int waits = 0;
  int index = 0;                               // among the thread's
  std::chrono::steady_clock::time_point free;  // by the device's clock

  std::shared_ptr<std::vector<antichain::test::fake_cuda::Work>> recording;  // where it records
  bool spoilt = false;

  bool idle() const { return work.empty() && !busy; }
};

struct CUgraph_st {
  std::vector<antichain::test::fake_cuda::Work> work;
};
struct CUgraphExec_st {
  std::vector<antichain::test::fake_cuda::Work> work;
  bool uploaded = false;  // with its first launch
};

struct ncclComm {
  int world = 0, rank = 0, size = 0;
  bool failed = false, aborted = false;
  bool complete = false;   // all ranks came
  int launching = 0;       // groups that are not in the streams yet
  std::set<int> called{};  // peers this rank has issued messages to or from
};

namespace antichain::test::fake_cuda {

// What is done some milliseconds after it was started, so that the host and other ranks get ahead of it.
enum class Late { nothing, computing, side };

class Device {
 public:
  static Device& the() {
    static Device device;
    return device;
  }

  std::mutex mutex;
  std::set<CUstream_st*> streams;
  std::map<std::pair<int, int>, ncclComm*> comms;  // by world and rank
  std::vector<std::unique_ptr<ncclComm>> all_comms;
  int worlds = 0;
  NcclRules nccl;
  std::map<int, int> groups;
  std::map<int, std::vector<std::string>> calls;
  std::set<int> aborted;
  std::mt19937 random{1};
  std::map<void*, size_t> page_locked;  // never given back to the system
  bool keeps_time = false;
  Late late = Late::nothing;
  double stamp_s = 0;
  int freed_in_use = 0;

  const ncclComm* comm(int world, int rank) const {
    const auto it = comms.find({world, rank});
    return it == comms.end() ? nullptr : it->second;
  }

  bool idle() const {  // all streams of this thread
    return std::ranges::all_of(
        streams, [&](const CUstream_st* s) { return s->owner != std::this_thread::get_id() || s->idle(); });
  }

  StreamRules rules;
  uint64_t last_number = 0;
  std::map<std::thread::id, int> streams_made;

  void enqueue(CUstream_st* stream, Work work) {  // under the lock
    work.number = ++last_number;
    stream->work.push_back(std::move(work));
  }

  // As calls do that wait for what was started, of this thread's streams or of all.
  void synchronise() {
    std::unique_lock lock(mutex);
    if (rules.calls_wait_for == WaitsFor::nobody) return;
    const uint64_t last = last_number;
    const auto has_done = [&](const CUstream_st* s) {
      const bool concerned =
          rules.calls_wait_for == WaitsFor::all_devices || s->owner == std::this_thread::get_id();
      return !concerned || (!s->busy && (s->work.empty() || s->work.front().number > last));
    };
    while (rules.calls_wait_for != WaitsFor::nobody && !std::ranges::all_of(streams, has_done)) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      lock.lock();
    }
  }

  // Returns whether what heads the stream heads its queue, too.
  bool heads_queue(const CUstream_st& stream) const {
    if (rules.queues == 0) return true;
    return std::ranges::none_of(streams, [&](const CUstream_st* s) {
      return s != &stream && s->owner == stream.owner &&
             s->index % rules.queues == stream.index % rules.queues && !s->work.empty() &&
             s->work.front().number < stream.work.front().number;
    });
  }

  int graph_launches = 0, recordings = 0;
  std::set<int> spoilt_recordings;

  bool has_come_to(Clock::time_point moment) const { return !keeps_time || Clock::now() >= moment; }

  void push(CUstream_st* stream, Work work) {
    std::lock_guard lock(mutex);
    if (!stream->recording) return enqueue(stream, std::move(work));
    if (!work.kernel) stream->spoilt = true;  // CUDA could record it; we never have it do so
    stream->recording->push_back(std::move(work));
  }

  // Nothing else may go on in a thread that records.
  void forbid_recording() {
    std::lock_guard lock(mutex);
    for (CUstream_st* s : streams)
      if (s->recording && s->owner == std::this_thread::get_id()) s->spoilt = true;
  }

 private:
  Device() : thread_([this] { run(); }) {}
  ~Device() {
    stopping_ = true;
    thread_.join();
  }

  void run() {
    while (!stopping_) {
      if (!step()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  // Does one piece of work of a stream, any one.
  bool step() {
    std::unique_lock lock(mutex);
    std::vector<CUstream_st*> able;
    for (CUstream_st* stream : streams)
      if (!stream->held && !stream->work.empty() && !lags(*stream) && heads_queue(*stream) &&
          can_go(stream->work.front()))
        able.push_back(stream);
    if (able.empty()) return false;
    CUstream_st* stream = able[random() % able.size()];
    Work work = std::move(stream->work.front());
    stream->work.pop_front();
    const Clock::time_point end = keeps_time ? end_of(work, *stream) : Clock::now();
    if (work.record) *work.record = {true, end};
    if (work.kernel) {
      stream->busy = true;
      lock.unlock();
      work.kernel();
      lock.lock();
      stream->busy = false;
    }
    stream->free = work.on_host ? std::max(end, Clock::now()) : end;
    if (stream->destroyed && stream->idle()) streams.erase(stream);
    return true;
  }

  // What is new to a stream that lags is not looked at yet.
  bool lags(const CUstream_st& stream) const {
    if (late == Late::nothing || stream.side != (late == Late::side)) return false;
    return Clock::now() - stream.work.front().started < std::chrono::milliseconds(stream.lag_ms);
  }

  Clock::time_point end_of(const Work& work, const CUstream_st& stream) const {
    Clock::time_point begin = std::max(stream.free, work.started);
    if (work.wait) begin = std::max(begin, work.wait->at);
    return begin + duration(work.record ? stamp_s : work.takes_s);
  }

  bool can_go(Work& work) {
    if (work.wait) return work.wait->is;
    bool all = true;
    for (Half& half : work.message) all = exchange(half) && all;
    return all;
  }

  // The other half heads its stream, too.
  bool exchange(Half& mine) {
    if (mine.done) return true;
    if (!mine.sends) return false;  // the sender does it
    for (CUstream_st* stream : streams) {
      if (stream->work.empty() || !heads_queue(*stream)) continue;
      for (Half& theirs : stream->work.front().message) {
        if (theirs.done || theirs.sends || theirs.world != mine.world || theirs.rank != mine.peer ||
            theirs.peer != mine.rank)
          continue;
        if (theirs.count != mine.count) std::abort();  // NCCL would hang, or write where it must not
        std::memcpy(theirs.bytes, mine.bytes, mine.count);
        return mine.done = theirs.done = true;
      }
    }
    return false;
  }

  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace antichain::test::fake_cuda
