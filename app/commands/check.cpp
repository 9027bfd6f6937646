// antichain check compares the network of a graph.json with what its own framework recorded in float64. It
// compares every node's output, the loss, every gradient, the losses of five steps, and all weights and
// buffers after them. docs/bring-your-model.md has the file's tensors.
//
// The limits are relative to the norms of what was recorded:
//
//   outputs    1e-3    float32 rounds at 6e-8. Sums of thousands of numbers in a hundred nodes, one behind
//                      the other, increase that to 1e-5. A wrong option or a wrong order of axes makes 1e-2
//                      or more.
//   losses     1e-3    The loss is computed from one of the outputs.
//   gradients  1e-2    Where a number lies next to the kink of a ReLU, or two numbers of a pool are equal,
//                      the derivative may be that of one side in float32 and that of the other in float64.
//                      An error is relative to the gradient's own norm plus a hundredth of the norm of all
//                      gradients together, because some gradients are 0 but for rounding (that of a bias in
//                      front of batch norm).
//   weights    1e-2    As gradients, whose sum they are: an error is relative to how far a tensor moved, plus
//                      a hundredth of how far all parameters did. Each step may round it by 2^-24 of itself.
//                      Some running means are 0 but for rounding (that of a batch norm behind a convolution
//                      of normalised numbers), so a hundredth of the running deviation is added to theirs.
//
// Some networks increase rounding errors without bound. Batch norm over two numbers that are nearly equal is
// such a case, as small images and two samples give it. Two further limits allow for that, and the largest
// counts:
//
//   by roundings  The network runs twice, once with its inputs and weights changed by roundings. The limit is
//                 20 times what this change makes of a tensor, because every node rounds and the change
//                 rounds only once. A loss that follows a step with a gradient without this limit has none
//                 either.
//   by PyTorch    A recording says how far PyTorch's float32 was from its float64, for gradients and losses.
//                 The limit is the multiple of this error to which the model zoo is held
//                 (layers/exactness.h). It is the larger multiple, because PyTorch's CPU is not known. What
//                 the change by roundings makes of the tensor counts as one more such error.
//
// Neither limit may exceed 50 %, because a tensor that is off by more than half of its norm shows no
// agreement. A tensor that has neither can't be compared.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "app/commands/recording.h"
#include "app/obtain/init_weights.h"
#include "app/obtain/whole_network.h"
#include "app/options/weight_file_options.h"
#include "framework/error.h"
#include "framework/files/state_dict.h"
#include "framework/printable.h"
#include "framework/random.h"
#include "framework/sgd.h"
#include "layers/exactness.h"
#include "models/graph_file.h"
#include "models/model.h"
#include "pipeline/train/weights_io.h"

namespace antichain {
namespace {

constexpr double most_output_error = 1e-3, most_gradient_error = 1e-2, most_loss_error = 1e-3,
                 most_weight_error = 1e-2;
constexpr double times_moved = 20, most_allowed = 0.5;
constexpr float recorded_rate = 1e-3f;

struct CheckCommandOptions {
  GivenGraph graph;
  std::string model, json_file;
  int classes = 0;
  MachineOptions machine;
};

// A Rounding changes numbers by shares of up to 2^-22 at random, or not at all.
struct Rounding {
  bool on = false;
  void change(float* values, int64_t count, uint64_t stream) const {
    if (!on) return;
    const Philox random(stream);
    for (int64_t i = 0; i < count; ++i)
      values[i] *= 1 + 0x1p-21f * (Philox::uniform(random.words(uint64_t(i))[0]) - 0.5f);
  }
};

class RecordedBatch : public BatchSource {
 public:
  RecordedBatch(const Recording& recording, Rounding rounding) : recording_(recording), rounding_(rounding) {}

  void fill(std::string_view input, int, const Tensor& out) override {
    const std::vector<double>& from = recording_.at("input." + std::string(input)).values;
    for (size_t i = 0; i < from.size(); ++i) {
      if (out.dtype() == DType::i32)
        out.data<int32_t>()[i] = int32_t(from[i]);
      else
        out.data<float>()[i] = float(from[i]);
    }
    if (out.dtype() == DType::f32) rounding_.change(out.data<float>(), out.elements(), hash_bytes(input));
  }

