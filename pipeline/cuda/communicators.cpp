#include "pipeline/cuda/communicators.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <thread>

#include "framework/error.h"
#include "pipeline/cuda/nccl_check.h"
#include "pipeline/transport/agree.h"

namespace antichain::cuda {
namespace {

// Messages occupy the device's processors until the peer comes, so they get few of them. The kernels of all
// lanes must always fit side by side with any computing: NCCL's guide requires that where one device has two
// communicators. NCCL_MAX_CTAS in the environment overrides it.
constexpr int most_ctas = 4;

// A Group contains calls that NCCL starts together when it ends. It is always closed, whatever a call
// returns: later calls would otherwise join it.
class Group {
 public:
  Group() { ANTICHAIN_NCCL(ncclGroupStart()); }
  ~Group() {
    if (open_) ncclGroupEnd();
  }
  void end() {
    open_ = false;
    ANTICHAIN_NCCL(ncclGroupEnd());
  }

 private:
  bool open_ = true;
};

std::vector<ncclUniqueId> shared_ids(Job& job, int count) {
  const std::string bytes = on_rank_zero(job, [&] {
    std::string all;
    for (int i = 0; i < count; ++i) {
      ncclUniqueId made{};
      ANTICHAIN_NCCL(ncclGetUniqueId(&made));
      all.append(made.internal, sizeof made.internal);
    }
    return all;
  });
  std::vector<ncclUniqueId> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i)
    std::memcpy(ids[i].internal, bytes.data() + i * sizeof ids[i].internal, sizeof ids[i].internal);
  return ids;
}

ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
  return asked == ncclSuccess ? state : asked;
}

// Returns the first state that is not success; an error takes precedence over work in progress.
ncclResult_t state_of(const std::vector<ncclComm_t>& all) {
  ncclResult_t worst = ncclSuccess;
  for (const ncclComm_t comm : all)
    if (const ncclResult_t state = state_of(comm); worst == ncclSuccess || worst == ncclInProgress)
      worst = state == ncclSuccess ? worst : state;
  return worst;
}

}  // namespace

Communicators::Communicators(int device, int lanes, Job& job, const Patience& patience)
    : device_(device), job_(job), rank_(job.rank()) {
  try {
    make(lanes, patience);
  } catch (...) {
    give_up();  // the destructor will not run
    throw;
  }
}

void Communicators::make(int lanes, const Patience& patience) {
  for (const ncclUniqueId& id : shared_ids(job_, lanes)) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.maxCTAs = most_ctas;
    {
      std::lock_guard lock(mutex_);
      ncclComm_t comm = nullptr;
      const ncclResult_t code = ncclCommInitRankConfig(&comm, job_.size(), id, rank_, &config);
      if (comm) all_.push_back(comm);
      ANTICHAIN_NCCL(code);
    }
    settle(RankState::anybody, patience);
  }
}

// A send counts as done when NCCL has the bytes, and they may still be on their way. If an exception is
// unwinding, peers may be gone, so this does not wait for them.
Communicators::~Communicators() {
  if (!all_.empty() && std::uncaught_exceptions() == 0 && finalised()) {
    for (const ncclComm_t comm : all_) ncclCommDestroy(comm);
    return;
  }
  give_up();
}

void Communicators::begin(const Work& work) {
  std::lock_guard lock(mutex_);
  check_under_lock();
  Group group;
  work(all_);
  group.end();
}

bool Communicators::launched() {
  std::lock_guard lock(mutex_);
  check_under_lock();
  const ncclResult_t state = state_of(all_);
  if (state == ncclSuccess || state == ncclInProgress) return state == ncclSuccess;
  fail(fmt::format("{}: {}", ncclGetErrorString(state), ncclGetLastError(all_[0])));
  check_under_lock();
  return false;
}

// A launch takes some tens of microseconds, and a system sleep at least a hundred.
void Communicators::settle(int peer, const Patience& patience) {
  if (launched()) return;
  Progress::Wait waiting(job_.activity(), peer);
  const auto start = Clock::now();
  for (bool explained = false; !launched();) {
    const auto now = Clock::now();
    if (now > patience.deadline) {
      std::lock_guard lock(mutex_);
      fail("not all ranks connected in time");
      check_under_lock();
    }
    if (!explained && now - start > std::chrono::milliseconds(20)) {
      waiting.explain("connection of the other ranks by NCCL");
      explained = true;
    }
    patience.look();
    if (now - start > std::chrono::milliseconds(1))
      ::usleep(50);
    else
      std::this_thread::yield();
  }
}

void Communicators::check() {
  std::lock_guard lock(mutex_);
  check_under_lock();
}

std::string Communicators::failure() {
  std::lock_guard lock(mutex_);
  if (all_.empty()) return failure_;
  const ncclResult_t state = state_of(all_);
  if (state != ncclSuccess && state != ncclInProgress) fail(ncclGetErrorString(state));
  return failure_;
}

void Communicators::give_up() {
  std::lock_guard lock(mutex_);
  abort();
}

// The failure is recorded before the abort ends any work: work that ended without a recorded failure has its
// bytes.
void Communicators::fail(const std::string& why) {
  if (all_.empty()) return;
  failure_ = fmt::format("NCCL: {}", why);
  abort();
}

void Communicators::check_under_lock() const {
  if (!all_.empty()) return;
  throw Error(
      fmt::format("rank {} can't go on: {}", rank_, failure_.empty() ? "NCCL was given up" : failure_),
      "set NCCL_DEBUG=INFO to learn more, or use --transport mpi", ExitCode::peer_failed);
}

// Each communicator is aborted in its own thread, because one abort may wait forever while the other's
// kernels keep spinning. The first thread also ends a launch of both that is under way.
void Communicators::abort() {
  for (size_t i = 0; i < all_.size(); ++i)
    std::thread([comm = all_[i], device = device_, later = std::chrono::milliseconds(50) * i] {
      std::this_thread::sleep_for(later);
      cudaSetDevice(device);  // otherwise CUDA would use the first GPU in this thread
      ncclCommAbort(comm);
    }).detach();
  all_.clear();
}

bool Communicators::finalised() {
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  for (const ncclComm_t comm : all_)
    if (const ncclResult_t code = ncclCommFinalize(comm); code != ncclSuccess && code != ncclInProgress)
      return false;
  ncclResult_t state = state_of(all_);
  for (; state == ncclInProgress && Clock::now() < deadline; state = state_of(all_)) ::usleep(50);
  return state == ncclSuccess;
}

}  // namespace antichain::cuda
