#include "app/train/optimiser_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "app/cli/option_row.h"
#include "framework/averaged.h"
#include "framework/error.h"
#include "framework/grouped.h"
#include "framework/muon.h"
#include "framework/name_pattern.h"
#include "framework/parse_number.h"

namespace antichain {
namespace {

using enum OptionKind;

constexpr const char* training = "Training";

DecayGroups parse_decay_groups(const OptimiserOptions& o) {
  return o.decay_groups == "all" ? DecayGroups::all : DecayGroups::weights;
}

AdamWOptions adamw_of(const OptimiserOptions& o) {
  return {.beta1 = o.beta1,
          .beta2 = o.beta2,
          .epsilon = o.epsilon,
          .weight_decay = o.weight_decay,
          .decay_groups = parse_decay_groups(o)};
}

// A Choice is an optimiser that --optimiser takes. The values of `usual` are those of PyTorch's class; SGD
// has those of the model's recipe in their place, and its peak is that of the general recipe.
struct Choice {
  const char* name;
  OptimiserOptions usual;
  double usual_peak = 0;         // where the recipe's optimiser is another
  std::vector<const char*> own;  // the options that it has besides --weight-decay and --decay-groups
  std::function<std::shared_ptr<const Optimiser>(const OptimiserOptions&)> make;
};

const std::vector<Choice>& choices() {
  static const std::vector<Choice> all = {
      {.name = "sgd",
       .usual = {},
       .own = {"--momentum", "--nesterov"},
       .make =
           [](const OptimiserOptions& o) {
             return std::make_shared<Sgd>(SgdOptions{.momentum = o.momentum,
                                                     .weight_decay = o.weight_decay,
                                                     .nesterov = o.nesterov,
                                                     .decay_groups = parse_decay_groups(o)});
           }},
      {.name = "adamw",
       .usual = {.weight_decay = 1e-2f, .decay_groups = "weights"},
       .usual_peak = 1e-3,
       .own = {"--beta1", "--beta2", "--epsilon"},
       .make = [](const OptimiserOptions& o) { return std::make_shared<AdamW>(adamw_of(o)); }},
      {.name = "muon",
       .usual = {.momentum = MuonOptions().momentum, .weight_decay = 0.1f, .decay_groups = "weights"},
       .usual_peak = 1e-3,
       .own = {"--momentum", "--nesterov", "--beta1", "--beta2", "--epsilon"},
       .make =
           [](const OptimiserOptions& o) {
             return std::make_shared<Muon>(
                 MuonOptions{.momentum = o.momentum, .nesterov = o.nesterov, .adamw = adamw_of(o)});
           }},
  };
  return all;
}

const Choice& choice(const std::string& optimiser) {
  const auto it = std::ranges::find(choices(), optimiser, &Choice::name);
  ANTICHAIN_CHECK(it != choices().end(), "the command line has checked the name");
  return *it;
}

// A GroupSetting is what PATTERN=X says.
struct GroupSetting {
  std::string pattern;
  double value = 0;
};

GroupSetting parse_setting(const std::string& option, const std::string& text) {
  const size_t equals = std::min(text.rfind('='), text.size());
  const auto value = parse_number<double>(std::string_view(text).substr(std::min(equals + 1, text.size())));
  if (!value || !(*value >= 0 && *value <= 1e6) || equals == 0 || equals == text.size())
    throw Error(fmt::format("{} takes PATTERN=X with a number X from 0 to 1e6, not '{}'", option, text), "",
                ExitCode::usage);
  return {text.substr(0, equals), *value};
}

// GroupSettings are those of one option, by pattern.
class GroupSettings {
 public:
  GroupSettings(const std::string& option, const std::vector<std::string>& texts) : option_(option) {
    for (const std::string& text : texts) all_.push_back(parse_setting(option, text));
    std::vector<std::string> patterns;
    for (const GroupSetting& setting : all_) patterns.push_back(setting.pattern);
    matching_ = NamePatterns(std::move(patterns));
  }
  std::optional<double> of(const std::string& name) {
    const int found = matching_.find(name);
    return found < 0 ? std::nullopt : std::optional(all_[size_t(found)].value);
  }
  void check_all_match(const Graph& graph) const {
    matching_.check_all_match(option_, "trained parameter", graph);
  }

