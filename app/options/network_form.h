// A NetworkForm says which network a weight file belongs to: a model's name, its form, and the options that
// change the shapes of its tensors.
#pragma once

#include <string>

#include "app/cli/cli_forward.h"
#include "app/options/options.h"
#include "framework/files/weights.h"
#include "models/model.h"

namespace antichain {

struct NetworkForm {
  std::string model = "resnet20", form = "cifar";
  std::string graph;  // the file or folder that the network comes from, or ""
  int classes = 0;    // 0: the form's usual
  double aux = 0;     // weight of the auxiliary loss

  ModelOptions options(int microbatch, int image = 0) const;  // image 0: the form's usual
};
void add_form_options(CLI::App&, NetworkForm&);

// Adds --device and --threads, for commands that run on one rank.
void add_one_rank_options(CLI::App&, MachineOptions&);

// Adds --format hdf5 or safetensors. By default the ending of the file's name decides (.h5, .hdf5,
// .safetensors).
void add_format_option(CLI::App&, std::string& format);
// Throws a usage Error when neither says which.
WeightFormat format_of(const std::string& format, const std::string& file);

}  // namespace antichain
