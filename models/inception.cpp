#include "models/inception.h"

#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"

namespace antichain {
namespace {

// torchvision draws weights from N(0, 0.1²) cut off at ±2; only the auxiliary head's last layer has another
// distribution. The cut is at twenty standard deviations, beyond what a generator of 32 bits reaches, so this
// is the plain normal distribution.
const Initialiser weights = Initialiser::normal(0.1);

// Builds layers on top of each other, read from left to right: a branch of a module, or the stem. Every
// convolution is followed by batch norm (eps 0.001) and ReLU.
class Chain {
 public:
  Chain(Graph& g, std::string prefix, NodeId x) : g_(g), prefix_(std::move(prefix)), x_(x) {}
  operator NodeId() const { return x_; }

  // The stride is 1, and the number of pixels stays.
  Chain& conv(const std::string& name, int64_t out, Extent kernel) {
    return add(name, {.out = out, .kernel = kernel, .pad = {kernel.h / 2, kernel.w / 2}});
  }
  // There is no padding.
  Chain& valid(const std::string& name, int64_t out, int kernel, int stride = 1) {
    return add(name, {.out = out, .kernel = kernel, .stride = stride});
  }
  Chain& average(const std::string& name, PoolOptions o) {
    x_ = average_pool(g_, prefix_ + name, x_, o);
    return *this;
  }
  Chain& max(const std::string& name, PoolOptions o) {
    x_ = max_pool(g_, prefix_ + name, x_, o);
    return *this;
  }

 private:
  Chain& add(const std::string& name, Conv2dOptions o) {
    o.bias = false;
    o.weight_init = weights;
    const std::string full = prefix_ + name;
    x_ = conv2d(g_, full + ".conv", x_, o);
    x_ = batch_norm(g_, full + ".bn", x_, {.eps = 1e-3f});
    x_ = relu(g_, full + ".relu", x_);
    return *this;
  }

