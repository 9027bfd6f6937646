// This file sends messages by NCCL: a communicator and a side stream for each lane, and one exchange at a
// time, which is one NCCL group.
//
// The communicators do not block, so NCCL launches each group in a thread of its own. The host continues
// meanwhile. It waits for the launch only when it needs the end of the exchange, or starts the next one.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "framework/backend.h"
#include "framework/cuda/resources.h"
#include "pipeline/cuda/communicators.h"
#include "pipeline/cuda/events.h"
#include "pipeline/cuda/nccl_check.h"
#include "pipeline/cuda/streams.h"

namespace antichain::cuda {
namespace {

using Clock = Communicators::Clock;

Clock::time_point in(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// This is a little before the watchdog would end the job.
Clock::time_point connected_by(const Progress& progress) {
  return in(progress.limit_s() > 0 ? std::min(0.9 * progress.limit_s(), 300.0) : 300.0);
}

class NcclStream : public MessageStream {
 public:
  NcclStream(const Context& context, Job& job, const std::function<void()>& look)
      : context_(context), job_(job), progress_(job.activity()) {
    progress_.doing(fmt::format("connecting {} ranks by NCCL", job.size()));
    const Communicators::Patience patience{connected_by(progress_), look};
    comms_.emplace(resources(context).device, lanes(), job, patience);
    connect(patience);
  }

  Moment computed() override { return events_->in(compute()); }
  void compute_after(const Moment& moment) override {
    comms_->check();
    wait_for(compute(), recorded(moment));
  }
  bool reached(const Moment& moment) override {
    if (!end_of(moment) && !comms_->launched()) return false;
    if (!has_come(recorded(moment))) return false;
    comms_->check();  // an abort of the communicators also completes events
    return true;
  }

  int lanes() const override { return int(lanes_.size()); }

  std::vector<Moment> exchange(std::span<const MessageHalf> halves) override {
    settle();
    for (const MessageHalf& half : halves) wait_for(lanes_[size_t(half.lane)], half.after);
    comms_->begin([&](const std::vector<ncclComm_t>& comms) { call(halves, comms); });
    std::vector<Moment> ends(lanes_.size());
    for (const MessageHalf& half : halves)
      if (Moment& end = ends[size_t(half.lane)]; !end) {
        const auto begun = std::make_shared<Begun>(size_t(half.lane));
        launching_.push_back(begun);
        end = begun;
      }
    waits_for_ = std::ranges::all_of(halves, [&](const auto& h) { return h.peer == halves[0].peer; })
                     ? halves[0].peer
                     : RankState::anybody;
    return ends;
  }

  std::string failure() override { return comms_->failure(); }

  // The abort may never return, but its kernels end. Then nothing on the device waits any more, and memory
  // can be freed.
  void give_up() override {
    comms_->give_up();
    std::vector<Moment> last;
    for (const SideStream& lane : lanes_) last.push_back(events_->in(lane));
    const auto deadline = in(2);
    while (!std::ranges::all_of(last, has_come) && Clock::now() < deadline) std::this_thread::yield();
  }

 private:
  // The stream that the context computes in now.
  cudaStream_t compute() const { return stream_of(context_); }

  // A Begun is the end of an exchange in a lane. Its event is recorded when NCCL has launched the exchange.
  struct Begun {
    explicit Begun(size_t lane_) : lane(lane_) {}
    size_t lane;
    Moment end;
  };
  static Moment& end_of(const Moment& moment) { return static_cast<Begun*>(moment.get())->end; }

  const Moment& recorded(const Moment& moment) {
    if (!end_of(moment)) settle();
    return end_of(moment);
  }

  // The work is in the streams only when NCCL has launched it.
  void settle() {
    if (launching_.empty()) return;
    // A peer that does not come is left to the watchdog.
    comms_->settle(waits_for_, {.look = [this] { job_.check_job(); }});
    for (const auto& begun : launching_) begun->end = events_->in(lanes_[begun->lane]);
    launching_.clear();
  }

  void call(std::span<const MessageHalf> halves, const std::vector<ncclComm_t>& comms) const {
    for (const MessageHalf& half : halves) {
      const size_t bytes = size_t(half.tensor.bytes()), lane = size_t(half.lane);
      if (half.sends)
        ANTICHAIN_NCCL(
            ncclSend(half.tensor.raw(), bytes, ncclUint8, half.peer, comms.at(lane), lanes_[lane]));
      else
        ANTICHAIN_NCCL(
            ncclRecv(half.tensor.raw(), bytes, ncclUint8, half.peer, comms.at(lane), lanes_[lane]));
    }
  }

  // NCCL connects two ranks at their first message. This does so here, with all ranks at once, and not in a
  // step: it takes long, may fail, and stops both hosts.
  void connect(const Communicators::Patience& patience) {
    if (job_.size() == 1) return;
    const Tensor out = context_.backend().tensor({{8}, DType::u8});
    const Tensor in = context_.backend().tensor({{8 * int64_t(job_.size())}, DType::u8});
    std::vector<MessageHalf> halves;
    for (int lane = 0; lane < lanes(); ++lane)
      for (int peer = 0; peer < job_.size(); ++peer) {
        if (peer == job_.rank()) continue;
        const Tensor room({{8}, DType::u8}, std::shared_ptr<std::byte>(in.storage(), in.raw() + 8 * peer));
        halves.push_back({true, out, peer, computed(), lane});
        halves.push_back({false, room, peer, computed(), lane});
      }
    try {
      exchange_by(patience, halves);
    } catch (...) {
      give_up();  // otherwise freeing the tensors would wait forever
      throw;
    }
  }

  void exchange_by(const Communicators::Patience& patience, std::span<const MessageHalf> halves) {
    const std::vector<Moment> ends = exchange(halves);
    comms_->settle(waits_for_, patience);
    Progress::Wait waiting(progress_, RankState::anybody);
    while (!std::ranges::all_of(ends, [&](const Moment& end) { return reached(end); })) {
      patience.look();
      if (Clock::now() > patience.deadline)
        throw Error("the first messages by NCCL did not arrive in time",
                    "set NCCL_DEBUG=INFO to learn more, or use --transport mpi", ExitCode::peer_failed);
      std::this_thread::yield();
    }
  }

  const Context& context_;
  Job& job_;
  Progress& progress_;
  std::shared_ptr<Events> events_ = std::make_shared<Events>();
  std::vector<SideStream> lanes_{2};  // activations and gradients have a lane each
  std::optional<Communicators> comms_;
  std::vector<std::shared_ptr<Begun>> launching_;
  int waits_for_ = RankState::anybody;
};

}  // namespace

std::unique_ptr<MessageStream> make_nccl_stream(const Context& context, Job& job,
                                                const std::function<void()>& look) {
  return std::make_unique<NcclStream>(context, job, look);
}

std::string nccl_version() {
  int code = 0;  // an example: 22809 is 2.28.9
  ANTICHAIN_NCCL(ncclGetVersion(&code));
  return fmt::format("NCCL {}.{}.{}", code / 10'000, code / 100 % 100, code % 100);
}

}  // namespace antichain::cuda
