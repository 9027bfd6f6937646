#include "app/obtain/augment_options.h"

#include <CLI/CLI.hpp>

#include "app/cli/checks.h"

namespace antichain {

void add_augment_options(CLI::App& app, AugmentOptions& o) {
  const char* group = "Augmentation";
  CLI::Option* crop = app.add_option_function<std::string>(
      "--crop", [&o](const std::string& name) { o.crop = parse_crop(name); },
      "crop training images at a random place, up to an eighth of the side beyond the edges, where they are "
      "black or a mirror of the image (reflect); or do not (none)");
  check_name(crop, "way to crop", {crop_names().begin(), crop_names().end()})
      ->type_name("NAME")
      ->default_str("black")
      ->group(group);
  app.add_flag("--flip,!--no-flip", o.flip,
               "flip half of the training images left to right [the default]; --no-flip: where that changes "
               "what they show, as with digits")
      ->group(group);
  app.add_flag("--trivial-augment", o.trivial,
               "change each training image by one of 14 operations of random strength: shears, rotation, "
               "contrast, … as torchvision's TrivialAugmentWide")
      ->group(group);
  CLI::Option* erase = app.add_option(
      "--erase", o.erase,
      "share of the training images in which a random rectangle, 2 to 33 % of the area, is erased");
  check_number(erase, 0, 1)->type_name("X")->capture_default_str()->group(group);
  const auto add_mix = [&](const char* name, double& alpha, const char* description) {
    CLI::Option* option = app.add_option(name, alpha, description);
    check_number(option, 0, 1000)->type_name("ALPHA")->capture_default_str()->group(group);
  };
  add_mix("--mixup", o.mixup,
          "mix each image and label of a batch with the one before it, by shares from Beta(ALPHA, ALPHA), as "
          "0.2; 0: do not");
  add_mix(
      "--cutmix", o.cutmix,
      "paste a rectangle of the image before, of a share from Beta(ALPHA, ALPHA), as 1; labels mix by its "
      "area; with --mixup each batch has one of the two");
}

}  // namespace antichain
