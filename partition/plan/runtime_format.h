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

using Layers = std::vector<std::vector<int>>;  // each one's nodes, ascending; the layers in order

struct RuntimeFormat {
  const char* name;   // on the command line
  const char* title;  // in sentences
  const char* file;   // what the file has
  std::string (*text)(const Plan&, const Profile&);
  Layers (*layers)(const Profile&);  // between which it can cut
};

std::span<const RuntimeFormat> runtime_formats();
std::vector<std::string> runtime_names();

// Returns the network as layers between which that runtime can cut: a plan that has each layer in one stage
// can be written. A loss is in the layer whose output it reads. Throws Error when there is no runtime of that
// name, and where its format can't have the network at all.
Layers layers_for(const std::string& runtime, const Profile&);

// Returns the plan as that runtime reads it. Throws Error when the plan is not valid for the profile, when
// there is no runtime of that name, and when the format can't say where the plan cuts; that error names the
// stages and the nodes.
std::string plan_for(const std::string& runtime, const Plan&, const Profile&);

// These are the functions of the rows. Each throws Error as above. Their plans are valid and have equally
// many replicas a stage. Their layers have no losses.

// Returns a JSON object for torch.distributed.pipelining: {"layer2.0": "BEGINNING"} has the modules at which
// stages are split and the value's name in its SplitPoint.
std::string split_points(const Plan&, const Profile&);
Layers layers_between_split_points(const Profile&);
// Returns a JSON object: "parts" has the first layer of each stage and then the number of layers, as
// PipelineModule.parts of DeepSpeed; "layers" has the names of each layer's nodes. A layer is what lies
// between two places where only one tensor passes; where it has branches, the module around them.
std::string layer_parts(const Plan&, const Profile&);
Layers layers_of_one_tensor(const Profile&);
// Returns the text for --pipeline-model-parallel-layout of Megatron-LM: Ett|t*4|ttL has the embedding, the
// transformer layers of each stage, and the loss. Transformer layers are numbered modules with nodes of the
// same names and operators.
std::string layer_layout(const Plan&, const Profile&);
Layers transformer_layers(const Profile&);  // with what precedes and follows them

}  // namespace antichain
