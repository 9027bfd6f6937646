// This file implements a step's calls on a GPU: NVTX ranges, stamps by CUDA events, and small kernels in the
// stream in which the rank computes.
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "data/cuda/make_images.h"
#include "framework/backend.h"
#include "framework/cuda/check.h"
#include "framework/cuda/gradient_norm.h"
#include "framework/cuda/list_on_device.h"
#include "framework/cuda/look.h"
#include "framework/cuda/step_numbers.h"
#include "pipeline/cuda/events.h"
#include "pipeline/cuda/recordings.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/device/device_step.h"

namespace antichain::cuda {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A Gate stops a stream until the host opens it, or for a limited time. A host function must not wait for
// anything that may depend on CUDA's work: a full queue (at a launch) or an allocation may block the thread
// that is to open the gate. So the wait has a time limit.
class Gate {
 public:
  void close() {
    const std::lock_guard lock(mutex_);
    ++closed_;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    opened_ = closed_;
    changed_.notify_all();
  }
  // CUDA calls this in its own thread, once for each time the gate was closed.
  static void CUDART_CB pass(void* gate) { static_cast<Gate*>(gate)->pass(); }

 private:
  void pass() {
    std::unique_lock lock(mutex_);
    const int64_t mine = ++passed_;
    changed_.wait_for(lock, std::chrono::milliseconds(20), [&] { return opened_ >= mine; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t closed_ = 0, opened_ = 0, passed_ = 0;  // counts
};

// A Tie is a moment at which both clocks are known.
struct Tie {
  Moment moment;
  double host_s = 0;
};
struct Stamped {
  Moment moment;
  std::shared_ptr<const Tie> tie;  // the one in front
};

struct Looked {
  std::vector<Tensor> tensors;  // kept alive
  Tensor pieces;                // on the device
  int64_t count = 0;
};

struct Listed {
  std::vector<Tensor> gradients, memory;  // kept alive
  Tensor sums;
  GradientList list;
};

class CudaStep : public DeviceStep {
 public:
  explicit CudaStep(const Context& context)
      : context_(context),
        stream_(stream_of(context)),
        numbers_(context.backend().tensor({{int64_t(sizeof(StepNumbers))}, DType::u8})),
        recordings_(stream_) {}
  // The owners release what it reads and writes once this object is gone.
  ~CudaStep() override {
    gate_.open();
    cudaStreamSynchronize(beside_);
    cudaStreamSynchronize(stream_);
  }

  void begin_range(const std::string& label) override { nvtxRangePushA(label.c_str()); }
  void end_range() override { nvtxRangePop(); }

  // Nothing else is in the tie's stream, so the device reaches the tie within microseconds of the call,
  // whatever it computes. Waiting shows the round trip. Half of it counts for each way, and the quickest of
  // some tries is taken.
  void tie_clocks(bool exactly) override {
    double shortest_s = 0;
    for (int i = 0; i < (exactly ? 4 : 1); ++i) {
      const double before_s = now_s();
      const Moment moment = timed_->in(of_ties_);
      if (exactly) wait(moment);
      const double took_s = exactly ? now_s() - before_s : 0;
      if (i > 0 && took_s >= shortest_s) continue;
      shortest_s = took_s;
      tie_ = std::make_shared<Tie>(Tie{moment, before_s + took_s / 2});
    }
  }

  Stamp stamp() override {
    ANTICHAIN_CHECK(tie_, "the clocks are tied before the first stamp");
    return std::make_shared<Stamped>(Stamped{timed_->in(stream_), tie_});
  }

  double at_s(const Stamp& stamp) override {
    const auto& [moment, tie] = *static_cast<const Stamped*>(stamp.get());
    wait(tie->moment);
    float ms = 0;  // since the tie: a step's length or so, for which 24 bits are enough
    ANTICHAIN_CUDA(cudaEventElapsedTime(&ms, cudaEvent_t(tie->moment.get()), cudaEvent_t(moment.get())));
    return tie->host_s + double(ms) / 1e3;
  }

  void hold() override {
    gate_.close();
    ANTICHAIN_CUDA(cudaLaunchHostFunc(stream_, Gate::pass, &gate_));
  }
  void let_go() override { gate_.open(); }

  void copy(const Tensor& from, const Tensor& to) override {
    ANTICHAIN_CHECK(from.bytes() == to.bytes(), "both ends have one size");
    ANTICHAIN_CUDA(cudaMemcpyAsync(to.raw(), from.raw(), size_t(from.bytes()), cudaMemcpyDefault, stream_));
  }
  void clear(const Tensor& tensor) override {
    ANTICHAIN_CUDA(cudaMemsetAsync(tensor.raw(), 0, size_t(tensor.bytes()), stream_));
  }

  void make_images(const Tensor& raw, const Tensor& table, const Tensor& images) override {
    cuda::make_images(stream_, raw, table, images);
  }

  LookedAt looked_at(const std::vector<Tensor>& tensors) override {
    const std::vector<Piece> pieces = pieces_of(tensors);
    const auto looked = std::make_shared<Looked>();
    looked->tensors = tensors;
    looked->count = int64_t(pieces.size());
    if (pieces.empty()) return looked;
    looked->pieces = list_on_device(context_, pieces);
    return looked;
  }

  void look(const LookedAt& at, const Tensor& found, int first) override {
    const Looked& looked = *static_cast<const Looked*>(at.get());
    ANTICHAIN_CHECK(first + int64_t(looked.tensors.size()) <= found.elements(), "every tensor has a place");
    if (looked.count > 0)
      cuda::look(stream_, looked.pieces.data<Piece>(), looked.count, found.data<int32_t>() + first);
  }

  Gradients gradients(const std::vector<Tensor>& all) override {
    const std::vector<Piece> pieces = pieces_of(all);
    std::vector<uint32_t> first;
    for (uint32_t i = 0; i < pieces.size(); ++i)
      while (first.size() <= pieces[i].tensor) first.push_back(i);
    while (first.size() <= all.size()) first.push_back(uint32_t(pieces.size()));
    const auto listed = std::make_shared<Listed>();
    const auto keep = [&](const Tensor& tensor) { return listed->memory.emplace_back(tensor); };
    const auto room = [&](int64_t count) {
      return keep(context_.backend().tensor({{std::max<int64_t>(count, 1)}, DType::f64})).data<double>();
    };
    listed->gradients = all;
    listed->sums = context_.backend().tensor({{int64_t(all.size())}, DType::f64});
    listed->list = {.pieces = reinterpret_cast<const Piece*>(keep(list_on_device(context_, pieces)).raw()),
                    .first = reinterpret_cast<const uint32_t*>(keep(list_on_device(context_, first)).raw()),
                    .partials = room(int64_t(pieces.size()) * square_workers),
                    .of_pieces = room(int64_t(pieces.size())),
                    .sums = listed->sums.data<double>(),
                    .factor = reinterpret_cast<float*>(room(1)),
                    .count = int64_t(pieces.size()),
                    .gradients = int64_t(all.size())};
    return listed;
  }
  void sum_squares(const Gradients& all) override { cuda::sum_squares(stream_, of(all).list); }
  void copy_sums(const Gradients& all, const Tensor& host) override { copy(of(all).sums, host); }
  void clip(const Gradients& all, double most) override { cuda::clip(stream_, of(all).list, most); }
  void scale(const Gradients& all, float factor) override { cuda::scale(stream_, of(all).list, factor); }

  void set(const StepNumbers& numbers) override {
    set_numbers(stream_, numbers, reinterpret_cast<StepNumbers*>(numbers_.raw()));
  }
  const StepNumbers* numbers() const override { return reinterpret_cast<StepNumbers*>(numbers_.raw()); }

  void repeat(int key, const std::function<void()>& work) override { recordings_.repeat(key, work); }
  void forget_recorded() override { recordings_.forget(); }

  Moment computed() override { return events_->in(stream_); }
  void beside(const Moment& after, const std::function<void()>& work) override {
    wait_for(beside_, after);
    const Elsewhere elsewhere(resources(context_), beside_);
    work();
  }
  void rejoin() override { wait_for(stream_, events_->in(beside_)); }

  void wait() override { ANTICHAIN_CUDA(cudaStreamSynchronize(stream_)); }
  void wait(const Moment& moment) override {
    ANTICHAIN_CUDA(cudaEventSynchronize(cudaEvent_t(moment.get())));
  }
  int steps_at_once() const override { return 2; }

 private:
  static const Listed& of(const Gradients& all) { return *static_cast<const Listed*>(all.get()); }

  // While it lives, whoever asks the context for its stream gets another one. The context's
  // workspace is that of its own stream, where kernels may use it at the same time. So the other stream may
  // run only what uses none, which is Backend::add.
  class Elsewhere {
   public:
    Elsewhere(Resources& resources, cudaStream_t stream)
        : resources_(resources), own_(std::exchange(resources.stream, stream)) {}
    ~Elsewhere() { resources_.stream = own_; }
    Elsewhere(const Elsewhere&) = delete;

   private:
    Resources& resources_;
    const Stream own_;
  };
  const Context& context_;
  const cudaStream_t stream_;
  SideStream beside_, of_ties_;
  std::shared_ptr<Events> events_ = std::make_shared<Events>();
  std::shared_ptr<Events> timed_ = std::make_shared<Events>(cudaEventDefault);
  const Tensor numbers_;
  Recordings recordings_;
  std::shared_ptr<const Tie> tie_;
  Gate gate_;
};

}  // namespace

std::unique_ptr<DeviceStep> make_step_stream(const Context& context) {
  return std::make_unique<CudaStep>(context);
}

}  // namespace antichain::cuda
