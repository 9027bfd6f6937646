// This program has all commands of antichain, and one network more: three stages of 3 x 3 convolutions, with
// shortcuts around pairs of them (as in ResNet). One tensor of each stage goes straight to the classifier,
// which sees all three scales.
#include "app/run.h"
#include "layers/add.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/linear.h"
#include "layers/relu.h"

using namespace antichain;

NodeId unit(Graph& g, const std::string& name, NodeId x, int64_t channels, int stride) {
  x = conv2d(g, name + ".conv", x, {.out = channels, .stride = stride, .pad = 1, .bias = false});
  return relu(g, name + ".relu", batch_norm(g, name + ".norm", x));
}

Graph skipnet(const ModelOptions& options) {
  const ModelOptions o = completed(options);
  Graph g("skipnet");
  const ImageInputs in = add_image_inputs(g, o);
  std::vector<NodeId> scales;
  NodeId x = unit(g, "stem", in.images, 16, 1);
  for (int64_t channels : {16, 32, 64}) {
    const std::string stage = "stage" + std::to_string(channels);
    const NodeId first = unit(g, stage + ".first", x, channels, channels == 16 ? 1 : 2);
    const NodeId second = unit(g, stage + ".second", first, channels, 1);
    const NodeId third = unit(g, stage + ".third", second, channels, 1);
    x = add(g, stage + ".add", first, third);
    scales.push_back(global_average_pool(g, stage + ".mean", x));
  }
  x = flatten(g, "flatten", concat(g, "scales", scales));
  add_loss(g, in.labels, linear(g, "classifier", x, {.out = o.classes}), o);
  return g;
}

int main(int argc, char** argv) { return run(argc, argv, {{"skipnet", skipnet}}); }