 private:
  const std::string option_;
  std::vector<GroupSetting> all_;
  NamePatterns matching_;
};

bool has(const Choice& choice, std::string_view option) {
  return std::ranges::find(choice.own, option) != choice.own.end();
}

void add_name_option(CLI::App& app, OptimiserOptions& o) {
  std::vector<std::string> names;
  for (const Choice& choice : choices()) names.emplace_back(choice.name);
  add_option(
      app, training, "--optimiser NAME", o.name, one_of("optimiser", names),
      "sgd: stochastic gradient descent with momentum; adamw: Adam with decoupled weight decay; muon: "
      "orthogonal steps for convolutions' kernels and hidden layers' matrices, AdamW for all else [the "
      "recipe's]",
      {recipe, "optimiser"});
}

void add_average_option(CLI::App& app, OptimiserOptions& o, const char* purpose) {
  add_option(app, training, "--ema X", o.ema, number_between(0, std::nextafter(1., 0.)), purpose,
             {recipe, "decay of the weights' average"});
}

}  // namespace

void add_optimiser_options(CLI::App& app, OptimiserOptions& o) {
  const Accepts decay = number_between(0, std::nextafter(1., 0.));  // with 1 nothing would ever be forgotten
  add_name_option(app, o);
  const OptionGroup add(app, training);
  add("--momentum X", o.momentum, number_between(0, 1),
      "sgd, muon: the mean gradient's decay a step [the recipe's; muon: 0.95]", {recipe, "momentum"});
  add("--nesterov,!--no-nesterov", o.nesterov, {},
      "sgd, muon: Nesterov's momentum [the default]; --no-nesterov: plain momentum", {recipe, "nesterov"});
  add("--beta1 X", o.beta1, decay, "adamw, muon: the mean gradient's decay a step [the recipe's]",
      {recipe, "beta1"});
  add("--beta2 X", o.beta2, decay, "adamw, muon: the mean square's decay a step [the recipe's]",
      {recipe, "beta2"});
  add("--epsilon X", o.epsilon, number_between(1e-30, 1), "adamw, muon: added to the root of the mean square",
      {recipe, "epsilon"});
  add("--weight-decay X", o.weight_decay, number_between(0, 1e6),
      "sgd: times the weight, added to its gradient; else times the rate, the share that a weight loses [the "
      "recipe's; adamw: 0.01; muon: 0.1]",
      {recipe, "weight decay"});
  add("--decay-groups NAME", o.decay_groups, one_of("group of parameters", {"all", "weights"}),
      "what weight decay is for: all parameters, or weights, which are convolutions' kernels and matrices "
      "but neither biases nor the scales and shifts of normalisation [sgd: all; else weights]",
      {recipe, "groups of weight decay"});
  const Accepts setting{[](const std::string& option, const std::string& text) {
    parse_setting(option, text);
    return text;
  }};
  add("--lr-of PATTERN=X", o.rate_of, setting,
      "learning rate of the parameters whose names match, in place of --lr's: its course is the same, times "
      "X "
      "over --lr; several, by commas or by the option given again, of which the last that matches counts "
      "[all have the same]",
      {recipe, "learning rates of parameters"});
  add("--decay-of PATTERN=X", o.decay_of, setting,
      "weight decay of the parameters whose names match, whatever --decay-groups says; several as of --lr-of "
      "[all have the same]",
      {recipe, "weight decays of parameters"});
  add("--clip-norm X", o.clip_norm, number_between(0, 1e30),
      "scale the gradients of a step where the norm of all of them is larger; all ranks agree on it before "
      "they update, so steps do not overlap; 0: gradients stay as they are [the recipe's]",
      {recipe, "largest norm of the gradients"});
  add_average_option(app, o,
                     "keep an average of the weights, with this decay a step: it is what is evaluated, and "
                     "--results has it as weights-ema.h5; 0: there is none");
}

void add_measured_optimiser_options(CLI::App& app, OptimiserOptions& o) {
  add_name_option(app, o);
  add_average_option(
      app, o, "train with an average of the weights, which takes memory and time as well; 0: there is none");
}

void settle_optimiser(const CLI::App& command, const Recipe& recipe, OptimiserOptions& o) {
  const double ema = o.ema;
  o = usual_options(command.count("--optimiser") > 0 ? o.name : recipe.optimiser, recipe);
  o.ema = ema;
}

OptimiserOptions usual_options(const std::string& name, const Recipe& recipe) {
  OptimiserOptions usual = choice(name).usual;
  usual.name = name;
  usual.clip_norm = recipe.clip_norm;
  if (name == "sgd") {
    usual.momentum = recipe.sgd.momentum, usual.weight_decay = recipe.sgd.weight_decay;
  } else if (name == "adamw" && recipe.optimiser == "adamw") {
    usual.beta1 = recipe.adamw.beta1, usual.beta2 = recipe.adamw.beta2;
    usual.weight_decay = float(recipe.adamw.weight_decay);
  }
  return usual;
}

void follow_recipe(const CLI::App& train, const Recipe& recipe, OptimiserOptions& o) {
  const auto open = [&](const char* option) { return train.get_option(option)->count() == 0; };
  if (open("--optimiser")) o.name = recipe.optimiser;
  const OptimiserOptions usual = usual_options(o.name, recipe);
  if (open("--momentum")) o.momentum = usual.momentum;
  if (open("--weight-decay")) o.weight_decay = usual.weight_decay;
  if (open("--decay-groups")) o.decay_groups = usual.decay_groups;
  if (open("--beta1")) o.beta1 = usual.beta1;
  if (open("--beta2")) o.beta2 = usual.beta2;
  if (open("--clip-norm")) o.clip_norm = usual.clip_norm;
}

double usual_peak(const OptimiserOptions& o, const Recipe& recipe, int batch) {
  for (const Recipe& tuned : {recipe, general_recipe()})
    if (tuned.optimiser == o.name) return peak_for(tuned, batch);
  return choice(o.name).usual_peak;
}

void check_optimiser_options(const CLI::App& train, const OptimiserOptions& o) {
  for (const Choice& other : choices())
    for (const char* option : other.own) {
      if (train.get_option(option)->count() == 0 || has(choice(o.name), option)) continue;
      throw Error(
          fmt::format("{} belongs to the optimiser {}, but this run's is {}", option, other.name, o.name),
          fmt::format("leave it out, or say --optimiser {}", other.name), ExitCode::usage);
    }
}

namespace {

std::shared_ptr<const Optimiser> with_average(std::shared_ptr<const Optimiser> optimiser, double ema) {
  return ema > 0 ? std::make_shared<Averaged>(std::move(optimiser), ema) : std::move(optimiser);
}

// Returns the optimiser of a group, with another decay where it has one.
std::shared_ptr<const Optimiser> made(OptimiserOptions o, const std::optional<double>& decay) {
  if (decay) o.weight_decay = float(*decay), o.decay_groups = "all";
  return choice(o.name).make(o);
}

}  // namespace

std::shared_ptr<const Optimiser> make_optimiser(const OptimiserOptions& o) {
  return with_average(made(o, {}), o.ema);
}

std::shared_ptr<const Optimiser> make_optimiser(const OptimiserOptions& o, const Graph& graph, double peak) {
  if (o.rate_of.empty() && o.decay_of.empty()) return make_optimiser(o);
  if (!o.rate_of.empty() && !(peak > 0))
    throw Error("--lr-of is relative to --lr, which is 0", "give a --lr above 0", ExitCode::usage);
  using Key = std::pair<std::optional<double>, std::optional<double>>;  // rate and decay
  GroupSettings rates("--lr-of", o.rate_of), decays("--decay-of", o.decay_of);
  std::vector<ParameterGroup> groups = {{made(o, {})}};
  std::map<Key, size_t> known = {{{}, 0}};
  std::map<std::string, size_t, std::less<>> group_of;
  for (const Node& node : graph)
    for (const ParamSpec& param : node.signature.params) {
      if (!param.trained) continue;
      const std::string name = graph.file_name(node, param);
      const Key key(rates.of(name), decays.of(name));
      const auto [group, is_new] = known.try_emplace(key, groups.size());
      if (is_new) groups.push_back({made(o, key.second), float(key.first.value_or(peak) / peak)});
      group_of[full_name(node, param)] = group->second;
    }
  rates.check_all_match(graph), decays.check_all_match(graph);
  return with_average(std::make_shared<Grouped>(std::move(groups), std::move(group_of)), o.ema);
}

std::string describe_groups(const OptimiserOptions& o) {
  std::string text;
  const auto add = [&](const char* what, const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) {
      const auto [pattern, value] = parse_setting("", setting);
      text += fmt::format(", {} of {} {:g}", what, pattern, value);
    }
  };
  add("rate", o.rate_of), add("weight decay", o.decay_of);
  return text;
}

}  // namespace antichain
