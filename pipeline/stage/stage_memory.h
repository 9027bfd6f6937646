// The memory of one rank's step: its program's buffers (pipeline/program/program.h), allocated once.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "framework/backend.h"
#include "pipeline/program/memory_shares.h"
#include "pipeline/program/parts.h"
#include "pipeline/program/program.h"

namespace antichain {

class RankMemory;

// StageMemory has the tensors of one stage of a rank.
class StageMemory {
 public:
  StageMemory(const RankMemory& memory, const StageTensors& tensors) : memory_(memory), tensors_(tensors) {}

  const StageTensors& tensors() const { return tensors_; }
  const Tensor& at(BufferId, int microbatch) const;
  // Returns a tensor that this stage computes, receives, loads, or takes from another stage of the rank.
  const Tensor& output(int node, int microbatch) const { return at(tensors_.output.at(node), microbatch); }
  const Tensor& sent(const Message& m, int microbatch) const { return at(tensors_.sent.at(m), microbatch); }
  const Tensor& received(const Message& m, int microbatch) const {
    return at(tensors_.received.at(m), microbatch);
  }
  // Return a node's tensors of one micro-batch; none where the step keeps none.
  std::vector<Tensor> stash(int node, int microbatch) const;
  std::vector<Tensor> statistics(int node, int microbatch) const;
  // Return what a form of the backward reads: what it computed again, or what the forward left.
  const Tensor& output(const BackwardTensors&, int node, int microbatch) const;
  std::vector<Tensor> stash(const BackwardTensors&, int node, int microbatch) const;
  // Returns where a forward that runs again leaves its statistics.
  std::vector<Tensor> statistics_again(const BackwardTensors&, int node, int microbatch) const;

 private:
  using OfNodes = std::map<int, std::vector<BufferId>>;
  std::vector<Tensor> all(const OfNodes&, int node, int microbatch) const;

  const RankMemory& memory_;
  const StageTensors& tensors_;
};

// RankMemory is the memory of all stages of one rank.
class RankMemory {
 public:
  // The program must outlive it. Throws Error when the backend has no memory left.
  RankMemory(const RankProgram&, const Backend&);
  RankMemory(const RankMemory&) = delete;

  const StageMemory& of(int stage) const { return stages_.at(stage); }
  // Returns the copy of the buffer that the micro-batch has.
  const Tensor& at(BufferId buffer, int microbatch) const {
    const std::vector<Tensor>& copies = copies_[size_t(buffer)];
    return copies[size_t(microbatch / program_.buffers[size_t(buffer)].replicas) % copies.size()];
  }
  int64_t bytes() const { return bytes_; }

  // Returns the shares whose sum bytes() would be, found by the same layout without allocating anything.
  static MemoryShares needed(const RankProgram&);

 private:
  const RankProgram& program_;
  std::vector<std::vector<Tensor>> copies_;  // by buffer
  std::map<int, StageMemory> stages_;
  int64_t bytes_ = 0;
};

inline const Tensor& StageMemory::at(BufferId buffer, int microbatch) const {
  return memory_.at(buffer, microbatch);
}

}  // namespace antichain
