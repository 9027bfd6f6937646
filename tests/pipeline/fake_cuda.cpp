#include "tests/pipeline/fake_cuda.h"

#include "tests/pipeline/fake_ipc.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>

namespace {

using Clock = std::chrono::steady_clock;

Clock::duration duration(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

struct Reached {
  bool is = false;
  Clock::time_point at;
};

}  // namespace

// Each recording is one of its own: who waits for an earlier one is not concerned.
struct CUevent_st {
  bool timed = false;
  std::shared_ptr<Reached> reached;
  // Of interprocess events:
  bool shared = false, destroyed = false;
  int process = 0;                    // whose it is
  CUevent_st* opened_from = nullptr;  // another process's
  bool used_elsewhere = true;         // its last recording
};

namespace {

struct Half {  // of a message, in the stream of one rank
  int rank = 0, peer = 0;
  bool sends = false;
  void* bytes = nullptr;
  size_t count = 0;
  bool done = false;
};

struct Work {
  std::function<void()> kernel;
  std::shared_ptr<Reached> wait, record;
  std::vector<Half> message;  // of a group: done when all are
  double takes_s = 0;
  bool on_host = false;
  Clock::time_point started = Clock::now();
};

}  // namespace

struct CUstream_st {
  std::deque<Work> work;
  std::thread::id owner = std::this_thread::get_id();
  bool busy = false;       // a kernel of it runs
  bool side = false;       // made by CUDA's call, not for computing
  int lag_ms = 0;          // where such streams are late
  bool destroyed = false;  // not looked at any more once it is idle
  int waits = 0;
  Clock::time_point free;  // by the device's clock

  std::shared_ptr<std::vector<Work>> recording;  // where it records
  bool spoilt = false;

  bool idle() const { return work.empty() && !busy; }
};

struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};

struct ncclComm {
  int rank = 0, size = 0;
  bool failed = false;
  std::set<int> called{};  // peers this rank has issued messages to or from
};

namespace {

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
  std::map<int, ncclComm*> comms;
  std::map<int, std::vector<std::string>> calls;
  std::set<int> aborted;
  std::mt19937 random{1};
  std::map<void*, size_t> page_locked;  // never given back to the system
  bool keeps_time = false;
  Late late = Late::nothing;
  double stamp_s = 0;
  int freed_in_use = 0;

  bool idle() const {  // all streams of this thread
    return std::ranges::all_of(
        streams, [&](const CUstream_st* s) { return s->owner != std::this_thread::get_id() || s->idle(); });
  }

  int graph_launches = 0, recordings_until_spoilt = 0;

  bool has_come_to(Clock::time_point moment) const { return !keeps_time || Clock::now() >= moment; }

  void push(CUstream_st* stream, Work work) {
    std::lock_guard lock(mutex);
    if (!stream->recording) return stream->work.push_back(std::move(work));
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

  // One piece of work of a stream, any one.
  bool step() {
    std::unique_lock lock(mutex);
    std::vector<CUstream_st*> able;
    for (CUstream_st* stream : streams)
      if (!stream->work.empty() && !lags(*stream) && can_go(stream->work.front())) able.push_back(stream);
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
      if (stream->work.empty()) continue;
      for (Half& theirs : stream->work.front().message) {
        if (theirs.done || theirs.sends || theirs.rank != mine.peer || theirs.peer != mine.rank) continue;
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

ncclResult_t add(bool sends, void* bytes, size_t count, int peer, ncclComm* comm, cudaStream_t stream);
thread_local bool in_group = false;
thread_local std::vector<Half> group;
thread_local cudaStream_t group_stream = nullptr;

}  // namespace

namespace antichain::testing::fake_cuda {

CUstream_st* make_stream() {
  auto* stream = new CUstream_st;
  std::lock_guard lock(Device::the().mutex);
  stream->lag_ms = int(Device::the().random() % 4);
  Device::the().streams.insert(stream);
  return stream;
}
static std::atomic<int> launches{0};
int launched() { return launches; }
void launch(CUstream_st* stream, std::function<void()> kernel, double takes_s) {
  ++launches;
  Device::the().push(stream, {.kernel = std::move(kernel), .takes_s = takes_s});
}
void drain() {
  for (;; std::this_thread::yield()) {
    std::lock_guard lock(Device::the().mutex);
    if (Device::the().idle()) return;
  }
}
void drain(CUstream_st* stream) {
  for (;; std::this_thread::yield()) {
    std::lock_guard lock(Device::the().mutex);
    if (stream->idle()) return;
  }
}
int graph_launches() {
  std::lock_guard lock(Device::the().mutex);
  return Device::the().graph_launches;
}
void allocates() { Device::the().forbid_recording(); }
void spoil_recording(int nth) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().recordings_until_spoilt = nth;
}
int freed_in_use() {
  std::lock_guard lock(Device::the().mutex);
  return Device::the().freed_in_use;
}
int waits(CUstream_st* stream) {
  std::lock_guard lock(Device::the().mutex);
  return stream->waits;
}
std::vector<std::string> nccl_calls(int rank) {
  std::lock_guard lock(Device::the().mutex);
  return Device::the().calls[rank];
}
void reset(unsigned seed) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().calls.clear();
  Device::the().aborted.clear();
  Device::the().freed_in_use = Device::the().graph_launches = Device::the().recordings_until_spoilt = 0;
  Device::the().random.seed(seed);
  Device::the().late = Late(seed % 3);
  Device::the().keeps_time = false;
}
void keep_time(double stamp_s) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().keeps_time = true;
  Device::the().late = Late::nothing;
  Device::the().stamp_s = stamp_s;
}
void fail(int rank) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().comms.at(rank)->failed = true;
}
bool aborted(int rank) {
  std::lock_guard lock(Device::the().mutex);
  return Device::the().aborted.contains(rank);
}

}  // namespace antichain::testing::fake_cuda

