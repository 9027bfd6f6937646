#include "app/obtain/data_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/overwriting.h"
#include "app/job/agreement.h"
#include "data/channels.h"
#include "data/cifar.h"
#include "data/hdf5_set.h"
#include "data/masked_tokens.h"
#include "framework/error.h"
#include "framework/known_names.h"
#include "framework/paths.h"
#include "framework/say.h"
#include "layers/attention.h"
#include "layers/input.h"
#include "pipeline/host/launch.h"
#include "pipeline/transport/agree.h"

namespace antichain {

namespace {

constexpr std::string_view hdf5_prefix = "hdf5:";

bool is_hdf5(const DataOptions& o) { return o.dataset.starts_with(hdf5_prefix); }
// A folder is refused here, because it would be read as one of a published set.
std::string hdf5_file(const DataOptions& o) {
  const std::string file = o.dataset.substr(hdf5_prefix.size());
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw Error(fmt::format("--dataset {} wants a file, and {} is a folder", o.dataset, file),
                fmt::format("antichain data pack --images {} --size N --out set.h5 makes a file of images; "
                            "--data-dir names a folder of a published set",
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

std::vector<std::string> data_set_names() {
  std::vector<std::string> names;
  for (const PublishedSet& set : published_sets()) names.emplace_back(set.option);
  names.insert(names.end(), {"synthetic", "hdf5:FILE"});
  return names;
}

struct ImageForm {
  int64_t height, width;
  int classes;
};

void fit(NetworkOptions& network, const ImageForm& data, const std::string& name) {
  const int side = square_side(name, data.height, data.width);
  if (network.image != 0 && network.image != data.height)
    throw Error(fmt::format("--image {} is given, but {} has images of {} x {} pixels", network.image, name,
                            data.height, data.width),
                "leave it out", ExitCode::usage);
  if (network.graph.given() && network.classes < data.classes)
    throw Error(fmt::format("the network of {} has {} classes, but {} has {}", network.graph.path,
                            network.classes, name, data.classes),
                "give a data set with fewer, or write the network again for this one", ExitCode::usage);
  if (network.classes != 0 && network.classes < data.classes)
    throw Error(fmt::format("--classes {} is given, but {} has {}", network.classes, name, data.classes),
                "leave it out", ExitCode::usage);
  network.image = side;
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
                   "hdf5:set.h5; --data-dir names a folder of a published set",
                   name)
             : fmt::format("write --dataset hdf5:{}", name),
      ExitCode::usage);
}

}  // namespace

void add_data_options(CLI::App& app, DataOptions& o) {
  const auto check_set = [](const std::string& name) {
    if (name.starts_with(hdf5_prefix) || published_set(name) != nullptr || name == "synthetic") return;
    hint_at_files(name);
    refuse_name("data set", name, data_set_names());
  };
  std::vector<std::string> names = data_set_names();
  names.pop_back();  // hdf5:FILE is none
  const OptionGroup add(app, "Data");
  add("--dataset NAME", o.dataset, checked_by(check_set, names),
      "cifar10; cifar100; synthetic: generated images; or hdf5:FILE, as antichain data pack writes it",
      {OptionKind::data});
  add("--data-dir DIR", o.data_dir, {},
      "folder of the set's binary files [$CIFAR10_DIR or $CIFAR100_DIR, else the cache, else downloaded]",
      {OptionKind::data});
}

void add_array_options(CLI::App& app, DataOptions& o) {
  const auto names_of = [](std::vector<std::string>& names) {
    const auto set = [&names](const std::string& text) {
      names.clear();
      std::istringstream all(text);
      for (std::string name; std::getline(all, name, ',');) names.push_back(name);
    };
    return OptionVariable(set, [&names] { return fmt::format("{}", fmt::join(names, ",")); });
  };
  const OptionGroup add(app, "Data");
  add("--inputs NAMES", names_of(o.inputs), {},
      "arrays /train/NAME and /test/NAME of hdf5:FILE, with commas between: they fill the inputs that a "
      "network from a graph computes with, in their order",
      {OptionKind::data});
  add("--targets NAMES", names_of(o.targets), {},
      "arrays for the inputs that only its losses read, in their order", {OptionKind::data});
}

void add_text_options(CLI::App& app, DataOptions& o) {
  const OptionGroup add(app, "Data");
  add("--pack", o.pack, {},
      "of text: a row keeps its documents apart; labels at their ends count nothing, and the network's "
      "attention stays within a document [rows are one document]",
      {OptionKind::recipe, "packed documents"});
  add("--pad", o.pad, {},
      "of text: a row has one document, or a part of a longer one, and its rest counts nothing",
      {OptionKind::recipe, "padded documents"})
      ->excludes("--pack");
}

bool is_text(const DataOptions& o) {
  return is_hdf5(o) && is_plain_file(hdf5_file(o)) && is_token_set(hdf5_file(o));
}

void check(const DataOptions& o) {
  if (o.names_arrays() && !is_hdf5(o))
    throw Error("--inputs and --targets name arrays of an HDF5 file, but the data set is " + o.dataset,
                "say --dataset hdf5:FILE", ExitCode::usage);
  if (o.data_dir.empty() || published_set(o.dataset) != nullptr) return;
  const std::string what = is_hdf5(o) ? "one file" : "generated";
  throw Error(fmt::format("--data-dir is given, but the data set {} is {}", o.dataset, what),
              "leave out --data-dir, or say --dataset cifar10 or cifar100", ExitCode::usage);
}

int square_side(const std::string& name, int64_t height, int64_t width) {
  if (height != width)
    throw Error(
        fmt::format("{} has images of {} x {} pixels, but networks take square ones", name, height, width),
        "antichain data pack --size N makes them square");
  return int(height);
}

Obtained obtain_data(const DataOptions& o) {
  if (is_hdf5(o)) return {.directory = hdf5_file(o), .note = ""};
  const PublishedSet* set = published_set(o.dataset);
  return set == nullptr ? obtain_synthetic() : obtain_published(*set, {.data_dir = o.data_dir});
}

bool brings_classes(const DataOptions& o) {
  const PublishedSet* set = published_set(o.dataset);
  return is_hdf5(o) || (set != nullptr && set != &cifar10());
}

namespace {

// A virtual dataset is put together from other files.
template <class Splits>
Splits spared(const Splits& data) {
  check_no_output_is("a file of the data set", data.train->files());
  return data;
}

}  // namespace

ImageSplits read_binary_files(const PublishedSet& set, const std::string& path) {
  const std::string folder = folder_of(set, path);
  std::vector<std::string> files = set.train_files;
  files.insert(files.end(), {set.test_file, std::string(set.names_file)});
  for (std::string& file : files) file.insert(0, folder + "/");
  check_no_output_is("a file of the data set", files);
  return read_cifar(set, path);
}

ImageSplits read_data(const std::string& path) {
  return is_plain_file(path) ? spared(read_hdf5_set(path)) : read_binary_files(published_set_in(path), path);
}

namespace {

ImageSplits read_images(const std::string& path, const DataOptions& o) {
  if (is_hdf5(o)) return with_channels(spared(read_hdf5_set(path)), o.channels);
  const PublishedSet* set = published_set(o.dataset);
  // Generated images have CIFAR-10's layout.
  return with_channels(read_binary_files(set != nullptr ? *set : cifar10(), path), o.channels);
}

TokenSplits read_rows(const std::string& path, const DataOptions& o) {
  const TokenSplits rows = spared(read_token_set(path, o.sequence, o.rows()));
  return o.masked ? TokenSplits{masked(rows.train), masked(rows.test)} : rows;
}

// Says whether a network could read the token that it is to find.
bool sees_later_tokens(const Graph& graph) {
  return std::ranges::any_of(graph, [](const Node& node) {
    const auto* attention = dynamic_cast<const Attention*>(node.op.get());
    return attention && !attention->options.causal;
  });
}

// Says whether losses alone read an input, or what computes them.
bool is_target(const Graph& graph, NodeId input) {
  const auto* op = dynamic_cast<const Input*>(graph[input].op.get());
  return (op && op->is_target) || std::ranges::all_of(graph.consumers(input), [&](NodeId consumer) {
           return graph[consumer].role() == Role::loss;
         });
}

// Assigns the arrays to the inputs of the network.
std::vector<AssignedArray> assigned(const NetworkOptions& network, const DataOptions& o) {
  const Graph graph = network.made(2);
  std::vector<AssignedArray> all;
  std::array<size_t, 2> used{};  // of --targets, of --inputs
  std::array<std::vector<std::string>, 2> inputs;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph[id].role() != Role::input) continue;
    const bool computed_with = !is_target(graph, id);
    inputs[computed_with].push_back(graph[id].name);
    const std::vector<std::string>& names = computed_with ? o.inputs : o.targets;
    if (used[computed_with] < names.size())
      all.push_back({graph[id].name, names[used[computed_with]++], computed_with});
  }
  for (const bool computed_with : {true, false}) {
    const std::vector<std::string>&given = computed_with ? o.inputs : o.targets,
          &wanted = inputs[computed_with];
    if (given.size() == wanted.size()) continue;
    throw Error(fmt::format("{} names {}, but the network of {} {} {}{}",
                            computed_with ? "--inputs" : "--targets", counted(int64_t(given.size()), "array"),
                            network.graph.path, computed_with ? "computes with" : "has as targets",
                            counted(int64_t(wanted.size()), "input"),
                            wanted.empty() ? "" : fmt::format(" ({})", fmt::join(wanted, ", "))),
                "name one array for each", ExitCode::usage);
  }
  return all;
}

}  // namespace

