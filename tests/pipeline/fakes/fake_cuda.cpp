// This file has the CUDA runtime's calls, and what tests ask of the fake device.
#include "tests/pipeline/fakes/fake_cuda.h"

#include <cuda_runtime_api.h>

#include <cstdio>

#include "framework/error.h"
#include "tests/pipeline/fakes/fake_cuda_device.h"
#include "tests/pipeline/fakes/fake_devices.h"

namespace antichain::test::fake_cuda {

CUstream_st* make_stream() {
  auto* stream = new CUstream_st;
  std::lock_guard lock(Device::the().mutex);
  stream->lag_ms = int(Device::the().random() % 4);
  stream->index = Device::the().streams_made[stream->owner]++;
  Device::the().streams.insert(stream);
  return stream;
}
static std::mutex rules_mutex;  // rules are broken under the device's lock, too
static std::vector<std::string> broken;
static std::atomic<int> launches{0};
int launched() { return launches; }
static thread_local cudaError_t last_error = cudaSuccess;
cudaError_t failed(cudaError_t status) { return last_error = status; }
cudaError_t taken_last_error() { return std::exchange(last_error, cudaSuccess); }
void launch(CUstream_st* stream, std::function<void()> kernel, double takes_s) {
  if (taken_last_error() != cudaSuccess)
    throw Error("a library's kernel is blamed for an error of another call",
                "forget CUDA's last error where the call's error is dealt with");
  ++launches;
  Device::the().push(stream, {.kernel = std::move(kernel), .takes_s = takes_s});
}
void drain() {
  for (;; std::this_thread::sleep_for(std::chrono::microseconds(20))) {
    std::lock_guard lock(Device::the().mutex);
    if (Device::the().idle()) return;
  }
}
void drain(CUstream_st* stream) {
  for (;; std::this_thread::sleep_for(std::chrono::microseconds(20))) {
    std::lock_guard lock(Device::the().mutex);
    if (stream->idle()) return;
  }
}
void hold(CUstream_st* stream) {
  std::lock_guard lock(Device::the().mutex);
  stream->held = true;
}
void let_go(CUstream_st* stream) {
  std::lock_guard lock(Device::the().mutex);
  stream->held = false;
}
int priority(CUstream_st* stream) { return stream->priority; }
int graph_launches() {
  std::lock_guard lock(Device::the().mutex);
  return Device::the().graph_launches;
}
void allocates() {
  Device::the().forbid_recording();
  Device::the().synchronise();
}
void streams(StreamRules rules) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().rules = rules;
}
void spoil_recordings(std::set<int> nth) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().recordings = 0;
  Device::the().spoilt_recordings = std::move(nth);
}
std::vector<std::string> broken_rules() {
  std::lock_guard lock(rules_mutex);
  return std::exchange(broken, {});
}
void break_rule(const std::string& rule) {
  std::lock_guard lock(rules_mutex);
  broken.push_back(rule);
}
int freed_in_use() {
  std::lock_guard lock(Device::the().mutex);
  return Device::the().freed_in_use;
}
int waits(CUstream_st* stream) {
  std::lock_guard lock(Device::the().mutex);
  return stream->waits;
}
void reset(unsigned seed) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().calls.clear();
  Device::the().aborted.clear();
  Device::the().groups.clear();
  Device::the().nccl = {};
  Device::the().rules = {};
  Device::the().freed_in_use = Device::the().graph_launches = 0;
  Device::the().spoilt_recordings.clear();
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

}  // namespace antichain::test::fake_cuda

using namespace antichain::test::fake_cuda;