 private:
  const Recording& recording_;
  Rounding rounding_;
};

// Compared has three numbers of one tensor, relative to what was recorded: our error, what roundings change,
// and the error of PyTorch's float32.
struct Compared {
  std::string what, name;  // "the output of node", "conv1"
  double error = 0, moved = 0, least = 0, theirs = HUGE_VAL;
  bool follows_steady = true;  // the gradients of the step before
  bool steady() const { return follows_steady && !(times_moved * moved > most_allowed); }
  double by_errors() const { return times_pytorchs_error_at_most * std::max(theirs, moved); }
  bool has_errors() const { return by_errors() <= most_allowed; }
  double most() const {
    return std::max({least, steady() ? times_moved * moved : 0, has_errors() ? by_errors() : 0});
  }
  bool comparable() const { return steady() || has_errors(); }
  bool differs() const { return comparable() && !(error <= most()); }
  double share() const { return std::isnan(error) ? HUGE_VAL : error / most(); }  // of what is allowed
};

// Scores that a mask hides are infinite, in ours as in theirs.
double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x)
    if (!std::isinf(v)) sum += v * v;
  return std::sqrt(sum);
}

double distance(const auto& a, const auto& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = double(a[i]) == double(b[i]) ? 0 : double(a[i]) - double(b[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

// A sum of zeros has no norm; numbers below a thousandth are compared by their difference.
double relative(double difference, double norm, double numbers) {
  return difference / (norm + 1e-3 * std::sqrt(numbers));
}

// Returns the name of the node whose value a node has that fusing made.
const std::string& value_name(const Node& node) {
  return node.absorbed.empty() ? node.name : node.absorbed.back();
}

// This is what the steps of the recording compute.
struct Measured {
  std::map<std::string, std::vector<float>> outputs;  // of the first step, by value_name
  Weights gradients;                                  // of the first step
  std::vector<double> losses;                         // of every step
  Weights after;                                      // parameters and buffers after the last one
};

Measured run_steps(WholeNetwork& network, const Recording& recording, const Weights& given,
                   Rounding rounding) {
  Measured all;
  Weights weights;
  for (NamedTensor t : given) {
    if (auto* values = std::get_if<std::vector<float>>(&t.values))
      rounding.change(values->data(), t.elements(), hash_bytes(t.name));
    weights.add(std::move(t));
  }
  load_weights(network.stage(), weights, Fit::whole, weights_in_folder);
  network.set_look([&](const Node& node, const Tensor& y) {
    if (node.role() == Role::loss || !recording.find("node." + value_name(node))) return;
    all.outputs[value_name(node)] = {y.data<float>(), y.data<float>() + y.elements()};
  });
  RecordedBatch batch(recording, rounding);
  for (size_t step = 0; step < recording.at("losses").values.size(); ++step) {
    all.losses.push_back(network.run(batch, recorded_rate).sums.loss / network.batch());
    if (step == 0) all.gradients = gradients_of(network.stage());
    network.set_look({});
  }
  all.after = weights_of(network.stage());
  return all;
}

struct RecordedErrors {
  std::vector<Compared> outputs, gradients, losses, weights;
};

std::vector<Compared> compare_outputs(const Recording& recording, const Graph& model, const Measured& ours,
                                      const Measured& rounded) {
  std::vector<Compared> all;
  for (const Node& node : model) {
    const auto found = ours.outputs.find(node.name);
    if (found == ours.outputs.end()) continue;
    const std::vector<double>& right = recording.at("node." + node.name).values;
    const double length = norm(right), numbers = double(right.size());
    all.push_back({"the output of node", node.name, relative(distance(found->second, right), length, numbers),
                   relative(distance(found->second, rounded.outputs.at(node.name)), length, numbers),
                   most_output_error});
  }
  return all;
}

std::vector<Compared> compare_losses(const Recording& recording, const Measured& ours,
                                     const Measured& rounded, const std::vector<Compared>& gradients) {
  std::vector<Compared> all;
  const bool steady_steps = std::ranges::all_of(gradients, &Compared::steady);
  double moved = 0;  // what changes a step changes those behind it
  const auto add = [&](const char* what, const std::string& name, size_t step, double right) {
    const double length = std::abs(right);
    moved = std::max(moved, relative(std::abs(ours.losses[step] - rounded.losses[step]), length, 1));
    const auto share = [&](double difference) { return relative(difference, length, 1); };
    all.push_back({what, name, share(std::abs(ours.losses[step] - right)), moved, most_loss_error,
                   share(recording.error_of_float32("losses", step)), step == 0 || steady_steps});
  };
  add("the", "loss", 0, recording.at("loss").values[0]);
  const std::vector<double>& losses = recording.at("losses").values;
  for (size_t step = 0; step < losses.size(); ++step)
    add("the loss of", fmt::format("step {}", step + 1), step, losses[step]);
  return all;
}

std::vector<Compared> compare_gradients(const Recording& recording, const Measured& ours,
                                        const Measured& rounded) {
  std::vector<Compared> all;
  double whole = 0;
  for (const NamedTensor& t : ours.gradients)
    whole = std::hypot(whole, norm(recording.at("gradient." + t.name).values));
  for (const NamedTensor& t : ours.gradients) {
    const std::string name = "gradient." + t.name;
    const std::vector<double>& right = recording.at(name).values;
    const auto& values = std::get<0>(t.values);
    const auto share = [&](double distance) {
      return distance == 0 ? 0 : distance / (norm(right) + whole / 100);
    };
    all.push_back({"the gradient of", t.name, share(distance(values, right)),
                   share(distance(values, std::get<0>(rounded.gradients.find(t.name)->values))),
                   most_gradient_error, share(recording.error_of_float32(name))});
  }
  return all;
}

std::vector<double> doubles(const NamedTensor& t) {
  return std::visit([](const auto& values) { return std::vector<double>(values.begin(), values.end()); },
                    t.values);
}

// Returns the root of the sum of a running mean's variances, or 0 for another tensor.
double running_deviation(const Recording& recording, const std::string& name) {
  constexpr std::string_view mean = "mean";
  if (!name.ends_with("running_mean")) return 0;
  const NamedNumbers* variance =
      recording.find("after." + std::string(name, 0, name.size() - mean.size()) + "var");
  return variance ? std::sqrt(std::accumulate(variance->values.begin(), variance->values.end(), 0.0)) : 0;
}

// Old recordings have no weights after the steps.
std::vector<Compared> compare_weights(const Recording& recording, const Weights& before, const Measured& ours,
                                      const Measured& rounded, const std::vector<Compared>& losses) {
  std::vector<Compared> all;
  const double rounded_by_steps = double(losses.size()) * 0x1p-24 / most_weight_error;
  const auto moved = [&](const NamedTensor& t) {
    return distance(recording.at("after." + t.name).values, doubles(*before.find(t.name)));
  };
  double whole = 0;
  for (const NamedTensor& t : ours.gradients)
    if (recording.find("after." + t.name)) whole = std::hypot(whole, moved(t));
  const bool steady_steps = std::ranges::all_of(losses, &Compared::comparable);
  for (const NamedTensor& t : ours.after) {
    const NamedNumbers* right = recording.find("after." + t.name);
    if (!right) continue;
    const bool parameter = ours.gradients.find(t.name) != nullptr;
    const double others = parameter ? whole : running_deviation(recording, t.name);
    const double length = moved(t) + others / 100 + rounded_by_steps * norm(right->values);
    const auto share = [&](double distance) { return distance == 0 ? 0 : distance / length; };
    all.push_back({parameter ? "after the steps, the parameter" : "after the steps, the buffer", t.name,
                   share(distance(doubles(t), right->values)),
                   share(distance(doubles(t), doubles(*rounded.after.find(t.name)))), most_weight_error,
                   share(recording.error_of_float32(right->name)), steady_steps});
  }
  return all;
}

RecordedErrors compare_with(const Recording& recording, const Graph& model, const std::string& weights_file,
                            Rank& rank) {
  const auto plain_sgd =
      std::make_shared<Sgd>(SgdOptions{.momentum = 0, .weight_decay = 0, .nesterov = false});
  WholeNetwork network(model, Precision::float32, weights_file, 1, Mode::train, rank, plain_sgd);
  if (rank.prints()) print_skipped(network.skipped());
  const Weights file = read_weights(weights_file, file_bytes(model));
  const Weights weights = complete(model, fit(model, file, Fit::whole, weights_file), 0, weights_file);
  const Measured rounded = run_steps(network, recording, weights, {.on = true});
  const Measured ours = run_steps(network, recording, weights, {});
  RecordedErrors all{.outputs = compare_outputs(recording, model, ours, rounded),
                     .gradients = compare_gradients(recording, ours, rounded)};
  all.losses = compare_losses(recording, ours, rounded, all.gradients);
  all.weights = compare_weights(recording, weights, ours, rounded, all.losses);
  return all;
}

void report(const RecordedErrors& all, const GraphFile& file, int samples,
            const CheckCommandOptions& options) {
  fmt::print("{} on {}{}\n\n", file.model(), counted(samples, "sample"),
             file.made_by().empty() ? "" : ", recorded by " + printable(file.made_by()));
  using enum Table::Align;
  Table table({{"compared", left}, {"tensors"}, {"relative\nerror"}, {"allowed"}, {"of", left}});
  nlohmann::ordered_json json = {{"model", file.model()}, {"samples", samples}};
  const Compared* first = nullptr;
  std::vector<std::string> beyond;
  const auto add = [&](const char* kind, const std::vector<Compared>& of) {
    const Compared* worst = nullptr;
    int64_t left_out = 0;
    for (const Compared& c : of) {
      if (!first && c.differs()) first = &c;
      json[kind][c.name] = c.error;
      if (!c.comparable())
        ++left_out;
      else if (!worst || c.share() > worst->share())
        worst = &c;
    }
    if (left_out > 0) beyond.push_back(fmt::format("{} of {} {}", left_out, of.size(), kind));
    if (!worst) return;
    table.add({kind, std::to_string(std::ssize(of) - left_out), fmt::format("{:.1e}", worst->error),
               fmt::format("{:.0e}", worst->most()), worst->name + file.where(worst->name)});
  };
  add("outputs", all.outputs), add("losses", all.losses), add("gradients", all.gradients);
  add("weights", all.weights);
  fmt::print("{}", table.str());
  if (!beyond.empty())
    fmt::print(
        "\n{} can't be compared, because roundings of weights and inputs alone change them by more "
        "than 2.5 %; record more samples or larger images to compare all\n",
        fmt::join(beyond, ", "));
  write_output(options.json_file, json.dump(2) + "\n");
  if (first)
    throw Error(
        fmt::format("{} {} differs from what was recorded, by {:.1e} of it where {:.0e} is allowed: it is "
                    "the first that does",
                    first->what, first->name + file.where(first->name), first->error, first->most()),
        "look at the options, the inputs and the weights of that node");
}

void run(const CheckCommandOptions& options, Rank& rank) {
  const GraphFile& file = *options.graph.file;
  const auto beside = [graph = graph_file_in(options.graph.path)](const char* name) {
    return std::filesystem::path(graph).replace_filename(name).string();
  };
  const Recording recording(beside(check_in_folder));
  const Graph model = recording.network(file);
  report(compare_with(recording, model, beside(weights_in_folder), rank), file, model.microbatch(), options);
}

}  // namespace

void add_check(CLI::App& app) {
  auto options = std::make_shared<CheckCommandOptions>();
  CLI::App& command = add_command(app, "check", "compare an imported network with what was recorded of it",
                                  "antichain check --graph net.antichain");
  add_graph_option(command, nullptr, options->graph, options->model, options->classes)
      ->description("a folder NAME.antichain with check.safetensors")
      ->required();
  add_one_rank_options(command, options->machine);
  add_output_option(command, "--json", options->json_file, "write the error of every tensor");
  command.callback([options] {
    check_writable({options->json_file});
    run_job(options->machine, [&](Rank& rank) { run(*options, rank); });
  });
}

}  // namespace antichain
