// These are the options of commands that work on a file of weights: which network it belongs to, and in which
// format such a file is written.
#pragma once

#include <string>

#include "app/cli/cli_forward.h"
#include "app/options/options.h"
#include "framework/files/weights.h"

namespace antichain {

// Adds --model and --graph, and what changes the shapes of a network's tensors: --form, --classes, --aux,
// --sequence and --vocabulary.
void add_form_options(CLI::App&, NetworkOptions&);

// Adds --device and --threads, for commands that run on one rank.
void add_one_rank_options(CLI::App&, MachineOptions&);

// Adds --format hdf5 or safetensors. By default the ending of the file's name decides (.h5, .hdf5,
// .safetensors).
void add_format_option(CLI::App&, std::string& format);
// Throws a usage Error when neither says which.
WeightFormat format_of(const std::string& format, const std::string& file);
// Throws one also where the name is that of a file which has no weights. "" is no file.
void check_weights_output(const std::string& format, const std::string& file);

}  // namespace antichain
