// antichain evaluate computes loss and accuracy over the test set, for a network whose weights are in a file.
//
//   images of the test set     0 … B−1 | B … 2B−1 | …          B: --batch
//   goes to rank                  0    |    1     | …          R ranks in turn, a batch each at a time
//
// Rank 0 adds up the ranks' results in the order of the images, so the sum is the same on any number of
// ranks.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/cli/progress_bar.h"
#include "app/job/agreement.h"
#include "app/job/preflight.h"
#include "app/obtain/data_options.h"
#include "app/obtain/init_weights.h"
#include "app/obtain/network_of_weights.h"
#include "app/obtain/whole_network.h"
#include "app/options/weight_file_options.h"
#include "app/report/measures.h"
#include "app/report/output_errors.h"
#include "framework/error.h"
#include "framework/json.h"
#include "models/model.h"
#include "pipeline/train/loader_source.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

struct EvaluateOptions {
  WeightsOptions weights;
  MachineOptions machine;
  int batch = 100;
  DataOptions data;
  std::string logits_file, format, json_file;
  std::string settings;  // all settings, compared between ranks
};

// An Evaluation holds sums, and at the end means, over the images so far.
struct Evaluation {
  double loss = 0, accuracy = 0;
  std::vector<double> errors;  // OutputSums
  std::vector<float> logits;   // images x K
};

// Encodes a rank's result for its batch, as it lies in memory: sums, then logits.
std::string to_bytes(const WholeNetwork::Output& part, std::vector<double> sums, int64_t logits) {
  sums.insert(sums.begin(), {part.sums.loss, part.sums.correct});
  std::string bytes(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(double));
  return bytes.append(reinterpret_cast<const char*>(part.logits.data()), size_t(logits) * sizeof(float));
}

void add(const std::string& bytes, Evaluation& all) {
  std::vector<double> sums(2 + all.errors.size());
  const size_t sum_bytes = sums.size() * sizeof(double);
  std::memcpy(sums.data(), bytes.data(), sum_bytes);
  all.loss += sums[0], all.accuracy += sums[1];
  for (size_t i = 0; i < all.errors.size(); ++i) all.errors[i] += sums[2 + i];
  const size_t before = all.logits.size(), logits = bytes.size() - sum_bytes;
  all.logits.resize(before + logits / sizeof(float));
  std::memcpy(all.logits.data() + before, bytes.data() + sum_bytes, logits);
}

// Collective. Ends the job where a rank found non-finite numbers, and names the first such batch.
void end_at_first_bad(const std::string& mine, Job& job) {
  const auto all = job.gather(mine);
  std::string first;
  for (const std::string& bad : all)
    if (!bad.empty() && (first.empty() || bad < first)) first = bad;
  first = job.broadcast(first);
  if (!first.empty())
    throw Error(first.substr(first.find(' ') + 1), "take weights from before they went wrong",
                ExitCode::not_a_number);
}

// Collective; complete on rank 0, in file order. The last batches are padded with samples that do not count.
Evaluation evaluate(WholeNetwork& network, const OutputSums& errors,
                    const std::shared_ptr<const DataSet>& test, const Rank& rank) {
  Evaluation all{.errors = std::vector<double>(errors.size)};
  const Tensor targets = errors.size > 0 ? Tensor::host(errors.targets) : Tensor();
  std::optional<ProgressBar> bar;
  if (rank.prints()) bar.emplace(stdout);
  const int own = rank.job.rank(), ranks = rank.job.size();
  std::string bad;  // the batch's number, and what is wrong in it
  LoaderSource source(test, {.batch = network.batch(),
                             .microbatches = ranks,
                             .first_microbatch = own,
                             .every = ranks,
                             .train = false,
                             .raw = !rank.context.backend().host_memory()});
  LossMeans::Counts counts;
  for (; source.position.batch < source.sampler().batches(); ++source.position.batch)
    LossMeans::add(network.counts(source), counts);
  network.take_means_over(counts, double(test->size()));
  source.position.batch = 0;
  const int64_t outputs = network.output().elements() / network.microbatch();  // of a sample
  for (; source.position.batch < source.sampler().batches(); ++source.position.batch) {
    const int64_t all_real = source.sampler().real_samples(source.position.batch);
    const WholeNetwork::Output part = network.run(source, 0, network.batch() - int(all_real));
    const int64_t left = all_real - own * network.microbatch();
    const int64_t real = std::clamp<int64_t>(left, 0, network.microbatch());
    if (bad.empty() && !WholeNetwork::finite(part)) {
      const int64_t image = source.position.batch * network.batch() + own * network.microbatch();
      bad = fmt::format("{:012} among the {} test samples from number {} on, {}", image, network.microbatch(),
                        image, network.describe_first_bad(source));
    }
    std::vector<double> sums(errors.size);
    if (targets) {
      source.fill(errors.target, own, targets);
      errors.add(part.logits, targets, real, sums);
    }
    rank.job.activity().doing("telling rank 0 the loss of a batch");
    for (const std::string& bytes : rank.job.gather(to_bytes(part, sums, real * outputs))) add(bytes, all);
    if (bar) bar->show(source.position.batch + 1, source.sampler().batches(), "evaluating");
  }
  end_at_first_bad(bad, rank.job);
  all.loss /= double(test->size()), all.accuracy /= double(test->size());
  return all;
}

