// In host memory the source fills the tensors of the inputs themselves, when the schedule loads them.
#pragma once

#include "framework/graph.h"
#include "pipeline/run/input_feed.h"
#include "pipeline/stage/stage_memory.h"

namespace antichain {

class HostFeed final : public InputFeed {
 public:
  // It feeds the inputs that the memory has rings for. Both must outlive it.
  HostFeed(const Graph& graph, const StageMemory& memory) : graph_(graph), memory_(memory) {}

  void load(int microbatch, BatchSource& source) override {
    for (const auto& [id, buffer] : memory_.tensors().output)
      if (graph_[id].role() == Role::input)
        source.fill(graph_[id].name, microbatch, memory_.at(buffer, microbatch));
  }

 private:
  const Graph& graph_;
  const StageMemory& memory_;
};

}  // namespace antichain
