// antichain data pack writes a data set as one HDF5 file, from CIFAR's binary files or from folders of JPEG
// and PNG images.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <optional>

#include "app/cli/checks.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/progress_bar.h"
#include "app/data/data_commands.h"
#include "app/obtain/data_options.h"
#include "data/channels.h"
#include "data/digits.h"
#include "data/image_folder.h"
#include "data/pack.h"
#include "framework/error.h"
#include "framework/parse_number.h"
#include "pipeline/host/launch.h"
#include "pipeline/host/stop_signals.h"

namespace antichain {
namespace {

constexpr int most_side = 16'384;

struct PackCommandOptions {
  std::string cifar, images, digits, out_file, size, layout = "nchw";
  double test_fraction = 0.1;
  bool with_fraction = false;  // whether it was given
  bool grey = false, compress = false, skip_damaged = false;
};

struct Size {
  int height = 0, width = 0;
};

// Parses "64" or "48x64": height x width.
Size parse_size(const std::string& text) {
  if (text.empty()) return {};
  const auto number = [](const std::string& digits) {
    const int value = parse_number<int>(digits).value_or(0);
    return value <= most_side ? value : 0;
  };
  const size_t x = text.find('x');
  const Size size{number(text.substr(0, x)), number(x == std::string::npos ? text : text.substr(x + 1))};
  if (size.height < 1 || size.width < 1)
    throw Error(fmt::format("--size takes pixels such as 64 or 48x64 (height x width), not '{}'", text),
                fmt::format("a side has 1 to {}", most_side), ExitCode::usage);
  return size;
}

void check(const PackCommandOptions& o) {
  const int given = !o.cifar.empty() + !o.images.empty() + !o.digits.empty();
  if (given != 1)
    throw Error("data pack takes one of --cifar DIR, --images FOLDER and --digits FILE", "say what to pack",
                ExitCode::usage);
  if (o.images.empty() && (!o.size.empty() || o.skip_damaged || o.with_fraction))
    throw Error(fmt::format("{} is for --images", !o.size.empty()  ? "--size"
                                                  : o.skip_damaged ? "--skip-damaged"
                                                                   : "--test-fraction"),
                "leave it out", ExitCode::usage);
}

ImageSplits open_images(const PackCommandOptions& o, ProgressBar& bar) {
  const Size size = parse_size(o.size);
  const FolderSet set = open_image_folder(
      o.images, {.height = size.height,
                 .width = size.width,
                 .test_fraction = o.with_fraction ? std::optional(o.test_fraction) : std::nullopt,
                 .skip_damaged = o.skip_damaged,
                 .progress = [&](int64_t done, int64_t total) {
                   StopRequests::end_if_heard();
                   bar.show(done, total, "checking");
                 }});
  for (const std::string& sentence : set.notes) bar.say(sentence);
  for (const std::string& sentence : set.damaged) bar.say("left out: " + sentence);
  if (set.other_files > 0)
    bar.say(fmt::format("{} that {} not end in .jpg, .jpeg or .png: left out",
                        counted(set.other_files, "file"), set.other_files == 1 ? "does" : "do"));
  return set.splits;
}

// Networks take square images. Who names two sides wants others all the same.
void check_square(const PackCommandOptions& o, const Shape& chw, ProgressBar& bar) {
  if (chw[1] == chw[2]) return;
  const std::string what = fmt::format("have {} x {} pixels, and networks take square ones", chw[1], chw[2]);
  if (o.size.empty())
    throw Error(fmt::format("the images of {} {}", o.images, what),
                fmt::format("give --size {}, or --size {}x{} to keep them as they are",
                            std::min(chw[1], chw[2]), chw[1], chw[2]));
  bar.say("the images will " + what);
}

ImageSplits open(const PackCommandOptions& o, ProgressBar& bar) {
  if (!o.digits.empty()) return read_digits(o.digits);
  return o.cifar.empty() ? open_images(o, bar) : read_binary_files(published_set_in(o.cifar), o.cifar);
}

void run(const PackCommandOptions& o) {
  check(o);
  parse_size(o.size);
  check_writable({o.out_file});
  if (rank_hint() > 0) return;  // under mpirun rank 0 writes
  const StopRequests stop;      // so that no partial file remains
  StopRequests::work_begins();
  ProgressBar bar(stdout);
  const ImageSplits whole = open(o, bar), splits = o.grey ? in_grey(whole) : whole;
  const Shape chw = splits.train->image_shape();
  check_square(o, chw, bar);
  PackOptions options{.interleaved = o.layout == "nhwc",
                      .compressed = o.compress,
                      .normalisation = {},
                      .progress = [&](int64_t done, int64_t total) {
                        StopRequests::end_if_heard();
                        bar.show(done, total, "packing");
                      }};
  if (!o.cifar.empty() && !o.grey) options.normalisation = splits.train->normalisation();
  const bool all_grey = pack(splits, o.out_file, options).all_grey;
  bar.say(fmt::format("{}: {} for training and {} for tests, {} x {} pixels{}, {}", o.out_file,
                      counted(splits.train->size(), "image"), grouped(splits.test->size()), chw[1], chw[2],
                      chw[0] == 1 ? " in grey" : "", counted(splits.train->classes(), "class", "classes")));
  if (all_grey) bar.say("all images are grey: --grey stores one channel, a third of the bytes");
}

}  // namespace

void add_data_pack(CLI::App& data) {
  auto options = std::make_shared<PackCommandOptions>();
  PackCommandOptions& o = *options;
  CLI::App& command =
      add_command(data, "pack", "write a data set as one HDF5 file, for train --dataset hdf5:FILE",
                  "antichain data pack --images photos --size 64 --test-fraction 0.2 --out photos.h5");
  const OptionGroup add_from(command, "From"), add(command, "Images");
  add_from("--cifar DIR", o.cifar, {}, "folder of CIFAR-10's or CIFAR-100's binary files");
  add_from(
      "--images FOLDER", o.images, {},
      "folder with one sub-folder of .jpg, .jpeg and .png files per class, or with such a folder for each of "
      "train, val and test");
  add_from("--digits FILE", o.digits, {},
           "scikit-learn's handwritten digits: digits.csv.gz, 8 x 8 pixels, grey");
  CLI::Option* fraction = add_from("--test-fraction X", o.test_fraction, number_between(0, 0.9),
                                   "share of each class for tests, where no folder has them");
  add_from("--skip-damaged", o.skip_damaged, {}, "list damaged images and leave them out, instead of ending");
  add("--size N|HxW", o.size, {},
      "height and width in pixels: the middle part is cut out and scaled [as they are, if all are equal]");
  add("--grey", o.grey, {}, "store one channel: what is grey stays as it is, colours lose it");
  add("--layout NAME", o.layout, one_of("layout", {"nchw", "nhwc"}), "nchw: planes, or nhwc: pixels");
  add("--compress", o.compress, {}, "pack each image by gzip: smaller files, slower training");
  add_option(command, "Output", "--out FILE", o.out_file, {}, "the file to write")->required();
  command.callback([options, fraction] {
    options->with_fraction = fraction->count() > 0;
    run(*options);
  });
}

}  // namespace antichain