DataSplits read_data(const std::string& path, const DataOptions& o) {
  if (o.names_arrays()) return spared(read_array_set(path, o.arrays));
  if (o.sequence > 0) return read_rows(path, o);
  return read_images(path, o);
}

TokenSplits read_text(const DataOptions& o) {
  if (!is_text(o))
    throw Error("the data set " + o.dataset + " is no text", "give a set of antichain data tokens",
                ExitCode::usage);
  return read_rows(hdf5_file(o), o);
}

ImageSplits read_images(const DataOptions& o) {
  const Obtained got = obtain_data(o);
  tell(got);
  return read_images(got.directory, o);
}

void fit_rows(NetworkOptions& network, DataOptions& options) {
  if (options.names_arrays()) return;
  const bool text = is_text(options);
  if (!text && (options.pack || options.pad))
    throw Error(fmt::format("{} says how text is cut into rows, but the data set {} is none",
                            options.pack ? "--pack" : "--pad", options.dataset),
                "leave it out, or give a set of antichain data tokens", ExitCode::usage);
  if (!text) return;
  network.packed = options.pack && network.chosen().traits.reads == Reads::tokens;
  const Graph graph = network.made(2);
  const NodeId tokens = graph.find("tokens");
  if (tokens < 0 || graph[tokens].role() != Role::input || graph.shape(tokens).rank() != 2)
    throw Error(fmt::format("{} is text, but {} reads no tokens", hdf5_file(options), graph.model()),
                "give images, or a network with an input 'tokens'", ExitCode::usage);
  if (options.pack && graph.find("documents") < 0)
    throw Error(fmt::format("--pack keeps documents apart, but {} has no input 'documents', by which its "
                            "attention would",
                            graph.model()),
                "leave it out, or say --pad", ExitCode::usage);
  options.sequence = graph.shape(tokens)[1];
  options.masked = sees_later_tokens(graph);
}

