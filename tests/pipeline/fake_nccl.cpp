// NCCL's calls: halves of messages in the streams of the fake device.
#include <fmt/format.h>
#include <nccl.h>

#include "tests/pipeline/fake_cuda.h"
#include "tests/pipeline/fake_cuda_device.h"

namespace {

using namespace antichain::testing::fake_cuda;

// Of this thread's calls, those that wait for the end of a group.
struct Group {
  int open = 0;
  std::vector<Half> halves;
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  ncclResult_t error = ncclSuccess;
};
thread_local Group group;

std::string print(const std::vector<Half>& halves) {
  std::string text;
  for (const Half& half : halves)
    text += fmt::format("{}{} {} {} {}", text.empty() ? "" : ", ", half.sends ? "send" : "recv", half.count,
                        half.sends ? "to" : "from", half.peer);
  return text;
}

// A message to itself has both its halves in one group.
bool is_whole(const std::vector<Half>& halves) {
  int to_itself = 0;
  for (const Half& half : halves)
    if (half.peer == half.rank) to_itself += half.sends ? 1 : -1;
  return to_itself == 0;
}

// Nothing of a group with an error is begun.
ncclResult_t end_group() {
  Group ended = std::exchange(group, {});
  if (ended.error != ncclSuccess || ended.halves.empty()) return ended.error;
  std::lock_guard lock(Device::the().mutex);
  if (!is_whole(ended.halves)) return ncclInvalidUsage;
  Device::the().calls[ended.comm->rank].push_back(print(ended.halves));
  for (const Half& half : ended.halves) ended.comm->called.insert(half.peer);
  ended.stream->work.push_back({.message = std::move(ended.halves)});
  return ncclInProgress;
}

ncclResult_t add(bool sends, void* bytes, size_t count, int peer, ncclComm* comm, cudaStream_t stream) {
  if (peer < 0 || peer >= comm->size) return group.error = ncclInvalidArgument;
  if (group.comm && (group.comm != comm || group.stream != stream))  // it could; we never do
    return group.error = ncclInvalidUsage;
  group.halves.push_back({comm->rank, peer, sends, bytes, count});
  group.comm = comm;
  group.stream = stream;
  return group.open > 0 ? ncclInProgress : end_group();
}

}  // namespace

namespace antichain::testing::fake_cuda {

std::vector<std::string> nccl_calls(int rank) {
  std::lock_guard lock(Device::the().mutex);
  return Device::the().calls[rank];
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

extern "C" {

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
  for (CUstream_st* stream : Device::the().streams)  // what it had in its streams ends as it is
    for (Work& work : stream->work)
      std::erase_if(work.message, [&](const Half& half) { return half.rank == comm->rank; });
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
  ++group.open;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group.open == 0) return ncclInvalidUsage;
  return --group.open > 0 ? ncclInProgress : end_group();
}

}  // extern "C"