  Graph& g_;
  std::string prefix_;
  NodeId x_;
};

constexpr PoolOptions same{.kernel = 3, .stride = 1, .pad = 1}, halve{.kernel = 3, .stride = 2};

// Figure 5: the 5 x 5 convolution (still whole in one branch) becomes two 3 x 3.
NodeId module_a(Graph& g, const std::string& name, NodeId input, int64_t pooled) {
  const auto x = [&] { return Chain(g, name + ".", input); };
  return concat(
      g, name,
      {x().conv("branch1x1", 64, 1),  //
       x().conv("branch5x5_1", 48, 1).conv("branch5x5_2", 64, 5),
       x().conv("branch3x3dbl_1", 64, 1).conv("branch3x3dbl_2", 96, 3).conv("branch3x3dbl_3", 96, 3),
       x().average("pool", same).conv("branch_pool", pooled, 1)});
}

// Figure 10: convolutions and a pool of stride 2 stand side by side and lead from 35 x 35 to 17 x 17.
NodeId module_b(Graph& g, const std::string& name, NodeId input) {
  const auto x = [&] { return Chain(g, name + ".", input); };
  return concat(
      g, name,
      {x().valid("branch3x3", 384, 3, 2),  //
       x().conv("branch3x3dbl_1", 64, 1).conv("branch3x3dbl_2", 96, 3).valid("branch3x3dbl_3", 96, 3, 2),
       x().max("branch_pool", halve)});
}

// Figure 6, n = 7: 7 x 7 convolutions become 1 x 7 and 7 x 1.
NodeId module_c(Graph& g, const std::string& name, NodeId input, int64_t c) {
  constexpr Extent wide(1, 7), tall(7, 1);
  const auto x = [&] { return Chain(g, name + ".", input); };
  return concat(g, name,
                {x().conv("branch1x1", 192, 1),
                 x().conv("branch7x7_1", c, 1).conv("branch7x7_2", c, wide).conv("branch7x7_3", 192, tall),
                 x().conv("branch7x7dbl_1", c, 1)
                     .conv("branch7x7dbl_2", c, tall)
                     .conv("branch7x7dbl_3", c, wide)
                     .conv("branch7x7dbl_4", c, tall)
                     .conv("branch7x7dbl_5", 192, wide),
                 x().average("pool", same).conv("branch_pool", 192, 1)});
}

// Figure 10 again leads from 17 x 17 to 8 x 8.
NodeId module_d(Graph& g, const std::string& name, NodeId input) {
  constexpr Extent wide(1, 7), tall(7, 1);
  const auto x = [&] { return Chain(g, name + ".", input); };
  return concat(g, name,
                {x().conv("branch3x3_1", 192, 1).valid("branch3x3_2", 320, 3, 2),
                 x().conv("branch7x7x3_1", 192, 1)
                     .conv("branch7x7x3_2", 192, wide)
                     .conv("branch7x7x3_3", 192, tall)
                     .valid("branch7x7x3_4", 192, 3, 2),
                 x().max("branch_pool", halve)});
}

// Figure 7: the filter banks are spread out, 1 x 3 beside 3 x 1.
NodeId module_e(Graph& g, const std::string& name, NodeId input) {
  constexpr Extent wide(1, 3), tall(3, 1);
  const auto from = [&](NodeId x) { return Chain(g, name + ".", x); };
  const NodeId narrow = from(input).conv("branch1x1", 320, 1);
  const NodeId single = from(input).conv("branch3x3_1", 384, 1);
  const NodeId single_wide = from(single).conv("branch3x3_2a", 384, wide);
  const NodeId single_tall = from(single).conv("branch3x3_2b", 384, tall);
  const NodeId twice = from(input).conv("branch3x3dbl_1", 448, 1).conv("branch3x3dbl_2", 384, 3);
  const NodeId twice_wide = from(twice).conv("branch3x3dbl_3a", 384, wide);
  const NodeId twice_tall = from(twice).conv("branch3x3dbl_3b", 384, tall);
  const NodeId pooled = from(input).average("pool", same).conv("branch_pool", 192, 1);
  return concat(g, name, {narrow, single_wide, single_tall, twice_wide, twice_tall, pooled});
}

// This is the upper third of table 1.
NodeId inception_stem(Graph& g, NodeId images, Form form) {
  Chain x(g, "", images);
  if (form == Form::cifar)
    return x.conv("Conv2d_1a_3x3", 32, 3)
        .conv("Conv2d_2a_3x3", 32, 3)
        .conv("Conv2d_2b_3x3", 64, 3)
        .max("maxpool1", {.kernel = 3, .stride = 2, .pad = 1})
        .conv("Conv2d_3b_1x1", 80, 1)
        .conv("Conv2d_4a_3x3", 192, 3);
  return x.valid("Conv2d_1a_3x3", 32, 3, 2)
      .valid("Conv2d_2a_3x3", 32, 3)
      .conv("Conv2d_2b_3x3", 64, 3)
      .max("maxpool1", halve)
      .valid("Conv2d_3b_1x1", 80, 1)
      .valid("Conv2d_4a_3x3", 192, 3)
      .max("maxpool2", halve);
}

NodeId logits(Graph& g, std::string name, NodeId x, int64_t classes, Initialiser init) {
  return linear(g, std::move(name), x, {.out = classes, .weight_init = init});
}

// Figure 8: the auxiliary head predicts the class from the output of the 17 x 17 modules.
void auxiliary_head(Graph& g, const ImageInputs& in, NodeId input, const ModelOptions& o) {
  Chain x(g, "AuxLogits.", input);
  if (o.form == Form::imagenet) x.average("pool", {.kernel = 5, .stride = 3});
  x.conv("conv0", 128, 1).valid("conv1", 768, 5);
  const NodeId y = flatten(g, "AuxLogits.flatten", global_average_pool(g, "AuxLogits.avgpool", x));
  add_loss(g, in.labels, logits(g, "AuxLogits.fc", y, o.classes, Initialiser::normal(0.001)), o,
           "AuxLogits.loss", o.aux);
}

}  // namespace

Graph inception_v3(const ModelOptions& options) {
  const ModelOptions o = completed(options, usual_inception_v3);
  Graph g("inception_v3");
  const ImageInputs in = add_image_inputs(g, o);
  NodeId x = inception_stem(g, in.images, o.form);
  x = module_a(g, "Mixed_5b", x, 32);
  x = module_a(g, "Mixed_5c", x, 64);
  x = module_a(g, "Mixed_5d", x, 64);
  x = module_b(g, "Mixed_6a", x);
  x = module_c(g, "Mixed_6b", x, 128);
  x = module_c(g, "Mixed_6c", x, 160);
  x = module_c(g, "Mixed_6d", x, 160);
  x = module_c(g, "Mixed_6e", x, 192);
  if (o.aux > 0) auxiliary_head(g, in, x, o);
  x = module_d(g, "Mixed_7a", x);
  x = module_e(g, "Mixed_7b", x);
  x = module_e(g, "Mixed_7c", x);
  x = dropout(g, "dropout", global_average_pool(g, "avgpool", x), *o.dropout);
  // With torchvision's 0.1, the first loss of ten classes is 3.8 rather than ln 10.
  const Initialiser last = o.form == Form::cifar ? Initialiser::normal(0.01) : weights;
  add_loss(g, in.labels, logits(g, "fc", flatten(g, "flatten", x), o.classes, last), o);
  return g;
}

}  // namespace antichain
