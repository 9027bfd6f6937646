// Recordings are CUDA graphs: work that comes repeatedly is recorded once and from then on launched as a
// whole. Then the host makes one call per action instead of one per kernel, and the device has no gaps
// between kernels that are shorter than a call.
//
//   first time    the work runs directly: libraries load what they need, workspaces get their sizes
//   second        what it starts in the stream is recorded, not executed; then the recording is launched
//   from then on  the recording is launched, and the work is not called
//
// A recording that fails is tried once more, the next time: another rank's thread may have disturbed it.
//
// ANTICHAIN_CUDA_GRAPHS=0 always calls the work; the bits are the same.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>

namespace antichain::cuda {

class Recordings {
 public:
  // A node of a graph takes about a kilobyte of the device's memory, and many micro-batches of a deep network
  // have hundreds of thousands. Beyond `most_nodes` nothing more is recorded, and one line on stderr says so.
  explicit Recordings(cudaStream_t, size_t most_nodes = 1 << 17);

  // `work` must start operations in the stream and nowhere else, allocate nothing and wait for nothing. Where
  // two recordings fail, one line on stderr says why, and `work` is called every time.
  void repeat(int key, const std::function<void()>& work);
  void forget();  // waits until none of the recordings runs, and drops them

 private:
  struct Graph {
    int times = 0;
    bool has_failed = false;
    std::shared_ptr<void> executable;  // cudaGraphExec_t; nullptr: not recorded
  };
  void record(Graph&, const std::function<void()>& work);
  void leave_out(size_t nodes);

  const cudaStream_t stream_;
  const size_t most_nodes_;
  bool records_, has_left_out_ = false;
  size_t nodes_ = 0;  // of all graphs
  std::map<int, Graph> graphs_;
};

}  // namespace antichain::cuda
