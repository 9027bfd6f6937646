// Which network a weight file belongs to: a model's name, its form, and what changes the shapes of its
// tensors.
#pragma once

#include <string>

#include "app/cli/cli_forward.h"
#include "app/options/options.h"
#include "framework/files/weights.h"
#include "models/model.h"

namespace antichain {

struct NetworkForm {
  std::string model = "resnet20", form = "cifar";
  int classes = 0;  // 0: the form's usual
  double aux = 0;   // weight of the auxiliary loss

  ModelOptions options(int microbatch, int image = 0) const;  // image 0: the form's usual
};
void add_form_options(CLI::App&, NetworkForm&);

// --device and --threads, for what runs on one rank.
void add_one_rank_options(CLI::App&, MachineOptions&);

// --format hdf5 or safetensors; where it is not given, by the ending of the file's name (.h5, .hdf5,
// .safetensors).
void add_format_option(CLI::App&, std::string& format);
// Usage Error when neither says which.
WeightFormat format_of(const std::string& format, const std::string& file);

}  // namespace antichain
