// NCCL's calls put halves of messages into the streams of the fake device. A thread of each group's own
// brings them there, after a while, when its ranks are connected. Until then the communicators are in
// progress.
#include <fmt/format.h>
#include <nccl.h>

#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_cuda_device.h"

namespace {

using namespace antichain::test::fake_cuda;

struct Part {  // of a group, in one stream
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Half> halves;
};

// These calls of this thread wait for the end of a group.
struct Group {
  int open = 0;
  std::vector<Part> parts;
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

// Both ranks of a pair have to come to its first message; a pair that can't be connected is an error of both.
bool connected(const Part& part) {
  for (const Half& half : part.halves) {
    const std::pair pair(std::min(half.rank, half.peer), std::max(half.rank, half.peer));
    if (Device::the().nccl.apart == pair) return part.comm->failed = true;
    const ncclComm* peer = Device::the().comm(part.comm->world, half.peer);
    if (!peer || !peer->called.contains(half.rank)) return false;
  }
  return true;
}

void launch(std::vector<Part> parts, std::chrono::microseconds delay) {
  std::this_thread::sleep_for(delay);
  for (;; std::this_thread::yield()) {
    std::lock_guard lock(Device::the().mutex);
    Device& device = Device::the();
    const bool aborted = std::ranges::any_of(parts, [](const Part& p) { return p.comm->aborted; });
    if (!aborted && (device.nccl.launches_held || !std::ranges::all_of(parts, connected))) continue;
    for (Part& part : parts) {
      --part.comm->launching;
      if (!aborted && !part.comm->failed) device.enqueue(part.stream, {.message = std::move(part.halves)});
    }
    return;
  }
}

// Nothing of a group with an error is begun.
ncclResult_t end_group() {
  Group ended = std::exchange(group, {});
  if (ended.error != ncclSuccess || ended.parts.empty()) return ended.error;
  std::lock_guard lock(Device::the().mutex);
  Device& device = Device::the();
  for (const Part& part : ended.parts)
    if (!is_whole(part.halves)) return ncclInvalidUsage;
  for (const Part& part : ended.parts) {
    if (part.comm->launching++ > 0) break_rule("a group begins before the one before it was launched");
    for (const Half& half : part.halves) part.comm->called.insert(half.peer);
    device.calls[part.comm->rank].push_back(print(part.halves));
  }
  ++device.groups[ended.parts[0].comm->rank];
  const std::chrono::microseconds delay(device.random() % 200);
  std::thread(launch, std::move(ended.parts), delay).detach();
  return ncclInProgress;
}

ncclResult_t add(bool sends, void* bytes, size_t count, int peer, ncclComm* comm, cudaStream_t stream) {
  if (peer < 0 || peer >= comm->size) return group.error = ncclInvalidArgument;
  auto part = std::ranges::find(group.parts, comm, &Part::comm);
  if (part == group.parts.end()) part = group.parts.insert(part, {comm, stream, {}});
  if (part->stream != stream) return group.error = ncclInvalidUsage;  // it could; we never do
  part->halves.push_back({comm->rank, peer, sends, bytes, count, false, comm->world});
  return group.open > 0 ? ncclInProgress : end_group();
}

}  // namespace

namespace antichain::test::fake_cuda {

std::vector<std::string> nccl_calls(int rank) {
  std::lock_guard lock(Device::the().mutex);
  return Device::the().calls[rank];
}
int nccl_groups(int rank) {
  std::lock_guard lock(Device::the().mutex);
  return Device::the().groups[rank];
}
void forget_nccl_calls(int rank) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().calls[rank].clear();
  Device::the().groups[rank] = 0;
}
void nccl(NcclRules rules) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().nccl = rules;
}
void fail(int rank) {
  std::lock_guard lock(Device::the().mutex);
  for (auto& [place, comm] : Device::the().comms)
    if (place.second == rank) comm->failed = true;
}
bool aborted(int rank) {
  std::lock_guard lock(Device::the().mutex);
  return Device::the().aborted.contains(rank);
}

}  // namespace antichain::test::fake_cuda

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
  std::lock_guard lock(Device::the().mutex);
  const int world = ++Device::the().worlds;
  std::memcpy(id->internal + 8, &world, sizeof world);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0 || id.internal[127] != 0x5a || id.internal[7] != 0) return ncclInvalidArgument;
  if (config->maxCTAs < 1 || config->maxCTAs > 8)
    return ncclInvalidArgument;  // more would leave computing too few
  int world = 0;
  std::memcpy(&world, id.internal + 8, sizeof world);
  std::lock_guard lock(Device::the().mutex);
  *comm =
      Device::the().all_comms.emplace_back(new ncclComm{.world = world, .rank = rank, .size = size}).get();
  Device::the().comms[{world, rank}] = *comm;
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  std::lock_guard lock(Device::the().mutex);
  const Device& device = Device::the();
  const bool here = std::ranges::count_if(device.comms, [&](const auto& c) {
                      return c.first.first == comm->world;
                    }) == comm->size;
  *state = here || comm->complete ? ncclSuccess : ncclInProgress;
  comm->complete = comm->complete || here;
  if (comm->launching > 0) *state = ncclInProgress;
  if (comm->failed) *state = ncclRemoteError;
  return ncclSuccess;
}
// What it had in its streams ends as it is, and the events behind it come.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    std::lock_guard lock(Device::the().mutex);
    Device& device = Device::the();
    device.aborted.insert(comm->rank);
    comm->aborted = true;
    for (CUstream_st* stream : device.streams)
      for (Work& work : stream->work)
        std::erase_if(work.message,
                      [&](const Half& half) { return half.rank == comm->rank && half.world == comm->world; });
    device.comms.erase({comm->world, comm->rank});
  }
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    std::lock_guard lock(Device::the().mutex);
    if (!Device::the().nccl.aborts_wait_for_all) return ncclSuccess;
    if (std::ranges::none_of(Device::the().comms,
                             [&](const auto& c) { return c.first.first == comm->world; }))
      return ncclSuccess;
  }
}
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::lock_guard lock(Device::the().mutex);
  Device::the().comms.erase({comm->world, comm->rank});
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