namespace {

void fit_text(NetworkOptions& network, const std::string& name, int vocabulary) {
  if (network.outputs() != 0 && network.outputs() < vocabulary)
    throw Error(fmt::format("the network has a vocabulary of {} tokens, but {} one of {}", network.outputs(),
                            name, vocabulary),
                network.graph.given() ? "give a data set with fewer, or write the network again for this one"
                                      : "leave out --vocabulary",
                ExitCode::usage);
  if (network.outputs() == 0 && network.chosen().traits.reads == Reads::tokens)
    network.vocabulary = vocabulary;
}

}  // namespace

void fit_network(NetworkOptions& network, DataOptions& options, SharedData& shared) {
  if (options.names_arrays()) {
    if (!network.graph.given())
      throw Error(fmt::format("--inputs and --targets are for networks from a graph, but {} takes images and "
                              "labels",
                              network.model),
                  "leave them out, or give --graph", ExitCode::usage);
    options.arrays = assigned(network, options);
    return;
  }
  if (!is_hdf5(options)) {
    fit_rows(network, options);
    const PublishedSet* set = published_set(options.dataset);
    const int classes = (set != nullptr ? *set : cifar10()).classes;
    return fit(network, {PublishedSet::side, PublishedSet::side, classes}, options.dataset);
  }
  try {
    fit_rows(network, options);
    const DataSplits data = shared.get(hdf5_file(options), options);
    if (options.sequence > 0) return fit_text(network, hdf5_file(options), data.train->classes());
    const Shape chw = data.train->images()->image_shape();
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
  const DataSplits data = shared.get(path, options);
  check_same_data(rank, data, path);
  return data;
}

namespace {

void warn_of_one_class(const ImageSet& train) {
  const int first = train.label(0);
  for (int64_t i = 1; i < train.size(); ++i)
    if (train.label(i) != first) return;
  warn(fmt::format("all images for training are of one class, '{}', so there is nothing to learn",
                   train.class_names()[size_t(first)]));
}

}  // namespace

std::string counted_samples(const DataSet& set, const std::string& which) {
  if (set.images()) return counted(set.size(), which + "image");
  if (!dynamic_cast<const TokenSet*>(&set)) return counted(set.size(), which + "sample");
  return fmt::format("{} of {} tokens", counted(set.size(), which + "row"), set.arrays()[0].spec.shape[0]);
}

DataSplits obtain_training_data(const DataOptions& options, int batch, Rank& rank, SharedData& shared) {
  const DataSplits data = obtain_data(options, rank, shared);
  if (data.train->size() < batch) {
    throw Error(fmt::format("a batch of {} is larger than the training set, which has {}", grouped(batch),
                            counted_samples(*data.train)),
                "use a smaller --batch or more data");
  }
  if (rank.prints()) {
    if (data.train->images()) warn_of_one_class(*data.train->images());
    fmt::print("Data: {}, {} for training and {} for tests{}\n\n", data.train->name(),
               counted_samples(*data.train), grouped(data.test->size()),
               options.masked ? "; of the tokens 15 % are masked" : "");
    std::fflush(stdout);  // the next step may take a while
  }
  return data;
}

}  // namespace antichain
