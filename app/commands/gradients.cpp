// antichain gradients writes loss, logits and every gradient of one batch, for comparisons with other
// implementations.
//
// The batch is a file of two tensors: images (float32, N x C x H x H, already normalised) and labels (int64,
// N). Dropout is off, batch norm uses the statistics of the batch, and the loss is the mean over its samples.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/obtain/whole_network.h"
#include "app/options/weight_file_options.h"
#include "framework/error.h"
#include "framework/files/weights.h"
#include "framework/json.h"
#include "models/model.h"
#include "pipeline/train/weights_io.h"

namespace antichain {
namespace {

struct GradientsOptions {
  NetworkOptions network{.microbatches = 1};
  MachineOptions machine;
  std::string weights_file, images_file, format, out_file, json_file;
};

// A GivenBatch hands out a file's images and labels by micro-batches.
class GivenBatch : public BatchSource {
 public:
  GivenBatch(const std::string& file, int channels) : file_(file), weights_(read_weights(file)) {
    const NamedTensor& x = tensor("images", true);
    if (x.shape.size() != 4 || x.shape[1] != channels || x.shape[2] != x.shape[3] || x.elements() == 0)
      refuse(x, fmt::format("N x {} x H x H", channels));
    if (samples() > 1'000'000 || side() > 100'000) refuse(x, "smaller");
    if (const std::string bad = describe_bad_number(x); !bad.empty())
      throw Error(fmt::format("{}: {}", file, bad), "give finite images", ExitCode::not_a_number);
    const NamedTensor& y = tensor("labels", false);
    if (y.shape != std::vector<int64_t>{samples()}) refuse(y, std::to_string(samples()));
  }

  int samples() const { return int(tensor("images", true).shape[0]); }
  int side() const { return int(tensor("images", true).shape[2]); }

  void check_labels(int64_t classes) const {
    for (const int64_t label : labels())
      if (label < 0 || label >= classes)
        throw Error(fmt::format("{}: a label is {}, but the network has {} classes", file_, label, classes),
                    "labels count from 0");
  }

  void fill(std::string_view input, int microbatch, const Tensor& out) override {
    if (input == "images") {
      const float* from = std::get<0>(tensor("images", true).values).data();
      std::copy_n(from + microbatch * out.elements(), out.elements(), out.data<float>());
    } else {
      for (int64_t n = 0; n < out.elements(); ++n)
        out.data<int32_t>()[n] = int32_t(labels()[size_t(microbatch * out.elements() + n)]);
    }
  }

 private:
  const NamedTensor& tensor(const std::string& name, bool is_float) const {
    const NamedTensor* found = weights_.find(name);
    if (!found || found->is_float() != is_float) {
      throw Error(fmt::format("{} has no {} tensor '{}'", file_, is_float ? "float32" : "int64", name),
                  "it must have images (float32) and labels (int64)");
    }
    return *found;
  }
  const std::vector<int64_t>& labels() const { return std::get<1>(tensor("labels", false).values); }
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
  GivenBatch batch(options.images_file, options.network.chosen().traits.usual.channels);
  NetworkOptions of_batch = options.network;
  of_batch.batch = batch.samples(), of_batch.image = batch.side();
  of_batch.dropout = 0, of_batch.stochastic_depth = 0;
  const Graph model = of_batch.made(of_batch.microbatch());
  WholeNetwork network(model, Precision::float32, options.weights_file, of_batch.microbatches, Mode::train,
                       rank);
  batch.check_labels(network.classes());
  const WholeNetwork::Output output = network.run(batch);
  const double loss = output.sums.loss / batch.samples();
  Weights gradients = gradients_of(network.stage());
  if (!WholeNetwork::finite(output))
    throw Error(network.describe_first_bad(batch), "are the weights those of this network?",
                ExitCode::not_a_number);
  for (const NamedTensor& gradient : gradients)
    if (const std::string bad = describe_bad_number(gradient); !bad.empty())
      throw Error("the gradient of " + bad, "are the weights those of this network?", ExitCode::not_a_number);

  nlohmann::ordered_json json = {{"model", model.model()}, {"images", batch.samples()}, {"loss", loss}};
  for (const NamedTensor& gradient : gradients) json["gradients"].push_back(summary(gradient));
  write_output(options.json_file, json.dump(2) + "\n");
  const size_t tensors = gradients.size();
  const Shape logits = network.output();
  std::vector<int64_t> shape(logits.begin(), logits.end());
  shape[0] = batch.samples();
  gradients.add({"logits", shape, output.logits});
  gradients.add({"loss", {}, std::vector<float>{float(loss)}});
  if (!options.out_file.empty())
    write_weights(options.out_file, gradients, format_of(options.format, options.out_file));
  fmt::print("{} on {}: loss {:.9g}, {}\n", model.model(), counted(batch.samples(), "image"), loss,
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
  add_option(command, "Data", "--images FILE", options->images_file, {},
             "HDF5 or safetensors with images (float32, N x C x H x H) and labels (int64, N)")
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