using antichain::testing::fake_cuda::make_stream;

namespace {

// The event that was recorded, whoever asks. What breaks the rules of events between processes is noted.
CUevent_st& original(cudaEvent_t event) {
  using namespace antichain::testing::fake_cuda;
  CUevent_st& it = event->opened_from ? *event->opened_from : *event;
  if (event->process != this_process()) break_rule("an event of another process is used by its address");
  if (it.destroyed) break_rule("an event is used that its owner has destroyed");
  if (event->opened_from) it.used_elsewhere = true;
  return it;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
  *stream = make_stream();
  (*stream)->side = true;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Device::the().forbid_recording();
  {
    std::lock_guard lock(Device::the().mutex);
    ++stream->waits;
  }
  for (;; std::this_thread::yield()) {
    std::lock_guard lock(Device::the().mutex);
    if (stream->idle() && Device::the().has_come_to(stream->free)) return cudaSuccess;
  }
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {  // what is in it is still done
  std::lock_guard lock(Device::the().mutex);
  stream->destroyed = true;
  if (stream->idle()) Device::the().streams.erase(stream);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const bool timed = (flags & cudaEventDisableTiming) == 0, shared = (flags & cudaEventInterprocess) != 0;
  if (timed && shared) return cudaErrorInvalidValue;
  *event = new CUevent_st{.timed = timed,
                          .reached = nullptr,
                          .shared = shared,
                          .process = antichain::testing::fake_cuda::this_process()};
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {  // the same
  std::lock_guard lock(Device::the().mutex);
  event->destroyed = true;
  return cudaSuccess;
}
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  if (!event->shared) return cudaErrorInvalidResourceHandle;
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle->reserved, &event, sizeof event);
  return cudaSuccess;
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  CUevent_st* of = nullptr;
  std::memcpy(&of, handle.reserved, sizeof of);
  const int process = antichain::testing::fake_cuda::this_process();
  if (!of || of->process == process) return cudaErrorInvalidResourceHandle;
  *event = new CUevent_st{.reached = nullptr, .process = process, .opened_from = of};
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  std::shared_ptr<Reached> reached;
  {
    std::lock_guard lock(Device::the().mutex);
    CUevent_st& it = original(event);
    if (it.shared && !std::exchange(it.used_elsewhere, false))
      antichain::testing::fake_cuda::break_rule(
          "an event is recorded again before the other process used it");
    reached = it.reached = std::make_shared<Reached>();
  }
  Device::the().push(stream, {.record = reached});
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  std::shared_ptr<Reached> reached;
  {
    std::lock_guard lock(Device::the().mutex);
    reached = original(event).reached;
  }
  const bool forgets = event->opened_from && stream->side && antichain::testing::fake_cuda::forgets_waits();
  if (!forgets) Device::the().push(stream, {.wait = reached});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  Device::the().forbid_recording();
  std::lock_guard lock(Device::the().mutex);
  return original(event).reached->is && Device::the().has_come_to(original(event).reached->at)
             ? cudaSuccess
             : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  while (cudaEventQuery(event) != cudaSuccess) std::this_thread::yield();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  std::lock_guard lock(Device::the().mutex);
  if (!from->timed || !to->timed || !from->reached || !to->reached) return cudaErrorInvalidResourceHandle;
  if (!from->reached->is || !to->reached->is) return cudaErrorNotReady;
  *ms = std::chrono::duration<float, std::milli>(to->reached->at - from->reached->at).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (mode != cudaStreamCaptureModeThreadLocal || stream->recording) return cudaErrorIllegalState;
  std::lock_guard lock(Device::the().mutex);
  stream->recording = std::make_shared<std::vector<Work>>();
  int& left = Device::the().recordings_until_spoilt;
  stream->spoilt = left > 0 && --left == 0;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  std::lock_guard lock(Device::the().mutex);
  *graph = nullptr;
  if (!stream->recording) return cudaErrorIllegalState;
  const auto recorded = std::exchange(stream->recording, nullptr);
  if (stream->spoilt) return cudaErrorStreamCaptureInvalidated;
  *graph = new CUgraph_st{std::move(*recorded)};
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes) return cudaErrorInvalidValue;
  *count = graph->work.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  std::lock_guard lock(Device::the().mutex);
  ++Device::the().graph_launches;
  for (Work work : executable->work) {
    work.started = Clock::now();
    stream->work.push_back(std::move(work));
  }
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;  // what was launched is still done
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  Device::the().push(stream, {.kernel = [=] { function(data); }, .on_host = true});
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind, cudaStream_t stream) {
  antichain::testing::fake_cuda::check_address(to);
  antichain::testing::fake_cuda::check_address(from);
  Device::the().push(stream, {.kernel = [=] { std::memcpy(to, from, count); }});
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t count, cudaStream_t stream) {
  Device::the().push(stream, {.kernel = [=] { std::memset(to, value, count); }});
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  Device::the().forbid_recording();
  *memory = std::malloc(bytes);
  std::lock_guard lock(Device::the().mutex);
  Device::the().page_locked[*memory] = bytes;
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void* memory) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().freed_in_use += int(!Device::the().idle());
  std::memset(memory, 0xFF, Device::the().page_locked.at(memory));
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, size_t(length), "0000:%02x:00.0", unsigned(device));
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "a fake device's error"; }

