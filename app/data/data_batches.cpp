// antichain data batches writes the very images, or rows of text, that `antichain train` feeds its network to
// a file, so that another framework can be trained on them.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/cli/checks.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/data/data_commands.h"
#include "app/data/tensor_stream.h"
#include "app/obtain/augment_options.h"
#include "app/obtain/data_options.h"
#include "app/options/weight_file_options.h"
#include "data/loader.h"
#include "data/mix.h"
#include "framework/error.h"
#include "framework/say.h"
#include "framework/units.h"
#include "pipeline/host/launch.h"
#include "pipeline/host/stop_signals.h"

namespace antichain {
namespace {

struct BatchesOptions {
  DataOptions data;
  AugmentOptions augmentation;
  int64_t steps = 1, first_step = 0, batch = 128;
  uint64_t seed = 0;
  std::string format, out_file;
};

// Counts as the trainer does: step s takes batch s of an endless sequence of epochs.
BatchPosition position_of(int64_t step, const Sampler& sampler) {
  return {.epoch = step / sampler.batches(), .batch = step % sampler.batches()};
}

LoaderOptions loading(const BatchesOptions& o) {
  return {.batch = o.batch, .seed = o.seed, .augment = o.augmentation};
}

// Returns the classes of soft labels, or 0: labels are classes.
int64_t soft_classes(const ImageSet& data, const BatchesOptions& o) {
  return mixes(o.augmentation) ? data.classes() : 0;
}

void write_labels(const std::shared_ptr<const ImageSet>& data, const BatchesOptions& o, TensorStream& file) {
  LoaderOptions options = loading(o);
  options.images = false;
  Loader loader(data, options);
  const int64_t classes = soft_classes(*data, o);
  const TensorSpec hard{.shape = {o.batch}, .dtype = DType::i32};
  const Tensor batch = Tensor::host(classes == 0 ? hard : TensorSpec{.shape = {o.batch, classes}});
  for (int64_t step = o.first_step; step < o.first_step + o.steps; ++step) {
    loader.fill_labels(position_of(step, loader.sampler()), 0, batch);
    if (classes == 0) {
      const std::vector<int64_t> labels(batch.data<int32_t>(), batch.data<int32_t>() + o.batch);
      file.append(0, std::as_bytes(std::span(labels)));
    } else {
      file.append(0, {batch.raw(), size_t(batch.bytes())});
    }
    StopRequests::end_if_heard();
  }
}

// Throws Error where the disk has no room for the file, not counting HDF5's own structures.
void check_room(int64_t bytes_of_a_sample, const BatchesOptions& o) {
  const double bytes = double(o.steps) * double(o.batch) * double(bytes_of_a_sample);
  const std::filesystem::path folder = std::filesystem::path(o.out_file).parent_path();
  std::error_code unknown;
  const auto space = std::filesystem::space(folder.empty() ? "." : folder, unknown);
  constexpr double GiB = 1 << 30;
  if (!unknown && bytes > double(space.available))
    throw Error(fmt::format("{} would have {}, but {} are free", o.out_file, size_text(bytes),
                            size_text(double(space.available))),
                "ask for fewer --steps");
  if (bytes > GiB) note(fmt::format("{} will have {}", o.out_file, size_text(bytes)));
}

void write_batches(const std::shared_ptr<const ImageSet>& data, const BatchesOptions& o,
                   WeightFormat format) {
  const Shape chw = data->image_shape();
  const StopRequests stop;  // so that no partial file remains
  StopRequests::work_begins();
  const int64_t classes = soft_classes(*data, o), samples = o.steps * o.batch;
  ArraySpec labels{.path = "labels", .shape = {samples}, .type = ArrayType::i64};
  if (classes > 0) labels.shape.push_back(classes), labels.type = ArrayType::f32;
  const ArraySpec images{
      .path = "images", .shape = {samples, chw[0], chw[1], chw[2]}, .type = ArrayType::f32};
  check_room(labels.row_bytes() + images.row_bytes(), o);
  TensorStream file(o.out_file, format, {labels, images});
  write_labels(data, o, file);
  const Sampler sampler(data->size(), {.batch = o.batch});
  LoaderOptions options = loading(o);
  options.ahead = 2;
  options.first = position_of(o.first_step, sampler);
  Loader loader(data, options);
  const Tensor batch = Tensor::host({.shape = {o.batch, chw[0], chw[1], chw[2]}});
  for (int64_t step = o.first_step; step < o.first_step + o.steps; ++step) {
    loader.fill_images(position_of(step, loader.sampler()), 0, batch);
    file.append(1, {batch.raw(), size_t(batch.bytes())});
    StopRequests::end_if_heard();
  }
  file.finish();
}

void write_rows(const std::shared_ptr<const DataSet>& text, const BatchesOptions& o, WeightFormat format) {
  const StopRequests stop;  // so that no partial file remains
  StopRequests::work_begins();
  std::vector<ArraySpec> tensors;
  for (const SampleArray& array : text->arrays())
    tensors.push_back(
        {.path = array.name, .shape = {o.steps * o.batch, o.data.sequence}, .type = ArrayType::i64});
  if (o.data.rows() == Rows::stream) tensors.resize(2);  // a row is one document
  check_room(std::ssize(tensors) * tensors[0].row_bytes(), o);
  TensorStream file(o.out_file, format, tensors);
  Loader loader(text, loading(o));
  const Tensor batch = Tensor::host({{o.batch, o.data.sequence}, DType::i32});
  for (size_t i = 0; i < tensors.size(); ++i)
    for (int64_t step = o.first_step; step < o.first_step + o.steps; ++step) {
      loader.fill(tensors[i].path, position_of(step, loader.sampler()), 0, batch);
      const std::vector<int64_t> wide(batch.data<int32_t>(), batch.data<int32_t>() + batch.elements());
      file.append(i, std::as_bytes(std::span(wide)));
      StopRequests::end_if_heard();
    }
  file.finish();
}

void run(const BatchesOptions& options) {
  check(options.data);
  if (options.data.channels == 2)
    throw Error("--channels takes 1 or 3, not 2", "images are grey or have three colours", ExitCode::usage);
  check_writable({options.out_file});
  const WeightFormat format = format_of(options.format, options.out_file);
  if (rank_hint() > 0) return;  // under mpirun rank 0 writes
  const auto tell = [&](const DataSet& set, const std::string& samples) {
    fmt::print("{}: {} of {} {} of {}\n", options.out_file, counted(options.steps, "batch", "batches"),
               grouped(options.batch), samples, set.name());
  };
  if (is_text(options.data) && options.data.sequence == 0)
    throw Error(options.data.dataset + " is text, and its rows have no length yet", "give --sequence",
                ExitCode::usage);
  if (options.data.sequence > 0) {
    const std::shared_ptr<const DataSet> text = read_text(options.data).train;
    write_rows(text, options, format);
    return tell(*text, fmt::format("rows of {} tokens", options.data.sequence));
  }
  const std::shared_ptr<const ImageSet> train = read_images(options.data).train;
  write_batches(train, options, format);
  tell(*train, "images");
}

}  // namespace

void add_data_batches(CLI::App& data) {
  auto options = std::make_shared<BatchesOptions>();
  CLI::App& command = add_command(
      data, "batches", "write the images and labels, or rows of text, that training steps are fed with",
      "antichain data batches --data-dir D --steps 100 --batch 128 --seed 1 --out batches.safetensors");
  add_data_options(command, options->data);
  add_text_options(command, options->data);
  add_augment_options(command, options->augmentation);
  const OptionGroup add(command, "Batches");
  add("--channels N", options->data.channels, whole_between(1, 3),
      "of the images: 3, as most networks take them, grey ones three times; or 1, for a network of grey "
      "images");
  add("--sequence N", options->data.sequence, whole_between(1, 1 << 20),
      "of text: tokens of a row, as the network takes them");
  add("--masked", options->data.masked, {},
      "of text: tokens are masked, as for a network that sees later ones");
  add("--steps N", options->steps, whole_between(1, 1'000'000'000), "number of steps");
  add("--first-step N", options->first_step, whole_between(0, 1'000'000'000), "the first step");
  add("--batch N", options->batch, whole_between(1, 1'000'000), "samples per step");
  add("--seed N", options->seed, whole_between(0, INT64_MAX), "of order and augmentation, as of train");
  add_format_option(command, options->format);
  add_output_option(
      command, "--out", options->out_file,
      "the file to write: tensors images (f32, steps·batch x C x H x W) and labels (i64; of mixed "
      "images f32, steps·batch x classes); of text tokens and labels (i64, steps·batch x N), with --pack and "
      "--pad documents and positions, too")
      ->required();
  show_first(command, {"--dataset", "--data-dir", "--crop", "--flip", "--steps", "--first-step", "--batch",
                       "--seed", "--format", "--out"});
  command.callback([options] { run(*options); });
}

}  // namespace antichain
