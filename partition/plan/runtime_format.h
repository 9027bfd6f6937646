// Another runtime reads a plan in a format of its own: `plan --for RUNTIME --out FILE`. A runtime is one row
// of a table here.
//
// Each of these formats says less than a plan: it cuts a sequence of modules or layers, and all stages have
// equally many replicas. A plan that it can't say is refused. All these runtimes are PyTorch's, so a plan by
// which a stage would change its own input in place is refused as well.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "partition/plan/plan.h"

namespace antichain {

// Which cuts between layers can be written: each of them alone, or any of them in one plan.
enum class SplitCuts { one_by_one, any_at_once };

using Layers = std::vector<std::vector<int>>;  // each one's nodes, ascending; the layers in order

struct RuntimeFormat {
  const char* name;   // on the command line
  const char* title;  // in sentences
  const char* file;   // what the file has
  std::string (*text)(const Plan&, const Profile&);
  Layers (*layers)(const Profile&, SplitCuts);  // between which it can cut
};

std::span<const RuntimeFormat> runtime_formats();
std::vector<std::string> runtime_names();

// Returns the network as layers between which that runtime can cut, in an order that stages have to keep. A
// plan that has each layer in one stage can be written, with one_by_one if no two of its cuts need the same
// name. A loss is in the layer whose output it reads. Throws Error when there is no runtime of that name, and
// where its format can't have the network at all.
Layers layers_for(const std::string& runtime, const Profile&, SplitCuts = SplitCuts::any_at_once);

// Returns the plan as that runtime reads it. Throws Error when the plan is not valid for the profile, when
// there is no runtime of that name, when a stage recomputes nodes, and when the format can't say where the
// plan cuts; that error names the stages and the nodes.
std::string plan_for(const std::string& runtime, const Plan&, const Profile&);

// These are the functions of the rows. Each throws Error as above. Their plans are valid and have equally
// many replicas a stage. Their layers have no losses.

// Returns a JSON object for torch.distributed.pipelining: {"layer2.0": "BEGINNING"} has the modules at which
// stages are split, each once, and the value's name in its SplitPoint.
std::string split_points(const Plan&, const Profile&);
Layers layers_between_split_points(const Profile&, SplitCuts);
// Returns a JSON object: "parts" has the first layer of each stage and then the number of layers, as
// PipelineModule.parts of DeepSpeed; "layers" has the names of each layer's nodes. A layer is what lies
// between two places where only one tensor passes; where it has branches, the module around them. Each stage
// has parameters.
std::string layer_parts(const Plan&, const Profile&);
Layers layers_of_one_tensor(const Profile&, SplitCuts);
// Returns the text for --pipeline-model-parallel-layout of Megatron-LM: Ett|t*4|ttL has the embedding, the
// transformer layers of each stage, and the loss. Transformer layers are numbered modules with nodes of the
// same names and operators, each with what the model computes between it and the next, if that is the same.
std::string layer_layout(const Plan&, const Profile&);
Layers transformer_layers(const Profile&, SplitCuts);  // with what precedes and follows them

}  // namespace antichain