ncclResult_t ncclGetVersion(int* code) {
  *code = 22809;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t code) {
  return code == ncclRemoteError ? "remote process exited" : "invalid usage";
}
const char* ncclGetLastError(ncclComm_t) { return "no more words"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 0x5a, sizeof id->internal);  // zeros in it would be cut off by a text
  id->internal[7] = 0;
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0 || id.internal[127] != 0x5a || id.internal[7] != 0) return ncclInvalidArgument;
  *comm = new ncclComm{.rank = rank, .size = size};
  std::lock_guard lock(Device::the().mutex);
  Device::the().comms[rank] = *comm;
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  std::lock_guard lock(Device::the().mutex);
  Device& device = Device::the();
  *state = ncclSuccess;
  if (int(device.comms.size()) < comm->size) *state = ncclInProgress;
  for (const int peer : comm->called)
    if (!device.comms.contains(peer) || !device.comms[peer]->called.contains(comm->rank))
      *state = ncclInProgress;
  if (comm->failed) *state = ncclRemoteError;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().aborted.insert(comm->rank);
  Device::the().comms.erase(comm->rank);
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().comms.erase(comm->rank);
  return ncclSuccess;
}
ncclResult_t ncclSend(const void* bytes, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(true, const_cast<void*>(bytes), count, peer, comm, stream);
}
ncclResult_t ncclRecv(void* bytes, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(false, bytes, count, peer, comm, stream);
}
ncclResult_t ncclGroupStart() {
  in_group = true;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  in_group = false;
  std::lock_guard lock(Device::the().mutex);
  Device::the().calls[group.front().rank].push_back(fmt::format("group {}", group.size()));
  group_stream->work.push_back({.message = std::move(group)});
  group.clear();
  return ncclInProgress;
}

}  // extern "C"

namespace {

ncclResult_t add(bool sends, void* bytes, size_t count, int peer, ncclComm* comm, cudaStream_t stream) {
  std::lock_guard lock(Device::the().mutex);
  if (peer == comm->rank && !in_group) return ncclInvalidUsage;
  const Half half{comm->rank, peer, sends, bytes, count};
  Device::the().calls[comm->rank].push_back(
      fmt::format("{} {} {} {}", sends ? "send" : "recv", count, sends ? "to" : "from", peer));
  comm->called.insert(peer);
  if (in_group) {
    group.push_back(half);
    group_stream = stream;
  } else {
    stream->work.push_back({.message = {half}});
  }
  return ncclInProgress;
}

}  // namespace
