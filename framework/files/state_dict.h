// Maps a network to the contents of its weight file: one tensor for every parameter and buffer, named and
// shaped as in PyTorch's state_dict, in the order of the nodes. A parameter that several nodes have is there
// once, under its first node's name. Only num_batches_tracked is stored
// differently: the file has an int64 scalar, the network one int32.
#pragma once

#include <string>
#include <vector>

#include "framework/files/weights.h"
#include "framework/graph.h"

namespace antichain {

struct StateEntry {
  NodeId node = 0;
  int index = 0;  // within the node's parameters, or its buffers
  bool buffer = false;
  const ParamSpec* spec = nullptr;  // of the graph
  std::string name;                 // full
  std::string file_name;            // Graph::file_name()
  bool kept = false;                // nothing computes with it, and it may have any numbers
};
std::vector<StateEntry> state_entries(const Graph&);
int64_t file_bytes(const Graph&);  // of all values that a file has, by all their names

// Returns the tensor as a file has it. `plain` is host memory in plain layout, f32 or i32.
NamedTensor to_named(const std::string& name, const Tensor& plain);
// Copies a file's tensor to `plain`. Throws Error naming `origin` and the tensor when shape or type differ,
// or a count does not fit.
void from_named(const NamedTensor&, const Tensor& plain, const std::string& origin);

// Returns the weights with those tensors again that files of the network have by several names.
Weights with_all_names(const Graph&, const Weights&);

// Returns the initial weights of a network: the values that a RankModel draws with this seed.
Weights initial_weights(const Graph&, uint64_t seed);

// A Fitted says which of a network's tensors a file has. It is good as long as the file's.
struct Fitted {
  std::vector<StateEntry> entries;          // there, and of the right shape and type
  std::vector<const NamedTensor*> tensors;  // the file's, of each entry
  std::vector<std::string> skipped;         // a sentence each: missing, unknown, or of another shape or type
};
enum class Fit { whole, partial };
// Names are those of files of weights, or full ones, as checkpoints have them; a prefix "module.",
// "_orig_mod." or "model." (DataParallel's, torch.compile's and a module's around it) that all of the file's
// have is left out. So is the first part of the network's names ("transformer.") where the file has it at
// none, because it is of the module within. LayerNorm.gamma and LayerNorm.beta are the weight and the bias.
// Counts of batches may be missing, as old files do not have them; then they begin at 0, and a sentence of
// `skipped` says so. Another says which masks and positions the file has that networks compute themselves
// (h.0.attn.bias of GPT-2). Where a tensor has several names, the file may have one of them, or all with the
// same numbers. With Fit::whole, throws Error naming the first tensor that does not fit otherwise, and how
// many others do not. With Fit::partial, skips those, and throws Error when no tensor fits.
Fitted fit(const Graph&, const Weights&, Fit, const std::string& origin);

// Returns all the network's tensors in its order: those of the file, and initial ones for the rest where
// `fit` is partial.
Weights complete(const Graph&, const Fitted&, uint64_t seed, const std::string& origin);

}  // namespace antichain
