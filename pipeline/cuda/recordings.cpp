#include "pipeline/cuda/recordings.h"

#include <fmt/format.h>

#include <utility>

#include "framework/cuda/check.h"
#include "framework/cuda/switches.h"
#include "framework/say.h"

namespace antichain::cuda {
namespace {

// A Capture makes a stream record until it is told to end or the work throws. Only calls of this thread are
// recorded: ranks that are threads continue to allocate and copy meanwhile.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    ANTICHAIN_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  }
  ~Capture() {
    if (ended_) return;
    cudaGraph_t broken = nullptr;
    cudaStreamEndCapture(stream_, &broken);
    if (broken) cudaGraphDestroy(broken);
    cudaGetLastError();  // clears the error, which the exception reports
  }
  Capture(const Capture&) = delete;

  std::shared_ptr<void> end() {
    ended_ = true;
    cudaGraph_t graph = nullptr;
    ANTICHAIN_CUDA(cudaStreamEndCapture(stream_, &graph));
    return {graph, [](void* g) { cudaGraphDestroy(cudaGraph_t(g)); }};
  }

 private:
  const cudaStream_t stream_;
  bool ended_ = false;
};

}  // namespace

Recordings::Recordings(cudaStream_t stream, size_t most_nodes)
    : stream_(stream), most_nodes_(most_nodes), records_(records_graphs()) {}

void Recordings::repeat(int key, const std::function<void()>& work) {
  Graph& graph = graphs_[key];
  if (++graph.times == 2 && records_) record(graph, work);
  if (!graph.executable) return work();
  ANTICHAIN_CUDA(cudaGraphLaunch(cudaGraphExec_t(graph.executable.get()), stream_));
}

void Recordings::record(Graph& graph, const std::function<void()>& work) try {
  Capture capture(stream_);
  work();
  const std::shared_ptr<void> recorded = capture.end();
  size_t nodes = 0;
  ANTICHAIN_CUDA(cudaGraphGetNodes(cudaGraph_t(recorded.get()), nullptr, &nodes));
  if (nodes == 0 || nodes_ + nodes > most_nodes_) return leave_out(nodes);
  cudaGraphExec_t executable = nullptr;
  ANTICHAIN_CUDA(cudaGraphInstantiateWithFlags(&executable, cudaGraph_t(recorded.get()), 0));
  graph.executable = {executable, [](void* g) { cudaGraphExecDestroy(cudaGraphExec_t(g)); }};
  nodes_ += nodes;
} catch (const Error& error) {
  cudaGetLastError();
  if (!std::exchange(graph.has_failed, true)) {
    graph.times = 1;  // another rank's thread may have disturbed it: tries once more next time
    return;
  }
  records_ = false;
  note(fmt::format("work on the device can't be recorded, so its kernels are launched one by one: {}",
                   error.what()));
}

void Recordings::leave_out(size_t nodes) {
  if (nodes == 0 || std::exchange(has_left_out_, true)) return;
  note(
      fmt::format("a step has more than the {} pieces of work that are recorded: the kernels of the rest are "
                  "launched one by one (fewer --microbatches have fewer)",
                  most_nodes_));
}

void Recordings::forget() {
  if (nodes_ > 0) ANTICHAIN_CUDA(cudaStreamSynchronize(stream_));  // a step in front may still run them
  graphs_.clear();
  nodes_ = 0;
}

}  // namespace antichain::cuda
