// antichain check compares the network of a graph.json with what its own framework recorded in float64: every
// node's output, the loss, every gradient, and the losses of three steps. docs/bring-your-model.md has the
// file's tensors.
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
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "app/obtain/whole_network.h"
#include "app/options/network_form.h"
#include "framework/bounded_file.h"
#include "framework/error.h"
#include "framework/files/safetensors.h"
#include "framework/printable.h"
#include "framework/sgd.h"
#include "models/graph_file.h"
#include "models/model.h"
#include "pipeline/train/weights_io.h"

namespace antichain {
namespace {

constexpr double most_output_error = 1e-3, most_gradient_error = 1e-2, most_loss_error = 1e-3;
constexpr float recorded_rate = 1e-3f;

struct CheckCommandOptions {
  std::string graph, model, json_file;
  int classes = 0;
  MachineOptions machine;
};

// A Recording holds the tensors of check.safetensors.
class Recording {
 public:
  explicit Recording(const std::string& file) : file_(file) {
    for (NamedNumbers& t : numbers_from_safetensors(read_bounded(file, most_weights_bytes), file))
      tensors_.emplace(t.name, std::move(t));
  }

  const std::string& file() const { return file_; }
  const NamedNumbers* find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
  }
  const NamedNumbers& at(const std::string& name) const {
    if (const NamedNumbers* found = find(name)) return *found;
    throw Error(fmt::format("{} has no tensor '{}'", file_, name), "record the network again");
  }

  // Returns the samples of the recorded batch.
  int samples(const std::string& input) const {
    const NamedNumbers& t = at("input." + input);
    if (t.shape.empty() || t.shape[0] < 1 || t.shape[0] > 1'000'000)
      throw Error(fmt::format("{}: '{}' has no samples, or more than a million", file_, t.name));
    return int(t.shape[0]);
  }

  void check_shape(const std::string& name, const Shape& shape) const {
    const NamedNumbers& t = at(name);
    if (!std::ranges::equal(t.shape, shape))
      throw Error(fmt::format("{}: '{}' is {}, but the network has {}", file_, name,
                              t.shape.empty() ? "a scalar" : Shape(first_axes(t)).str(), shape.str()),
                  "record the network again");
  }

  // Throws Error where a tensor is not of `known`: the file is of another network.
  void check_names(const std::set<std::string>& known) const {
    for (const auto& [name, unused] : tensors_)
      if (!known.contains(name))
        throw Error(fmt::format("{} has a tensor '{}', which is nothing of this network", file_, name),
                    "record the network again");
  }

 private:
  static std::vector<int64_t> first_axes(const NamedNumbers& t) {
    return {t.shape.begin(),
            t.shape.begin() + std::min<std::ptrdiff_t>(std::ssize(t.shape), Shape::max_rank)};
  }

  std::string file_;
  std::map<std::string, NamedNumbers> tensors_;
};

class RecordedBatch : public BatchSource {
 public:
  explicit RecordedBatch(const Recording& recording) : recording_(recording) {}

  void fill(std::string_view input, int, const Tensor& out) override {
    const std::vector<double>& from = recording_.at("input." + std::string(input)).values;
    for (size_t i = 0; i < from.size(); ++i) {
      if (out.dtype() == DType::i32)
        out.data<int32_t>()[i] = int32_t(from[i]);
      else
        out.data<float>()[i] = float(from[i]);
    }
  }

