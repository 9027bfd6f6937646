// antichain evaluate: loss and accuracy over the test set of a network whose weights are in a file.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>

#include "app/checks.h"
#include "app/commands.h"
#include "app/data_options.h"
#include "app/network_form.h"
#include "app/table.h"
#include "app/whole_network.h"
#include "framework/error.h"
#include "framework/json.h"
#include "pipeline/loader_source.h"

namespace antichain {
namespace {

struct EvaluateOptions {
  NetworkForm network;
  MachineOptions machine;
  int batch = 100;
  DataOptions data;
  std::string weights_file, logits_file, format, json_file;
};

struct Evaluation {
  double loss = 0, accuracy = 0;
  std::vector<float> logits;  // images x K
};

// In file order; the last batch is padded with samples that count nothing.
Evaluation evaluate(WholeNetwork& network, const std::shared_ptr<const DataSet>& test) {
  Evaluation all;
  const bool raw = !network.stage().context().backend().host_memory();
  LoaderSource source(test, {.batch = network.batch(), .train = false, .raw = raw});
  for (; source.position.batch < source.sampler().batches(); ++source.position.batch) {
    const WholeNetwork::Output part = network.run(source);
    all.loss += part.sums.loss, all.accuracy += part.sums.correct;
    const int64_t real = source.sampler().real_samples(source.position.batch);
    all.logits.insert(all.logits.end(), part.logits.begin(),
                      part.logits.begin() + std::ptrdiff_t(real * network.classes()));
  }
  all.loss /= double(test->size()), all.accuracy /= double(test->size());
  return all;
}

Weights logits_file(const Evaluation& result, const DataSet& test, int64_t classes) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < test.size(); ++i) labels.push_back(test.label(i));
  Weights file;
  file.add({"logits", {test.size(), classes}, result.logits});
  file.add({"labels", {test.size()}, labels});
  return file;
}

// The network as the data set wants it: its image size, and its classes where it is a file of one's own.
Graph network_for(const DataSet& test, const EvaluateOptions& options) {
  const Shape chw = test.image_shape();
  if (chw[1] != chw[2])
    throw Error(fmt::format("{} has images of {} x {} pixels, but networks take square ones", test.name(),
                            chw[1], chw[2]),
                "antichain data pack --size N makes them square");
  NetworkForm form = options.network;
  if (form.classes == 0 && options.data.dataset.starts_with("hdf5:")) form.classes = test.classes();
  return make_model(form.model, form.options(options.batch, int(chw[1])));
}

void run(const EvaluateOptions& options, Rank& rank) {
  const std::shared_ptr<const DataSet> test = read_data(options.data).test;
  const Graph model = network_for(*test, options);
  WholeNetwork network(model, options.weights_file, 1, Mode::evaluate, rank);
  if (network.classes() < test->classes()) {
    throw Error(fmt::format("the network has {} classes, but {} has {}", network.classes(), test->name(),
                            test->classes()),
                "leave out --classes", ExitCode::usage);
  }
  const Evaluation result = evaluate(network, test);
  fmt::print("{} on {} of {}: loss {:.6f}, accuracy {:.2f} %\n", model.model(),
             counted(test->size(), "test image"), test->name(), result.loss, 100 * result.accuracy);
  if (!options.logits_file.empty()) {
    write_weights(options.logits_file, logits_file(result, *test, network.classes()),
                  format_of(options.format, options.logits_file));
  }
  const nlohmann::ordered_json json = {{"model", model.model()},
                                       {"data", test->name()},
                                       {"images", test->size()},
                                       {"loss", result.loss},
                                       {"accuracy", result.accuracy}};
  if (!options.json_file.empty()) write_file(options.json_file, json.dump(2) + "\n");
}

}  // namespace

void add_evaluate(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App& command = add_command(
      app, "evaluate", "test a network whose weights are in a file",
      "antichain evaluate --model resnet20 --weights resnet20.h5 --data-dir D --logits logits.h5");
  add_form_options(command, options->network);
  command
      .add_option("--weights", options->weights_file,
                  "HDF5 or safetensors, named as in PyTorch's state_dict; or a folder of checkpoints")
      ->type_name("FILE")
      ->required()
      ->group("Weights");
  add_data_options(command, options->data);
  CLI::Option* batch = command.add_option("--batch", options->batch, "images at a time");
  check_whole(batch, 1, 1'000'000)->type_name("N")->capture_default_str()->group("Data");
  add_one_rank_options(command, options->machine);
  add_format_option(command, options->format);
  add_output_option(command, "--logits", options->logits_file, "write logits and labels of every test image");
  add_output_option(command, "--json", options->json_file, "write loss and accuracy");
  command.callback([options] {
    check(options->data);
    check_writable({options->logits_file, options->json_file});
    if (!options->logits_file.empty()) format_of(options->format, options->logits_file);
    run_job(options->machine, [&](Rank& rank) { run(*options, rank); });
  });
}

}  // namespace antichain
