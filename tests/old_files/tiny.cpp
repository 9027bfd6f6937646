// This is the program with a network so small that files of it can be kept: max pooling, batch norm and two
// linear layers. No layout in it depends on the processor, so its graph is the same everywhere.
#include "app/run.h"
#include "layers/batch_norm.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"

using namespace antichain;

Graph tiny(const ModelOptions& options) {
  const ModelOptions o = completed(options);
  Graph g("tiny");
  const ImageInputs in = add_image_inputs(g, o);
  const NodeId pooled = max_pool(g, "pool", in.images, {.kernel = 8, .stride = 8});
  const NodeId rows = flatten(g, "flatten", batch_norm(g, "norm", pooled));
  const NodeId hidden = relu(g, "relu", linear(g, "hidden", rows, {.out = 16}));
  add_loss(g, in.labels, linear(g, "classifier", hidden, {.out = o.classes}), o);
  return g;
}

int main(int argc, char** argv) { return run(argc, argv, {{"tiny", tiny}}); }