Weights logits_file(const Evaluation& result, const DataSet& test, const Shape& output) {
  std::vector<int64_t> shape(output.begin(), output.end()), labels;
  shape[0] = test.size();
  Weights file;
  file.add({"logits", shape, result.logits});
  if (!test.images()) return file;
  for (int64_t i = 0; i < test.size(); ++i) labels.push_back(test.images()->label(i));
  file.add({"labels", {test.size()}, labels});
  return file;
}

// Makes the network for the data set: with its image size, and with its classes where they follow from it.
Graph network_for(const DataSet& test, NetworkOptions form, const EvaluateOptions& options) {
  if (const ImageSet* images = test.images()) {
    const Shape chw = images->image_shape();
    form.image = square_side(test.name(), chw[1], chw[2]);
  }
  if (form.outputs() == 0 && brings_classes(options.data))
    (form.chosen().traits.reads == Reads::tokens ? form.vocabulary : form.classes) = test.classes();
  return form.made(options.batch);
}

void run(const EvaluateOptions& options, Rank& rank, SharedData& shared) {
  check_same_settings(rank, options.settings);
  on_rank_zero(rank.job, [&] {
    check_writable({options.logits_file, options.json_file});
    return "";
  });
  warn_of_crowding(rank);
  NetworkOptions form = form_of(options.weights, rank);
  DataOptions data = options.data;
  fit_rows(form, data);
  const std::shared_ptr<const DataSet> test = obtain_data(data, rank, shared).test;
  const Graph model = network_for(*test, form, options);
  WholeNetwork network(model, parse_precision(options.weights.network.precision), options.weights.file,
                       rank.job.size(), Mode::evaluate, rank);
  if (rank.prints()) print_skipped(network.skipped());
  check_same_kernels(rank, options.machine, network.stage().graph());
  for (const Node& node : model)
    if (node.role() == Role::input) Loader::check_input(test, node.name, node.signature.y);
  if (test->classes() > 0 && network.classes() < test->classes()) {
    throw Error(fmt::format("the network has {} classes, but {} has {}", network.classes(), test->name(),
                            test->classes()),
                "leave out --classes", ExitCode::usage);
  }
  const OutputErrors errors(model);
  const Evaluation result = evaluate(network, errors.sums(), test, rank);
  if (!rank.prints()) return;
  begin_answer();
  const Measures measures = measures_of(model);
  const std::vector<OutputErrors::Mean> means = errors.means(result.errors);
  fmt::print("{} on {} of {}: loss {:.6f}{}{}{}\n", model.model(), counted_samples(*test, "test "),
             test->name(), result.loss, and_perplexity(result.loss, measures),
             and_accuracy(measures.hits ? result.accuracy : NAN), and_means(means));
  if (!options.logits_file.empty()) {
    write_weights(options.logits_file, logits_file(result, *test, network.output()),
                  format_of(options.format, options.logits_file));
  }
  nlohmann::ordered_json json = {{"model", model.model()},
                                 {"data", test->name()},
                                 {std::string(samples_of(measures)), test->size()},
                                 {"precision", options.weights.network.precision},
                                 {"loss", result.loss}};
  if (measures.hits) json["accuracy"] = result.accuracy;
  for (const OutputErrors::Mean& mean : means) json[mean.key] = mean.value;
  if (measures.perplexity) json["perplexity"] = perplexity(result.loss);
  write_output(options.json_file, json.dump(2) + "\n");
}

}  // namespace

void add_evaluate(CLI::App& app) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App& command =
      add_command(app, "evaluate", "test a network whose weights are in a file",
                  "mpirun -n 4 antichain evaluate --model resnet20 --weights resnet20.h5 --data-dir D");
  add_weights_options(command, options->weights);
  add_data_options(command, options->data);
  add_array_options(command, options->data);
  add_text_options(command, options->data);
  add_option(command, "Data", "--batch N", options->batch, whole_between(1, 1'000'000),
             "images at a time, on each rank");
  add_machine_options(command, options->machine);
  add_precision_option(command, options->weights.network.precision);
  add_format_option(command, options->format);
  add_output_option(command, "--logits", options->logits_file, "write logits and labels of every test image");
  command.get_option("--format")->needs("--logits");
  add_output_option(command, "--json", options->json_file, "write loss and accuracy");
  show_first(command, {"--model", "--graph", "--form", "--weights", "--dataset", "--data-dir", "--batch",
                       "--local", "--device", "--precision", "--logits", "--json"});
  command.callback([options, &command] {
    settle(command, options->weights);
    NetworkOptions& network = options->weights.network;
    check(options->data);
    check_weights_output(options->format, options->logits_file);
    options->settings = settings_of(command);
    if (options->weights.model_given) options->data.channels = network.chosen().traits.usual.channels;
    SharedData shared;
    if (options->data.names_arrays()) fit_network(network, options->data, shared);
    run_job(options->machine, [&](Rank& rank) { run(*options, rank, shared); });
  });
}

}  // namespace antichain