namespace {

CUevent_st& undestroyed(cudaEvent_t event) {
  if (event->destroyed) break_rule("an event is used that its owner has destroyed");
  return *event;
}

// cudaStreamPerThread names another stream in each thread.
cudaStream_t stream_named(cudaStream_t name) {
  if (!name) {  // which waits for all others, and spoils what they record
    Device::the().forbid_recording();
    break_rule("the legacy stream is used");
    name = cudaStreamPerThread;
  }
  if (name != cudaStreamPerThread) return name;
  struct OfThread {
    cudaStream_t stream = make_stream();
    ~OfThread() { cudaStreamDestroy(stream); }
  };
  thread_local const OfThread own;
  return own.stream;
}

// OpenRecordings has the streams in which a thread records. Its end must find none.
struct OpenRecordings {
  std::set<cudaStream_t> streams;
  ~OpenRecordings() {
    if (!streams.empty()) break_rule("a recording is left open at its thread's end");
  }
};
thread_local OpenRecordings open_recordings;

bool has_come(cudaEvent_t event) {
  Device::the().forbid_recording();
  std::lock_guard lock(Device::the().mutex);
  const Reached& reached = *undestroyed(event).reached;
  return reached.is && Device::the().has_come_to(reached.at);
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  if (flags != cudaStreamNonBlocking) return failed(cudaErrorInvalidValue);
  *stream = make_stream();
  (*stream)->side = true;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;  // as Hopper has them
  return enter_context();
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  const cudaError_t made = cudaStreamCreateWithFlags(stream, flags);
  if (made == cudaSuccess) (*stream)->priority = priority;
  return made;
}
cudaError_t cudaStreamSynchronize(cudaStream_t named) {
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  Device::the().forbid_recording();
  const cudaStream_t stream = stream_named(named);
  {
    std::lock_guard lock(Device::the().mutex);
    ++stream->waits;
  }
  for (;; std::this_thread::sleep_for(std::chrono::microseconds(20))) {
    std::lock_guard lock(Device::the().mutex);
    if (stream->idle() && Device::the().has_come_to(stream->free)) return cudaSuccess;
  }
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {  // what is in it is still done
  if (stream->recording) break_rule("a stream is destroyed that records");
  std::lock_guard lock(Device::the().mutex);
  stream->destroyed = true;
  if (stream->idle()) Device::the().streams.erase(stream);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  *event = new CUevent_st{.timed = (flags & cudaEventDisableTiming) == 0, .reached = nullptr};
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {  // the same
  std::lock_guard lock(Device::the().mutex);
  event->destroyed = true;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  std::shared_ptr<Reached> reached;
  {
    std::lock_guard lock(Device::the().mutex);
    CUevent_st& it = undestroyed(event);
    reached = it.reached = std::make_shared<Reached>();
    it.stream = stream;
  }
  Device::the().push(stream, {.record = reached});
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  std::shared_ptr<Reached> reached;
  {
    std::lock_guard lock(Device::the().mutex);
    reached = undestroyed(event).reached;
  }
  Device::the().push(stream, {.wait = reached});
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return has_come(event) ? cudaSuccess : failed(cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  {
    std::lock_guard lock(Device::the().mutex);
    CUevent_st& it = undestroyed(event);
    if (Device::the().streams.contains(it.stream)) ++it.stream->waits;
  }
  while (!has_come(event)) std::this_thread::sleep_for(std::chrono::microseconds(20));
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  std::lock_guard lock(Device::the().mutex);
  if (!from->timed || !to->timed || !from->reached || !to->reached)
    return failed(cudaErrorInvalidResourceHandle);
  if (!from->reached->is || !to->reached->is) return failed(cudaErrorNotReady);
  *ms = std::chrono::duration<float, std::milli>(to->reached->at - from->reached->at).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (mode != cudaStreamCaptureModeThreadLocal || stream->recording) return failed(cudaErrorIllegalState);
  open_recordings.streams.insert(stream);
  std::lock_guard lock(Device::the().mutex);
  stream->recording = std::make_shared<std::vector<Work>>();
  stream->spoilt = Device::the().spoilt_recordings.contains(++Device::the().recordings);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  open_recordings.streams.erase(stream);
  std::lock_guard lock(Device::the().mutex);
  *graph = nullptr;
  if (!stream->recording) return failed(cudaErrorIllegalState);
  const auto recorded = std::exchange(stream->recording, nullptr);
  if (stream->spoilt) return failed(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(*recorded)};
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes) return failed(cudaErrorInvalidValue);
  *count = graph->work.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  Device::the().synchronise();
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (!std::exchange(executable->uploaded, true)) Device::the().synchronise();
  std::lock_guard lock(Device::the().mutex);
  ++Device::the().graph_launches;
  for (Work work : executable->work) {
    work.started = Clock::now();
    Device::the().enqueue(stream, std::move(work));
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
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  Device::the().push(stream_named(stream), {.kernel = [=] { std::memcpy(to, from, count); }});
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t count, cudaStream_t stream) {
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  Device::the().push(stream_named(stream), {.kernel = [=] { std::memset(to, value, count); }});
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  allocates();
  *memory = std::malloc(bytes);
  std::lock_guard lock(Device::the().mutex);
  Device::the().page_locked[*memory] = bytes;
  return *memory ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* memory) {
  if (const cudaError_t refused = enter_context(); refused != cudaSuccess) return refused;
  Device::the().forbid_recording();
  std::lock_guard lock(Device::the().mutex);
  Device::the().freed_in_use += int(!Device::the().idle());
  std::memset(memory, 0xFF, Device::the().page_locked.at(memory));
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, size_t(length), "0000:%02x:00.0", unsigned(device));
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return taken_last_error(); }
cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3, void**, size_t, cudaStream_t) {
  if (grid.x == 0) return failed(cudaErrorInvalidConfiguration);
  ++launches;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "a fake device's error"; }

}  // extern "C"