 private:
  const Recording& recording_;
};

// Compared is one tensor's error relative to what was recorded.
struct Compared {
  std::string what, name;  // "the output of node", "conv1"
  double error = 0, most = 0;
  bool differs() const { return !(error <= most); }
};

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

double distance(const float* ours, const std::vector<double>& recorded) {
  double sum = 0;
  for (size_t i = 0; i < recorded.size(); ++i) {
    const double difference = double(ours[i]) - recorded[i];
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

void check_labels(const Recording& recording, const Graph& model, int64_t classes) {
  for (const Node& node : model) {
    if (node.role() != Role::input || node.signature.y.dtype != DType::i32) continue;
    for (const double label : recording.at("input." + node.name).values)
      if (!(label >= 0 && label < double(classes)))
        throw Error(fmt::format("{}: a label is {}, but the network has {} classes", recording.file(), label,
                                classes),
                    "labels count from 0");
  }
}

// Builds the network for the recorded batch, with the kind of labels that the file has.
Graph network_of(const GraphFile& file, const Recording& recording) {
  const auto build = [&](int samples, bool soft) {
    return file.graph({.microbatch = samples, .soft_labels = soft, .dropout = 0, .stochastic_depth = 0});
  };
  const Graph graph = build(2, false);
  int samples = 0;
  bool soft = false;
  for (const Node& node : graph) {
    if (node.role() != Role::input) continue;
    samples = recording.samples(node.name);
    if (node.signature.y.dtype == DType::i32) soft = recording.at("input." + node.name).shape.size() == 2;
  }
  Graph model = build(samples, soft);
  std::set<std::string> known = {"loss", "losses"};
  for (const Node& node : model) {
    if (node.role() == Role::input) {
      known.insert("input." + node.name);
      recording.check_shape("input." + node.name, node.signature.y.shape);
    } else if (known.insert("node." + node.name); recording.find("node." + node.name)) {
      recording.check_shape("node." + node.name, node.signature.y.shape);
    }
    for (const ParamSpec& param : node.signature.params) {
      const std::string name = "gradient." + full_name(node, param);
      known.insert(name);
      recording.check_shape(name, param.shape);
    }
  }
  recording.check_names(known);
  return model;
}

struct RecordedErrors {
  std::vector<Compared> outputs, losses, gradients;
};

void compare_gradients(const Recording& recording, const Weights& ours, std::vector<Compared>& to) {
  double whole = 0;
  for (const NamedTensor& t : ours)
    whole = std::hypot(whole, norm(recording.at("gradient." + t.name).values));
  for (const NamedTensor& t : ours) {
    const std::vector<double>& right = recording.at("gradient." + t.name).values;
    const double difference = distance(static_cast<const float*>(t.data()), right);
    to.push_back({"the gradient of", t.name, difference == 0 ? 0 : difference / (norm(right) + whole / 100),
                  most_gradient_error});
  }
}

RecordedErrors compare_with(const Recording& recording, const Graph& model, WholeNetwork& network) {
  RecordedErrors all;
  std::map<std::string, Compared> by_name;
  network.set_look([&](const Node& node, const Tensor& y) {
    const std::string& name = value_name(node);
    const NamedNumbers* right = recording.find("node." + name);
    if (!right || node.role() == Role::loss) return;
    by_name[name] = {
        "the output of node", name,
        relative(distance(y.data<float>(), right->values), norm(right->values), double(right->values.size())),
        most_output_error};
  });
  RecordedBatch batch(recording);
  const NamedNumbers& losses = recording.at("losses");
  const NamedNumbers& loss = recording.at("loss");
  if (loss.values.size() != 1 || losses.values.empty() || losses.values.size() > 100)
    throw Error(recording.file() + ": loss is one number, and losses are a few", "record the network again");
  for (size_t step = 0; step < losses.values.size(); ++step) {
    const double ours = network.run(batch, recorded_rate).sums.loss / network.batch();
    const auto add = [&](const char* what, const std::string& name, double right) {
      all.losses.push_back(
          {what, name, relative(std::abs(ours - right), std::abs(right), 1), most_loss_error});
    };
    if (step == 0) {
      add("the", "loss", loss.values[0]);
      compare_gradients(recording, gradients_of(network.stage()), all.gradients);
      network.set_look({});
    }
    add("the loss of", fmt::format("step {}", step + 1), losses.values[step]);
  }
  for (const Node& node : model)
    if (const auto found = by_name.find(node.name); found != by_name.end())
      all.outputs.push_back(found->second);
  return all;
}

void report(const RecordedErrors& all, const GraphFile& file, int samples,
            const CheckCommandOptions& options) {
  fmt::print("{} on {}{}\n\n", file.model(), counted(samples, "sample"),
             file.made_by().empty() ? "" : ", recorded by " + printable(file.made_by()));
  using enum Table::Align;
  Table table({{"compared", left}, {"tensors"}, {"largest\nrelative error"}, {"allowed"}, {"of", left}});
  nlohmann::ordered_json json = {{"model", file.model()}, {"samples", samples}};
  const Compared* first = nullptr;
  const auto add = [&](const char* kind, const std::vector<Compared>& of) {
    for (const Compared& c : of) {
      if (!first && c.differs()) first = &c;
      json[kind][c.name] = c.error;
    }
    const auto worst = std::ranges::max_element(
        of, {}, [](const Compared& c) { return std::isnan(c.error) ? HUGE_VAL : c.error; });
    if (worst == of.end()) return;
    table.add({kind, std::to_string(of.size()), fmt::format("{:.1e}", worst->error),
               fmt::format("{:.0e}", worst->most), worst->name + file.where(worst->name)});
  };
  add("outputs", all.outputs), add("losses", all.losses), add("gradients", all.gradients);
  fmt::print("{}", table.str());
  write_output(options.json_file, json.dump(2) + "\n");
  if (first)
    throw Error(
        fmt::format("{} {} differs from what was recorded, by {:.1e} of it where {:.0e} is allowed: it is "
                    "the first that does",
                    first->what, first->name + file.where(first->name), first->error, first->most),
        "look at the options, the inputs and the weights of that node");
}

void run(const CheckCommandOptions& options, Rank& rank) {
  const GraphFile file = read_graph_file(options.graph);
  const auto beside = [graph = graph_file_in(options.graph)](const char* name) {
    return std::filesystem::path(graph).replace_filename(name).string();
  };
  const Recording recording(beside(check_in_folder));
  const Graph model = network_of(file, recording);
  check_labels(recording, model, file.classes());
  const auto plain_sgd =
      std::make_shared<Sgd>(SgdOptions{.momentum = 0, .weight_decay = 0, .nesterov = false});
  WholeNetwork network(model, Precision::float32, beside(weights_in_folder), 1, Mode::train, rank, plain_sgd);
  report(compare_with(recording, model, network), file, model.microbatch(), options);
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
