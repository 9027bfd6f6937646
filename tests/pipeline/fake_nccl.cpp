// NCCL's calls: halves of messages in the streams of the fake device.
#include <fmt/format.h>
#include <nccl.h>

#include "tests/pipeline/fake_cuda.h"
#include "tests/pipeline/fake_cuda_device.h"

namespace {

using namespace antichain::testing::fake_cuda;

thread_local bool in_group = false;
thread_local std::vector<Half> group;
thread_local cudaStream_t group_stream = nullptr;

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
