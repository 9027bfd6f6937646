// antichain gradients writes loss, logits and every gradient of one batch, for comparisons with other
// implementations.
//
// The batch is a file of the network's inputs, by their names: images (float32, N x C x H x H, already
// normalised) and labels (int64, N), or whatever a network from a graph takes. Dropout is off, batch norm
// uses the statistics of the batch, and the loss is the mean over all of it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/obtain/init_weights.h"
#include "app/obtain/whole_network.h"
#include "app/options/weight_file_options.h"
#include "app/report/measures.h"
#include "framework/error.h"
#include "framework/files/weights.h"
#include "framework/json.h"
#include "layers/softmax_cross_entropy.h"
#include "models/model.h"
#include "pipeline/train/weights_io.h"

namespace antichain {
namespace {

struct GradientsOptions {
  NetworkOptions network{.microbatches = 1};
  MachineOptions machine;
  std::string weights_file, images_file, format, out_file, json_file;
};

// A GivenBatch hands out the tensors of a file by micro-batches.
class GivenBatch : public BatchSource {
 public:
  explicit GivenBatch(const std::string& file) : file_(file), weights_(read_weights(file)) {}

  // Returns the side of the images.
  int side(int channels) const {
    const NamedTensor& x = tensor("images", true);
    if (x.shape.size() != 4 || x.shape[1] != channels || x.shape[2] != x.shape[3] || x.elements() == 0)
      refuse(x, fmt::format("N x {} x H x H", channels));
    if (x.shape[2] > 100'000) refuse(x, "smaller");
    return int(x.shape[2]);
  }

  // Returns how many samples the input has.
  int samples(const Node& input) const {
    const NamedTensor& x = tensor(input.name, input.output().dtype == DType::f32);
    if (x.shape.empty() || x.shape[0] < 1 || x.shape[0] > 1'000'000)
      refuse(x, "samples first, up to a million");
    return int(x.shape[0]);
  }

  // Throws Error unless the tensors are inputs of the network on that many samples, and labels are classes.
  void check(const Graph& model, int64_t samples) const {
    for (const Node& node : model) {
      if (node.role() == Role::input) check_input(node, samples);
      const auto* loss = dynamic_cast<const SoftmaxCrossEntropy*>(node.op.get());
      if (!loss || model[node.inputs[1]].output().dtype != DType::i32) continue;
      const int64_t classes = model.shape(node.inputs[0])[1];
      for (const int64_t label : integers(model[node.inputs[1]].name))
        if ((label < 0 || label >= classes) && label != loss->options.ignore_index)
          throw Error(fmt::format("{}: a label is {}, but the network has {} classes", file_, label, classes),
                      "labels count from 0");
    }
  }

  void fill(std::string_view input, int microbatch, const Tensor& out) override {
    const int64_t first = microbatch * out.elements();
    const std::string name(input);
    if (out.dtype() == DType::f32)
      std::copy_n(std::get<0>(tensor(name, true).values).data() + first, out.elements(), out.data<float>());
    else
      for (int64_t i = 0; i < out.elements(); ++i)
        out.data<int32_t>()[i] = int32_t(integers(name)[size_t(first + i)]);
  }

 private:
  const NamedTensor& tensor(const std::string& name, bool is_float) const {
    const NamedTensor* found = weights_.find(name);
    if (!found || found->is_float() != is_float)
      throw Error(fmt::format("{} has no {} tensor '{}'", file_, is_float ? "float32" : "int64", name),
                  "it must have every input of the network: images (float32) and labels (int64), say");
    return *found;
  }
  const std::vector<int64_t>& integers(const std::string& name) const {
    return std::get<1>(tensor(name, false).values);
  }

  void check_input(const Node& input, int64_t samples) const {
    const NamedTensor& x = tensor(input.name, input.output().dtype == DType::f32);
    const Shape& of_network = input.output().shape;
    std::vector<int64_t> wanted(of_network.begin(), of_network.end());
    wanted[0] = samples;
    if (x.shape != wanted) refuse(x, Shape(wanted).str());
    if (const std::string bad = x.is_float() ? describe_bad_number(x) : ""; !bad.empty())
      throw Error(fmt::format("{}: {}", file_, bad), "give finite numbers", ExitCode::not_a_number);
    if (!x.is_float())
      for (const int64_t number : integers(input.name))
        if (number != int64_t(int32_t(number)))
          throw Error(fmt::format("{}: '{}' has the number {}", file_, input.name, number),
                      "integers have 32 bits here");
  }
  [[noreturn]] void refuse(const NamedTensor& t, const std::string& wanted) const {
    throw Error(fmt::format("{}: '{}' is {}, but must be {}", file_, t.name, t.shape_text(), wanted));
  }

  std::string file_;
  Weights weights_;
};

nlohmann::ordered_json summary(const NamedTensor& gradient) {
  double squares = 0, sum = 0, largest = 0;
  for (const float v : std::get<0>(gradient.values)) {
    squares += double(v) * v, sum += v;
    largest = std::max(largest, std::abs(double(v)));
  }
  return {{"name", gradient.name},
          {"shape", gradient.shape},
          {"norm", std::sqrt(squares)},
          {"sum", sum},
          {"max", largest}};
}

void run(const GradientsOptions& options, Rank& rank) {
  GivenBatch batch(options.images_file);
  NetworkOptions of_batch = options.network;
  of_batch.dropout = 0, of_batch.stochastic_depth = 0;
  if (!of_batch.graph.given()) of_batch.image = batch.side(of_batch.chosen().traits.usual.channels);
  const int samples = batch.samples(of_batch.made(1)[0]);
  of_batch.batch = samples;
  const Graph model = of_batch.made(of_batch.microbatch());
  batch.check(model, samples);
  WholeNetwork network(model, Precision::float32, options.weights_file, of_batch.microbatches, Mode::train,
                       rank);
  if (rank.prints()) print_skipped(network.skipped());
  const WholeNetwork::Output output = network.run(batch);
  const double loss = output.sums.loss / samples;
  Weights gradients = gradients_of(network.stage());
  if (!WholeNetwork::finite(output))
    throw Error(network.describe_first_bad(batch), "are the weights those of this network?",
                ExitCode::not_a_number);
  for (const NamedTensor& gradient : gradients)
    if (const std::string bad = describe_bad_number(gradient); !bad.empty())
      throw Error("the gradient of " + bad, "are the weights those of this network?", ExitCode::not_a_number);

  nlohmann::ordered_json json = {
      {"model", model.model()}, {std::string(samples_of(measures_of(model))), samples}, {"loss", loss}};
  for (const NamedTensor& gradient : gradients) json["gradients"].push_back(summary(gradient));
  write_output(options.json_file, json.dump(2) + "\n");
  const size_t tensors = gradients.size();
  const Shape logits = network.output();
  std::vector<int64_t> shape(logits.begin(), logits.end());
  shape[0] = samples;
  gradients.add({"logits", shape, output.logits});
  gradients.add({"loss", {}, std::vector<float>{float(loss)}});
  if (!options.out_file.empty())
    write_weights(options.out_file, gradients, format_of(options.format, options.out_file));
  fmt::print("{} on {}: loss {:.9g}, {}\n", model.model(),
             counted(samples, of_batch.graph.given() ? "sample" : "image"), loss,
             counted(int64_t(tensors), "gradient"));
}

}  // namespace

void add_gradients(CLI::App& app) {
  auto options = std::make_shared<GradientsOptions>();
  CLI::App& command = add_command(
      app, "gradients", "loss and every gradient of one batch",
      "antichain gradients --model resnet18 --weights resnet18.h5 --images batch.h5 --out gradients.h5");
  add_form_options(command, options->network);
  add_label_smoothing_option(command, options->network.label_smoothing);
  add_option(command, "Weights", "--weights FILE", options->weights_file, {},
             "HDF5 or safetensors, named as in PyTorch's state_dict")
      ->required();
  add_option(
      command, "Data", "--images FILE", options->images_file, {},
      "HDF5 or safetensors with images (float32, N x C x H x H) and labels (int64, N), or with the inputs "
      "of a network from a graph, by their names")
      ->required();
  add_microbatches_option(command, options->network.microbatches, "Data");
  add_one_rank_options(command, options->machine);
  add_format_option(command, options->format);
  add_output_option(command, "--out", options->out_file, "write every gradient, the logits and the loss");
  command.get_option("--format")->needs("--out");
  add_output_option(command, "--json", options->json_file,
                    "write the loss, and norm, sum and largest of every gradient");
  show_first(command, {"--model", "--graph", "--form", "--weights", "--images", "--label-smoothing",
                       "--microbatches", "--device", "--out", "--json"});
  command.callback([options] {
    check_writable({options->out_file, options->json_file});
    check_weights_output(options->format, options->out_file);
    run_job(options->machine, [&](Rank& rank) { run(*options, rank); });
  });
}

}  // namespace antichain
