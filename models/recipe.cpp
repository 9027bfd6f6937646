#include "models/recipe.h"

#include <algorithm>

namespace antichain {
namespace {

// A row is a model's recipe. The features of all but ResNet-20, 32 and 56 are means of 512 to 2048 channels,
// and the more channels there are, the steeper is the loss. So their rates are low and rise slowly (Goyal et
// al. 2017, section 2.2). All but ConvNeXt train by SGD with momentum 0.9 by Nesterov's rule and weight decay
// 0.0005, as is usual on CIFAR-10 (Zagoruyko and Komodakis, "Wide Residual Networks", BMVC 2016). ConvNeXt's
// authors train it by AdamW (Liu et al., "A ConvNet for the 2020s", CVPR 2022): its blocks begin near 0, as
// LayerScale has it, and SGD moves them slowly. So are transformers trained, with clipping, and with a weight
// decay that is stronger than usual.
struct Row {
  const char* model;
  int batch;
  double peak;
  const char* schedule;
  int64_t warmup_steps;
  int epochs;
  const char* source;
  const char* optimiser = "sgd";
  AdamWOptions adamw = {};
  double clip_norm = 0, final_share = 0;  // of the peak
};

constexpr const char* measured = "from runs of 200 steps on CIFAR-10";
constexpr const char* shared = "that of resnet20, whose blocks it has";

constexpr AdamWOptions of_gpt = {.beta2 = 0.95, .weight_decay = 0.1};
constexpr AdamWOptions of_small_gpt = {.beta2 = 0.99, .weight_decay = 0.1};
constexpr AdamWOptions of_vit = {.weight_decay = 0.05};

constexpr Row rows[] = {
    {"alexnet", 64, 0.02, "cosine", 50, 30, measured},
    {"bert_base", 32, 1e-4, "cosine", 500, 3, "Devlin et al. 2019, with a shorter rise", "adamw", {}, 1},
    {"convnext_tiny", 64, 0.0005, "cosine", 20, 30, measured, "adamw"},
    {"densenet121", 64, 0.02, "cosine", 100, 30, measured},
    {"efficientnet_b0", 64, 0.02, "cosine", 50, 30, measured},
    {"gpt2", 64, 3e-4, "cosine", 200, 1, "near nanoGPT's, whose batch is 480", "adamw", of_gpt, 1, 0.1},
    {"gpt_baby", 64, 1e-3, "cosine", 100, 1, "nanoGPT's", "adamw", of_small_gpt, 1, 0.1},
    {"gpt_nano", 16, 1e-3, "cosine", 100, 1, "nanoGPT's, whose batch is 12", "adamw", of_small_gpt, 1, 0.1},
    {"inception_v3", 256, 0.015, "cosine", 100, 30, measured},
    {"llama", 64, 5e-4, "cosine", 200, 1, "near llama2.c's, whose batch is 128", "adamw", of_gpt, 1},
    {"mobilenet_v2", 64, 0.02, "cosine", 50, 30, measured},
    {"mobilenet_v3_large", 64, 0.02, "cosine", 50, 30, measured},
    {"resnet18", 64, 0.03, "cosine", 200, 30, measured},
    {"resnet20", 128, 0.3, "one-cycle", 0, 10, "from runs of 3 and 10 epochs on CIFAR-10"},
    {"resnet32", 128, 0.3, "one-cycle", 0, 10, shared},
    {"resnet50", 64, 0.01, "cosine", 50, 30, measured},
    {"resnet56", 128, 0.3, "one-cycle", 0, 10, shared},
    {"resnet101", 64, 0.01, "cosine", 50, 30, measured},
    {"resnext50", 64, 0.01, "cosine", 50, 30, measured},
    {"resnext101", 64, 0.01, "cosine", 50, 30, measured},
    {"squeezenet1_0", 128, 0.0015, "cosine", 50, 30, measured},
    {"vgg16", 64, 0.01, "cosine", 50, 30, measured},
    {"vit_b_16", 64, 1e-4, "cosine", 200, 30, "Touvron et al. 2021, with a longer rise", "adamw", of_vit, 1},
    {"vit_tiny", 64, 5e-4, "cosine", 200, 30, "Touvron et al. 2021, with a longer rise", "adamw", of_vit, 1},
};
constexpr Row general = {"", 64, 0.01, "cosine", 200, 30, "a low rate that most networks bear"};

Recipe recipe(const Row& row) {
  return {.batch = row.batch,
          .rate = {.schedule = row.schedule,
                   .peak = row.peak,
                   .warmup_steps = row.warmup_steps,
                   .final_rate = row.peak * row.final_share},
          .optimiser = row.optimiser,
          .adamw = row.adamw,
          .clip_norm = row.clip_norm,
          .epochs = row.epochs,
          .source = row.source};
}

}  // namespace

Recipe general_recipe() { return recipe(general); }

Recipe shipped_recipe(std::string_view model) {
  const Row* row = std::ranges::find_if(rows, [&](const Row& r) { return model == r.model; });
  return row == std::end(rows) ? general_recipe() : recipe(*row);
}

double peak_for(const Recipe& recipe, int batch) { return recipe.rate.peak * batch / recipe.batch; }

}  // namespace antichain
