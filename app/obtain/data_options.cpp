#include "app/obtain/data_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <string_view>

#include "app/cli/checks.h"
#include "app/cli/number_text.h"
#include "app/job/agreement.h"
#include "data/cifar10.h"
#include "data/hdf5_set.h"
#include "framework/error.h"
#include "framework/say.h"
#include "pipeline/host/launch.h"
#include "pipeline/transport/agree.h"

namespace antichain {

namespace {

constexpr std::string_view hdf5_prefix = "hdf5:";

bool is_hdf5(const DataOptions& o) { return o.dataset.starts_with(hdf5_prefix); }
// A folder is refused here, because it would be read as one of CIFAR-10's.
std::string hdf5_file(const DataOptions& o) {
  const std::string file = o.dataset.substr(hdf5_prefix.size());
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw Error(fmt::format("--dataset {} wants a file, and {} is a folder", o.dataset, file),
                fmt::format("antichain data pack --images {} --size N --out set.h5 makes a file of images; "
                            "--data-dir names a folder of CIFAR-10's",
                            file),
                ExitCode::usage);
  return file;
}

// The note that images are generated must survive --quiet.
void tell(const Obtained& got) {
  if (got.instead)
    warn(got.note);
  else if (!got.note.empty())
    fmt::print("{}\n", got.note);
}

struct ImageForm {
  int64_t height, width;
  int classes;
};

void fit(NetworkOptions& network, const ImageForm& data, const std::string& name) {
  if (data.height != data.width)
    throw Error(fmt::format("{} has images of {} x {} pixels, but networks take square ones", name,
                            data.height, data.width),
                "antichain data pack --size N makes them square");
  if (network.image != 0 && network.image != data.height)
    throw Error(fmt::format("--image {} is given, but {} has images of {} x {} pixels", network.image, name,
                            data.height, data.width),
                "leave it out", ExitCode::usage);
  if (network.classes != 0 && network.classes < data.classes)
    throw Error(fmt::format("--classes {} is given, but {} has {}", network.classes, name, data.classes),
                "leave it out", ExitCode::usage);
  network.image = int(data.height);
  if (network.classes == 0) network.classes = data.classes;
}

// Tells the user how to train on images of their own.
void hint_at_files(const std::string& name) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(name, ignored);
  if (!folder && !std::filesystem::is_regular_file(name, ignored)) return;
  throw Error(
      fmt::format("--dataset takes the name of a data set, and {} is a {}", name, folder ? "folder" : "file"),
      folder ? fmt::format(
                   "antichain data pack --images {} --size N --out set.h5 makes one of images, for --dataset "
                   "hdf5:set.h5; --data-dir names a folder of CIFAR-10's",
                   name)
             : fmt::format("write --dataset hdf5:{}", name),
      ExitCode::usage);
}

}  // namespace

void add_data_options(CLI::App& app, DataOptions& o) {
  CLI::Option* dataset =
      app.add_option("--dataset", o.dataset,
                     "cifar10; synthetic: generated images; or hdf5:FILE, as antichain data pack "
                     "writes it");
  dataset
      ->check([](const std::string& name) {
        if (!name.starts_with(hdf5_prefix) && name != "cifar10" && name != "synthetic") {
          hint_at_files(name);
          refuse_name("data set", name, {"cifar10", "synthetic", "hdf5:FILE"});
        }
        return std::string();
      })
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Data");
  app.add_option("--data-dir", o.data_dir,
                 "folder of CIFAR-10's binary files [$CIFAR10_DIR, else the cache, else downloaded]")
      ->type_name("DIR")
      ->group("Data");
}

void check(const DataOptions& o) {
  if (o.data_dir.empty() || o.dataset == "cifar10") return;
  const std::string what = is_hdf5(o) ? "one file" : "generated";
  throw Error(fmt::format("--data-dir is given, but the data set {} is {}", o.dataset, what),
              "leave out --data-dir, or say --dataset cifar10", ExitCode::usage);
}

Obtained obtain_data(const DataOptions& o) {
  if (is_hdf5(o)) return {.directory = hdf5_file(o), .note = ""};
  return o.dataset == "synthetic" ? obtain_synthetic() : obtain_cifar10({.data_dir = o.data_dir});
}

DataSplits read_data(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ? read_hdf5_set(path) : read_cifar10(path);
}

DataSplits read_data(const DataOptions& o) {
  const Obtained got = obtain_data(o);
  tell(got);
  return read_data(got.directory);
}

void fit_network(NetworkOptions& network, const DataOptions& options, SharedData& shared) {
  if (!is_hdf5(options))
    return fit(network, {Cifar10Format::side, Cifar10Format::side, Cifar10Format::classes}, options.dataset);
  try {
    const DataSplits data = shared.get(hdf5_file(options));
    const Shape chw = data.train->image_shape();
    fit(network, {chw[1], chw[2], data.train->classes()}, hdf5_file(options));
  } catch (const Error&) {
    if (rank_hint() == 0) throw;  // the file may be missing only on this host: obtain_data() will say so
  }
}

DataSplits obtain_data(const DataOptions& options, Rank& rank, SharedData& shared) {
  const std::string path = on_rank_zero(rank.job, [&] {
    const Obtained got = obtain_data(options);
    tell(got);
    return got.directory;
  });
  const DataSplits data = shared.get(path);
  check_same_data(rank, data, path);
  return data;
}

DataSplits obtain_training_data(const DataOptions& options, int batch, Rank& rank, SharedData& shared) {
  const DataSplits data = obtain_data(options, rank, shared);
  if (data.train->size() < batch) {
    throw Error(fmt::format("a batch of {} is larger than the training set, which has {}", grouped(batch),
                            counted(data.train->size(), "image")),
                "use a smaller --batch or more data");
  }
  if (rank.prints()) {
    fmt::print("Data: {}, {} for training and {} for tests\n\n", data.train->name(),
               counted(data.train->size(), "image"), grouped(data.test->size()));
    std::fflush(stdout);  // the next step may take a while
  }
  return data;
}

}  // namespace antichain
