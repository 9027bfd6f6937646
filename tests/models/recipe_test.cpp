// Every shipped model has its own recipe, and a user's model has the one that it states, or a general one.
#include "models/recipe.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "models/model.h"

namespace antichain {
namespace {

Graph nothing(const ModelOptions&) { return Graph("nothing"); }

TEST(Recipes, EveryShippedModelHasOne) {
  const std::string general = shipped_recipe("a model of one's own").source;
  for (const char* name :
       {"alexnet",   "bert_base",  "convnext_tiny", "densenet121", "efficientnet_b0", "gpt2",
        "gpt_baby",  "gpt_nano",   "inception_v3",  "llama",       "mobilenet_v2",    "mobilenet_v3_large",
        "resnet18",  "resnet20",   "resnet32",      "resnet50",    "resnet56",        "resnet101",
        "resnext50", "resnext101", "squeezenet1_0", "vgg16",       "vit_b_16",        "vit_tiny"}) {
    const Recipe recipe = recipe_of(name);
    EXPECT_NE(recipe.source, general) << name;
    EXPECT_EQ(recipe.batch % 8, 0) << name << ": it is cut into 8 micro-batches";
    EXPECT_NO_THROW(LearningRate(recipe.rate, 10)) << name;
  }
  EXPECT_EQ(recipe_of("squeezenet").source, recipe_of("squeezenet1_0").source);
}

TEST(Recipes, TheRateIsInProportionToTheBatch) {
  const Recipe recipe{.batch = 64, .rate = {.peak = 0.1}};
  EXPECT_EQ(peak_for(recipe, 64), 0.1);
  EXPECT_DOUBLE_EQ(peak_for(recipe, 256), 0.4);
  EXPECT_DOUBLE_EQ(peak_for(recipe, 16), 0.025);
}

TEST(Recipes, AModelOfOnesOwnMayBringIts) {
  register_model({"recipe_none", nothing});
  register_model({"recipe_given", nothing, {}, Recipe{.batch = 24, .epochs = 3}});
  EXPECT_EQ(recipe_of("recipe_none").source, shipped_recipe("recipe_none").source);
  EXPECT_EQ(recipe_of("recipe_given").batch, 24);
  EXPECT_EQ(recipe_of("recipe_given").epochs, 3);
  EXPECT_THROW(recipe_of("recipe_missing"), Error);
}

}  // namespace
}  // namespace antichain
