// This program has all commands of antichain, and one network more. The network has an operator of its own
// (prelu.h) between the shipped ones: it is three convolutions, each followed by a PReLU, and a shortcut
// around the second.
#include "app/run.h"
#include "layers/layers.h"
#include "prelu.h"

using namespace antichain;

NodeId unit(Graph& g, const std::string& name, NodeId x, int64_t channels, int stride) {
  x = conv2d(g, name + ".conv", x, {.out = channels, .stride = stride, .pad = 1});
  return prelu(g, name + ".prelu", x);
}

Graph slopenet(const ModelOptions& options) {
  const ModelOptions o = completed(options);
  Graph g("slopenet");
  const ImageInputs in = add_image_inputs(g, o);
  const NodeId first = unit(g, "first", in.images, 16, 2);
  const NodeId second = unit(g, "second", first, 16, 1);
  const NodeId third = unit(g, "third", add(g, "sum", first, second), 32, 2);
  const NodeId rows = flatten(g, "flatten", global_average_pool(g, "mean", third));
  add_loss(g, in.labels, linear(g, "classifier", rows, {.out = o.classes}), o);
  return g;
}

int main(int argc, char** argv) {
  register_prelu();
  return run(argc, argv, {{"slopenet", slopenet}});
}
