#include "app/train/train_option_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>

#include "data/mix.h"
#include "framework/error.h"
#include "models/model.h"

namespace antichain {
namespace {

using enum OptionKind;
using Options = TrainCommandOptions;

template <class T>
std::string text(const T& value) {
  return fmt::format("{}", value);
}

UsualOptions usual(const Options& o) { return usual_options_of(o.network.model); }

// The options come in the order of --help.
const auto options = std::to_array<TrainOption>({
    {"help", output},
    {"config", output},
    {"quiet", output},
    {"dry-run", output},
    {"model", network, "model", [](const Options& o, int64_t) { return o.network.model; }},
    {"graph", network, "graph file",
     [](const Options& o, int64_t) { return o.network.graph.empty() ? "none" : graph_hash(o.network.model); },
     "none"},
    {"form", network, "form", [](const Options& o, int64_t) { return o.network.form; }},
    {"aux", network, "auxiliary loss", [](const Options& o, int64_t) { return text(o.network.aux); }},
    {"dropout", network, "dropout",
     [](const Options& o, int64_t) { return text(o.network.dropout.value_or(usual(o).dropout)); }, "0.5"},
    {"stochastic-depth", network, "stochastic depth",
     [](const Options& o, int64_t) {
       return text(o.network.stochastic_depth.value_or(usual(o).stochastic_depth));
     },
     "0"},
    {"batch", recipe, "batch", [](const Options& o, int64_t) { return text(o.network.batch); }},
    {"microbatches", recipe, "micro-batches",
     [](const Options& o, int64_t) { return text(o.network.microbatches); }},
    {"label-smoothing", network, "label smoothing",
     [](const Options& o, int64_t) { return text(o.network.label_smoothing); }},
    {"soft-labels", network, "soft labels",
     [](const Options& o, int64_t) { return text(o.network.soft_labels || mixes(o.augmentation)); }, "false"},
    {"precision", network, "precision", [](const Options& o, int64_t) { return o.network.precision; }},
    {"image", network},  // the data determine it
    {"classes", network, "classes", [](const Options& o, int64_t) { return text(o.network.classes); }},
    {"dataset", data},
    {"data-dir", data},
    {"crop", recipe, "crop",
     [](const Options& o, int64_t) { return crop_names()[size_t(o.augmentation.crop)]; }, "black"},
    {"flip", recipe, "flip", [](const Options& o, int64_t) { return text(o.augmentation.flip); }, "true"},
    {"trivial-augment", recipe, "TrivialAugment",
     [](const Options& o, int64_t) { return text(o.augmentation.trivial); }, "false"},
    {"erase", recipe, "share of erased images",
     [](const Options& o, int64_t) { return text(o.augmentation.erase); }, "0"},
    {"mixup", recipe, "mixup", [](const Options& o, int64_t) { return text(o.augmentation.mixup); }, "0"},
    {"cutmix", recipe, "cutmix", [](const Options& o, int64_t) { return text(o.augmentation.cutmix); }, "0"},
    {"epochs", extent},
    {"steps", extent},
    {"seed", recipe, "seed", [](const Options& o, int64_t) { return text(o.seed); }},
    {"init", extent},
    {"init-partial", extent},
    {"lr", recipe, "peak learning rate", [](const Options& o, int64_t) { return text(o.rate.peak); }},
    {"lr-schedule", recipe, "learning rate", [](const Options& o, int64_t) { return o.rate.schedule; }},
    {"lr-milestones", recipe, "milestones",
     [](const Options& o, int64_t) { return fmt::format("{}", fmt::join(o.rate.milestones, ",")); },
     "0.5,0.75"},
    {"lr-decay", recipe, "decay at milestones", [](const Options& o, int64_t) { return text(o.rate.decay); },
     "0.1"},
    {"lr-final", recipe, "final learning rate",
     [](const Options& o, int64_t) { return text(o.rate.final_rate); }, "0"},
    {"lr-rise", recipe, "share of the rise",
     [](const Options& o, int64_t) { return text(o.rate.rise_share); }, "0.3"},
    {"warmup-steps", recipe, "warm-up steps",  // --warmup-epochs is reported in epochs
     [](const Options& o, int64_t per_epoch) {
       const bool from_recipe = o.recipe_warmup_steps > 0;
       return text(from_recipe ? rate_course(o, per_epoch).options().warmup_steps : o.rate.warmup_steps);
     }},
    {"warmup-epochs", recipe, "warm-up epochs",
     [](const Options& o, int64_t) { return text(o.warmup_epochs); }},
    {"optimiser", recipe, "optimiser", [](const Options& o, int64_t) { return o.optimiser.name; }, "sgd"},
    {"momentum", recipe, "momentum", [](const Options& o, int64_t) { return text(o.optimiser.momentum); }},
    {"nesterov", recipe, "nesterov", [](const Options& o, int64_t) { return text(o.optimiser.nesterov); }},
    {"beta1", recipe, "beta1", [](const Options& o, int64_t) { return text(o.optimiser.beta1); }, "0.9"},
    {"beta2", recipe, "beta2", [](const Options& o, int64_t) { return text(o.optimiser.beta2); }, "0.999"},
    {"epsilon", recipe, "epsilon", [](const Options& o, int64_t) { return text(o.optimiser.epsilon); },
     "1e-08"},
    {"weight-decay", recipe, "weight decay",
     [](const Options& o, int64_t) { return text(o.optimiser.weight_decay); }},
    {"decay-groups", recipe, "groups of weight decay",
     [](const Options& o, int64_t) { return o.optimiser.decay_groups; }, "all"},
    {"clip-norm", recipe, "largest norm of the gradients",
     [](const Options& o, int64_t) { return text(o.optimiser.clip_norm); }, "0"},
    {"ema", recipe, "decay of the weights' average",
     [](const Options& o, int64_t) { return text(o.optimiser.ema); }, "0"},
    {"evaluate-every", recipe, "steps between evaluations",  // 0: those of an epoch
     [](const Options& o, int64_t) { return text(o.evaluation.every); }, "0"},
    {"patience", extent},
    {"on-nan", extent},
    {"checkpoint", output},
    {"checkpoint-every", output},
    {"keep", output},
    {"keep-best", output},
    {"resume", extent},
    {"max-time", extent},
    {"profile", speed},
    {"plan", last_bits},  // by its replicas
    {"stages", speed},
    {"at-most", speed},
    {"backward-split", speed},
    {"chunks", speed},
    {"in-flight", speed},
    {"overlap-steps", speed},
    {"method", last_bits},  // by its replicas
    {"objective", speed},
    {"replicas", last_bits},
    {"cuts", speed},
    {"max-states", speed},
    {"cluster", speed},
    {"memory-bytes", speed},
    {"link-bytes-per-s", speed},
    {"link-latency-s", speed},
    {"profile-cache", speed},
    {"profile-seconds", speed},
    {"schedule", speed},
    {"local", speed},
    {"device", last_bits},
    {"cpu-isa", last_bits},
    {"weight-gradients", last_bits},
    {"threads", last_bits},
    {"watchdog", speed},
    {"transport", speed},
    {"augment", speed},
    {"results", output},
    {"metrics", output},
    {"trace", output},
    {"json", output},
});

}  // namespace

const char* name_of(OptionKind kind) {
  constexpr std::array names{"network", "recipe", "data", "last bits", "extent", "speed", "output"};
  return names.at(size_t(kind));
}

std::span<const TrainOption> train_option_kinds() { return options; }

void check_train_option_kinds(const CLI::App& train) {
  const auto complain = [](const std::string& what) {
    throw Error(
        what + " in app/train/train_option_kinds.cpp, which must say what each option of train changes", "",
        ExitCode::failure);
  };
  for (const CLI::Option* option : train.get_options()) {
    const std::string& name = option->get_lnames().front();  // the first of --nesterov and --no-nesterov
    if (std::ranges::find(options, name, &TrainOption::name) == options.end())
      complain(fmt::format("--{} has no row", name));
  }
  for (const TrainOption& option : options)
    if (train.get_option_no_throw(fmt::format("--{}", option.name)) == nullptr)
      complain(fmt::format("--{} is no option but has a row", option.name));
}

}  // namespace antichain
