#include "app/obtain/augment_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <string>

#include "app/cli/option_row.h"
#include "framework/error.h"

namespace antichain {

void add_augment_options(CLI::App& app, AugmentOptions& o) {
  using enum OptionKind;
  const Accepts share_of_mix = number_between(0, 1000);
  const OptionGroup add(app, "Augmentation");
  add("--crop NAME",
      {[&o](const std::string& name) { o.crop = parse_crop(name); },
       [&o] { return std::string(crop_names()[size_t(o.crop)]); }},
      one_of("way to crop", {crop_names().begin(), crop_names().end()}),
      "crop training images at a random place, up to an eighth of the side beyond the edges, where they are "
      "black or a mirror of the image (reflect); or do not (none)",
      {recipe, "crop"});
  add("--flip,!--no-flip", o.flip, {},
      "flip half of the training images left to right [the default]; --no-flip: where that changes what they "
      "show, as with digits",
      {recipe, "flip"});
  add("--trivial-augment", o.trivial, {},
      "change each training image by one of 14 operations of random strength: shears, rotation, contrast, … "
      "as torchvision's TrivialAugmentWide",
      {recipe, "TrivialAugment"});
  add("--erase X", o.erase, number_between(0, 1),
      "share of the training images in which a random rectangle, 2 to 33 % of the area, is erased",
      {recipe, "share of erased images"});
  add("--mixup ALPHA", o.mixup, share_of_mix,
      "mix each image and label of a batch with the one before it, by shares from Beta(ALPHA, ALPHA), as "
      "0.2; 0: do not",
      {recipe, "mixup"});
  add("--cutmix ALPHA", o.cutmix, share_of_mix,
      "paste a rectangle of the image before, of a share from Beta(ALPHA, ALPHA), as 1; labels mix by its "
      "area; with --mixup each batch has one of the two",
      {recipe, "cutmix"});
}

void leave_out_augmentation(const CLI::App& command, AugmentOptions& o) {
  const AugmentOptions none{.crop = Crop::none, .flip = false};
  AugmentOptions asked = none;
  if (command.count("--crop") > 0) asked.crop = o.crop;
  if (command.count("--flip") > 0) asked.flip = o.flip;
  if (command.count("--trivial-augment") > 0) asked.trivial = o.trivial;
  if (command.count("--erase") > 0) asked.erase = o.erase;
  if (command.count("--mixup") > 0) asked.mixup = o.mixup;
  if (command.count("--cutmix") > 0) asked.cutmix = o.cutmix;
  if (asked != none)
    throw Error(fmt::format("images with one label are augmented ({}), but the network reads other arrays",
                            describe(asked)),
                "leave out one of them", ExitCode::usage);
  o = none;
}

}  // namespace antichain
