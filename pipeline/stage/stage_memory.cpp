#include "pipeline/stage/stage_memory.h"

#include <algorithm>

namespace antichain {
namespace {

// A Layout says where each passing buffer lies in the arena that the rank's stages share.
struct ArenaOfRank {
  std::map<BufferId, int64_t> offsets;
  int64_t bytes = 0;
};

ArenaOfRank lay_out(const RankProgram& program) {
  ArenaOfRank arena;
  for (const auto& [stage, tensors] : program.stages) {
    std::vector<BufferId> passing;
    std::vector<Lifetime> lifetimes;
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      const Buffer& buffer = program.buffers[b];
      if (!buffer.passing || buffer.stage != stage) continue;
      passing.push_back(BufferId(b));
      lifetimes.push_back(buffer.lifetime);
    }
    const ArenaLayout layout = lay_out(lifetimes);
    for (size_t i = 0; i < passing.size(); ++i) arena.offsets[passing[i]] = layout.offsets[i];
    arena.bytes = std::max(arena.bytes, layout.bytes);
  }
  return arena;
}

}  // namespace

RankMemory::RankMemory(const RankProgram& program, const Backend& backend) : program_(program) {
  const ArenaOfRank layout = lay_out(program);
  const Tensor arena = backend.tensor({{std::max<int64_t>(layout.bytes, 64)}, DType::u8});
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    std::vector<Tensor>& copies = copies_.emplace_back();
    if (buffer.passing) copies.push_back(part_of(arena, layout.offsets.at(BufferId(b)), buffer.spec));
    while (int(copies.size()) < buffer.copies) copies.push_back(backend.tensor(buffer.spec));
  }
  for (const auto& [stage, tensors] : program.stages) stages_.try_emplace(stage, *this, tensors);
  bytes_ = ring_shares(program).bytes() + layout.bytes;
}

MemoryShares RankMemory::needed(const RankProgram& program) {
  MemoryShares shares = ring_shares(program);
  shares.working = lay_out(program).bytes;
  return shares;
}

std::vector<Tensor> StageMemory::all(const OfNodes& buffers, int node, int microbatch) const {
  std::vector<Tensor> tensors;
  if (const auto found = buffers.find(node); found != buffers.end())
    for (const BufferId buffer : found->second) tensors.push_back(at(buffer, microbatch));
  return tensors;
}

std::vector<Tensor> StageMemory::stash(int node, int microbatch) const {
  return all(tensors_.stash, node, microbatch);
}

const Tensor& StageMemory::output(const BackwardTensors& form, int node, int microbatch) const {
  const auto again = form.output.find(node);
  return again != form.output.end() ? at(again->second, microbatch) : output(node, microbatch);
}

std::vector<Tensor> StageMemory::stash(const BackwardTensors& form, int node, int microbatch) const {
  return all(form.output.contains(node) ? form.stash : tensors_.stash, node, microbatch);
}

std::vector<Tensor> StageMemory::statistics_again(const BackwardTensors& form, int node,
                                                  int microbatch) const {
  return all(form.statistics, node, microbatch);
}

std::vector<Tensor> StageMemory::statistics(int node, int microbatch) const {
  std::vector<Tensor> tensors;
  if (const auto found = tensors_.statistics.find(node); found != tensors_.statistics.end())
    for (const StatisticsPart& part : found->second)
      tensors.push_back(part_of(at(tensors_.all_statistics, microbatch), part.begin_bytes, part.spec));
  return tensors;
}

}  // namespace antichain
