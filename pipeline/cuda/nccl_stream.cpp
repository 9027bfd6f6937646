// Messages by NCCL: one communicator of all ranks, one side stream per rank, one exchange at a time, each a group of NCCL's.
//
// The communicator does not block: calls return while NCCL still connects two ranks, and its state is polled, with a deadline for
// making it. The watchdog's thread asks for the state, too (failure()), and aborts the communicator when something is wrong;
// from then on every call here is an error.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>

#include "framework/cuda/resources.h"
#include "pipeline/agree.h"
#include "pipeline/cuda/events.h"
#include "pipeline/cuda/nccl_check.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/transport.h"

namespace antichain::cuda {
namespace {

using Clock = std::chrono::steady_clock;

ncclUniqueId shared_id(Transport& job) {
  ncclUniqueId id{};
  const std::string bytes = on_rank_zero(job, [&] {
    ncclUniqueId made{};
    ANTICHAIN_NCCL(ncclGetUniqueId(&made));
    return std::string(made.internal, sizeof made.internal);
  });
  std::memcpy(id.internal, bytes.data(), sizeof id.internal);
  return id;
}

// Of calls that NCCL begins together, at the end. Never left open, whatever one of them says: later calls would join it.
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

class NcclStream : public MessageStream {
 public:
  NcclStream(const Context& context, Transport& job)
      : compute_(stream_of(context)), rank_(job.rank()), job_(job), progress_(job.activity()) {
    const ncclUniqueId id = shared_id(job);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    progress_.doing(fmt::format("connecting {} ranks by NCCL", job.size()));
    ANTICHAIN_NCCL(ncclCommInitRankConfig(&comm_, job.size(), id, rank_, &config));
    // A little before the watchdog would say that this rank hangs.
    settle(in(progress_.limit_s() > 0 ? std::min(0.9 * progress_.limit_s(), 300.0) : 300.0));
  }

  // A send is done here when NCCL has the bytes; they may still be on their way. While an exception is, peers may be gone, and
  // nobody waits for them.
  ~NcclStream() override {
    if (!comm_) return;
    if (std::uncaught_exceptions() == 0 && finalised())
      ncclCommDestroy(comm_);
    else
      ncclCommAbort(comm_);
  }

  Moment computed() override { return events_->in(compute_); }
  void compute_after(const Moment& moment) override { wait_for(compute_, moment); }
  bool reached(const Moment& moment) override { return has_come(moment); }

  // The work is in the stream, and its end recorded, only when NCCL has settled: until then it may still be connecting.
  Moment exchange(std::span<const MessageHalf> halves) override {
    for (const MessageHalf& half : halves) wait_for(stream_, half.after);
    {
      std::lock_guard lock(mutex_);
      check_usable();
      call(halves);
    }
    settle(Clock::time_point::max());  // a peer that does not come is the watchdog's matter
    return events_->in(stream_);
  }

  std::string failure() override {
    std::lock_guard lock(mutex_);
    if (!comm_) return failure_;
    const ncclResult_t state = state_under_lock();
    if (state != ncclSuccess && state != ncclInProgress) abort_under_lock(ncclGetErrorString(state));
    return failure_;
  }

  void give_up() override {
    std::lock_guard lock(mutex_);
    if (comm_) ncclCommAbort(comm_);
    comm_ = nullptr;  // and nothing has failed here
  }

 private:
  static Clock::time_point in(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  bool finalised() {
    const auto deadline = in(10);
    ncclResult_t state = ncclCommFinalize(comm_);
    while (state == ncclInProgress && Clock::now() < deadline) {
      ::usleep(50);
      state = state_under_lock();
    }
    return state == ncclSuccess;
  }

  ncclResult_t state_under_lock() const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
    return asked == ncclSuccess ? state : asked;
  }

  // Ends what the device still does of it, here; the other ranks' watchdogs hear of it.
  void abort_under_lock(const std::string& why) {
    failure_ = fmt::format("NCCL: {}", why);
    ncclCommAbort(comm_);
    comm_ = nullptr;
  }

  void check_usable() const {
    if (comm_) return;
    throw Error(
        fmt::format("rank {} can't go on: {}", rank_, failure_.empty() ? "NCCL was given up" : failure_),
        "set NCCL_DEBUG=INFO to learn more, or use --transport mpi", ExitCode::peer_failed);
  }

  void call(std::span<const MessageHalf> halves) const {
    Group group;
    for (const MessageHalf& half : halves) {
      const size_t bytes = size_t(half.tensor.bytes());
      if (half.sends)
        ANTICHAIN_NCCL(ncclSend(half.tensor.raw(), bytes, ncclUint8, half.peer, comm_, stream_));
      else
        ANTICHAIN_NCCL(ncclRecv(half.tensor.raw(), bytes, ncclUint8, half.peer, comm_, stream_));
    }
    group.end();
  }

  // Until NCCL has finished what it was told to begin.
  void settle(Clock::time_point deadline) {
    for (int round = 0;; ++round) {
      {
        std::lock_guard lock(mutex_);
        check_usable();
        const ncclResult_t state = state_under_lock();
        if (state == ncclSuccess) return;
        if (state != ncclInProgress)
          abort_under_lock(fmt::format("{}: {}", ncclGetErrorString(state), ncclGetLastError(comm_)));
        else if (Clock::now() > deadline)
          abort_under_lock("not all ranks connected in time");
        check_usable();
      }
      job_.check_job();
      if (round > 100) ::usleep(50);
    }
  }

  const cudaStream_t compute_;
  const int rank_;
  Transport& job_;
  Progress& progress_;
  std::shared_ptr<Events> events_ = std::make_shared<Events>();
  SideStream stream_;
  std::mutex mutex_;  // the watchdog's thread asks, too
  ncclComm_t comm_ = nullptr;
  std::string failure_;
};

}  // namespace

std::unique_ptr<MessageStream> make_nccl_stream(const Context& context, Transport& job) {
  return std::make_unique<NcclStream>(context, job);
}

std::string nccl_version() {
  int code = 0;  // 22809 is 2.28.9
  ANTICHAIN_NCCL(ncclGetVersion(&code));
  return fmt::format("NCCL {}.{}.{}", code / 10'000, code / 100 % 100, code % 100);
}

}  // namespace antichain::cuda
