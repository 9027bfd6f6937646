// antichain data show describes what a data set contains.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "app/data/data_commands.h"
#include "app/obtain/data_options.h"
#include "data/array_input.h"
#include "data/pixel_sums.h"
#include "data/token_set.h"
#include "framework/paths.h"
#include "pipeline/host/launch.h"

namespace antichain {
namespace {

std::vector<int64_t> counts_of(const ImageSet& set) {
  std::vector<int64_t> counts(size_t(set.classes()), 0);
  for (int64_t i = 0; i < set.size(); ++i) ++counts[size_t(set.label(i))];
  return counts;
}

// Reads every image, so that an unreadable one is found.
Normalisation measured(const ImageSet& set) {
  PixelSums sums(set.image_shape()[0]);
  std::vector<uint8_t> pixels(size_t(set.image_shape().elements()));
  for (int64_t i = 0; i < set.size(); ++i) {
    set.image(i, pixels);
    sums.add(pixels);
  }
  return sums.normalisation();
}

std::string text(const std::array<float, 3>& values, int64_t channels) {
  return fmt::format("{:.4f}", fmt::join(values.begin(), values.begin() + channels, " "));
}

// Reads every token, so that one that is not of the vocabulary is found.
void show_text(const std::string& path) {
  constexpr int64_t row_tokens = 1024;
  const TokenSplits data = read_token_set(path, row_tokens, Rows::padded);
  std::vector<int32_t> row(row_tokens);
  Table splits({{"split", Table::Align::left}, {"tokens"}, {"documents"}});
  for (const auto& [name, set] : {std::pair("train", data.train), std::pair("test", data.test)}) {
    for (int64_t i = 0; i < set->size(); ++i)
      for (const size_t array : {find_array(*set, "tokens"), find_array(*set, "labels")})
        set->read(array, i, std::as_writable_bytes(std::span(row)));
    splits.add({name, grouped(set->tokens()), grouped(set->documents())});
  }
  begin_answer();
  fmt::print("{}, text in a vocabulary of {} tokens ({})\n\n{}", data.train->name(),
             grouped(data.train->classes()), data.train->tokenizer(), splits.str());
}

void run(const std::string& path) {
  if (rank_hint() > 0) return;  // under mpirun rank 0 prints
  if (is_plain_file(path) && is_token_set(path)) return show_text(path);
  const ImageSplits data = read_data(path);
  const Shape chw = data.train->image_shape();
  const Normalisation used = data.train->normalisation();
  begin_answer();
  fmt::print("{}, {} x {} pixels{}, {}\nTraining subtracts {} and divides by {}{}.\n\n", data.train->name(),
             chw[1], chw[2], chw[0] == 1 ? " in grey" : "",
             counted(data.train->classes(), "class", "classes"), text(used.mean, chw[0]),
             text(used.deviation, chw[0]), chw[0] == 1 ? "" : " (red, green, blue)");
  Table splits(
      {{"split", Table::Align::left}, {"images"}, {"mean\nof pixels in [0, 1]"}, {"deviation\nof the same"}});
  for (const auto& [name, set] : {std::pair("train", data.train), std::pair("test", data.test)}) {
    const Normalisation found = measured(*set);
    splits.add({name, grouped(set->size()), text(found.mean, chw[0]), text(found.deviation, chw[0])});
  }
  Table classes(
      {{"label"}, {"class", Table::Align::left, Table::Role::key}, {"train\nimages"}, {"test\nimages"}});
  const std::vector<int64_t> train = counts_of(*data.train), test = counts_of(*data.test);
  for (size_t label = 0; label < train.size(); ++label)
    classes.add({std::to_string(label), data.train->class_names()[label], grouped(train[label]),
                 grouped(test[label])});
  fmt::print("{}\n{}", splits.str(), classes.str());
}

}  // namespace

void add_data_show(CLI::App& data) {
  auto path = std::make_shared<std::string>();
  CLI::App& command =
      add_command(data, "show", "list splits, and classes and their images, or tokens, reading every one",
                  "antichain data show photos.h5");
  add_option(command, "Data", "path,--data FILE|DIR", *path, {},
             "an HDF5 file of images or of text, or a folder of CIFAR-10's or CIFAR-100's binary files")
      ->required();
  command.callback([path] { run(*path); });
}

}  // namespace antichain
