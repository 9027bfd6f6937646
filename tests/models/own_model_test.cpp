// Tests a user's models beside the shipped ones.
#include <gtest/gtest.h>

#include "layers/flatten.h"
#include "layers/linear.h"
#include "models/model.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

Graph linear_model(const ModelOptions& options) {
  const ModelOptions o = completed(options);
  Graph g("linear");
  const ImageInputs in = add_image_inputs(g, o);
  add_loss(g, in.labels, linear(g, "fc", flatten(g, "flatten", in.images), {.out = o.classes}), o);
  return g;
}

Graph lossless(const ModelOptions& options) {
  Graph g("lossless");
  const ImageInputs in = add_image_inputs(g, completed(options));
  linear(g, "fc", flatten(g, "flatten", in.images), {.out = 10});
  return g;
}

Graph obstinate(const ModelOptions& options) {
  ModelOptions o = options;
  o.microbatch = 3;
  return linear_model(o);
}

TEST(OwnModel, IsKnownAfterTheShippedOnes) {
  register_model({"own_linear", linear_model});
  EXPECT_EQ(model_names().back(), "own_linear");
  const Graph graph = make_model("own_linear", {.microbatch = 5, .classes = 7});
  EXPECT_EQ(graph.microbatch(), 5);
  EXPECT_EQ(graph.shape(graph.find("fc")), Shape({5, 7}));
  EXPECT_NO_THROW(make_model("own_linear", {.form = Form::imagenet, .microbatch = 1}));
  expect_error([] { make_model("own_linaer"); }, {"did you mean 'own_linear'"});
  expect_error([] { make_model("own_linear", {.aux = 0.4}); }, {"own_linear", "auxiliary head"});
}

TEST(OwnModel, HasTheTraitsItSays) {
  register_model({"own_small", linear_model, {.cifar_only = true, .auxiliary = true}});
  expect_error([] { make_model("own_small", {.form = Form::imagenet}); }, {"own_small", "no ImageNet form"});
  EXPECT_NO_THROW(make_model("own_small", {.microbatch = 1, .aux = 0.4}));
}

TEST(OwnModel, NeedsANameOfItsOwnAndAFunction) {
  const auto refuse = [](NamedModel model, std::initializer_list<std::string> parts) {
    const std::vector<std::string> before = model_names();
    expect_error([&] { register_model(model); }, parts);
    EXPECT_EQ(model_names(), before);
  };
  refuse({"resnet18", linear_model}, {"there is already a model 'resnet18'", "another name"});
  refuse({"squeezenet", linear_model}, {"already a model 'squeezenet'"});  // the short name of squeezenet1_0
  refuse({"", linear_model}, {"has no name"});
  refuse({"own_nothing", nullptr}, {"own_nothing", "has no function"});
  register_model({"own_twice", linear_model});
  refuse({"own_twice", linear_model}, {"already a model 'own_twice'"});
}

TEST(OwnModel, IsRefusedWhereItCannotBeTrained) {
  register_model({"own_lossless", lossless});
  expect_error([] { make_model("own_lossless"); }, {"own_lossless", "no loss", "add_loss"});
  register_model({"own_obstinate", obstinate});
  expect_error([] { make_model("own_obstinate", {.microbatch = 4}); }, {"micro-batches of 4 and has 3"});
}

}  // namespace
}  // namespace antichain
